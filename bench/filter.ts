/**
 * The time of `FrameAnalyser.push` and of the detectors with decoded video, and what `push` allocates:
 * `./scripts/deno run -A bench/filter.ts`. Prints a table; with `--json` only the two figures that a release
 * is checked for, as JSON. With `--quick` the allocation is counted roughly.
 */

import v8 from "node:v8";
import { RangeDetectors } from "../src/media/detection/range_detectors.ts";
import { FrameAnalyser } from "../src/media/detection/frame_analyser.ts";
import { FRAME_BYTES } from "../src/media/kernels/frame_planes.ts";
import { percentile, report } from "./support.ts";

/** An animation with cuts, a static camera, a screen recording: the first ten seconds of each. */
const CLIPS = ["bbb480.mp4", "intel_bottle.mp4", "own_screenrec.mp4"];
const CLIP_SECONDS = 10;
const TIMED_PUSHES = 30_000;
const COUNTED_PUSHES = 100_000;
/**
 * Pushes before those that are counted. They have a new picture twice in 40, as there is only one in 1000 of
 * those that are counted.
 */
const WARMING_PUSHES = 40_000;
/** Rounds of which the one that allocated least counts; a single round says more than there is. */
const COUNTED_ROUNDS = 10;

export interface Percentiles {
  readonly p50Ns: number;
  readonly p95Ns: number;
  readonly p99Ns: number;
}

export interface FilterBench {
  readonly planes: number;
  readonly push: Percentiles;
  /** Times of a frame in the decode Worker: `push` and all detectors. */
  readonly frame: Percentiles;
  /**
   * Times of copying the plane that was just analysed, which is in the CPU cache: the minimum for touching
   * its bytes.
   */
  readonly copy: Percentiles;
  /** Times between two readings of the clock with nothing in between; the figures above include this time. */
  readonly clock: Percentiles;
  readonly allocatedBytes: number;
  /**
   * Bytes that the counting loop allocates with one small object for each push, which shows that the counter
   * works.
   */
  readonly controlAllocatedBytes: number;
}

/** Decodes the clips, measures the time, counts the allocations. */
export async function benchFilter(rounds = COUNTED_ROUNDS): Promise<FilterBench> {
  const planes = (await Promise.all(CLIPS.map(decode))).flat();
  const filter = await FrameAnalyser.load();
  time(filter, planes, 5_000);
  filter.reset();
  const timed = time(filter, planes, TIMED_PUSHES);
  const kept: unknown[] = new Array(16).fill(undefined);
  warmUp(filter);
  const allocatedBytes = leastAllocatedBytes(filter, rounds, (pushes) => pushMany(filter, pushes));
  const controlAllocatedBytes = leastAllocatedBytes(
    filter,
    rounds,
    (pushes) => pushManyWithObjects(filter, pushes, kept),
  );
  return { planes: planes.length, ...timed, allocatedBytes, controlAllocatedBytes };
}

function time(filter: FrameAnalyser, planes: Uint8Array[], pushes: number) {
  const scratch = new Uint8Array(FRAME_BYTES);
  const view = filter.staging.subarray(0, FRAME_BYTES);
  const ranges = new RangeDetectors(filter);
  const push = new Float64Array(pushes);
  const whole = new Float64Array(pushes);
  const copy = new Float64Array(pushes);
  const clock = new Float64Array(pushes);
  for (let frame = 0; frame < pushes; frame++) {
    // The frame has just been written to staging, as in a media worker.
    view.set(planes[frame % planes.length]!);
    const start = performance.now();
    filter.push(0, frame * 40);
    const pushed = performance.now();
    ranges.push(filter.rangeMeasures, frame * 40);
    const judged = performance.now();
    scratch.set(view);
    const copied = performance.now();
    push[frame] = pushed - start;
    whole[frame] = judged - start;
    copy[frame] = copied - judged;
    clock[frame] = performance.now() - copied;
  }
  return {
    push: percentiles(push),
    frame: percentiles(whole),
    copy: percentiles(copy),
    clock: percentiles(clock),
  };
}

/**
 * Warms up the filter: runs what seldom runs until it is compiled, as the engine's interpreter makes an
 * object of each number with a fraction.
 */
function warmUp(filter: FrameAnalyser): void {
  filter.reset();
  for (let frame = 0; frame < WARMING_PUSHES; frame++) {
    const turn = frame % 40;
    filter.push(turn < 20 ? turn : 960 + turn, frame);
  }
}

/**
 * The minimum of the rounds. What the hot path allocates is in every round. What V8's compilers and caches
 * allocate in the same process, mostly in the first rounds, is missing in at least one round.
 */
function leastAllocatedBytes(filter: FrameAnalyser, rounds: number, push: (pushes: number) => void): number {
  let least = Infinity;
  for (let round = 0; round < rounds; round++) {
    filter.reset();
    least = Math.min(least, countAllocatedBytes(push));
  }
  return least;
}

/**
 * The bytes that 100,000 pushes leave on V8's heap, in 100 portions of 1,000: the change of the heap's size
 * during each portion, less the change caused by reading the size, which is measured just before. A smaller
 * heap counts as a change too, so a garbage collection cannot hide allocations. 0 bytes mean 0 objects.
 */
function countAllocatedBytes(push: (pushes: number) => void): number {
  let bytes = 0;
  for (let portion = 0; portion < 100; portion++) {
    const first = v8.getHeapStatistics().used_heap_size;
    const second = v8.getHeapStatistics().used_heap_size;
    push(COUNTED_PUSHES / 100);
    const third = v8.getHeapStatistics().used_heap_size;
    bytes += Math.abs((third - second) - (second - first));
  }
  return bytes;
}

function pushMany(filter: FrameAnalyser, pushes: number): void {
  for (let frame = 0; frame < pushes; frame++) filter.push(frame % 1000, frame);
}

function pushManyWithObjects(filter: FrameAnalyser, pushes: number, kept: unknown[]): void {
  for (let frame = 0; frame < pushes; frame++) {
    filter.push(frame % 1000, frame);
    kept[frame % kept.length] = { frame };
  }
}

function percentiles(durationsMs: Float64Array): Percentiles {
  const at = (share: number) => Math.round(percentile(durationsMs, share) * 1e6);
  return { p50Ns: at(0.5), p95Ns: at(0.95), p99Ns: at(0.99) };
}

async function decode(clip: string): Promise<Uint8Array[]> {
  const path = new URL(`../fixtures/clips/${clip}`, import.meta.url).pathname;
  const filters = "scale=320:180:flags=area:in_range=full:out_range=full,format=yuv420p";
  const args = [
    "-v",
    "error",
    "-nostdin",
    "-t",
    `${CLIP_SECONDS}`,
    "-i",
    path,
    "-vf",
    filters,
    "-f",
    "rawvideo",
    "-",
  ];
  const { success, stdout } = await new Deno.Command("ffmpeg", { args, stderr: "inherit" }).output();
  if (!success) throw new Error(`Cannot decode ${path}`);
  return Array.from(
    { length: stdout.length / FRAME_BYTES },
    (_, i) => stdout.subarray(i * FRAME_BYTES, (i + 1) * FRAME_BYTES),
  );
}

function table(result: FilterBench): string {
  const row = (name: string, { p50Ns, p95Ns, p99Ns }: Percentiles) =>
    `${name.padEnd(34)}${[p50Ns, p95Ns, p99Ns].map((ns) => (ns / 1000).toFixed(2).padStart(9)).join("")}`;
  return [
    `${result.planes} planes of ${CLIPS.join(", ")}; ${TIMED_PUSHES} pushes; µs`,
    `${"".padEnd(34)}      p50      p95      p99`,
    row("push", result.push),
    row("push and all detectors", result.frame),
    row("copy of the same plane", result.copy),
    row("reading the clock (included)", result.clock),
    `heap bytes left by ${COUNTED_PUSHES} pushes: ${result.allocatedBytes}` +
    ` (control with one object a push: ${result.controlAllocatedBytes})`,
  ].join("\n");
}

/** The figures for the release check as JSON. An object has at least 12 bytes, so 0 bytes mean 0 objects. */
function releaseFigures(result: FilterBench): string {
  const objects = Math.ceil(result.allocatedBytes / 12);
  return JSON.stringify({
    gate_process: { p50_ns: result.push.p50Ns, p95_ns: result.push.p95Ns },
    allocations: { total: objects, per_frame: objects / COUNTED_PUSHES },
  });
}

/** Reports the times beside a copy of the same frame; percentiles of all pushes are one round. */
function reportAll({ push, frame, copy, allocatedBytes }: FilterBench, isQuick: boolean): void {
  const limit = { name: "copy of the frame", values: [copy.p50Ns / 1000] };
  for (
    const [what, { p50Ns }] of Object.entries({ "one frame": push, "one frame with all detectors": frame })
  ) {
    report({ name: `filter: ${what}, p50`, unit: "µs", better: "less", ours: [p50Ns / 1000], limit });
  }
  if (isQuick) return;
  const ours = [allocatedBytes / COUNTED_PUSHES];
  report({ name: "filter: heap left by a frame", unit: "bytes", better: "less", ours, limit: null });
}

if (import.meta.main) {
  const isQuick = Deno.args.includes("--quick");
  const result = await benchFilter(isQuick ? 1 : COUNTED_ROUNDS);
  const isForRelease = Deno.args.includes("--json");
  console.log(isForRelease ? releaseFigures(result) : table(result));
  if (!isForRelease) reportAll(result, isQuick);
}
