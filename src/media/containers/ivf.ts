/** Writes IVF, a very simple container: ffmpeg gets live access units in it, with times on the RTP video
 * clock.
 */

import type { VideoCodec } from "../../model/live/offer.ts";
import { VIDEO_CLOCK_HZ } from "./clock.ts";

/** FourCCs. IVF does not define the last two, but ffmpeg reads them. */
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
 * Width and height stay 0: ffmpeg takes the size from the decoder. See docs/protocols.md#ivf.
 */
export function ivfHeader(codec: VideoCodec): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(FILE_HEADER_BYTES);
  const view = new DataView(header.buffer);
  header.set(new TextEncoder().encode(`DKIF\0\0 \0${FOURCCS[codec]}`));
  view.setUint32(16, VIDEO_CLOCK_HZ, true);
  view.setUint32(20, 1, true);
  return header;
}

/** `bytes u32 | time i64 | data`, little-endian. `timestamp` is a safe integer and may be negative. */
export function ivfFrame(data: Uint8Array, timestamp: number): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(FRAME_HEADER_BYTES + data.length);
  const view = new DataView(frame.buffer);
  view.setUint32(0, data.length, true);
  view.setBigInt64(4, BigInt(timestamp), true);
  frame.set(data, FRAME_HEADER_BYTES);
  return frame;
}
