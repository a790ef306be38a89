/** What a measurement takes from a decode, which videos it finds, and which sources a frame belongs to. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { measureAll, predictionsOf } from "../../lab/scores/measure.ts";
import type { Truth } from "../../lab/scores/truth.ts";
import { findVideos, kindOf, originsOf } from "../../lab/scores/videos.ts";
import { ARTIFACT_KINDS } from "../../src/model/frames/detected_range.ts";
import type { SignalColumns } from "../../src/model/frames/signals.ts";
import { TemporaryFolder } from "../support/folders.ts";
import { make } from "../support/media.ts";

Deno.test("cuts are the frames from the threshold on, ranges have the frame after their last, faults that touch are one", () => {
  const artifactScore = new Float32Array(8);
  artifactScore.set([0.5, 0.9], 2);
  artifactScore[6] = 0.7;
  const artifactKind = new Uint8Array(8);
  artifactKind.set([1 + ARTIFACT_KINDS.indexOf("combing"), 1], 2);
  artifactKind[6] = 1 + ARTIFACT_KINDS.indexOf("flicker");
  const signals = {
    count: 8,
    cutScore: new Float32Array([0, 0.49, 0.5, 0, 0, 1, 0, 0]),
    artifactScore,
    artifactKind,
  } as Partial<SignalColumns> as SignalColumns;
  const range = { startPtsMs: 0, endPtsMs: 0, confidence: 1 };
  const found = predictionsOf(signals, [
    { ...range, type: "black", startFrame: 1, endFrame: 3 },
    { ...range, type: "repeat", startFrame: 4, endFrame: 4 },
  ]);
  assert.deepEqual(found.cuts, [2, 5]);
  assert.deepEqual(found.black, [{ start: 1, end: 4 }]);
  assert.deepEqual(found.loops, [{ start: 4, end: 5 }]);
  assert.deepEqual(found.freezes, []);
  assert.deepEqual(found.artifacts, [
    { start: 2, end: 4, kind: "combing" },
    { start: 6, end: 7, kind: "flicker" },
  ]);
  assert.equal(predictionsOf({ ...signals, artifactScore: undefined! }, []).artifacts, undefined);
});

Deno.test("a frame has the origin of its shot; each drawn shot is an origin of its own", () => {
  const truth: Truth = {
    name: "mixed",
    video: "mixed.mp4",
    cuts: [10, 20],
    shots: [
      { start: 0, src: "drawn:plain", src_t: 0, origin: "drawn:plain" },
      { start: 10, src: "bbb480.mp4", src_t: 0 },
      { start: 20, src: "flower_cc0.mp4", src_t: 0, origin: "flower" },
      { start: 30, src: "drawn:plain", src_t: 0 },
    ],
  };
  const [bunny, flower] = ["big buck bunny", "flower"];
  assert.deepEqual([0, 10, 19, 20, 40].map(originsOf(truth)), [
    ...["mixed/0", bunny, bunny, flower, "mixed/30"],
  ]);
  const real: Truth = { name: "N_bbb480", video: "../clips/bbb480.mp4", cuts: [] };
  assert.equal(originsOf(real)(7), bunny);
  assert.deepEqual([truth, { ...truth, kind: "pan" }, { ...truth, name: "D08b_talk" }, real].map(kindOf), [
    ...["real", "pan", "edit: talk", "real"],
  ]);
});

Deno.test("videos are found beside their truth or among the clips, and every frame is measured whatever the rate", async () => {
  using folder = new TemporaryFolder();
  for (const name of ["truth", "clips"]) Deno.mkdirSync(join(folder.path, name));
  const label = (name: string, truth: Partial<Truth>) =>
    Deno.writeTextFileSync(
      join(folder.path, "truth", `${name}.truth.json`),
      JSON.stringify({ name, cuts: [], ...truth }),
    );
  label("a", { video: "a.mp4" });
  label("b", { video: "elsewhere/b.mp4" });
  const source = [
    "-f",
    "lavfi",
    "-i",
    "color=red:s=64x64:r=100:d=0.4[a];color=blue:s=64x64:r=100:d=0.4[b];[a][b]concat",
  ];
  make(join(folder.path, "truth", "a.mp4"), ...source, "-c:v", "mpeg4");
  make(join(folder.path, "clips", "b.mp4"), ...source, "-c:v", "mpeg4");
  const videos = await findVideos([folder.path]);
  assert.deepEqual(videos.map(({ truth }) => truth.name), ["a", "b"]);
  const cache = join(folder.path, "cache");
  const measured = await measureAll(videos.map(({ path }) => path), { jobs: 2, cache });
  assert.deepEqual(measured.map(({ frames }) => frames), [80, 80]);
  assert.deepEqual(measured.map(({ path }) => path), videos.map(({ path }) => path));
  Deno.writeTextFileSync(
    join(cache, [...Deno.readDirSync(cache)][0]!.name),
    JSON.stringify({ frames: 1, predictions: {} }),
  );
  const again = await measureAll(videos.map(({ path }) => path), { cache });
  assert.deepEqual(
    again.map(({ frames }) => frames).sort(),
    [1, 80],
    "the second time is read from the cache",
  );
  Deno.writeTextFileSync(
    join(folder.path, "truth", "c.truth.json"),
    JSON.stringify({ name: "c", video: "c.mp4" }),
  );
  await assert.rejects(findVideos([folder.path]), /Cannot measure c: there is no .*c\.mp4/);
});
