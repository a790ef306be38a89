/** The clock that RTP gives every video codec, and that MP4 files and our IVF streams use as well. */

/** Ticks a second. */
export const VIDEO_CLOCK_HZ = 90_000;
/** One tick in seconds, as ffmpeg takes it. */
export const VIDEO_TIME_BASE = `1/${VIDEO_CLOCK_HZ}`;
/** Ticks a millisecond. */
export const VIDEO_TICKS_PER_MS = VIDEO_CLOCK_HZ / 1000;

/**
 * What ffmpeg adds to the times of packets that it copies, as NUT has no times below 0, and the first
 * pictures of a stream may have them.
 */
export const COPY_OFFSET_MS = 10_000;
