/** A long payload waits for its commit in a file without a name. */

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { joinedBytes } from "../../../src/base/bytes.ts";
import { PreparedPayload } from "../../../src/model/runs/run.ts";
import { RecordBatch } from "../../../src/store/timeline/record.ts";
import type { Timeline } from "../../../src/store/timeline/timeline.ts";
import { withSmallDisk } from "../../support/folders.ts";
import { needing, SMALL_DISK } from "../../support/needs.ts";
import { Bench, created, event, RUN, seqs } from "../../support/timeline.ts";

const encoder = new TextEncoder();
const TEXTS = ['{"signals":["é"', ...Array.from({ length: 30 }, (_, n) => `,${n}`.repeat(30_000)), "]}"];

Deno.test("a payload that is longer than 1 MiB is committed as if it were in memory, which is given back at once", async () => {
  using bench = new Bench();
  await using timeline = await bench.open();
  timeline.commit(() => [created()]);
  const pieces = TEXTS.map((text) => encoder.encode(text));
  using staged = timeline.newPayload();
  for (const piece of pieces) staged.add(piece);
  assert.deepEqual(pieces.map(({ buffer }) => buffer.detached), TEXTS.map(() => true));

  const text = TEXTS.join("");
  assert.equal(staged.sizeBytes, encoder.encode(text).length);
  assert.ok(staged.text === text);
  assert.equal(Buffer.compare(recordOf(staged), recordOf(new PreparedPayload(encoder.encode(text)))), 0);
  timeline.commit(() => [event("frames_decoded", staged), event("vlm", { after: true })]);
  assert.ok(timeline.readOne(2)?.payload === text);
  assert.equal(timeline.readOne(3)?.payload, '{"after":true}');
});

Deno.test("a payload that never comes to its commit leaves nothing behind, not even in a crash", async () => {
  using bench = new Bench();
  await using timeline = await bench.open();
  timeline.commit(() => [created()]);
  const before = [...Deno.readDirSync(bench.directory)].map(({ name }) => name);
  using staged = filled(timeline);
  assert.deepEqual([...Deno.readDirSync(bench.directory)].map(({ name }) => name), before);
  using crashed = bench.crashCopy();
  await using again = await crashed.open();
  assert.deepEqual(seqs(again.read(RUN)), [1]);
  assert.deepEqual(crashed.damages, []);
  staged[Symbol.dispose]();
  assert.throws(() => timeline.commit(() => [event("frames_decoded", staged)]), /released/);
});

Deno.test("two payloads that wait at once do not mix, and a line break in one is refused", async () => {
  using bench = new Bench();
  await using timeline = await bench.open();
  timeline.commit(() => [created()]);
  using one = timeline.newPayload();
  using other = timeline.newPayload();
  const long = (digit: string) => encoder.encode(digit.repeat(800_000));
  for (const [payload, digit] of [[one, "1"], [other, "2"], [one, "1"], [other, "2"]] as const) {
    payload.add(long(digit));
  }
  timeline.commit(() => [event("frames_decoded", one), event("frames_decoded", other)]);
  assert.ok(timeline.readOne(2)?.payload === "1".repeat(1_600_000));
  assert.ok(timeline.readOne(3)?.payload === "2".repeat(1_600_000));
  using broken = filled(timeline);
  broken.add(encoder.encode("\n"));
  assert.throws(() => timeline.commit(() => [event("frames_decoded", broken)]), /not on one line/);
});

Deno.test({
  ...needing(SMALL_DISK, "a disk that has no room for a long payload refuses it, and the log goes on"),
  fn: () =>
    withSmallDisk(async (path) => {
      const bench = new Bench(path);
      await using timeline = await bench.open();
      timeline.commit(() => [created()]);
      using payload = timeline.newPayload();
      assert.throws(() => {
        for (let round = 0; round < 40; round++) payload.add(encoder.encode("1".repeat(100_000)));
      }, { code: "storage_unavailable", status: 503 });
      payload[Symbol.dispose]();
      timeline.commit(() => [event("vlm")]);
      assert.deepEqual(seqs(timeline.read(RUN)), [1, 2]);
    }),
});

function filled(timeline: Timeline): PreparedPayload {
  const payload = timeline.newPayload();
  for (const text of TEXTS) payload.add(encoder.encode(text));
  return payload;
}

/** The bytes that a commit of the payload writes. */
function recordOf(payload: PreparedPayload): Uint8Array {
  const batch = new RecordBatch();
  batch.add("0 1\trun\tstream\t0\tframes_decoded\t", payload);
  batch.finish();
  return joinedBytes(...Array.from(batch.pieces(), (piece) => piece.slice()));
}
