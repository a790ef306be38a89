/** What the command line makes of servers that are not the service, that stop in the middle, or never end;
 * and of terminals.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { CliUser } from "../support/cli/cli.ts";
import { needing, SCRIPT } from "../support/needs.ts";
import { PROJECT_ROOT } from "../support/service.ts";
import { until } from "../support/until.ts";
import { startScripted } from "../client/scripted_service.ts";

const RUN = `run-${"0".repeat(32)}`;
const COMMANDS = [
  ["health"],
  ["runs", "list"],
  ["runs", "create"],
  ["models"],
  ["events", RUN],
  ["markers", RUN, "--format", "csv"],
  ["watch", RUN],
  ["runs", "export", RUN, "folder"],
];

Deno.test("a server that answers something else is told as such, with nothing on stdout and nothing written", async () => {
  await using service = startScripted((_, { path }) =>
    new Response(path.endsWith("/state") ? '{"state":"pending"}' : "null", {
      headers: { "content-type": path.includes("/events") ? "text/html" : "application/json" },
    })
  );
  using user = new CliUser(service.url);
  const ends = await Promise.all(COMMANDS.map((args) => user.run(args)));
  for (const [index, { code, stdout, stderr }] of ends.entries()) {
    assert.deepEqual([code, stdout], [7, ""], `${COMMANDS[index]}: ${stderr}`);
    assert.match(stderr, /^error: .*(not one of this service|not as this service|the type text\/html)/);
    assert.match(stderr, /\nhint: --url has to name/);
  }
  assert.deepEqual([...Deno.readDirSync(user.home)], []);
});

Deno.test("an answer that is cut off, and one without an end, are told and not waited for", async () => {
  const endless = () =>
    new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(1 << 20).fill(0x20)),
    });
  await using service = startScripted((_, { path }) =>
    path.includes("/events")
      ? new Response(
        new ReadableStream({
          start: (controller) => controller.enqueue(new TextEncoder().encode('{"seq":1,"pts_ms"')),
          pull: (controller) => controller.error(new Error("cut")),
        }),
        { headers: { "content-type": "application/x-ndjson" } },
      )
      : new Response(endless(), { headers: { "content-type": "application/json" } })
  );
  using user = new CliUser(service.url);
  const [cut, long] = await Promise.all([user.run(["events", RUN]), user.run(["runs", "list"])]);
  assert.equal(cut.code, 3, cut.stderr);
  assert.match(cut.stderr, /^error: cannot reach /);
  assert.equal(long.code, 7, long.stderr);
  assert.match(long.stderr, /^error: GET \/v1\/runs: the answer has more than \d+ bytes/);
});

Deno.test({
  ...needing(SCRIPT, "progress on a terminal"),
  async fn() {
    let asked = 0;
    await using service = startScripted(async (_, { path }) => {
      if (path === "/v1/upload") return Response.json({ file_path: "/up/film.mp4" });
      if (path === "/v1/runs") return Response.json({ run_id: RUN });
      if (path.endsWith("/state")) {
        asked++;
        const progress = { work: "ingest", frames: 240 * asked, pts_ms: 10_000 * asked, end_ms: 40_000 };
        return Response.json({ state: "pending", progress });
      }
      if (path.endsWith("/ingest")) {
        await until("the progress was asked for", () => asked >= 3);
        return Response.json({ decoded_frames: 960, sample_fps: 24, truncated: false });
      }
      return Response.json({ markers: [], metadata: [] });
    });
    using user = new CliUser(service.url);
    Deno.writeTextFileSync(join(user.home, "a long name 日本.mp4"), "a film");
    const onTerminal = async (columns: number, ...args: string[]) => {
      asked = 0;
      const command = [join(PROJECT_ROOT, "scripts", "cli"), ...args].map((word) => `'${word}'`).join(" ");
      const { stdout } = await new Deno.Command("script", {
        args: ["-qec", `stty cols ${columns}; ${command}`, "/dev/null"],
        env: user.env({ TERM: "xterm" }),
        clearEnv: true,
        cwd: user.home,
        stdin: "null",
      }).output();
      return new TextDecoder().decode(stdout);
    };
    const wide = await onTerminal(120, "analyze", "a long name 日本.mp4");
    assert.match(wide, /uploading a long name 日本\.mp4/);
    assert.match(
      wide,
      /decoding a long name 日本\.mp4 \[#+-+\] +\d+ % {2}0:[123]0\.000 of 0:40\.000 {2}[\d.]+ times its pace {2}\d+ s left/,
    );
    const narrow = await onTerminal(40, "analyze", "a long name 日本.mp4");
    const drawn = narrow.split("\r\x1b[K").slice(1, -1).filter((line) => !line.includes("\n"));
    assert.ok(drawn.some((line) => line.startsWith("decoding")), narrow);
    // A line as wide as the terminal would wrap, and then be left behind.
    for (const line of drawn) assert.ok(line.length < 40, JSON.stringify(line));
    const quiet = await onTerminal(120, "--quiet", "analyze", "a long name 日本.mp4");
    assert.ok(!quiet.includes("decoding") && !quiet.includes("\x1b[K"), quiet);
  },
});
