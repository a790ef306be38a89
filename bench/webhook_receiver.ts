/** The receiver of webhook.ts, a process of its own: `/hook` accepts, `/hang` never answers, `/times`
 * reports.
 */

interface Arrival {
  readonly seq: number;
  /** When the event was committed and when it arrived here: epoch milliseconds of the same machine. */
  readonly ptsMs: number;
  readonly atMs: number;
}

let arrivals: Arrival[] = [];
let opened = Promise.withResolvers<void>();
opened.resolve();

const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
  const { pathname } = new URL(request.url);
  if (pathname === "/hang") return await new Promise<Response>(() => {});
  if (pathname === "/bare") {
    await request.arrayBuffer();
    return new Response(null, { status: 204 });
  }
  if (pathname === "/close") {
    opened = Promise.withResolvers();
    arrivals = [];
    return new Response(null);
  }
  if (pathname === "/open") {
    opened.resolve();
    return new Response(null);
  }
  if (pathname === "/times") return Response.json(arrivals);
  const { sequence, pts_ms } = await request.json();
  await opened.promise;
  arrivals.push({ seq: sequence, ptsMs: pts_ms, atMs: performance.timeOrigin + performance.now() });
  return new Response(null, { status: 204 });
});
console.log(`listening on http://127.0.0.1:${server.addr.port}`);
