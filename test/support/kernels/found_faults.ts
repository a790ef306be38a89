/** The faults that are found in drawn films. */

import assert from "node:assert/strict";
import type { Extent } from "../../../src/model/frames/coordinates.ts";
import { ARTIFACT_KINDS } from "../../../src/model/frames/detected_range.ts";
import { ARTIFACT_SCORE_THRESHOLD } from "../../../src/model/frames/signals.ts";
import { DrawnFilm, HEIGHT, type Picture, WIDTH } from "./drawn_film.ts";

/**
 * The faults in a film of so many pictures, drawn from their number, such as "flicker 20-31" for a run of
 * faulty frames of one kind. `size` is that of the pictures before they were reduced; `reportOf` is what the
 * decoder says of a frame, bits of `REPORT`.
 */
export async function faultsIn(
  frames: number,
  draw: (n: number) => Picture,
  size: Extent = { width: WIDTH, height: HEIGHT },
  reportOf: (n: number) => number = () => 0,
  framesPerSecond = 25,
): Promise<string[]> {
  const film = await DrawnFilm.start(framesPerSecond);
  film.filter.setRegion({ x: 0, y: 0, ...size });
  film.play(frames, (n) => {
    film.filter.report(reportOf(n));
    return draw(n);
  });
  film.end();
  const { count, artifactScore, artifactKind } = film.filter.columns();
  const found: string[] = [];
  for (let start = 0; start < count;) {
    let end = start + 1;
    const isFault = artifactScore[start]! >= ARTIFACT_SCORE_THRESHOLD;
    while (isFault && artifactKind[end] === artifactKind[start]) end++;
    if (isFault) found.push(`${ARTIFACT_KINDS[artifactKind[start]! - 1]} ${start}-${end - 1}`);
    assert.equal(isFault, artifactKind[start] !== 0, `frame ${start}`);
    start = end;
  }
  return found;
}
