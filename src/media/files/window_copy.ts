/** When the packets of a window can be copied without encoding, known from a list of the packets around it.
 */

import type { ImageCoordinates } from "../../model/frames/coordinates.ts";
import type { MediaInput } from "../input.ts";
import type { MediaInfo } from "../media_info.ts";
import { type Packet, packetsIn } from "./framecrc.ts";
import { type SourceWindow, START_TOLERANCE_MS } from "../jobs/parts/window_seek.ts";

/**
 * Whether every MP4 player can decode the video as it is, upright, and the source is a file that can be read
 * twice.
 */
export function isCopyable(
  input: MediaInput,
  { formatName, video }: MediaInfo,
  coordinates: ImageCoordinates,
): boolean {
  const { resolved_region: region, source_extent: source } = coordinates;
  const isWhole = region.width === source.width && region.height === source.height;
  return input.path !== null && /^(mov|matroska)\b/.test(formatName) && isWhole && video!.rotation === 0 &&
    video!.codec === "h264" &&
    video!.pixelFormat === "yuv420p";
}

/**
 * The part of a source that is listed at once. All times are in milliseconds from the start of the container.
 */
export interface ListedPart {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The packets of a part, in the order of decoding, from the key frame before it on. */
export interface PacketList extends ListedPart {
  readonly packets: readonly Packet[];
  /** Whether the source ends in the part. */
  readonly isLast: boolean;
}

/**
 * The part to list for a window. It is longer than the window, so that most of the following windows lie in
 * it too: a list takes as long as an attempt to copy, and saves one for each window. Bytes are read for it,
 * so it ends earlier where the source has many.
 */
export function partFor(window: SourceWindow, { durationMs, sizeBytes }: MediaInfo): ListedPart {
  const fromMs = window.firstFrameMs + window.startMs;
  const bytesPerMs = durationMs === null ? 0 : sizeBytes / durationMs;
  const lengthMs = Math.min(PART_MS, PART_BYTES / bytesPerMs);
  return { fromMs, toMs: fromMs + Math.max(lengthMs, window.durationMs + MARGIN_MS) };
}

const PART_MS = 60_000;
const PART_BYTES = 32 * 2 ** 20;
/**
 * Milliseconds that a list goes on beyond its part: longer than frames are moved in the order of decoding,
 * except at very low rates.
 */
const MARGIN_MS = 2_000;

/** What a listing of a part says. */
export function packetList(
  text: string,
  part: ListedPart,
  { durationMs, startMs = 0 }: MediaInfo,
): PacketList {
  return {
    ...part,
    packets: packetsIn(text).map((packet) => ({ ...packet, timeMs: packet.timeMs - startMs })),
    isLast: durationMs !== null && part.toMs > durationMs + MARGIN_MS / 2,
  };
}

/** Whether the list is about this window. */
export function isListed(window: SourceWindow, { fromMs, toMs, isLast }: PacketList): boolean {
  const beginMs = window.firstFrameMs + window.startMs;
  return beginMs >= fromMs && (isLast || beginMs + window.durationMs + MARGIN_MS <= toMs);
}

/** Where the copying seeks to, how many packets it copies, and when their frames are shown. */
export interface CopyRange {
  readonly seekMs: number;
  readonly packets: number;
  readonly timesMs: readonly number[];
}

/**
 * The packets whose frames are exactly those of the window; null if there are no such packets. The first must
 * be a key frame that is shown when the window begins. From there on in the order of decoding, all frames in
 * the window must come before the first one after it:
 *
 *     key 0  P 3  B 1  B 2 | key 4  P 7  B 5  B 6      a window of 0 to 4 is copied
 *     key 0  P 3  B 1  B 2 | P 6    B 4  B 5           a window of 0 to 5 is not: B 4 needs P 6, which is shown after it
 *
 * An edit list could hide frames before and after the window, but not every player heeds one, so a model
 * might see them.
 */
export function copyRange(window: SourceWindow, { packets, isLast }: PacketList): CopyRange | null {
  const beginMs = window.firstFrameMs + window.startMs;
  // Callers round times, and rounding must not bring the first frame of the next window into this one.
  const endMs = beginMs + window.durationMs - START_TOLERANCE_MS / 2;
  const first = packets.findIndex(({ timeMs, isKey }) =>
    isKey && Math.abs(timeMs - beginMs) <= START_TOLERANCE_MS
  );
  if (first === -1) return null;
  const length = packets.slice(first).findIndex(({ timeMs }) => timeMs >= endMs);
  const after = length === -1 ? packets.length : first + length;
  const copied = packets.slice(first, after);
  const keyMs = packets[first]!.timeMs;
  const isExact = copied.length > 0 &&
    copied.every(({ timeMs, isHidden }) => timeMs >= keyMs && !isHidden) &&
    packets.slice(0, first).every(({ timeMs }) => timeMs < keyMs) &&
    packets.slice(after).every(({ timeMs }) => timeMs >= endMs) &&
    (isLast || packets.length - after >= REORDERED_MAX);
  if (!isExact) return null;
  const nextKey = packets.slice(first + 1).find(({ isKey }) => isKey);
  const seekMs = keyMs + SEEK_LEAD_MS;
  return {
    seekMs: nextKey && nextKey.timeMs <= seekMs ? keyMs + START_TOLERANCE_MS : seekMs,
    packets: copied.length,
    timesMs: copied.map(({ timeMs }) => timeMs),
  };
}

/** Most places by which H.264 moves a frame in the order of decoding. */
const REORDERED_MAX = 17;
/**
 * ffmpeg seeks to the last key frame before the position, which it takes to be up to 130 ms earlier where
 * frames are moved in the order of decoding, as it does not know their decoding times.
 */
const SEEK_LEAD_MS = 150;

/** Whether the packets that were copied, which are listed too, are those of the range. */
export function isRange(list: string, { timesMs }: CopyRange, { startMs = 0 }: MediaInfo): boolean {
  const packets = packetsIn(list);
  return packets.length === timesMs.length &&
    packets.every(({ timeMs }, index) =>
      Math.abs(timeMs - startMs - timesMs[index]!) < START_TOLERANCE_MS / 2
    );
}
