/** Looks into pictures and clips that the service sent to a model: are they whole, and how large. */

import { join } from "node:path";

export interface SentImage {
  readonly width: number;
  readonly height: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** A whole JPEG file with its size in pixels. Errors: an Error that says what is wrong with it. */
export function readJpeg(bytes: Uint8Array<ArrayBuffer>): SentImage {
  const { length } = bytes;
  if (length < 4 || bytes[0] !== 0xff || bytes[1] !== 0xd8) throw new Error("a JPEG must begin with SOI");
  if (bytes[length - 2] !== 0xff || bytes[length - 1] !== 0xd9) throw new Error("a JPEG must end with EOI");
  let at = 2;
  while (at + 9 < length) {
    if (bytes[at] !== 0xff) throw new Error(`a JPEG marker is missing at byte ${at}`);
    const marker = bytes[at + 1]!;
    const isFrameHeader = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrameHeader) {
      const height = bytes[at + 5]! * 256 + bytes[at + 6]!;
      const width = bytes[at + 7]! * 256 + bytes[at + 8]!;
      if (width === 0 || height === 0) throw new Error(`a JPEG of ${width}x${height}`);
      return { width, height, bytes };
    }
    at += 2 + bytes[at + 2]! * 256 + bytes[at + 3]!;
  }
  throw new Error("a JPEG must have a frame header");
}

/** A small picture of that size, made by ffmpeg. */
export async function testJpeg(width: number, height: number): Promise<Uint8Array<ArrayBuffer>> {
  const source = ["-f", "lavfi", "-i", `testsrc=size=${width}x${height}`];
  const args = ["-v", "error", ...source, "-frames:v", "1", "-f", "mjpeg", "pipe:1"];
  const { stdout, success } = await new Deno.Command("ffmpeg", { args, stdin: "null" }).output();
  if (!success) throw new Error("ffmpeg made no picture");
  return stdout;
}

/** Checks that a file is an MP4. Errors: an Error unless the box at the beginning says so. */
export function checkMp4Head(bytes: Uint8Array): void {
  const name = new TextDecoder().decode(bytes.subarray(4, 8));
  if (name !== "ftyp") throw new Error(`an MP4 must begin with ftyp, got ${JSON.stringify(name)}`);
}

export interface SentClip {
  readonly durationMs: number;
  readonly streams: readonly {
    readonly type: "video" | "audio";
    readonly codec: string;
    readonly width: number | null;
    readonly height: number | null;
    readonly channels: number | null;
    readonly sampleRateHz: number | null;
    readonly frames: number;
  }[];
}

/** What ffprobe finds in an MP4, every frame decoded. Errors: an Error with what ffprobe complains about. */
export async function probeMp4(bytes: Uint8Array): Promise<SentClip> {
  checkMp4Head(bytes);
  const folder = await Deno.makeTempDir({ prefix: "sent-clip-" });
  try {
    const path = join(folder, "clip.mp4");
    await Deno.writeFile(path, bytes);
    const args = ["-v", "error", "-count_frames", "-show_format", "-show_streams", "-of", "json", path];
    const { stdout, stderr, success } = await new Deno.Command("ffprobe", { args, stdin: "null" }).output();
    const complaint = new TextDecoder().decode(stderr).trim();
    if (!success || complaint !== "") throw new Error(`not a clean MP4: ${complaint}`);
    const { format, streams } = JSON.parse(new TextDecoder().decode(stdout));
    return {
      durationMs: Math.round(Number(format.duration) * 1000),
      streams: streams.map((stream: Record<string, string>) => ({
        type: stream.codec_type,
        codec: stream.codec_name,
        width: stream.width ?? null,
        height: stream.height ?? null,
        channels: stream.channels ?? null,
        sampleRateHz: stream.sample_rate ? Number(stream.sample_rate) : null,
        frames: Number(stream.nb_read_frames),
      })),
    };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
