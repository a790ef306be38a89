/** Writes Opus packets as an Ogg file in memory, from which ffmpeg decodes a window of live audio (RFC 3533,
 * 7845, 6716).
 */

import { OPUS_SAMPLES_PER_MS, opusSamples } from "./opus_packet.ts";

/** Most bytes of a packet: 48 frames of 1275 bytes and the longest header. */
const PACKET_BYTES_MAX = 61_440;
/** Number of the stream. Any will do, as the file has one stream. */
const SERIAL = 1;
const PAGE_HEADER_BYTES = 27;
const SEGMENT_BYTES = 255;
const FIRST_PAGE = 2;
const LAST_PAGE = 4;

export interface OggOpus {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Length of the sound, as the packets state it. */
  readonly durationMs: number;
  /** Packets that were left out because they are no Opus packets. */
  readonly dropped: number;
}

/**
 * ```
 *   page 0: OpusHead | page 1: OpusTags | one page a packet, granule = samples up to its end ...
 * ```
 * The pre-skip is 0: the packets come from the middle of a stream, so no samples at the start are to be
 * dropped. Null when none of the packets is an Opus packet.
 */
export function oggOpus(packets: readonly Uint8Array[]): OggOpus | null {
  const good = packets.filter((packet) => packetSamples(packet) > 0);
  if (good.length === 0) return null;
  const pages = [page(opusHead(good.some(isStereo) ? 2 : 1), 0, 0, FIRST_PAGE), page(OPUS_TAGS, 1, 0, 0)];
  let samples = 0;
  for (const [index, packet] of good.entries()) {
    samples += packetSamples(packet);
    pages.push(page(packet, index + 2, samples, index === good.length - 1 ? LAST_PAGE : 0));
  }
  const bytes = new Uint8Array(pages.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of pages) {
    bytes.set(part, at);
    at += part.length;
  }
  return { bytes, durationMs: samples / OPUS_SAMPLES_PER_MS, dropped: packets.length - good.length };
}

/** Samples at 48 kHz in a packet that a file may contain; 0 for bytes that are no Opus packet. */
export function packetSamples(packet: Uint8Array): number {
  return packet.length > PACKET_BYTES_MAX ? 0 : opusSamples(packet);
}

function isStereo(packet: Uint8Array): boolean {
  return (packet[0]! & 4) !== 0;
}

/** `"OpusHead" | 1 | channels | pre-skip u16 | rate u32 | gain i16 | mapping 0` */
function opusHead(channels: number): Uint8Array<ArrayBuffer> {
  const head = new Uint8Array(19);
  head.set(new TextEncoder().encode("OpusHead"));
  head[8] = 1;
  head[9] = channels;
  new DataView(head.buffer).setUint32(12, 48_000, true);
  return head;
}

/** An empty vendor and no comments. */
const OPUS_TAGS = new Uint8Array([...new TextEncoder().encode("OpusTags"), 0, 0, 0, 0, 0, 0, 0, 0]);

/**
 * ```
 *   "OggS" | 0 | flags | granule u64 | serial u32 | number u32 | checksum u32 | segments u8 | lengths | packet
 * ```
 * A packet is cut into segments of 255 bytes; a shorter segment, which may be empty, ends it.
 */
function page(packet: Uint8Array, number: number, granule: number, flags: number): Uint8Array<ArrayBuffer> {
  const segments = Math.floor(packet.length / SEGMENT_BYTES) + 1;
  const bytes = new Uint8Array(PAGE_HEADER_BYTES + segments + packet.length);
  const view = new DataView(bytes.buffer);
  bytes.set(new TextEncoder().encode("OggS"));
  bytes[5] = flags;
  view.setBigUint64(6, BigInt(granule), true);
  view.setUint32(14, SERIAL, true);
  view.setUint32(18, number, true);
  bytes[26] = segments;
  bytes.fill(SEGMENT_BYTES, PAGE_HEADER_BYTES, PAGE_HEADER_BYTES + segments - 1);
  bytes[PAGE_HEADER_BYTES + segments - 1] = packet.length % SEGMENT_BYTES;
  bytes.set(packet, PAGE_HEADER_BYTES + segments);
  view.setUint32(22, checksum(bytes), true);
  return bytes;
}

/**
 * CRC-32 of the polynomial 0x04c11db7, most significant bit first, initial value 0, nothing inverted (RFC
 * 3533).
 */
function checksum(bytes: Uint8Array): number {
  let sum = 0;
  for (const byte of bytes) sum = (sum << 8) ^ CHECKSUMS[(sum >>> 24) ^ byte]!;
  return sum >>> 0;
}

const CHECKSUMS = Int32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte << 24;
  for (let bit = 0; bit < 8; bit++) sum = sum < 0 ? (sum << 1) ^ 0x04c11db7 : sum << 1;
  return sum;
});
