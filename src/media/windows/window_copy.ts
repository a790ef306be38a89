/** When the packets of a window can be copied without encoding, and the ffmpeg arguments that copy and list them. */

import type { ImageCoordinates } from "../../model/frames/coordinates.ts";
import type { MediaInput } from "../input.ts";
import type { MediaInfo } from "../probe.ts";
import { framecrcTimesMs } from "./framecrc.ts";
import { type SourceWindow, START_TOLERANCE_MS } from "./window_filters.ts";

/** Whether every MP4 player can decode the video as it is, upright, and the source is a file that can be read twice. */
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

/** Where the copying seeks to, and how much it copies. */
export interface CopyRange {
  readonly seekMs: number;
  readonly lengthMs: number;
}

/** Null for a window that is too short. */
export function copyRange(window: SourceWindow): CopyRange | null {
  // ffmpeg seeks to the last key frame before the start: rounding must not put the start before it.
  const seekMs = window.firstFrameMs + window.startMs + START_TOLERANCE_MS;
  // In coarse time bases, rounding must not bring the first frame of the next window into this one.
  const lengthMs = window.durationMs - 1.5 * START_TOLERANCE_MS;
  return lengthMs > 0 ? { seekMs, lengthMs } : null;
}

/**
 * Whether the listed packets are exactly those of a window: the first frame is shown at its start, none before it, and none
 * after its end.
 */
export function isWholeWindow(list: string, { lengthMs }: CopyRange): boolean {
  const timesMs = framecrcTimesMs(list);
  if (timesMs.length === 0) return false;
  const [firstMs, lastMs] = [Math.min(...timesMs), Math.max(...timesMs)];
  return firstMs >= -2 * START_TOLERANCE_MS && firstMs <= 0 && lastMs < lengthMs;
}
