/** Reads the JPEGs that ffmpeg writes to its standard output as NUT, each with its time. */

import { NutError, NutReader } from "./nut.ts";

export interface TimedJpeg {
  /** Time of the JPEG, in the time base of the stream. */
  readonly pts: number;
  /** A whole JPEG file. */
  readonly jpeg: Uint8Array<ArrayBuffer>;
}

/**
 * Calls `on.jpeg` with each JPEG of a NUT stream as soon as it is complete, and `on.bytes` whenever bytes
 * have come, so that the caller can tell a slow stream from a dead one. A JPEG that is cut off by the end of
 * the stream is dropped.
 */
export async function readJpegs(
  stream: ReadableStream<Uint8Array>,
  on: { bytes(): void; jpeg(jpeg: TimedJpeg): void },
): Promise<void> {
  const reader = new NutReader();
  let window = new Uint8Array(FIRST_WINDOW_BYTES);
  /**
   * The unread bytes are `[at, end)`. `at` may be greater than `end`, while a skipped element is not
   * complete.
   */
  let at = 0;
  let end = 0;
  for await (const part of stream) {
    on.bytes();
    if (end + part.length > window.length) {
      const read = Math.min(at, end);
      const needed = end - read + part.length;
      if (needed > WINDOW_BYTES_MAX) throw new NutError(`a JPEG of more than ${WINDOW_BYTES_MAX} bytes`);
      const target = needed > window.length ? new Uint8Array(2 * needed) : window;
      target.set(window.subarray(read, end));
      window = target;
      at -= read;
      end -= read;
    }
    window.set(part, end);
    end += part.length;
    for (let next = reader.read(window, at, end); next !== -1; next = reader.read(window, at, end)) {
      at = next;
      if (!reader.hasFrame) continue;
      on.jpeg({
        pts: reader.framePts,
        jpeg: window.slice(reader.frameOffset, reader.frameOffset + reader.frameBytes),
      });
    }
  }
}

/** Bytes of the window at first: a few JPEGs of 720p. */
const FIRST_WINDOW_BYTES = 512 * 1024;
/** The largest frame that MJPEG can encode has this size if it is pure noise; real frames stay far below. */
const WINDOW_BYTES_MAX = 256 * 2 ** 20;
