import assert from "node:assert/strict";
import { join } from "node:path";
import {
  CLIPS,
  KEY_B,
  MODEL,
  MOVES_CLOCK,
  newRun,
  startService,
  type TestService,
} from "../../support/service.ts";
import { childProcesses } from "../../support/own_process.ts";
import { needing, SHARED_CLIPS, SHARED_CLIPS_FOLDER } from "../../support/needs.ts";
import { until } from "../../support/until.ts";
import { LONG_TEST } from "../../support/long_tests.ts";

const FILM = join(CLIPS, "bbb480.mp4");

function tempDirOf(test: TestService): string {
  return join(test.dataDir, "..", "tmp");
}

/** The temporary files and the processes that requests have not released. */
function leftovers(test: TestService): unknown[] {
  const files = [...Deno.readDirSync(tempDirOf(test))].map(({ name }) => name);
  return [...files, ...childProcesses(tempDirOf(test))];
}

function assertNothingLeft(test: TestService): void {
  assert.deepEqual(leftovers(test), []);
}

Deno.test("at one frame a second every cut of the film is still told, with the time of its frame", async () => {
  await using test = await startService();
  const rowsOf = async (body: object) => {
    const runId = await newRun(test);
    const ingested = await test.call("POST", `/v1/runs/${runId}/ingest`, { source_uri: FILM, ...body });
    assert.equal(ingested.status, 200, ingested.text);
    const { events } = (await test.call("GET", `/v1/runs/${runId}/events`)).json;
    return events[2].payload.signals as { pts_ms: number; cut_score: number; cut_pts_ms?: number }[];
  };
  const full = await rowsOf({ max_frames: 1000 });
  const cuts = full.filter(({ cut_pts_ms }) => cut_pts_ms !== undefined);
  assert.ok(cuts.length >= 3, `${cuts.length} cuts`);
  for (const { pts_ms, cut_score, cut_pts_ms } of cuts) {
    assert.equal(cut_pts_ms, pts_ms);
    assert.ok(cut_score >= 0.5);
  }
  const sampled = await rowsOf({ sampling_policy: "fixed", fixed_fps: 1 });
  assert.equal(sampled.length, 30);
  sampled.forEach(({ cut_score, cut_pts_ms }, row) => {
    const after = sampled[row - 1]?.pts_ms ?? -1;
    const until = sampled[row + 1] ? sampled[row]!.pts_ms : Infinity;
    const interval = full.filter(({ pts_ms }) => pts_ms > after && pts_ms <= until);
    const highest = Math.max(...interval.map(({ cut_score }) => cut_score));
    assert.equal(cut_score, highest, `row ${row}`);
    assert.equal(
      cut_pts_ms,
      interval.find(({ cut_score }) => cut_score === highest)!.cut_pts_ms,
      `row ${row}`,
    );
  });
  const told = sampled.filter(({ cut_pts_ms }) => cut_pts_ms !== undefined).length;
  assert.ok(told >= 2, `${told} of ${cuts.length} cuts`);
});

Deno.test("a real film becomes sampled frames with signals, rows with coordinates, and cuts where it was cut", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const ingested = await test.call("POST", `/v1/runs/${runId}/ingest`, {
    source_uri: FILM,
    max_frames: 1000,
  });
  assert.equal(ingested.status, 200, ingested.text);
  assert.deepEqual({ ...ingested.json, request_id: "" }, {
    request_id: "",
    run_id: runId,
    status: "processing",
    decoded_frames: 720,
    truncated: false,
    source_uri: FILM,
    sampling_policy: "source_fps_adaptive",
    source_fps: 24,
    sample_fps: 24,
  });
  const run = (await test.call("GET", `/v1/runs/${runId}`)).json;
  assert.deepEqual([run.status, run.source_uri], ["processing", FILM]);

  const { events } = (await test.call("GET", `/v1/runs/${runId}/events`)).json;
  assert.deepEqual(events.map(({ kind }: { kind: string }) => kind), [
    "run_created",
    "ingest_received",
    "frames_decoded",
  ]);
  assert.deepEqual(events[1].payload.ingest, {
    source_uri: FILM,
    sampling_policy: null,
    fixed_fps: null,
    sample_fps: null,
    max_frames: 1000,
    stream_id: null,
  });
  const decoded = events[2].payload;
  assert.deepEqual([decoded.width, decoded.height, decoded.signals.length], [854, 480, 720]);
  assert.deepEqual(decoded.signals.slice(0, 4).map(({ pts_ms }: { pts_ms: number }) => pts_ms), [
    0,
    42,
    83,
    125,
  ]);
  assert.deepEqual(Object.keys(decoded.signals[0]), [
    "frame_index",
    "pts_ms",
    "perceptual_hash",
    "luma_mean",
    "flicker_score",
    "ghosting_score",
    "noise_variance_score",
    "cut_score",
    "artifact_score",
  ]);

  const analyzed = (await test.call("POST", `/v1/runs/${runId}/analyze`, { model: MODEL })).json;
  assert.equal(analyzed.generated, 720);
  assert.equal(analyzed.metadata[0].coordinate_schema, "service.image.v1");
  assert.deepEqual(analyzed.metadata[0].coordinates.source_extent, { width: 854, height: 480 });
  assert.equal(analyzed.metadata[0].sample_fps, 24);
  const cuts = analyzed.markers.filter(({ event_type }: { event_type: string }) =>
    event_type === "scene_cut"
  );
  assert.ok(cuts.length >= 1, "the film has hard cuts");
  assertNothingLeft(test);
});

Deno.test("a fixed rate samples by time, and max_frames ends the decode", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const ingest = (body: Record<string, unknown>) =>
    test.call("POST", `/v1/runs/${runId}/ingest`, { source_uri: FILM, ...body });
  const fixed = await ingest({ sampling_policy: "FIXED", fixed_fps: 2 });
  assert.deepEqual([fixed.json.decoded_frames, fixed.json.sample_fps, fixed.json.sampling_policy], [
    60,
    2,
    "fixed",
  ]);
  const preferred = await ingest({ sampling_policy: "fixed", fixed_fps: 2, sample_fps: 1 });
  assert.equal(preferred.json.sample_fps, 1);
  const default512 = await ingest({});
  assert.deepEqual([default512.json.decoded_frames, default512.json.truncated], [512, true]);
  const all = await ingest({ max_frames: 720 });
  assert.deepEqual([all.json.decoded_frames, all.json.truncated], [720, false]);
  assert.equal(
    (await ingest({ sampling_policy: "fixed", fixed_fps: 2, max_frames: 60 })).json.truncated,
    false,
  );
  assert.equal(
    (await ingest({ sampling_policy: "fixed", fixed_fps: 2, max_frames: 59 })).json.truncated,
    true,
  );
  const stored = await test.call("GET", `/v1/runs/${runId}/events?kind=frames_decoded`);
  assert.match(stored.text, /"decoded_frames":512,"truncated":true/);
  assert.match(stored.text, /"decoded_frames":720,"truncated":false/);
  const three = await ingest({ max_frames: 3, stream_id: "door" });
  assert.equal(three.json.decoded_frames, 3);
});

Deno.test("what ingest refuses is 422 on its field, the run stays usable and nothing is left behind", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const check = async (body: Record<string, unknown>, field: string) => {
    const { status, json } = await test.call("POST", `/v1/runs/${runId}/ingest`, body);
    assert.equal(status, 422, JSON.stringify(body));
    assert.equal(json.error.details[0].field, field, JSON.stringify(json));
    assert.ok(json.error.details[0].message.length > 10);
  };
  Deno.writeTextFileSync(join(test.mediaDir, "empty.mp4"), "");
  Deno.writeTextFileSync(join(test.mediaDir, "text.mp4"), "this is not a video\n".repeat(100));
  Deno.writeTextFileSync(join(test.mediaDir, "list.mp4"), "#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1/x.ts\n");
  Deno.writeTextFileSync(join(test.mediaDir, "concat.mp4"), "ffconcat version 1.0\nfile /etc/passwd\n");
  Deno.writeFileSync(join(test.mediaDir, "half.mp4"), Deno.readFileSync(FILM).slice(0, 40));
  Deno.symlinkSync("/etc/passwd", join(test.mediaDir, "link.mp4"));
  await check({ source_uri: "" }, "source_uri");
  await check({ source_uri: join(test.mediaDir, "none.mp4") }, "source_uri");
  await check({ source_uri: "/etc/passwd" }, "source_uri");
  await check({ source_uri: test.mediaDir }, "source_uri");
  for (const name of ["empty.mp4", "text.mp4", "list.mp4", "concat.mp4", "half.mp4", "link.mp4"]) {
    await check({ source_uri: join(test.mediaDir, name) }, "source_uri");
  }
  await check({ source_uri: "ftp://example.com/a.mp4" }, "source_uri");
  await check({ source_uri: FILM, sampling_policy: "sometimes" }, "sampling_policy");
  await check({ source_uri: FILM, sampling_policy: "fixed" }, "fixed_fps");
  await check({ source_uri: FILM, sampling_policy: "fixed", fixed_fps: 0.1 }, "fixed_fps");
  await check({ source_uri: FILM, sampling_policy: "fixed", fixed_fps: 121 }, "fixed_fps");
  await check({ source_uri: FILM, fixed_fps: 121 }, "fixed_fps");
  await check({ source_uri: FILM, sample_fps: 0 }, "sample_fps");
  await check({ source_uri: FILM, max_frames: 0 }, "max_frames");
  await check({ source_uri: FILM, max_frames: 500_001 }, "max_frames");
  await check({ source_uri: FILM, frames: 3 }, "frames");
  await check({}, "source_uri");
  assertNothingLeft(test);
  const { events } = (await test.call("GET", `/v1/runs/${runId}/events`)).json;
  assert.equal(events.length, 1);
  assert.equal(
    (await test.call("POST", `/v1/runs/${runId}/ingest`, { source_uri: FILM, max_frames: 2 })).status,
    200,
  );
});

Deno.test("what a killed process left in the temp folder is gone after the next start", async () => {
  await using test = await startService();
  const names = [`clip-${"a".repeat(24)}.mp4`, `media-${"b".repeat(24)}.fifo`, `.part__${"c".repeat(32)}`];
  for (const name of names) Deno.writeTextFileSync(join(tempDirOf(test), name), "left behind");
  await test.restart();
  assertNothingLeft(test);
});

Deno.test("an upload is visible to its owner only", async () => {
  await using test = await startService();
  const owner = (await test.call("POST", "/v1/runs", {})).json.run_id;
  const { events } = (await test.call("GET", `/v1/runs/${owner}/events`)).json;
  const digest = await crypto.subtle.digest(
    "SHA-256",
    new TextEncoder().encode(events[0].payload.principal_key),
  );
  const path = join(test.uploadRoot, `${new Uint8Array(digest).toHex()}__film.mp4`);
  Deno.copyFileSync(FILM, path);
  const foreign = await newRun(test, KEY_B);
  const body = { source_uri: path, max_frames: 2 };
  assert.equal((await test.call("POST", `/v1/runs/${foreign}/ingest`, body, KEY_B)).status, 422);
  assert.equal((await test.call("POST", `/v1/runs/${owner}/ingest`, body)).status, 200);
});

Deno.test("a stop and a delete end a decode that is under way, and the caller gets the reason", async () => {
  await using test = await startService({ SERVICE_ACTIVE_STREAM_LIMIT: "10" });
  const slow = join(test.mediaDir, "slow.mp4");
  await makeSlowClip(slow);
  for (const [action, status] of [["stop", 409], ["delete", 404]] as const) {
    const runId = await newRun(test);
    const ingest = test.call("POST", `/v1/runs/${runId}/ingest`, { source_uri: slow, max_frames: 500_000 });
    await until("a decoder runs", () => childProcesses(tempDirOf(test)).length > 0);
    if (action === "stop") await test.call("POST", `/v1/runs/${runId}/stop`);
    else await test.call("DELETE", `/v1/runs/${runId}`);
    const answer = await ingest;
    assert.equal(answer.status, status, answer.text);
    await until("the decoder is gone", () => childProcesses(tempDirOf(test)).length === 0);
    assertNothingLeft(test);
  }
});

Deno.test("a decode that takes longer than the idle time does not expire its own run", async () => {
  await using test = await startService({ SERVICE_STREAM_TTL_SECS: "60" }, MOVES_CLOCK);
  const runId = await newRun(test);
  const ingest = test.call("POST", `/v1/runs/${runId}/ingest`, { source_uri: FILM });
  await until("a decoder runs", () => childProcesses(tempDirOf(test)).length > 0);
  test.advance(600_000);
  assert.equal((await ingest).status, 200);
  assert.equal((await test.call("GET", `/v1/runs/${runId}/state`)).json.state, "processing");
});

Deno.test("a caller who disconnects ends the decode, and callers that wait are served", async () => {
  await using test = await startService({ SERVICE_ACTIVE_STREAM_LIMIT: "20" });
  const slow = join(test.mediaDir, "slow.mp4");
  await makeSlowClip(slow);
  const deleteSession = new AbortController();
  const impatient = [];
  const runs: string[] = [];
  for (let caller = 0; caller < 6; caller++) {
    const runId = await newRun(test);
    runs.push(runId);
    impatient.push(
      test.send(`/v1/runs/${runId}/ingest`, {
        method: "POST",
        headers: { "x-api-key": "key-of-a", "content-type": "application/json" },
        // The runtime itself notices only those with at most 512 bytes.
        body: JSON.stringify({ source_uri: slow, max_frames: 500_000 }) + " ".repeat(caller * 500),
        signal: deleteSession.signal,
      }).catch((error) => error.name),
    );
  }
  await until("decoders run", () => childProcesses(tempDirOf(test)).length > 0);
  const patient = test.call("POST", `/v1/runs/${await newRun(test)}/ingest`, {
    source_uri: FILM,
    max_frames: 2,
  });
  deleteSession.abort();
  assert.deepEqual(new Set(await Promise.all(impatient)), new Set(["AbortError"]));
  assert.equal((await patient).status, 200);
  await until("nothing is left", () => leftovers(test).length === 0);
  for (const runId of runs) {
    const { json } = await test.call("GET", `/v1/runs/${runId}/events`);
    const kinds = json.events.map(({ kind }: { kind: string }) => kind);
    assert.deepEqual(kinds, ["run_created"], "no decode came to its end by itself");
  }
});

/** Makes half an hour of film, repeated without encoding again: it takes seconds to decode on any machine. */
async function makeSlowClip(path: string): Promise<void> {
  const { success, stderr } = await new Deno.Command("ffmpeg", {
    args: ["-v", "error", "-stream_loop", "60", "-i", FILM, "-map", "0:v", "-c", "copy", path],
  }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
}

Deno.test({
  ...needing(SHARED_CLIPS, "every real clip ingests or is refused on source_uri"),
  ...LONG_TEST,
  async fn() {
    await using test = await startService({ SERVICE_ACTIVE_STREAM_LIMIT: "100" });
    const runId = await newRun(test);
    for (
      const { name } of [...Deno.readDirSync(SHARED_CLIPS_FOLDER)].sort((a, b) => a.name < b.name ? -1 : 1)
    ) {
      const path = join(test.mediaDir, name);
      Deno.copyFileSync(join(SHARED_CLIPS_FOLDER, name), path);
      const { status, json } = await test.call("POST", `/v1/runs/${runId}/ingest`, {
        source_uri: path,
        max_frames: 30,
      });
      const isBroken = ["bad_empty", "bad_notvideo", "bad_truncated_nomoov", "bad_audio_only"]
        .some((broken) => name.startsWith(broken));
      assert.equal(status, isBroken ? 422 : 200, `${name}: ${JSON.stringify(json).slice(0, 300)}`);
      if (isBroken) assert.equal(json.error.details[0].field, "source_uri");
    }
    assertNothingLeft(test);
  },
});

Deno.test("while a source is decoded the state of its run says how far it is, up to its end or that of max_frames", async () => {
  await using test = await startService();
  // The sound of the film ends 22 ms after its pictures for ffprobe 5.1, and with them for 7.1.
  for (
    const { max_frames, ends } of [{ max_frames: 1000, ends: [30_022, 30_000] }, {
      max_frames: 480,
      ends: [20_000],
    }]
  ) {
    const runId = await newRun(test);
    const progress = async () => (await test.call("GET", `/v1/runs/${runId}/state`)).json.progress;
    assert.equal(await progress(), null);
    const seen: { frames: number; pts_ms: number }[] = [];
    let isOver = false;
    const ingested = test.call("POST", `/v1/runs/${runId}/ingest`, { source_uri: FILM, max_frames })
      .finally(() => isOver = true);
    await until("the ingest is over", async () => {
      const now = await progress();
      if (now !== null) seen.push(now);
      if (now !== null) assert.ok(now.work === "ingest" && ends.includes(now.end_ms), JSON.stringify(now));
      return isOver;
    });
    assert.equal((await ingested).status, 200);
    const moved = seen.filter(({ frames }) => frames > 0);
    assert.ok(new Set(moved.map(({ frames }) => frames)).size > 3, JSON.stringify(seen.slice(0, 5)));
    for (const { frames, pts_ms } of moved) assert.ok(Math.abs(pts_ms - (frames - 1) * 1000 / 24) < 2);
    assert.deepEqual(moved, moved.toSorted((a, b) => a.frames - b.frames));
    assert.equal(await progress(), null);
  }
});
