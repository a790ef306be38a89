import assert from "node:assert/strict";
import { ARTIFACT_KINDS } from "../../../src/model/frames/detected_range.ts";
import {
  asStored,
  columnsOf,
  emptyColumns,
  type SignalRow,
  signalRowsJson,
  StoredSignals,
} from "../../../src/model/frames/signals_json.ts";

Deno.test("stored signals are read in whatever pieces they come, and keep every digit of their hashes", () => {
  const { signals } = emptyColumns(5, { cutScore: true, artifactScore: false });
  for (let row = 0; row < 5; row++) {
    signals.ptsMs[row] = row * 40;
    signals.perceptualHash[row] = 2n ** 64n - 1n - BigInt(row);
    signals.lumaMean[row] = row / 8;
    signals.cutScore![row] = row / 8;
  }
  const payload = `{"source_uri":"\\"signals\\":[},{","decoded_frames":5,"signals":[${
    signalRowsJson(signals, 0, 5)
  }]}`;
  for (const length of [1, 2, 3, 7, 50, 200, 10_000]) {
    const stored = new StoredSignals();
    const rows: SignalRow[] = [];
    for (let at = 0; at < payload.length; at += length) {
      rows.push(...stored.add(payload.slice(at, at + length)));
    }
    rows.push(...stored.end());
    assert.deepEqual(stored.head, { source_uri: '"signals":[},{', decoded_frames: 5, signals: [] });
    assert.deepEqual(rows.map((row) => BigInt(row.perceptual_hash)), [...signals.perceptualHash]);
    assert.deepEqual(
      rows.map(({ pts_ms, cut_score }) => [pts_ms, cut_score]),
      [0, 1, 2, 3, 4].map((row) => [row * 40, row / 8]),
    );
  }
  const none = new StoredSignals();
  assert.deepEqual([none.end(), none.head], [[], null]);
  const empty = new StoredSignals();
  assert.deepEqual([empty.add('{"decoded_frames":0,"signals":[]}'), empty.end()], [[], []]);
});

Deno.test("times of cuts and kinds of artifacts are written where there are some, and read back", () => {
  const { signals } = emptyColumns(8, { cutScore: true, artifactScore: true });
  signals.cutScore!.fill(0.25);
  signals.cutScore![3] = 0.75;
  signals.cutPtsMs![3] = 101.6;
  signals.artifactScore!.fill(0);
  ARTIFACT_KINDS.forEach((_, kind) => {
    signals.artifactScore![1 + kind] = 0.5 + kind / 16;
    signals.artifactKind![1 + kind] = 1 + kind;
  });
  const rows: SignalRow[] = JSON.parse(`[${signalRowsJson(signals, 0, 8)}]`);
  assert.deepEqual(rows.map((row) => row.artifact_kind), [undefined, ...ARTIFACT_KINDS, undefined]);
  assert.deepEqual(rows.map((row) => row.cut_pts_ms), [
    ...Array(3).fill(undefined),
    102,
    ...Array(4).fill(undefined),
  ]);
  assert.deepEqual(columnsOf(rows).signals, { ...asStored(signals), perceptualHash: new BigUint64Array(8) });
});

Deno.test("rows that were not measured have no scores, and a column with a gap has NaN there", () => {
  const { signals } = emptyColumns(2, { cutScore: false, artifactScore: false });
  assert.doesNotMatch(signalRowsJson(signals, 0, 2), /cut|artifact/);
  const [row] = JSON.parse(`[${signalRowsJson(signals, 0, 1)}]`) as SignalRow[];
  const mixed = columnsOf([row!, { ...row!, artifact_score: 0.75, artifact_kind: "flicker" }]).signals;
  assert.deepEqual([...mixed.artifactScore!], [NaN, 0.75]);
  assert.deepEqual([...mixed.artifactKind!], [0, 2]);
  assert.equal(mixed.cutScore, undefined);
});
