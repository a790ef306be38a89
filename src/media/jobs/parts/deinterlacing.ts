/** The filter of ffmpeg that makes one picture of the two of a frame, where a source has such frames. */

import type { MediaInfo } from "../../media_info.ts";

/** Codec whose fields ffmpeg knows from each frame alone, as AVI and MP4 say nothing of them. */
const FIELDS_BY_FRAME = "mpeg4";

/**
 * Filters that make one picture of the two fields of a frame, as a player shows it, where the source or only
 * its frames declare fields. Frames that are flagged as progressive stay as they are. This comes before any
 * choice of frames, because it looks at the frames before and after. The number of frames stays, and so do
 * their times.
 */
export function deinterlacing({ video }: MediaInfo): string[] {
  if (!video || Math.min(video.width, video.height) < LEAST_EDGE) return [];
  const mayHaveFields = video.fieldOrder !== undefined || video.codec === FIELDS_BY_FRAME;
  return mayHaveFields ? [`bwdif=mode=send_frame:deint=interlaced`, `settb=${video.timeBase}`] : [];
}

/** Least edge of a picture in pixels: ffmpeg's filter takes no smaller ones. */
const LEAST_EDGE = 4;
