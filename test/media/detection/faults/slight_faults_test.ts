/** Faults that change little or lie beside motion: colours, lines, salt and old frames, and what looks like
 * them.
 */

import assert from "node:assert/strict";
import { noiseAt } from "../../../../src/media/detection/faults/noise_onset.ts";
import { ArtifactMeasures, MEASURES } from "../../../../src/media/detection/faults/artifact_measures.ts";
import { MEASURE_COUNT } from "../../../../src/media/kernels/frame_filter.ts";
import { LastingFault } from "../../../../src/media/detection/faults/lasting_fault.ts";
import {
  DrawnFilm,
  HEIGHT,
  landscape,
  noisy,
  type Picture,
  plain,
  relit,
  salted,
  WIDTH,
  withBox,
} from "../../../support/kernels/drawn_film.ts";
import { faultsIn } from "../../../support/kernels/found_faults.ts";
import { ARTIFACT_KINDS } from "../../../../src/model/frames/detected_range.ts";
import { FrameAnalyser } from "../../../../src/media/detection/frame_analyser.ts";
import { REPORT } from "../../../../src/media/frame_reports.ts";

const LUMA = WIDTH * HEIGHT;
const pan = (n: number, speed = 2) => landscape(1, speed * n);
const isIn = (n: number, start: number, end: number) => n >= start && n < end;

/** A picture with both chroma planes lighter by so many levels. */
function tinted(picture: Picture, levels: number): Picture {
  return Uint8Array.from(picture, (sample, at) => at < LUMA ? sample : sample + levels);
}

/** A picture with so little colour that motion hardly shows in it. */
function pale(picture: Picture): Picture {
  return Uint8Array.from(picture, (sample, at) => at < LUMA ? sample : 128 + (sample - 128) / 8);
}

/** Bright lines, one row high. */
function lined(picture: Picture, rows: readonly number[]): Picture {
  return rows.reduce((lines, y) => withBox(lines, { x: 20, y, width: 120, height: 1 }, 230), picture);
}

Deno.test("slight faults: a faint change of chroma that comes at once and goes is a fault, in a pan and in a still picture", async () => {
  const spoiled = (speed: number, levels: number) => (n: number) =>
    isIn(n, 30, 40) ? tinted(pale(pan(n, speed)), levels) : pale(pan(n, speed));
  assert.deepEqual(await faultsIn(80, spoiled(2, 5)), ["chroma_fault 30-39"], "pan");
  assert.deepEqual(await faultsIn(80, spoiled(0, 2)), ["chroma_fault 30-39"], "still");
  assert.deepEqual(await faultsIn(80, (n) => n === 30 ? tinted(pan(0), 2) : pan(0)), ["chroma_fault 30-30"]);
});

Deno.test("slight faults: wrong colours go on while the picture changes, and end where they go", async () => {
  const shown = (n: number) => pale(landscape(1, n < 34 ? n : n < 37 ? 34 + 16 * (n - 33) : 46 + n));
  const spoiled = (n: number) => isIn(n, 30, 50) ? tinted(shown(n), 60) : shown(n);
  assert.deepEqual(await faultsIn(110, spoiled), ["chroma_fault 30-49"]);
});

Deno.test("slight faults: chroma that a key frame draws anew is none", async () => {
  const film = await DrawnFilm.start();
  const shown = (n: number) => n % 12 === 6 ? tinted(relit(pan(0), (luma) => luma + 1), 4) : pan(0);
  for (let n = 0; n < 60; n++) {
    film.filter.report(REPORT.isReported | (n % 12 === 6 ? REPORT.isKey | REPORT.isIntra : 0));
    film.show(shown(n));
  }
  film.end();
  assert.deepEqual([...film.filter.columns().artifactScore].filter((score) => score >= 0.5), []);
});

Deno.test("slight faults: fine texture that comes with a key frame is a burst where much of the picture is new, or if it lasts", () => {
  const begins = (novel: number, isKey: boolean, lasts: boolean) => {
    const measures = new ArtifactMeasures(), fault = new LastingFault(measures);
    for (let n = 0; n <= 31; n++) {
      const isSalted = n === 30 || (n === 31 && lasts);
      const row = new Float32Array(MEASURE_COUNT);
      row[MEASURES.spikesAcross] = row[MEASURES.spikesDown] = isSalted ? 5 : 1.7;
      row[MEASURES.grown] = n === 30 ? 0.78 : 0;
      row[MEASURES.novel] = n === 30 ? novel : 3;
      row[MEASURES.correlation] = 0.97;
      row[MEASURES.luma1] = 4;
      row[MEASURES.contrast] = 30;
      measures.push(row);
    }
    for (let n = 0; n <= 30; n++) {
      fault.step(n, false, isKey && n === 30);
      if (fault.strength > 0) return true;
    }
    return false;
  };
  assert.equal(begins(24, false, false), true);
  assert.equal(begins(24, true, false), false, "grain that comes back");
  assert.equal(begins(24, true, true), true);
  assert.equal(begins(200, true, false), true);
});

Deno.test("slight faults: texture that comes in both directions behind a plain picture is a new picture and no lines", () => {
  const sign = (across: number, before = 1) => {
    const measures = new ArtifactMeasures();
    for (let n = 0; n <= 10; n++) {
      const row = new Float32Array(MEASURE_COUNT);
      row[MEASURES.spikesAcross] = n < 10 ? 0.1 : across;
      row[MEASURES.spikesDown] = n < 10 ? 0.1 : 2.75;
      row[MEASURES.grown] = n < 10 ? 0 : 0.57;
      row[MEASURES.newLine] = n < 10 ? 0 : 6;
      row[MEASURES.correlation] = n < 10 ? before : 0.64;
      row[MEASURES.luma1] = n < 10 ? 0 : 30;
      row[MEASURES.contrast] = 40;
      measures.push(row);
    }
    return noiseAt(measures, 10).sign;
  };
  assert.equal(sign(1.9), null);
  assert.equal(sign(0.5), "lines");
  assert.equal(sign(0.5, 0.85), null, "in a shaken picture lines come and go");
});

Deno.test("slight faults: a few lines that change with each frame are a burst, text that stays is none", async () => {
  const still = noisy(landscape(1), 6, 1);
  const rows = (n: number) => [5, 40, 77, 121, 160].map((row) => row + 4 * (n % 5));
  assert.deepEqual(await faultsIn(60, (n) => isIn(n, 30, 36) ? lined(still, rows(n)) : still), [
    "noise_burst 30-35",
  ]);
  assert.deepEqual(await faultsIn(60, (n) => n < 30 ? still : lined(still, rows(0))), [], "stays");
});

Deno.test("slight faults: salt and pepper is found whole where it is weaker from its second frame on", async () => {
  const spoiled = (n: number) => isIn(n, 30, 36) ? salted(pan(0), n === 30 ? 0.1 : 0.02, n) : pan(0);
  assert.deepEqual(await faultsIn(60, spoiled), ["noise_burst 30-35"]);
});

Deno.test("slight faults: black that an encoder rounds up and down is no flicker", async () => {
  assert.deepEqual(await faultsIn(60, (n) => plain(n > 20 && n % 3 === 0 ? 20 : 16)), []);
});

Deno.test("slight faults: a picture that halts at every third frame is in order", async () => {
  assert.deepEqual(await faultsIn(80, (n) => pan(n - Math.floor(n / 3))), []);
});

Deno.test("slight faults: one dark frame of another picture without texture is foreign, a blink is none", async () => {
  const bright = (n: number) => relit(pan(n), (luma) => 120 + luma / 2);
  const ramp = plain(16);
  for (let at = 0; at < LUMA; at++) ramp[at] = 16 + (at % WIDTH) / 4;
  assert.deepEqual(await faultsIn(60, (n) => n === 30 ? ramp : bright(n)), ["foreign_frame 30-30"]);
  const blink = (n: number) => relit(bright(n), (luma) => luma / 3);
  assert.deepEqual(await faultsIn(60, (n) => n === 30 ? blink(n) : bright(n)), []);
});

Deno.test("slight faults: a burst that was encoded is one to its end, also where the decoder would not notice changed bytes", async () => {
  const film = await DrawnFilm.start();
  for (let n = 0; n < 60; n++) {
    film.filter.report(REPORT.isReported | REPORT.isSilent | (n === 0 ? REPORT.isKey | REPORT.isIntra : 0));
    film.show(isIn(n, 30, 36) ? salted(landscape(1), 0.1, n) : landscape(1));
  }
  film.end();
  const { artifactKind } = film.filter.columns();
  const bursts = [...artifactKind.keys()].filter((n) =>
    ARTIFACT_KINDS[artifactKind[n]! - 1] === "noise_burst"
  );
  assert.deepEqual(bursts, [30, 31, 32, 33, 34, 35]);
});

Deno.test("slight faults: a second stream in the same filter is judged as if it were the first, in whatever fault that one ended", async () => {
  const filter = await FrameAnalyser.load();
  const judged = (draw: (n: number) => Picture, reportOf: (n: number) => number = () => 0) => {
    filter.reset();
    for (let n = 0; n < 40; n++) {
      filter.staging.set(draw(n));
      filter.report(reportOf(n));
      filter.push(0, 40 * n);
    }
    filter.finish();
    const { artifactScore, artifactKind, cutScore } = filter.columns();
    return { artifactScore, artifactKind, cutScore };
  };
  const next = (n: number) => isIn(n, 20, 26) ? tinted(pan(n), 12) : pan(n);
  const fresh = judged(next);
  assert.ok(fresh.artifactKind.some((kind) => kind > 0));
  const endings: Record<string, [draw: (n: number) => Picture, reportOf?: (n: number) => number]> = {
    "held frames": [(n) => pan(n < 12 ? n : n - n % 2, 4)],
    "wrong colours": [(n) => n < 30 ? pan(n) : tinted(pan(n), 12)],
    flicker: [(n) => n < 16 ? pan(0) : relit(pan(0), (luma) => luma * (n % 2 ? 1 : 0.7))],
    salt: [(n) => n < 36 ? pan(n) : salted(pan(n), 0.1, n)],
    "swapped frames": [(n) => pan(n < 12 ? n : n + (n % 2 ? -1 : 1), 4)],
    "reported damage": [pan, (n) => n === 36 ? REPORT.isReported | REPORT.isCorrupt : REPORT.isReported],
  };
  for (const [name, [draw, reportOf]] of Object.entries(endings)) {
    assert.ok(judged(draw, reportOf).artifactKind.some((kind) => kind > 0), `${name}: no fault`);
    assert.deepEqual(judged(next), fresh, name);
  }
});
