/** The decode Worker reads frames in batches, and those of a slow source as they come. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { DecodeWorkerPool } from "../../../src/media/files/worker_pool.ts";
import { RISING_DECODE_TIMES, SourceTimes } from "../../../src/media/jobs/parts/source_times.ts";
import { CONTROL } from "../../../src/media/files/stream_order.ts";
import { STACKED_FRAME_BYTES, stackingFilters } from "../../../src/media/kernels/picture_lines.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { TempFolder, world } from "../../support/media.ts";
import { until } from "../../support/until.ts";

const FRAMES = 14;
/** Milliseconds from frame to frame, as a camera's come. */
const FRAME_MS = 40;
/**
 * Frames after which the first rows must be here: five frames are the look-ahead, and two may still be on
 * their way.
 */
const ASKED_AFTER = 10;
const EXPECTED_ROWS = 3;
const CLOCK = { timeBase: "1/25", stepBackTicks: 0, isSilent: false };

/** A NUT stream of stacked frames, as ffmpeg writes it for the Worker. */
async function stackedStream(): Promise<Uint8Array> {
  const reduction = [
    new SourceTimes(CLOCK).filter,
    stackingFilters(["scale=320:180:flags=area", "format=yuv420p"]),
  ].join(",");
  const args = ["-v", "error", "-nostdin", "-f", "lavfi", "-i", "testsrc2=s=640x360:r=25", "-vf", reduction];
  const output = [
    ...RISING_DECODE_TIMES,
    "-frames:v",
    `${FRAMES}`,
    "-c:v",
    "rawvideo",
    "-f",
    "nut",
    "-write_index",
    "0",
    "pipe:1",
  ];
  return (await new Deno.Command("ffmpeg", { args: [...args, ...output] }).output()).stdout;
}

Deno.test("frames that come at once are all judged, and those of a slow source while it goes on", async () => {
  using folder = new TempFolder();
  using pool = new DecodeWorkerPool([folder.path], world());
  const stream = await stackedStream();
  const path = join(folder.path, "frames.fifo");
  assert.ok((await new Deno.Command("mkfifo", { args: [path] }).output()).success);
  const worker = await pool.take();
  try {
    for (const pauseMs of [0, FRAME_MS]) {
      const control = new SharedArrayBuffer(CONTROL.bytes);
      Atomics.store(new Int32Array(control), CONTROL.granted, FRAMES);
      let rows = 0;
      const whole = { x: 0, y: 0, width: 640, height: 360 };
      const reading = worker.read({
        ...{
          fifoPath: path,
          sampling: null,
          fps: 25,
          clock: CLOCK,
          region: whole,
          maxRows: FRAMES,
          looksAhead: false,
          reports: null,
          stopsAtDamage: false,
        },
        stream: { control, batchRows: 1, maxRows: FRAMES },
      }, (batch) => rows += batch.count);
      using fifo = await Deno.open(path, { write: true });
      await reading.opened;
      const writer = fifo.writable.getWriter();
      for (let frame = 0; frame < FRAMES; frame++) {
        const end = frame === FRAMES - 1 ? stream.length : (frame + 1) * STACKED_FRAME_BYTES;
        await writer.write(stream.subarray(frame * STACKED_FRAME_BYTES, end));
        if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
        if (pauseMs > 0 && frame === ASKED_AFTER) {
          await until(`there are rows after ${ASKED_AFTER} frames`, () => rows >= EXPECTED_ROWS);
        }
      }
      await writer.close();
      await reading.finished;
      assert.equal(rows, FRAMES, `with pauses of ${pauseMs} ms`);
    }
  } finally {
    pool.giveBack(worker);
  }
});

Deno.test("a Worker is taken again within a minute, and ends after that", async () => {
  const clock = new ManualClock();
  using pool = new DecodeWorkerPool([], clock);
  const first = await pool.take();
  const other = await pool.take();
  pool.giveBack(other);
  pool.giveBack(first);
  await clock.advance(59_000);
  assert.equal(await pool.take(), first, "the one that was given back last");
  await clock.advance(1_000);
  assert.deepEqual([first.isBroken, other.isBroken], [false, true]);
  pool.giveBack(first);
  await clock.advance(59_999);
  assert.equal(first.isBroken, false);
  await clock.advance(1);
  assert.equal(first.isBroken, true);
  const next = await pool.take();
  assert.equal(next.isBroken, false);
  pool.giveBack(next);
});
