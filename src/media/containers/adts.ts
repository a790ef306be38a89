/** AAC as MPEG-TS has it (ISO/IEC 13818-7): each frame begins with a header, which MP4 has once, beside the
 * frames.
 */

/*
 *   syncword(12) id(1) layer(2) no_checksum(1) | profile(2) frequency(4) private(1) channels(3) … length …   7 bytes
 *   checksum(16), unless no_checksum                                                                         2 bytes
 */
const HEADER_BYTES = 7;
const CHECKSUM_BYTES = 2;

/** The AudioSpecificConfig of a frame with a header; null where it has none. */
export function configInAdts(frame: Uint8Array): Uint8Array<ArrayBuffer> | null {
  if (!hasHeader(frame)) return null;
  const objectType = (frame[2]! >> 6) + 1;
  const frequency = frame[2]! >> 2 & 15;
  const channels = (frame[2]! & 1) << 2 | frame[3]! >> 6;
  return Uint8Array.of(objectType << 3 | frequency >> 1, (frequency & 1) << 7 | channels << 3);
}

/** The frame without its header. */
export function withoutAdts(frame: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  if (!hasHeader(frame)) return frame;
  const hasChecksum = (frame[1]! & 1) === 0;
  return frame.subarray(HEADER_BYTES + (hasChecksum ? CHECKSUM_BYTES : 0));
}

function hasHeader(frame: Uint8Array): boolean {
  return frame.length > HEADER_BYTES && frame[0] === 0xff && (frame[1]! & 0xf6) === 0xf0;
}
