/** The model server of infer.ts, a process of its own: answers every chat completion after the given milliseconds. */

const delayMs = Number(Deno.args[0]);
const ANSWER = JSON.stringify({
  id: "chatcmpl-1",
  object: "chat.completion",
  choices: [{
    index: 0,
    message: { role: "assistant", content: "A forklift waits at the dock." },
    finish_reason: "stop",
  }],
  usage: { prompt_tokens: 31, completion_tokens: 6, total_tokens: 37 },
});

const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
  await request.arrayBuffer();
  await new Promise((resolve) => setTimeout(resolve, delayMs));
  return new Response(ANSWER, { headers: { "content-type": "application/json" } });
});
console.log(`listening on http://127.0.0.1:${server.addr.port}`);
