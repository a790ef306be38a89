/** IVF, the plainest container there is: what live units are wrapped in for ffmpeg, times in 1/90000 s. */

import type { VideoCodec } from "../../model/live/offer.ts";

/** FourCCs; IVF was not made for the last two, and ffmpeg reads them all the same. */
const FOURCCS: Readonly<Record<VideoCodec, string>> = {
  vp8: "VP80",
  vp9: "VP90",
  av1: "AV01",
  h264: "H264",
  h265: "H265",
};

const FILE_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 12;

/**
 * ```
 *   "DKIF" | version u16 0 | 32 u16 | fourcc | width u16 | height u16 | 90000 u32 | 1 u32 | frames u32 | 0 u32
 * ```
 * The size is that of the decoder's pictures, whatever stands here.
 */
export function ivfHeader(codec: VideoCodec): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(FILE_HEADER_BYTES);
  const view = new DataView(header.buffer);
  header.set(new TextEncoder().encode(`DKIF\0\0 \0${FOURCCS[codec]}`));
  view.setUint32(16, 90_000, true);
  view.setUint32(20, 1, true);
  return header;
}

/** `bytes u32 | time u64 | data`, little-endian. `timestamp` is an integer of at most 53 bits, or below 0. */
export function ivfFrame(data: Uint8Array, timestamp: number): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(FRAME_HEADER_BYTES + data.length);
  const view = new DataView(frame.buffer);
  view.setUint32(0, data.length, true);
  view.setBigInt64(4, BigInt(timestamp), true);
  frame.set(data, FRAME_HEADER_BYTES);
  return frame;
}
