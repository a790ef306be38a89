/** Which frames are damaged by what decoders report, by the times of frames and by how much the picture
 * changes.
 */

import assert from "node:assert/strict";
import { ArtifactMeasures, MEASURES } from "../../../../src/media/detection/faults/artifact_measures.ts";
import { MEASURE_COUNT } from "../../../../src/media/kernels/frame_filter.ts";
import { REPORT } from "../../../../src/media/frame_reports.ts";
import { AHEAD } from "../../../../src/media/detection/faults/lost_frames.ts";
import { ReportedDamage } from "../../../../src/media/detection/faults/reported_damage.ts";

const FRAME_MS = 40;
const { isReported, isKey, isIntra, isBidirectional, isCorrupt, isReferenceLost, tellsLosses, isCareful } =
  REPORT;
/**
 * K: key frame, P: made of frames before it, B: of both neighbours, x: made in parts, !: misses a reference,
 * C: a cut, .: nothing comes.
 */
const BITS: Readonly<Record<string, number>> = {
  K: isKey | isIntra,
  P: 0,
  C: isCareful,
  B: isBidirectional,
  x: isCorrupt,
  "!": isReferenceLost,
};

/**
 * A "D" for each damaged frame and a "-" for each other one, of a stream whose luma changes by so many levels
 * a frame.
 */
function damageOf(stream: string, change: number): string {
  const measures = new ArtifactMeasures(), damage = new ReportedDamage(measures);
  let found = "";
  const shown = stream.replaceAll(".", "");
  const judge = () => found += damage.step(found.length, shown[found.length] === "C") > 0 ? "D" : "-";
  [...stream].forEach((kind, at) => {
    if (kind === ".") return;
    const values = new Float32Array(MEASURE_COUNT);
    values[MEASURES.luma1] = change;
    measures.push(values);
    damage.push(at * FRAME_MS);
    damage.report(isReported | tellsLosses | BITS[kind]!);
    if (measures.count > AHEAD) judge();
  });
  while (found.length < measures.count) judge();
  return found;
}

Deno.test("reported damage: frames between others behind a gap are damaged if the decoder missed one of them, and nothing later", () => {
  const start = "KBBBPBBBPBBB";
  assert.equal(damageOf(`${start}!.BBPBBBP`, 1), "-".repeat(13) + "DD-----", "told");
  assert.equal(damageOf(`${start}P.BBPBBBP`, 1), "-".repeat(20), "a frame that nothing was made of");
  assert.equal(damageOf(`${start}!.BBPBBBP`, 0.05), "-".repeat(20), "nothing moves");
});

Deno.test("reported damage: what was invented in parts is drawn over after four seconds, lost references after twelve", () => {
  const later = "P".repeat(350);
  const invented = damageOf(`K${"P".repeat(19)}x${later}`, 1);
  assert.equal(invented.indexOf("D"), 20);
  assert.equal(invented.lastIndexOf("D"), 20 + 4000 / FRAME_MS);
  const lost = damageOf(`K${"P".repeat(19)}!.P${later}`, 1);
  assert.equal(lost.indexOf("D"), 21);
  assert.equal(lost.lastIndexOf("D"), 21 + 12_000 / FRAME_MS);
});

Deno.test("reported damage: what is invented of a picture that stands still is what was there", () => {
  assert.equal(damageOf("KPPPPxPPPPKPP", 0.2), "-----DDDDD---");
  assert.equal(damageOf("KPPPPxPPPPKPP", 0.1), "-".repeat(13));
});

Deno.test("reported damage: the second new shot of a careful encoder ends it, not counting one right behind a corrupt frame", () => {
  assert.equal(damageOf("KPPPPxPCPPPKPP", 1), "-----DDDDDD---");
  assert.equal(damageOf("KPPPPxPCPPCPPP", 1), "-----DDDDD----");
  assert.equal(damageOf("KPPPPxCPPCPPCPP", 1), "-----DDDDDDD---");
});

/**
 * Whether a gap of one frame counts as a loss where the decoder tells nothing: changes over one, two and
 * three steps before it, then behind it, and the new edges of the frame there.
 */
function isLostBehind(
  before: readonly (readonly [one: number, two: number, three: number])[],
  behind: number,
  edges = 0,
): boolean {
  const measures = new ArtifactMeasures(), damage = new ReportedDamage(measures);
  const start = 30, frames = start + 12;
  for (let frame = 0; frame < frames; frame++) {
    const values = new Float32Array(MEASURE_COUNT);
    const [one, two, three] = frame < start
      ? before[frame % before.length]!
      : [behind, 2 * behind, 3 * behind];
    values[MEASURES.luma1] = one;
    values[MEASURES.luma2] = two;
    values[MEASURES.luma3] = three;
    if (frame === start) values[MEASURES.edgesAcrossNew] = edges;
    measures.push(values);
    damage.push((frame < start ? frame : frame + 1) * FRAME_MS);
    damage.report(isReported | (frame === 0 ? isKey | isIntra : 0));
  }
  return Array.from({ length: frames }, (_, frame) => damage.step(frame, false) > 0)[start]!;
}

Deno.test("reported damage: where no decoder tells, a gap in even motion is a loss if the picture moved on by one step only", () => {
  assert.equal(isLostBehind([[2, 3.8, 5]], 2), true);
  assert.equal(isLostBehind([[2, 3.8, 5]], 3), false, "it moved on by more: the frame was left out");
  assert.equal(isLostBehind([[2, 2.2, 3]], 1.3), false, "a shaken camera goes back");
  assert.equal(isLostBehind([[2, 2.2, 3.5]], 2, 10), true, "what is drawn does not fit what is there");
  assert.equal(
    isLostBehind([[2, 2.2, 2.5]], 2, 10),
    false,
    "edges come and go with a shaken camera",
  );
});
