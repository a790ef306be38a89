/** Encoders, their settings and containers, as they are met in practice. */

import type { Size } from "../pictures/picture.ts";
import { FrameWriter } from "./programs.ts";
import type { Random } from "../random.ts";

export type Codec = "h264" | "hevc" | "vp8" | "vp9" | "av1" | "mpeg2" | "mpeg4" | "mjpeg";

export interface Encoding {
  readonly codec: Codec;
  readonly extension: string;
  /** Options of ffmpeg's output. */
  readonly args: readonly string[];
}

/** How often each codec is met; the slow ones are rare. */
const SHARES: readonly (readonly [Codec, number])[] = [
  ...[["h264", 12], ["mpeg4", 2], ["mpeg2", 2], ["vp8", 2], ["vp9", 1.5], ["hevc", 1.5], [
    "av1",
    0.7,
  ]] as const,
  ["mjpeg", 1],
];

/** Frame rates that MPEG-2 knows. */
const MPEG2_RATES = [24, 25, 30, 50, 60];

export function anyEncoding(random: Random, fps: number, among?: readonly Codec[]): Encoding {
  const usable = SHARES.filter(([codec]) =>
    (!among || among.includes(codec)) && (codec !== "mpeg2" || MPEG2_RATES.includes(fps))
  );
  const [codec] = random.weighted(usable, ([, share]) => share);
  return encodingOf(codec, random);
}

export function encodingOf(codec: Codec, random: Random): Encoding {
  const gop = ["-g", String(random.pick([12, 25, 50, 50, 250]))];
  switch (codec) {
    case "h264": {
      const presets = ["ultrafast", "superfast", "veryfast", "veryfast", "faster", "medium"];
      return {
        codec,
        extension: random.pick(["mp4", "mp4", "mp4", "mkv", "ts"]),
        args: [
          ...["-c:v", "libx264", "-preset", random.weighted(presets, (name) => name === "medium" ? 0.3 : 1)],
          ...["-crf", String(random.int(18, 38)), "-bf", String(random.pick([0, 0, 2, 3])), ...gop],
          ...(random.chance(0.4) ? ["-sc_threshold", "0"] : []),
          ...(random.chance(0.15) ? ["-intra-refresh", "1"] : []),
        ],
      };
    }
    case "hevc":
      return {
        codec,
        extension: random.pick(["mp4", "mkv"]),
        args: [
          ...["-c:v", "libx265", "-preset", "ultrafast", "-crf", String(random.int(20, 36)), ...gop],
          ...["-x265-params", "log-level=none:pools=none:frame-threads=1", "-tag:v", "hvc1"],
        ],
      };
    case "vp8":
      return {
        codec,
        extension: "webm",
        args: [
          ...[
            "-c:v",
            "libvpx",
            "-deadline",
            "realtime",
            "-cpu-used",
            "8",
            "-b:v",
            `${random.pick([300, 600, 1500])}k`,
          ],
          ...gop,
        ],
      };
    case "vp9":
      return {
        codec,
        extension: "webm",
        args: [
          ...["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-row-mt", "0"],
          ...["-b:v", "0", "-crf", String(random.int(28, 46)), ...gop],
        ],
      };
    case "av1":
      return {
        codec,
        extension: random.pick(["mp4", "mkv"]),
        args: [
          "-c:v",
          "libsvtav1",
          "-preset",
          "12",
          "-crf",
          String(random.int(30, 50)),
          "-svtav1-params",
          "lp=1",
          ...gop,
        ],
      };
    case "mpeg2":
      return {
        codec,
        extension: random.pick(["ts", "mkv", "mpg"]),
        args: [
          ...["-c:v", "mpeg2video", "-q:v", String(random.int(3, 12)), "-g", String(random.pick([12, 15]))],
          ...["-bf", String(random.int(0, 2))],
        ],
      };
    case "mpeg4":
      return {
        codec,
        extension: random.pick(["mp4", "avi"]),
        args: ["-c:v", "mpeg4", "-q:v", String(random.int(3, 12)), ...gop],
      };
    case "mjpeg":
      return {
        codec,
        extension: random.pick(["mkv", "avi"]),
        args: ["-c:v", "mjpeg", "-q:v", String(random.int(3, 12)), "-pix_fmt", "yuvj420p"],
      };
  }
}

/** Which frames of a video with an uneven rate are left out: both ffmpeg and we can tell, without a list. */
export class Gaps {
  readonly #square: number;
  readonly #factor: number;
  readonly #start: number;
  readonly #below: number;

  constructor(random: Random, share: number) {
    this.#square = random.int(1, GAP_PERIOD - 1);
    this.#factor = random.int(1, GAP_PERIOD - 1);
    this.#start = random.int(0, GAP_PERIOD - 1);
    this.#below = Math.round(share * GAP_PERIOD);
  }

  leavesOut(n: number): boolean {
    return n > 1 && (n * n * this.#square + n * this.#factor + this.#start) % GAP_PERIOD < this.#below;
  }

  /** The filter of ffmpeg that passes the other frames on. */
  filter(): string {
    const value = `mod(n*n*${this.#square}+n*${this.#factor}+${this.#start},${GAP_PERIOD})`;
    return `select='lte(n,1)+gte(${value},${this.#below})'`;
  }
}

const GAP_PERIOD = 997;

/** Writes frames of `size` as a video; those that `gaps` leaves out stay a gap in time. */
export function openEncoder(
  path: string,
  size: Size,
  fps: number,
  encoding: Encoding,
  gaps: Gaps | null,
): FrameWriter {
  return new FrameWriter([
    ...[
      "-pix_fmt",
      "yuv420p",
      "-s",
      `${size.width}x${size.height}`,
      "-framerate",
      String(fps),
      "-i",
      "pipe:0",
    ],
    ...(gaps
      ? ["-vf", gaps.filter(), "-fps_mode", "vfr", "-enc_time_base", `1:${fps}`]
      : ["-fps_mode", "passthrough"]),
    ...encoding.args,
    ...["-threads", "1", path],
  ], path);
}
