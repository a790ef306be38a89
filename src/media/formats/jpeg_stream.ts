/** Reads the JPEGs that ffmpeg writes to its standard output, each with its time. */

import { NutError, NutReader } from "./nut.ts";

export interface TimedJpeg {
  /** Seconds on the clock of the decode: what `t` is in its filters, and times of frames count from the first. */
  readonly timeS: number;
  /** A JPEG file by itself. */
  readonly jpeg: Uint8Array<ArrayBuffer>;
}

/**
 * Gives each picture of a NUT stream as soon as it is whole. A stream that ends within a picture ends before it. `onBytes`
 * hears of everything that comes.
 */
export async function readJpegs(
  stream: ReadableStream<Uint8Array>,
  on: { bytes(): void; picture(picture: TimedJpeg): void },
): Promise<void> {
  const reader = new NutReader();
  let window = new Uint8Array(FIRST_WINDOW_BYTES);
  /** The unread bytes are `[at, end)`; `at` may lie behind them while a skipped element goes on. */
  let at = 0;
  let end = 0;
  for await (const part of stream) {
    on.bytes();
    if (end + part.length > window.length) {
      const read = Math.min(at, end);
      const needed = end - read + part.length;
      if (needed > WINDOW_BYTES_MAX) throw new NutError(`a picture of more than ${WINDOW_BYTES_MAX} bytes`);
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
      const timeS = reader.framePts * reader.timeBaseNumerator / reader.timeBaseDenominator;
      on.picture({ timeS, jpeg: window.slice(reader.frameOffset, reader.frameOffset + reader.frameBytes) });
    }
  }
}

/** Some pictures of 720p. */
const FIRST_WINDOW_BYTES = 512 * 1024;
/** The largest picture that MJPEG can hold is noise at this size; no real one comes near. */
const WINDOW_BYTES_MAX = 256 * 2 ** 20;
