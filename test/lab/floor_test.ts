/** What the service finds in the small quality set: no figure may fall below its floor. */

import assert from "node:assert/strict";
import { measureAll } from "../../lab/scores/measure.ts";
import { type Figure, tallyVideo } from "../../lab/scores/score.ts";
import {
  falseMarkersInTenMinutes,
  rateOf,
  scoreTable,
  sumOf,
  totalsOf,
} from "../../lab/scores/score_table.ts";
import { makeSmallSet } from "../../lab/small_set.ts";
import { findVideos, kindOf } from "../../lab/scores/videos.ts";
import { TemporaryFolder } from "../support/folders.ts";
import { LONG_TEST } from "../support/long_tests.ts";

/** A little under what the code reaches; a change that reaches more raises it. */
const LEAST_F1: Readonly<Partial<Record<Figure, number>>> = {
  cuts: 0.98,
  gradual: 0.88,
  flashes: 0.88,
  freezes: 0.99,
  black: 0.99,
  loops: 0.74,
  artifact_frames: 0.6,
};

Deno.test("the markers of the small quality set are as good as they were", LONG_TEST, async () => {
  using folder = new TemporaryFolder();
  await makeSmallSet(folder.path);
  const videos = await findVideos([folder.path]);
  const measured = await measureAll(videos.map(({ path }) => path));
  const totals = totalsOf(videos.map(({ truth }, at) => {
    assert.equal(measured[at]!.frames, truth.frames, `frames of ${truth.name}`);
    return { kind: kindOf(truth), tally: tallyVideo(truth, measured[at]!.predictions) };
  }));
  const fallen = Object.entries(LEAST_F1).filter(([figure, least]) =>
    !((rateOf(sumOf(totals), figure as Figure)?.f1 ?? 0) >= least)
  );
  assert.deepEqual(fallen, [], `below the floor: ${fallen.join(" ")}\n${scoreTable(totals)}`);
  const falseMarkers = falseMarkersInTenMinutes(sumOf(totals));
  assert.equal(falseMarkers, 0, `artifacts were found in clean videos:\n${scoreTable(totals)}`);
});
