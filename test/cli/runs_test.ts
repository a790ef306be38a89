/** `runs`, `states` and `health`, run as a user runs them: what is printed, and with which exit code they
 * end.
 */

import assert from "node:assert/strict";
import { CliUser } from "../support/cli/cli.ts";
import { KEY_B, startService } from "../support/service.ts";

Deno.test("health needs no key, and tells an address at which nobody answers from one that does", async () => {
  await using test = await startService();
  using user = new CliUser(test.url, null);
  assert.deepEqual(await user.json(["health"]), { status: "ok" });
  const { code, stdout } = await user.run(["health"]);
  assert.equal(code, 0);
  assert.match(stdout, /^ok {2}http:\/\/127\.0\.0\.1:\d+ answered in \d+ ms\n$/);

  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  const nobody = await user.run(["--url", `http://127.0.0.1:${port}`, "health"]);
  assert.equal(nobody.code, 3);
  assert.match(nobody.stderr, /^error: cannot reach http:\/\/127\.0\.0\.1:\d+: connection refused\nhint: /);
});

Deno.test("a redirect is not followed, so that the key goes nowhere else", async () => {
  const asked: (string | null)[] = [];
  await using elsewhere = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    asked.push(request.headers.get("x-api-key"));
    return Response.json([]);
  });
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    () =>
      new Response(null, {
        status: 302,
        headers: { location: `http://127.0.0.1:${elsewhere.addr.port}/v1/runs` },
      }),
  );
  using user = new CliUser(`http://127.0.0.1:${server.addr.port}`);
  for (const command of [["runs", "list"], ["events", `run-${"0".repeat(32)}`]]) {
    const { code, stderr } = await user.run(command);
    assert.equal(code, 3);
    assert.match(stderr, /^error: http:\/\/127\.0\.0\.1:\d+ answers with a redirect, which is not followed/);
  }
  assert.deepEqual(asked, []);
});

Deno.test("a run is created, listed, shown, kept alive, stopped and deleted", async () => {
  await using test = await startService();
  using user = new CliUser(test.url);
  const id = (await user.run(["-q", "runs", "create", "--mode", "detailed"])).stdout.trim();
  assert.match(id, /^run-[0-9a-f]{32}$/);
  const shown = await user.json(["runs", "show", id]);
  assert.deepEqual(shown, (await test.call("GET", `/v1/runs/${id}`)).json);
  assert.match(
    (await user.run(["runs", "show", id])).stdout,
    /^run_id +run-\w+\nstatus +pending\nmode +detailed\n/,
  );
  assert.equal((await user.json(["run-create"])).status, "pending");

  assert.deepEqual(await user.json(["runs", "list"]), (await test.call("GET", "/v1/runs")).json);
  const ids = async (...flags: string[]) =>
    (await user.run(["-q", "runs", "list", ...flags])).stdout.trim().split("\n");
  const oldest = await ids();
  assert.deepEqual(await ids("--newest"), oldest.toReversed());
  assert.deepEqual(await ids("--newest", "--limit", "1"), oldest.slice(-1));
  assert.deepEqual(await ids("--limit", "1"), oldest.slice(0, 1));
  const table = (await user.run(["runs", "list"])).stdout.trimEnd().split("\n");
  assert.match(table[0]!, /^RUN +STATUS +MODE +CREATED +UPDATED +SOURCE$/);
  assert.equal(table.length, 3);
  assert.equal((await user.run(["run", "list", "-q"])).stdout.split("\n")[0], id);

  assert.deepEqual(await user.json(["runs", "keepalive", id]), { run_id: id, state: "processing" });
  assert.deepEqual(await user.json(["runs", "hold", id]), { run_id: id, on_hold: true });
  assert.equal((await user.run(["runs", "rm", id])).code, 6);
  assert.deepEqual(await user.json(["runs", "release", id]), { run_id: id, on_hold: false });
  assert.deepEqual((await user.json(["runs", "list", "--status", "processing"])).length, 1);
  const counts = await user.json(["states"]);
  assert.deepEqual(
    counts.map(({ state, runs }: { state: string; runs: number }) => [state, runs]).slice(0, 2),
    [
      ["pending", 1],
      ["processing", 1],
    ],
  );
  assert.match((await user.run(["states"])).stdout, /^cancelled +0 +yes +stopped by its owner$/m);
  assert.deepEqual(await user.json(["runs", "stop", id]), { run_id: id, status: "cancelled" });
  const again = await user.run(["runs", "stop", id]);
  assert.equal(again.code, 6);
  assert.match(again.stderr, /^error: run_id: run is cancelled \(conflict, HTTP 409, req-[0-9a-f]{16}\)\n$/);

  assert.deepEqual(await user.json(["runs", "rm", id]), { run_id: id, deleted: true });
  const gone = await user.run(["runs", "show", id]);
  assert.deepEqual([gone.code, gone.stdout], [5, ""]);
  assert.match(gone.stderr, /^error: run_id: not found \(not_found, HTTP 404, req-[0-9a-f]{16}\)\n$/);
});

Deno.test("a refused key, another's run, a broken id and a misspelt command have exit codes of their own", async () => {
  await using test = await startService();
  using user = new CliUser(test.url);
  const id = (await user.run(["-q", "runs", "create"])).stdout.trim();
  for (const args of [["runs", "list"], ["events", id]]) {
    const refused = await user.run(["--api-key", "a-wrong-key", ...args]);
    assert.equal(refused.code, 4);
    assert.match(refused.stderr, /\(unauthorized, HTTP 401, req-\w+\)\nhint: /);
    assert.ok(!refused.stderr.includes("a-wrong-key"));
  }
  assert.equal((await user.run(["runs", "show", id, "--api-key", KEY_B])).code, 5);
  assert.equal((await user.run(["runs", "show", "nonsense"])).code, 6);
  const misspelt = await user.run(["runs", "lst"]);
  assert.equal(misspelt.code, 2);
  assert.match(misspelt.stderr, /unknown command 'lst'\n\(Did you mean list\?\)/);
  assert.equal((await user.run(["runs", "show"])).code, 2);
  assert.equal((await user.run(["runs", "create", "--mode", "slow"])).code, 2);
  assert.equal((await user.run(["--url", "ftp://example.org", "health"])).code, 2);
  const edge = await user.run(["edge", "status", "--once"]);
  assert.equal(edge.code, 2);
  assert.match(edge.stderr, /^error: edge commands are not part of this program\n/);
});
