/** Writes the RTCP packets that a receiver sends (RFC 3550, 4585, 5104 and REMB), and finds the one that it
 * needs.
 */

const SENDER_REPORT = 200;
const RECEIVER_REPORT = 201;
const TRANSPORT_FEEDBACK = 205;
const PAYLOAD_FEEDBACK = 206;

/** Reception statistics of one stream; RFC 3550, 6.4.1. */
export interface ReportBlock {
  readonly ssrc: number;
  /** The part of the packets that were lost since the last report, in 1/256. */
  readonly fractionLost: number;
  readonly cumulativeLost: number;
  readonly highestSequence: number;
  readonly jitter: number;
  readonly lastSenderReport: number;
  readonly delaySinceSenderReport: number;
}

const BLOCK_BYTES = 24;

/** Bytes of the header and the sender info. */
const SENDER_REPORT_BYTES = 28;

/**
 * The first sender report of a datagram, as a part of it; empty where it has none. The rest says nothing to a
 * receiver, and costs much: werift takes 18 ms for feedback of 1,400 bytes that names packets by thousands
 * (measured on 28 November 2026), so a publisher with a hundred of them a second would keep the Worker from
 * everybody else's media.
 */
export function firstSenderReport<T extends Uint8Array>(datagram: T): T {
  const view = new DataView(datagram.buffer, datagram.byteOffset, datagram.byteLength);
  for (let at = 0; at + 4 <= datagram.length;) {
    const bytes = (view.getUint16(at + 2) + 1) * 4;
    const isWhole = at + bytes <= datagram.length;
    if (view.getUint8(at + 1) === SENDER_REPORT && isWhole) {
      const blocks = view.getUint8(at) & 0x1f;
      if (bytes >= SENDER_REPORT_BYTES + blocks * BLOCK_BYTES) return datagram.subarray(at, at + bytes) as T;
    }
    at += bytes;
  }
  return datagram.subarray(0, 0) as T;
}

export function receiverReport(ssrc: number, blocks: readonly ReportBlock[]): Uint8Array<ArrayBuffer> {
  const [bytes, view] = packet(RECEIVER_REPORT, blocks.length, 8 + blocks.length * BLOCK_BYTES);
  view.setUint32(4, ssrc);
  for (const [index, block] of blocks.entries()) {
    const at = 8 + index * BLOCK_BYTES;
    const lost = Math.max(-0x80_0000, Math.min(block.cumulativeLost, 0x7f_ffff));
    view.setUint32(at, block.ssrc);
    view.setUint32(at + 4, (block.fractionLost * 2 ** 24 + (lost & 0xff_ffff)) >>> 0);
    view.setUint32(at + 8, block.highestSequence >>> 0);
    view.setUint32(at + 12, block.jitter >>> 0);
    view.setUint32(at + 16, block.lastSenderReport);
    view.setUint32(at + 20, block.delaySinceSenderReport >>> 0);
  }
  return bytes;
}

/** Asks for packets again. `sequences` are in ascending order; one entry covers up to 17 of them. */
export function genericNack(
  ssrc: number,
  mediaSsrc: number,
  sequences: readonly number[],
): Uint8Array<ArrayBuffer> {
  const entries: [first: number, followingBits: number][] = [];
  for (const sequence of sequences) {
    const last = entries.at(-1);
    const distance = last ? (sequence - last[0]) & 0xffff : 0;
    if (last && distance >= 1 && distance <= 16) last[1] |= 1 << (distance - 1);
    else entries.push([sequence, 0]);
  }
  const [bytes, view] = feedback(TRANSPORT_FEEDBACK, 1, ssrc, mediaSsrc, entries.length * 4);
  for (const [index, [first, followingBits]] of entries.entries()) {
    view.setUint16(12 + index * 4, first);
    view.setUint16(14 + index * 4, followingBits);
  }
  return bytes;
}

/** Picture loss indication: asks for a keyframe. */
export function pictureLoss(ssrc: number, mediaSsrc: number): Uint8Array<ArrayBuffer> {
  return feedback(PAYLOAD_FEEDBACK, 1, ssrc, mediaSsrc, 0)[0];
}

/**
 * Full intra request: asks publishers for a keyframe that do not support PLI; each request has its own
 * number, modulo 256.
 */
export function fullIntra(ssrc: number, mediaSsrc: number, requestNumber: number): Uint8Array<ArrayBuffer> {
  const [bytes, view] = feedback(PAYLOAD_FEEDBACK, 4, ssrc, 0, 8);
  view.setUint32(12, mediaSsrc);
  view.setUint8(16, requestNumber & 0xff);
  return bytes;
}

/** REMB: how much the publisher may send, in bits a second. */
export function maximumBitrate(
  ssrc: number,
  mediaSsrc: number,
  bitsPerSecond: number,
): Uint8Array<ArrayBuffer> {
  const [bytes, view] = feedback(PAYLOAD_FEEDBACK, 15, ssrc, 0, 12);
  const exponent = Math.max(0, Math.floor(Math.log2(Math.max(1, bitsPerSecond))) - 17);
  view.setUint32(12, 0x52454d42);
  view.setUint32(16, 2 ** 24 + exponent * 2 ** 18 + Math.floor(bitsPerSecond / 2 ** exponent));
  view.setUint32(20, mediaSsrc);
  return bytes;
}

function feedback(
  type: number,
  format: number,
  ssrc: number,
  mediaSsrc: number,
  moreBytes: number,
): [Uint8Array<ArrayBuffer>, DataView] {
  const [bytes, view] = packet(type, format, 12 + moreBytes);
  view.setUint32(4, ssrc);
  view.setUint32(8, mediaSsrc);
  return [bytes, view];
}

function packet(type: number, count: number, bytesCount: number): [Uint8Array<ArrayBuffer>, DataView] {
  const bytes = new Uint8Array(bytesCount);
  const view = new DataView(bytes.buffer);
  view.setUint8(0, 0x80 | count);
  view.setUint8(1, type);
  view.setUint16(2, bytesCount / 4 - 1);
  return [bytes, view];
}
