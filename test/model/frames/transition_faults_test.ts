import assert from "node:assert/strict";
import type { DetectedRange } from "../../../src/model/frames/detected_range.ts";
import { GATE_REASONS } from "../../../src/model/frames/signals.ts";
import {
  clearTransitionFaults,
  clearTransitionReasons,
} from "../../../src/model/frames/transition_faults.ts";

function range(startPtsMs: number, endPtsMs: number, type: DetectedRange["type"] = "gradual_transition") {
  return { type, startPtsMs, endPtsMs };
}

/** Rows every 100 ms. `x` is a fault, `!` a certain one, `.` none. */
function cleared(text: string, ranges: ReturnType<typeof range>[]): string {
  const artifactScore = Float32Array.from(text, (sign) => sign === "x" ? 0.6 : sign === "!" ? 0.8 : 0.2);
  const artifactKind = Uint8Array.from(text, (sign) => sign === "." ? 0 : 1);
  const ptsMs = Float64Array.from(text, (_, row) => 100 * row);
  const rows = { count: text.length, ptsMs, artifactScore, artifactKind };
  const reasons = Uint8Array.from(
    artifactKind,
    (kind) => GATE_REASONS.indexOf(kind ? "temporal_fault" : "scene_cut"),
  );
  clearTransitionReasons(reasons, rows, ranges);
  clearTransitionFaults(rows, ranges);
  const left = [...text].map((sign, row) => artifactScore[row]! >= 0.5 ? sign : ".").join("");
  assert.deepEqual([...artifactKind].map((kind) => kind > 0), [...left].map((sign) => sign !== "."));
  const gated = [...text].map((sign, row) => GATE_REASONS[reasons[row]!] === "temporal_fault" ? sign : ".")
    .join("");
  assert.equal(gated, left, "what the gate had decided");
  return left;
}

Deno.test("a fault that begins inside of a gradual transition is none, as far as it goes", () => {
  assert.equal(cleared("..xxx....x", [range(200, 400)]), ".........x");
  assert.equal(cleared("..xxx....x", [range(150, 250)]), ".........x");
  assert.equal(cleared("....xxxx..", [range(100, 400)]), "..........");
});

Deno.test("one that begins before or behind it stays", () => {
  assert.equal(cleared(".xxxxx....", [range(200, 900)]), ".xxxxx....");
  assert.equal(cleared(".....xx...", [range(100, 499)]), ".....xx...");
});

Deno.test("one that is certain stays, and becomes certain with its first row only", () => {
  assert.equal(cleared("..!xx...x!", [range(0, 900)]), "..!xx.....");
});

Deno.test("other ranges change nothing, and each fault is judged by the transition that it begins in", () => {
  assert.equal(cleared("..xx...xx.", [range(0, 900, "flash"), range(0, 900, "freeze")]), "..xx...xx.");
  assert.equal(cleared("x..xx..x.x", [range(600, 800), range(200, 350)]), "x........x");
});

Deno.test("times are compared as rows are written, in whole milliseconds", () => {
  assert.equal(cleared("..x.......", [range(200.4, 210)]), "..........");
  assert.equal(cleared("..x.......", [range(245.6, 260)]), "..x.......");
});
