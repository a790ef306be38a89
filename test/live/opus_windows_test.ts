/** Opus windows: when a window begins and ends, and which bytes are no packet. */

import assert from "node:assert/strict";
import { type CutWindow, OpusWindows } from "../../src/live/opus_windows.ts";

const MS = 48;

/**
 * Cuts packets by a script: `from+n` is n packets of 20 ms, the first at `from` milliseconds; with `!` before
 * it, packets before them were lost.
 */
function run(script: string, at = 0): string {
  const windows = new OpusWindows();
  const out: CutWindow[] = [];
  for (const step of script.split(" ")) {
    const [from, packets] = step.replace("!", "").split("+").map(Number);
    for (let index = 0; index < packets!; index++) {
      const rtpTimestamp = (at + from! + index * 20) * MS;
      windows.push({ data: packet(), rtpTimestamp, hasGap: index === 0 && step.startsWith("!") }, out);
    }
  }
  const ended = out.length;
  windows.finish(out);
  const text = (window: CutWindow) => `${window.startPtsMs}-${window.endPtsMs}:${window.units.length}`;
  return [...out.slice(0, ended).map(text), ...out.slice(ended).map((window) => `rest ${text(window)}`)].join(
    ", ",
  );
}

/** A CELT packet of one frame of 20 ms. */
function packet(): Uint8Array<ArrayBuffer> {
  return new Uint8Array([31 << 3, 1, 2, 3]);
}

function check(name: string, script: string, expected: string, at?: number): void {
  Deno.test(name, () => assert.equal(run(script, at), expected));
}

check("a window ends with the packet that begins four seconds after the first", "0+201", "0-4020:201");
check("one packet less is no window yet, and is one at the end", "0+200", "rest 0-4000:200");
check("windows follow each other without overlap", "0+402", "0-4020:201, 4020-8040:201");
check("a rest of 250 ms is a window", "0+13", "rest 0-260:13");
check("a shorter rest is none", "0+12", "");
check("a gap in the sequence ends the window", "0+50 !1020+50", "0-1000:50, rest 1020-2020:50");
check("a single packet before a gap is dropped", "0+1 !40+20", "rest 40-440:20");
check("a time that goes back ends the window", "0+50 400+20", "0-1000:50, rest 400-800:20");
check(
  "a time before the track's first is the first of a new clock",
  "1000+10 400+20",
  "0-200:10, rest 0-400:20",
);
check("a jump of the clock ends the window", "0+10 9000+20", "0-200:10, rest 9000-9400:20");
check("a pause of a silent publisher does not", "0+10 400+20", "rest 0-800:30");
check("times count from the track's first packet", "0+201", "0-4020:201", 90_000_000);

Deno.test("bytes that are no Opus packet are ignored", () => {
  const bad: readonly (readonly number[])[] = [[], [31 << 3 | 3], [31 << 3 | 3, 0], [3 << 3 | 3, 3]];
  const windows = new OpusWindows();
  const out: CutWindow[] = [];
  for (const bytes of bad) {
    assert.equal(windows.push({ data: new Uint8Array(bytes), rtpTimestamp: 0, hasGap: false }, out), null);
  }
  assert.equal(windows.push({ data: new Uint8Array(70_000), rtpTimestamp: 0, hasGap: false }, out), null);
  for (let index = 0; index < 20; index++) {
    windows.push({ data: packet(), rtpTimestamp: index * 960, hasGap: false }, out);
  }
  windows.finish(out);
  assert.deepEqual(out.map(({ units, endPtsMs }) => [units.length, endPtsMs]), [[20, 400]]);
});

Deno.test("the duration of a packet is read from its header", () => {
  const cases: readonly (readonly [bytes: readonly number[], ms: number])[] = [
    [[0 << 3], 10],
    [[3 << 3], 60],
    [[11 << 3 | 1], 120],
    [[13 << 3], 20],
    [[16 << 3], 2.5],
    [[31 << 3 | 3, 6], 120],
  ];
  for (const [bytes, ms] of cases) {
    assert.equal(
      new OpusWindows().push({ data: new Uint8Array(bytes), rtpTimestamp: 0, hasGap: false }, []),
      ms,
    );
  }
});

Deno.test("the memory of a window is bounded", () => {
  const windows = new OpusWindows();
  const out: CutWindow[] = [];
  for (let index = 0; index < 5_000; index++) {
    windows.push({ data: packet(), rtpTimestamp: index, hasGap: false }, out);
  }
  assert.equal(Math.max(...out.map(({ units }) => units.length)), 2_048);
});
