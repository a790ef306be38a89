/** Opus packets in an Ogg file in memory: what ffmpeg reads a window of live audio from. RFC 3533, 7845 and 6716. */

/** Samples of Opus' clock in a millisecond. */
const SAMPLES_PER_MS = 48;
/** RFC 6716, 3.2.1: no packet is longer. */
const PACKET_SAMPLES_MAX = 120 * SAMPLES_PER_MS;
/** 48 frames of 1275 bytes and the longest header. */
const PACKET_BYTES_MAX = 61_440;
/** Any number; a file has one stream. */
const SERIAL = 1;
const PAGE_HEADER_BYTES = 27;
const SEGMENT_BYTES = 255;
const FIRST_PAGE = 2;
const LAST_PAGE = 4;

/** A file, and how much sound its packets are said to hold; null when none of them is an Opus packet. */
export interface OggOpus {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly durationMs: number;
  /** Packets that were left out as they are none. */
  readonly dropped: number;
}

/**
 * ```
 *   page 0: OpusHead | page 1: OpusTags | one page a packet, granule = samples up to its end ...
 * ```
 * Nothing is skipped at the start: the packets come from the middle of a stream, whose decoder is past its first samples.
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
  return { bytes, durationMs: samples / SAMPLES_PER_MS, dropped: packets.length - good.length };
}

/** How much sound a packet says that it holds, in samples of 48 kHz; 0 for what is no Opus packet. */
export function packetSamples(packet: Uint8Array): number {
  if (packet.length === 0 || packet.length > PACKET_BYTES_MAX) return 0;
  const toc = packet[0]!;
  const frames = (toc & 3) === 0 ? 1 : (toc & 3) < 3 ? 2 : (packet[1] ?? 0) & 63;
  const samples = frames * frameSamples(toc >> 3);
  return samples <= PACKET_SAMPLES_MAX ? samples : 0;
}

/** RFC 6716, table 2: SILK has frames of 10 to 60 ms, hybrid of 10 or 20, CELT of 2.5 to 20. */
function frameSamples(configuration: number): number {
  if (configuration < 12) return [10, 20, 40, 60][configuration & 3]! * SAMPLES_PER_MS;
  if (configuration < 16) return [10, 20][configuration & 1]! * SAMPLES_PER_MS;
  return 2.5 * SAMPLES_PER_MS << (configuration & 3);
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
 * A packet is cut into segments of 255 bytes; a shorter one, if need be an empty one, ends it.
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

/** CRC-32 of the polynomial 0x04c11db7, highest bit first, beginning with 0, nothing inverted. */
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
