/** `events`, `markers` and `search`: the same as the API gives, as tables and as files, and harmless on a
 * terminal.
 */

import assert from "node:assert/strict";
import { CliUser } from "../support/cli/cli.ts";
import {
  CLIPS,
  KEY_A,
  MODEL,
  newRun,
  REACHES_IN,
  startService,
  type TestService,
} from "../support/service.ts";
import { event } from "../../src/model/events/event_table.ts";

async function analyzedRun(test: TestService): Promise<string> {
  const run = await newRun(test);
  const source = { source_uri: `${CLIPS}/bbb120.mp4`, max_frames: 400 };
  assert.equal((await test.call("POST", `/v1/runs/${run}/ingest`, source)).status, 200);
  assert.equal((await test.call("POST", `/v1/runs/${run}/analyze`, { model: MODEL })).status, 200);
  return run;
}

async function textOf(test: TestService, path: string, accept: string): Promise<string> {
  return (await test.send(path, { headers: { "x-api-key": KEY_A, accept } })).text;
}

Deno.test("events are printed as the API gives them, with all digits, and filtered by kind and number", async () => {
  await using test = await startService();
  using user = new CliUser(test.url);
  const run = await analyzedRun(test);
  const api = await textOf(test, `/v1/runs/${run}/events`, "application/x-ndjson");
  assert.match(api, /"perceptual_hash":\d{18}/);
  assert.equal((await user.run(["events", run, "--json"])).stdout, api);
  assert.equal(
    (await user.run(["events", run, "--csv"])).stdout,
    await textOf(test, `/v1/runs/${run}/events`, "text/csv"),
  );

  const lines = api.trimEnd().split("\n").map((line) => JSON.parse(line));
  const markers = lines.filter(({ kind }) => kind === "marker_emitted").map(({ seq }) => String(seq));
  assert.deepEqual(
    (await user.run(["events", run, "--kind", "marker_emitted", "-q"])).stdout.trimEnd().split("\n"),
    markers,
  );
  const last = await user.run(["events", run, "--from-seq", String(lines.at(-1).seq)]);
  assert.match(
    last.stdout,
    new RegExp(`^ *${lines.at(-1).seq} {2}[\\d-]+ [\\d:.]+ {2}analysis_generated +\\{`),
  );
  assert.equal(last.stdout.split("\n").length, 2);
  const table = (await user.run(["events", run])).stdout;
  assert.match(table, /marker_emitted +\w+ 0:\d\d\.\d{3} – 0:\d\d\.\d{3} (exact|provisional)/);
  const none = await user.run(["events", run, "--index", "nothing"]);
  assert.deepEqual([none.code, none.stdout, none.stderr], [0, "", "no events\n"]);
  assert.equal((await user.run(["events", run, "--csv", "--kind", "vlm"])).code, 2);
});

Deno.test("markers are printed as a table, as JSON and in every format", async () => {
  await using test = await startService();
  using user = new CliUser(test.url);
  const run = await analyzedRun(test);
  const path = `/v1/runs/${run}/markers`;
  assert.deepEqual(await user.json(["markers", run]), (await test.call("GET", path)).json.markers);
  const cuts = await user.json(["markers", run, "--event-type", "scene_cut", "--to-frame", "300"]);
  assert.deepEqual(cuts.map(({ start_frame }: { start_frame: number }) => start_frame), [285]);
  const [head, first] = (await user.run(["markers", run, "--event-type", "scene_cut"])).stdout.split("\n");
  assert.match(head!, /^MARKER +FROM +TO +FRAMES +CONFIDENCE +STATUS +TYPE$/);
  assert.match(first!, /^mk-\w{8} +0:11\.875 +0:11\.875 +285 +0\.\d\d +exact +scene_cut$/);
  const types = { csv: "text/csv", vtt: "text/vtt", edl: "text/x-edl", ndjson: "application/x-ndjson" };
  for (const [format, accept] of Object.entries(types)) {
    const printed = await user.run(["markers", run, "--format", format, "--status", "exact"]);
    assert.equal(printed.stdout, await textOf(test, `${path}?status=exact`, accept), format);
  }
});

Deno.test("a search finds descriptions, tells how many more there are, and can be kept to one run", async () => {
  await using test = await startService({}, REACHES_IN);
  using user = new CliUser(test.url);
  const [run, other] = [await newRun(test), await newRun(test)];
  for (
    const [runId, description] of [[run, "A red car"], [run, "Two red cars"], [
      other,
      "Red \x1b[31mcar\u202e",
    ]]
  ) {
    test.service.timeline.commit(() => [{
      ...{ kind: "multimodal_moment", runId: runId! },
      payload: { description, pts_ms: 61_500 },
    }]);
  }
  const all = await user.json(["search", "red"]);
  assert.deepEqual([all.total_hits, all.hits.length], [3, 3]);
  const some = await user.run(["search", "RED", "--run", run, "--limit", "1"]);
  assert.match(
    some.stdout,
    /^RUN +SEQ +TIME +KIND +SCORE +DESCRIPTION\nrun-\w+ +\d+ +1:01\.500 +multimodal_moment +0\.80 +A red car\n$/,
  );
  assert.equal(some.stderr, "1 of 2 hits; --limit shows more\n");
  const harmless = (await user.run(["search", "31mcar"])).stdout;
  assert.ok(harmless.includes("Red \\x1b[31mcar\\u202e\n"), harmless);
  const json = await user.run(["search", "31mcar", "--json"]);
  // deno-lint-ignore no-control-regex -- none of these may be printed
  assert.doesNotMatch(json.stdout, /[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]/);
  assert.equal(JSON.parse(json.stdout).hits[0].description, "Red \x1b[31mcar\u202e");
  assert.equal((await user.run(["search", "red", "--limit", "0"])).code, 2);
  assert.equal((await user.run(["search", "nothing of this"])).stderr, "nothing was found\n");
});

Deno.test("a reader that goes away ends the command without an error", async () => {
  await using test = await startService({}, REACHES_IN);
  using user = new CliUser(test.url);
  const run = await newRun(test);
  for (let index = 0; index < 20_000; index += 100) {
    test.service.timeline.commit(() =>
      Array.from(
        { length: 100 },
        (_, at) => event("keepalive_refreshed", run, { request_id: `req-${index + at}` }),
      )
    );
  }
  for (const args of ["events RUN", "events RUN --json", "events RUN --csv"]) {
    const script = `"$0" ${args.replace("RUN", run)} | head -n 1; echo "\${PIPESTATUS[0]}"`;
    const { stdout, stderr } = await new Deno.Command("bash", {
      args: ["-c", script, new URL("../../scripts/cli", import.meta.url).pathname],
      env: user.env(),
      clearEnv: true,
    }).output();
    const lines = new TextDecoder().decode(stdout).trimEnd().split("\n");
    assert.deepEqual([lines.length, lines[1]], [2, "0"], args);
    assert.equal(new TextDecoder().decode(stderr), "", args);
  }
});
