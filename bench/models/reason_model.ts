/** The model server of reason.ts, a process of its own: answers at once; after `/hold` never; `/counts`
 * reports.
 */

const ANSWER = JSON.stringify({
  choices: [{
    index: 0,
    message: {
      role: "assistant",
      content: JSON.stringify({
        event_type: "context_observation",
        object_label: "rabbit",
        summary: "A rabbit in a meadow",
        description: "A large rabbit stands in a meadow.",
        confidence: 0.9,
      }),
    },
    finish_reason: "stop",
  }],
  usage: { prompt_tokens: 800, completion_tokens: 50, total_tokens: 850 },
});

let asked = 0;
let answered = 0;
let isHeld = false;

const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
  const { pathname } = new URL(request.url);
  if (pathname === "/counts") return Response.json({ asked, answered });
  if (pathname === "/hold") {
    isHeld = true;
    return new Response(null);
  }
  asked++;
  await request.arrayBuffer();
  if (isHeld) {
    await new Promise((resolve) => request.signal.addEventListener("abort", resolve));
    return new Response(null, { status: 503 });
  }
  answered++;
  return new Response(ANSWER, { headers: { "content-type": "application/json" } });
});
console.log(`listening on http://127.0.0.1:${server.addr.port}`);
