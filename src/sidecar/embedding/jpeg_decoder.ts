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
 * ffmpeg receives the files as frames of an IVF stream, whose demuxer knows where a frame ends before the next one
 * arrives, and ends at the first file that it cannot read. So either a picture comes or the output ends, and the next
 * file gets a new process. Decodes one file at a time: the caller must not call it again before.
 */
export class JpegDecoder implements AsyncDisposable {
  readonly #program: string;
  #process: FfmpegProcess | null = null;
  #frames = 0;

  constructor(program: string) {
    this.#program = program;
  }

  /** 64x64 pixels, RGB. Rejects with one of the errors above or the reason of `signal`; then the process has ended. */
  async decode(jpeg: Uint8Array, signal: AbortSignal): Promise<Uint8Array> {
    signal.throwIfAborted();
    const isNew = this.#process === null;
    const process = this.#process ??= started(this.#program);
    const onAbort = () => kill(process.child);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
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

  /** Null when the process has ended. */
  async #exchange(process: FfmpegProcess, jpeg: Uint8Array): Promise<Uint8Array | null> {
    // When ffmpeg reads no more, no picture comes either: `nextPicture` notices it.
    const writing = process.writer.write(joinedBytes(frameHeader(jpeg.length, this.#frames++), jpeg))
      .catch(() => {});
    const picture = await nextPicture(process);
    if (picture) await writing;
    return picture;
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

/** One thread and short probing, because more of either makes ffmpeg hold pictures back. */
const ARGUMENTS = [
  ...[
    "-nostdin",
    "-loglevel",
    "quiet",
    "-xerror",
    "-err_detect",
    "explode",
    "-max_pixels",
    String(PIXELS_MAX),
  ],
  ...["-protocol_whitelist", "pipe", "-threads", "1", "-probesize", "32", "-f", "ivf", "-i", "pipe:0"],
  ...["-map", "0:v:0", "-threads", "1", "-fps_mode", "passthrough"],
  ...["-vf", `scale=${PICTURE_EDGE}:${PICTURE_EDGE}:flags=area`, "-pix_fmt", "rgb24"],
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
 * 8x8 grey pixels. The first file for a new ffmpeg must be valid, or ffmpeg searches for a valid one instead of ending.
 * Quantisation by 1, one component, the default Huffman tables (which a file in a stream may leave out). One byte of
 * data: no change of the mean (00), nothing else in the block (1010), ones to the end (11).
 */
const GREY_JPEG = Uint8Array.fromHex(
  "ffd8" + "ffdb004300" + "01".repeat(64) + "ffc0000b080008000801011100" + "ffda0008010100003f00" + "2b" +
    "ffd9",
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
  view.setUint32(16, 1_000, true);
  view.setUint32(20, 1, true);
  return bytes;
}

function frameHeader(length: number, time: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(12));
  view.setUint32(0, length, true);
  view.setBigUint64(4, BigInt(time), true);
  return new Uint8Array(view.buffer);
}

/** Null when the output ends first. */
async function nextPicture({ reader }: FfmpegProcess): Promise<Uint8Array | null> {
  let buffer = new Uint8Array(PICTURE_BYTES);
  for (let at = 0; at < PICTURE_BYTES;) {
    const { value, done } = await reader.read(new Uint8Array(buffer.buffer, at, PICTURE_BYTES - at))
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
