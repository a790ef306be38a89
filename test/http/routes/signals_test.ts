/** Signals in bins over HTTP: of a real decode, of another one than the latest, and what is refused. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { CLIPS, KEY_B, newRun, startService } from "../../support/service.ts";

const CLIP = join(CLIPS, "bbb480.mp4");

Deno.test("the bins of a real clip are those of its decoded frames", async () => {
  await using test = await startService();
  const run = `/v1/runs/${await newRun(test)}`;
  const empty = await test.call("GET", `${run}/signals`);
  assert.deepEqual([empty.status, empty.json.source_seq, empty.json.last_pts_ms, empty.json.pts_ms], [
    200,
    null,
    null,
    [],
  ]);

  for (const max_frames of [48, 96]) {
    const { status } = await test.call("POST", `${run}/ingest`, { source_uri: CLIP, max_frames });
    assert.equal(status, 200);
  }
  const { json: { events } } = await test.call("GET", `${run}/events`);
  // deno-lint-ignore no-explicit-any -- events as they come
  const decodes = events.filter(({ kind }: any) => kind === "frames_decoded");
  const latest = (await test.call("GET", `${run}/signals?points=8`)).json;
  assert.equal(latest.source_seq, decodes[1].seq);
  assert.deepEqual([latest.frames, latest.sample_fps], [96, decodes[1].payload.sample_fps]);
  assert.equal(latest.last_pts_ms, decodes[1].payload.signals.at(-1).pts_ms);
  assert.equal(latest.pts_ms.length, 8);
  const lumas = decodes[1].payload.signals.map(({ luma_mean }: { luma_mean: number }) => luma_mean);
  const { luma_mean } = latest.signals;
  assert.equal(Math.max(...luma_mean.max), Math.round(Math.max(...lumas) * 1e4) / 1e4);
  assert.equal(Math.min(...luma_mean.min), Math.round(Math.min(...lumas) * 1e4) / 1e4);

  const first =
    (await test.call("GET", `${run}/signals?source_seq=${decodes[0].seq}&from_ms=500&to_ms=1000`)).json;
  const times = decodes[0].payload.signals.map(({ pts_ms }: { pts_ms: number }) => pts_ms);
  assert.deepEqual(first.pts_ms, times.filter((ms: number) => ms >= 500 && ms <= 1000));
});

Deno.test("a wrong range, a wrong event and another caller are refused", async () => {
  await using test = await startService();
  const run = `/v1/runs/${await newRun(test)}`;
  await test.call("POST", `${run}/ingest`, { source_uri: CLIP, max_frames: 8 });
  const faults: Readonly<Record<string, string>> = {
    "points=0": "points",
    "points=4097": "points",
    "from_ms=2&to_ms=1": "from_ms",
    "source_seq=1": "source_seq", // run_created
    "source_seq=999999": "source_seq",
  };
  for (const [query, field] of Object.entries(faults)) {
    const { status, json } = await test.call("GET", `${run}/signals?${query}`);
    assert.deepEqual([status, json.error.details[0].field], [422, field], query);
  }
  for (const query of ["points=x", "from_ms=-1", "to_ms=1.5"]) {
    assert.equal((await test.call("GET", `${run}/signals?${query}`)).status, 400, query);
  }
  assert.equal((await test.call("GET", `${run}/signals`, undefined, KEY_B)).status, 404);

  const other = `/v1/runs/${await newRun(test)}`;
  await test.call("POST", `${other}/ingest`, { source_uri: CLIP, max_frames: 8 });
  const { json: { source_seq } } = await test.call("GET", `${other}/signals`);
  assert.equal((await test.call("GET", `${run}/signals?source_seq=${source_seq}`)).status, 422);
});
