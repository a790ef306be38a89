/** JPEG files to small RGB pictures, through one ffmpeg that keeps running: one file in, one picture out. */

import { joinedBytes } from "../../base/bytes.ts";
import { PICTURE_BYTES, PICTURE_EDGE } from "./picture_descriptor.ts";

/** The file is no JPEG, or it is damaged, or it has more pixels than a camera makes. */
export class UndecodableJpeg extends Error {
  override readonly name = "UndecodableJpeg";
}

/** There is no ffmpeg, or it cannot be started. */
export class DecoderMissing extends Error {
  override readonly name = "DecoderMissing";
}

const PIXELS_MAX = 64 * 2 ** 20;

/**
 * ffmpeg receives the files as frames of an IVF stream, whose demuxer knows where a frame ends before the
 * next one arrives. A grey one follows each, at an odd time, and its picture has a white line below it:
 *
 * ```
 *   in    file, grey, no JPEG, grey, file, grey
 *   out   picture, line, line, picture, line          line: nothing came of the file
 * ```
 *
 * What follows a file that could not be read gets a new process. Decodes one file at a time: the caller must
 * not call it again before.
 */
export class JpegDecoder implements AsyncDisposable {
  readonly #program: string;
  #process: FfmpegProcess | null = null;
  #frames = 0;

  constructor(program: string) {
    this.#program = program;
  }

  /**
   * 64x64 pixels, RGB. Rejects with one of the errors above or the reason of `signal`; then the process has
   * ended.
   */
  async decode(jpeg: Uint8Array, signal: AbortSignal): Promise<Uint8Array> {
    signal.throwIfAborted();
    const isNew = this.#process === null;
    const process = this.#process ??= started(this.#program);
    const onAbort = () => kill(process.child);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      // The first file must be valid, or ffmpeg searches for a valid one.
      if (isNew) await this.#exchange(process, GREY_JPEG);
      const picture = await this.#exchange(process, jpeg);
      if (picture) return picture;
      await this.#end();
      signal.throwIfAborted();
      throw new UndecodableJpeg("the file is no whole JPEG of a usual size");
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end();
  }

  /** Null where nothing came of the file, and when the process has ended. */
  async #exchange(process: FfmpegProcess, jpeg: Uint8Array): Promise<Uint8Array | null> {
    const at = this.#frames;
    this.#frames += 2;
    const both = [frameHeader(jpeg.length, at), jpeg, frameHeader(GREY_JPEG.length, at + 1), GREY_JPEG];
    // When ffmpeg reads no more, no picture comes either: `nextPicture` notices it.
    const writing = process.writer.write(joinedBytes(...both)).catch(() => {});
    const picture = await nextPicture(process);
    if (!picture || isMarked(picture)) return null;
    const mark = await nextPicture(process);
    if (!mark || !isMarked(mark)) return null;
    await writing;
    return picture.subarray(0, PICTURE_BYTES);
  }

  async #end(): Promise<void> {
    const process = this.#process;
    this.#process = null;
    if (!process) return;
    kill(process.child);
    await process.writer.abort().catch(() => {});
    await process.reader.cancel().catch(() => {});
    await process.child.status;
  }
}

interface FfmpegProcess {
  readonly child: Deno.ChildProcess;
  readonly writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly reader: ReadableStreamBYOBReader;
}

/** The line below each picture. */
const LINE_BYTES = PICTURE_EDGE * 3;

function isMarked(picture: Uint8Array): boolean {
  return picture[PICTURE_BYTES] === 255;
}

const FILTERS = [
  ...[`scale=${PICTURE_EDGE}:${PICTURE_EDGE}:flags=area`, "format=rgb24"],
  `pad=${PICTURE_EDGE}:${PICTURE_EDGE + 1}`,
  `drawbox=y=${PICTURE_EDGE}:h=1:t=fill:color=white:enable='mod(t,2)'`,
];

/**
 * One thread and short probing, because more of either makes ffmpeg hold pictures back. No `-xerror`: some
 * versions end at an error only when they have read the next file.
 */
const ARGUMENTS = [
  ...[
    "-nostdin",
    "-loglevel",
    "quiet",
    "-err_detect",
    "explode",
    "-max_pixels",
    String(PIXELS_MAX),
  ],
  ...["-protocol_whitelist", "pipe", "-threads", "1", "-probesize", "32", "-f", "ivf", "-i", "pipe:0"],
  ...["-map", "0:v:0", "-threads", "1", "-fps_mode", "passthrough"],
  ...["-vf", FILTERS.join(","), "-pix_fmt", "rgb24"],
  ...["-c:v", "rawvideo", "-flush_packets", "1", "-f", "rawvideo", "pipe:1"],
];

function started(program: string): FfmpegProcess {
  let child: Deno.ChildProcess;
  try {
    child = new Deno.Command(program, {
      args: ARGUMENTS,
      clearEnv: true,
      stdin: "piped",
      stdout: "piped",
      stderr: "null",
    }).spawn();
  } catch (error) {
    throw new DecoderMissing(`ffmpeg does not start: ${error instanceof Error ? error.name : String(error)}`);
  }
  const writer = child.stdin.getWriter();
  writer.write(STREAM_HEADER).catch(() => {/* the end of its output shows the failure */});
  return { child, writer, reader: child.stdout.getReader({ mode: "byob" }) };
}

/**
 * 8x8 grey pixels. Quantisation by 1, one component, one code of one bit for each of its Huffman tables. All
 * its tables have number 3: ffmpeg keeps tables for the next files, and a file in a stream may leave out the
 * default ones, 0 and 1. One byte of data: no change of the mean (0), nothing else in the block (0), ones to
 * the end.
 */
const CODE = "01" + "00".repeat(15) + "00";
const GREY_JPEG = Uint8Array.fromHex(
  "ffd8" + "ffdb004303" + "01".repeat(64) + "ffc40026" + `03${CODE}` + `13${CODE}` +
    "ffc0000b080008000801011103" +
    "ffda0008010133003f00" + "3f" + "ffd9",
);

/*
 * IVF, little-endian.
 *
 *   stream   0  D K I F      4  version 0, u16     6  length 32, u16     8  M J P G
 *           12  width, height, u16 each: 0         16  ticks a second, u32    20  seconds, u32
 *   frame    0  length, u32  4  time, u64
 *
 * With a height here, ffmpeg would read a lower picture as half of an interlaced one.
 */
const STREAM_HEADER = streamHeader();

function streamHeader(): Uint8Array {
  const bytes = new Uint8Array(32);
  const view = new DataView(bytes.buffer);
  bytes.set(new TextEncoder().encode("DKIF"));
  view.setUint16(6, bytes.length, true);
  bytes.set(new TextEncoder().encode("MJPG"), 8);
  view.setUint32(16, 1, true);
  view.setUint32(20, 1, true);
  return bytes;
}

function frameHeader(length: number, time: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(12));
  view.setUint32(0, length, true);
  view.setBigUint64(4, BigInt(time), true);
  return new Uint8Array(view.buffer);
}

/** With its line; null when the output ends first. */
async function nextPicture({ reader }: FfmpegProcess): Promise<Uint8Array | null> {
  const bytes = PICTURE_BYTES + LINE_BYTES;
  let buffer = new Uint8Array(bytes);
  for (let at = 0; at < bytes;) {
    const { value, done } = await reader.read(new Uint8Array(buffer.buffer, at, bytes - at))
      .catch(() => ({ value: undefined, done: true }));
    if (done || !value) return null;
    buffer = new Uint8Array(value.buffer);
    at += value.length;
  }
  return buffer;
}

function kill(child: Deno.ChildProcess): void {
  try {
    child.kill("SIGKILL");
  } catch {
    // It has ended by itself.
  }
}
