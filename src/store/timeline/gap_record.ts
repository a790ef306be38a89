/** The record that stands for removed events in a segment: their numbers were used, and nothing of them is
 * left.
 */

import { type ParsedRecord, writeRecord } from "./record.ts";

/**
 * A gap record is `1 <crc> <length> 0 <first seq> TAB - TAB - TAB 0 TAB gap TAB {"to_seq":<last seq>}`. No
 * run has the id `-`. It is shorter than the record of any event of a run, so a segment without removed
 * events is shorter than it was. See docs/protocols.md#gaps.
 */
const RUN_BYTE = 0x2d;
const [G, A, P] = [0x67, 0x61, 0x70];
/** The most bytes of a gap record. */
export const GAP_BYTES_MAX = 128;

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/** Writes the record at `start`, and returns where it ends. A segment may have as many gaps as events. */
export function writeGapRecord(fromSeq: number, toSeq: number, target: Uint8Array, start: number): number {
  return writeRecord(ENCODER, `0 ${fromSeq}\t-\t-\t0\tgap\t{"to_seq":${toSeq}}`, target, start);
}

/** The last number of the events that the record stands for; 0 for the record of an event. */
export function gapEnd(bytes: Uint8Array, record: ParsedRecord): number {
  const { runStart, runEnd, kindStart, kindEnd, payloadStart, payloadEnd } = record;
  if (runEnd !== runStart + 1 || bytes[runStart] !== RUN_BYTE) return 0;
  const isGap = kindEnd === kindStart + 3 && bytes[kindStart] === G && bytes[kindStart + 1] === A &&
    bytes[kindStart + 2] === P;
  if (!isGap) return 0;
  const found = /^\{"to_seq":(\d{1,10})\}$/.exec(DECODER.decode(bytes.subarray(payloadStart, payloadEnd)));
  return Math.max(record.seq, Number(found?.[1] ?? 0));
}
