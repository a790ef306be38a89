/** The record that stands for removed events in a segment: their numbers were used, and nothing of them is left. */

import { bodyColumns, columnText, type ParsedRecord, RecordBatch } from "../log/record.ts";

/**
 * `1 <crc> <length> 0 <first seq> TAB - TAB - TAB 0 TAB gap TAB {"to_seq":<last seq>}`. No run has the id `-`. It is shorter
 * than the record of any event of a run, so a segment without removed events is shorter than it was. See
 * docs/protocols.md#gaps.
 */
const RUN_ID = "-";
const KIND = "gap";
const [RUN_BYTE, FIRST_KIND_BYTE] = [0x2d, 0x67];

/** Used again for each record: a segment may have as many gaps as events. */
const batch = new RecordBatch();

export function gapRecord(fromSeq: number, toSeq: number): Uint8Array<ArrayBuffer> {
  batch.clear();
  const columns = { left: 0, seq: fromSeq, runId: RUN_ID, streamId: "-", ptsMs: 0, kind: KIND };
  batch.add(bodyColumns(columns), JSON.stringify({ to_seq: toSeq }));
  batch.finish();
  const [piece] = batch.pieces();
  return piece!.slice();
}

/** The last number of the events that the record stands for; 0 for the record of an event. */
export function gapEnd(bytes: Uint8Array, record: ParsedRecord): number {
  const { runStart, runEnd, kindStart, kindEnd, payloadStart, payloadEnd } = record;
  if (runEnd !== runStart + 1 || bytes[runStart] !== RUN_BYTE) return 0;
  if (kindEnd !== kindStart + KIND.length || bytes[kindStart] !== FIRST_KIND_BYTE) return 0;
  const decoder = new TextDecoder();
  if (columnText(decoder, bytes, kindStart, kindEnd) !== KIND) return 0;
  const found = /^\{"to_seq":(\d{1,10})\}$/.exec(decoder.decode(bytes.subarray(payloadStart, payloadEnd)));
  return Math.max(record.seq, Number(found?.[1] ?? 0));
}
