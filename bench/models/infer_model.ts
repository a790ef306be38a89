/**
 * The model server of infer.ts, a process of its own: answers every chat completion after as many
 * milliseconds as it may have tokens. Its answer is the milliseconds that it really took, as its timers are
 * late by up to two.
 */

const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
  const startedMs = performance.now();
  const { max_tokens: delayMs } = await request.json();
  await new Promise((resolve) => setTimeout(resolve, delayMs));
  const tookMs = performance.now() - startedMs;
  return Response.json({
    id: "chatcmpl-1",
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", content: String(tookMs) }, finish_reason: "stop" }],
    usage: { prompt_tokens: 31, completion_tokens: 6, total_tokens: 37 },
  });
});
console.log(`listening on http://127.0.0.1:${server.addr.port}`);
