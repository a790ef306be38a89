/**
 * What the live view costs, and how late it is: the processor time of one session without a viewer, with one
 * and with twenty, in turns, and the time from the last packet of a picture until a viewer has the bytes of
 * its fragment.
 *
 *     ./scripts/deno run -A bench/live/view.ts [--seconds 8] [--turns 2]
 *
 * The service and the viewers run in this process, the viewers on loopback. Each publisher is a process of
 * its own.
 */

import { parseArgs } from "node:util";
import { join } from "node:path";
import { joinedBytes } from "../../src/base/bytes.ts";
import { VIDEO_TICKS_PER_MS } from "../../src/media/containers/clock.ts";
import { PublisherMedia } from "../../test/support/live/live_publisher.ts";
import { CLIPS, KEY_A } from "../../test/support/service.ts";
import { until } from "../../test/support/until.ts";
import { percentile } from "../support.ts";
import { machine, openLiveBench, pauseSeconds, processorTime } from "./live_support.ts";

const { values } = parseArgs({
  args: Deno.args,
  options: { seconds: { type: "string", default: "8" }, turns: { type: "string", default: "2" } },
});
const seconds = Number(values.seconds);
const FRAMES_A_SECOND = 30;
const COUNTS = [0, 1, 20] as const;
/** Types of the boxes `moof` and `mdat`. */
const MOOF = 0x6d6f6f66;
const MDAT = 0x6d646174;

/** When the first viewer had the whole fragment, by the times of its pictures. */
const seen: { readonly fromMs: number; readonly toMs: number; readonly atMs: number }[] = [];
/** Finds the times of the pictures in each whole fragment. */
class FragmentTimes {
  #bytes = new Uint8Array();
  #span: { fromMs: number; toMs: number } | null = null;

  push(piece: Uint8Array): void {
    this.#bytes = joinedBytes(this.#bytes, piece);
    for (;;) {
      if (this.#bytes.length < 8) return;
      const view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset);
      const [size, type] = [view.getUint32(0), view.getUint32(4)];
      if (this.#bytes.length < size) return;
      if (type === MOOF) this.#span = spanOf(view);
      else if (type === MDAT && this.#span) seen.push({ ...this.#span, atMs: Date.now() });
      this.#bytes = this.#bytes.slice(size);
    }
  }
}

using media = new PublisherMedia();
const film = media.h264("film", [
  ...["-i", join(CLIPS, "bbb480.mp4"), "-t", "10", "-an", "-vf", "scale=640:480,fps=30"],
], 30);
await using bench = await openLiveBench();
const { live: { test }, reports } = bench;

console.log(machine());
const used = new Map(COUNTS.map((count) => [count as number, 0]));
let sentBytes = 0;
await using publisher = bench.publish(["--video", film, "--repeat", "200"]);
const runId = await publisher.runId();
await until("frames are decoded", async () => await bench.count("frames_decoded") > 30);
for (let turn = 0; turn < Number(values.turns); turn++) {
  for (const viewers of COUNTS) used.set(viewers, used.get(viewers)! + await turnWith(viewers));
}
const share = (count: number) => used.get(count)! / Number(values.turns) * 100;
console.log(`640x480 at 30 fps over WebRTC, H.264, load ${Deno.loadavg()[0]!.toFixed(1)} at the end`);
for (const count of COUNTS) {
  console.log(`${count} viewers: ${share(count).toFixed(1)} % of a core, the service and its ffmpeg`);
}
console.log(
  `one viewer: ${(share(1) - share(0)).toFixed(1)} % more, twenty: ${
    (share(20) - share(0)).toFixed(1)
  } % more`,
);
console.log(`${(sentBytes / 2 ** 20).toFixed(1)} MiB went to viewers`);
const lateMs = reports.flatMap(({ report }) => {
  if (report.kind !== "picture") return [];
  const { ptsMs, arrivedMs } = report.picture.frame;
  const fragment = seen.find(({ fromMs, toMs, atMs }) =>
    ptsMs >= fromMs - 1 && ptsMs < toMs - 1 && atMs >= arrivedMs
  );
  return fragment ? [fragment.atMs - arrivedMs] : [];
});
console.log(
  `from the last packet of a picture until a viewer has its fragment: p50 ${
    percentile(lateMs, 0.5)?.toFixed(0)
  } ms, p95 ${percentile(lateMs, 0.95)?.toFixed(0)} ms, ${lateMs.length} pictures`,
);

/** Seconds of processor time for a second of video, whatever came of it on a busy machine. */
async function turnWith(viewers: number): Promise<number> {
  const leaving = new AbortController();
  const watched = Array.from({ length: viewers }, (_, index) => watch(index === 0, leaving.signal));
  await pauseSeconds(2);
  const [before, framesBefore] = [processorTime(), await bench.count("frames_decoded")];
  await pauseSeconds(seconds);
  const [after, framesAfter] = [processorTime(), await bench.count("frames_decoded")];
  leaving.abort();
  await Promise.all(watched);
  const usedSeconds = after.service - before.service + after.ffmpeg - before.ffmpeg;
  const frames = framesAfter - framesBefore;
  if (frames < seconds * FRAMES_A_SECOND / 2) throw new Error(`only ${frames} frames came`);
  return usedSeconds / frames * FRAMES_A_SECOND;
}

async function watch(isMeasured: boolean, signal: AbortSignal): Promise<void> {
  try {
    const { body } = await fetch(`${test.url}/v1/runs/${runId}/live.mp4`, {
      headers: { "x-api-key": KEY_A },
      signal,
    });
    const fragments = new FragmentTimes();
    for await (const bytes of body!) {
      sentBytes += bytes.length;
      if (isMeasured) fragments.push(bytes);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/**
 * Times of the pictures in a fragment. `moof`, `mfhd` and `traf` are before `tfhd`, `tfdt` and `trun`, as
 * `movieFragment` writes them.
 */
function spanOf(view: DataView): { fromMs: number; toMs: number } {
  const tfdt = 8 + 16 + 8 + 16;
  const begin = Number(view.getBigUint64(tfdt + 12));
  const samples = view.getUint32(tfdt + 20 + 12);
  let end = begin;
  for (let sample = 0; sample < samples; sample++) end += view.getUint32(tfdt + 20 + 20 + 16 * sample);
  return { fromMs: begin / VIDEO_TICKS_PER_MS, toMs: end / VIDEO_TICKS_PER_MS };
}
