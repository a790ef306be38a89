import assert from "node:assert/strict";
import {
  emptyColumns,
  type SignalRow,
  signalRowsJson,
  StoredSignals,
} from "../../../src/model/frames/signals_json.ts";

Deno.test("stored signals are read in whatever pieces they come, and keep every digit of their hashes", () => {
  const { signals } = emptyColumns(5, true);
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
