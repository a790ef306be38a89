/** Encoded streams cut into access units, and frames made from functions, for tests of live decoding. */

import { freeRoom } from "./free_room.ts";
import { localRunner } from "../local_runner.ts";
import type { World } from "../../../src/base/world.ts";
import type { Extent } from "../../../src/model/frames/coordinates.ts";
import type { VideoCodec } from "../../../src/model/live/offer.ts";
import {
  type DecodedFrame,
  LiveDecoder,
  type LiveDecoderOptions,
} from "../../../src/media/live/live_decoder.ts";
import type { FramePixels } from "../../../src/media/live/frame_ring.ts";
import { make, TempFolder, tools, world } from "../media.ts";
import { childProcesses } from "../own_process.ts";

export interface TestUnit extends Extent {
  readonly data: Uint8Array<ArrayBuffer>;
  readonly isKeyframe: boolean;
}

export interface TestStream {
  readonly codec: VideoCodec;
  readonly units: readonly TestUnit[];
  /** The pixels of each unit as ffmpeg itself decodes them. */
  readonly decodedFrames: readonly Uint8Array[];
}

const ENCODERS: Readonly<Record<VideoCodec, { readonly format: string; readonly args: readonly string[] }>> =
  {
    vp8: {
      format: "ivf",
      args: ["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-auto-alt-ref", "0"],
    },
    vp9: { format: "ivf", args: ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8"] },
    av1: { format: "ivf", args: ["-c:v", "libaom-av1", "-usage", "realtime", "-cpu-used", "8"] },
    h264: {
      format: "h264",
      args: [
        "-c:v",
        "libx264",
        "-preset",
        "ultrafast",
        "-tune",
        "zerolatency",
        "-bsf:v",
        "h264_metadata=aud=insert",
      ],
    },
    h265: {
      format: "hevc",
      args: [
        ...[
          "-c:v",
          "libx265",
          "-preset",
          "ultrafast",
          "-tune",
          "zerolatency",
          "-x265-params",
          "log-level=none",
        ],
        ...["-bsf:v", "hevc_metadata=aud=insert"],
      ],
    },
  };

/** A video of `frames` frames with motion, and a keyframe every `keyframeEvery` frames. */
export function stream(
  codec: VideoCodec,
  {
    frames = 30,
    width = 160,
    height = 120,
    keyframeEvery = 10,
    source = "testsrc2",
    filter = "null",
    args = [],
  }: {
    frames?: number;
    width?: number;
    height?: number;
    keyframeEvery?: number;
    source?: string;
    filter?: string;
    args?: readonly string[];
  } = {},
): TestStream {
  using folder = new TempFolder();
  const { format, args: encoder } = ENCODERS[codec];
  const path = make(
    `${folder.path}/stream.${format}`,
    ...["-f", "lavfi", "-i", `${source}=s=${width}x${height}:r=30`, "-vf", `${filter},format=yuv420p`],
    ...["-frames:v", String(frames), ...encoder, "-g", String(keyframeEvery), "-b:v", "500k", ...args],
    ...["-f", format],
  );
  const decoded = make(`${folder.path}/stream.yuv`, "-i", path, "-fps_mode", "passthrough", "-f", "rawvideo");
  const bytes = Deno.readFileSync(path);
  const cut = format === "ivf" ? ivfUnits(bytes) : annexBUnits(bytes, codec === "h264" ? 9 : 35, codec);
  const units = cut.map((data) => ({ data, width, height, isKeyframe: isKeyframe(codec, data) }));
  const raw = Deno.readFileSync(decoded);
  const size = width * height * 3 / 2;
  return {
    codec,
    units,
    decodedFrames: Array.from(
      { length: raw.length / size },
      (_, at) => raw.subarray(at * size, (at + 1) * size),
    ),
  };
}

function ivfUnits(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer>[] {
  const view = new DataView(bytes.buffer);
  const units: Uint8Array<ArrayBuffer>[] = [];
  for (let at = 32; at + 12 <= bytes.length;) {
    const end = at + 12 + view.getUint32(at, true);
    units.push(bytes.slice(at + 12, end));
    at = end;
  }
  return units;
}

/** Units of Annex B data, each of which begins with a delimiter, NAL type `delimiter`. */
function annexBUnits(
  bytes: Uint8Array<ArrayBuffer>,
  delimiter: number,
  codec: VideoCodec,
): Uint8Array<ArrayBuffer>[] {
  const starts = nalStarts(bytes).filter((at) => nalType(codec, bytes[at]!) === delimiter).map((at) =>
    at - 4
  );
  return starts.map((start, index) => bytes.slice(start, starts[index + 1] ?? bytes.length));
}

function nalStarts(bytes: Uint8Array): number[] {
  const starts: number[] = [];
  for (let at = 3; at < bytes.length; at++) {
    if (bytes[at - 3] === 0 && bytes[at - 2] === 0 && bytes[at - 1] === 1) starts.push(at);
  }
  return starts;
}

function nalType(codec: VideoCodec, byte: number): number {
  return codec === "h264" ? byte & 31 : (byte >> 1) & 63;
}

function isKeyframe(codec: VideoCodec, data: Uint8Array): boolean {
  switch (codec) {
    case "vp8":
      return (data[0]! & 1) === 0;
    case "vp9":
      return (data[0]! & 4) === 0;
    case "av1":
      // A temporal unit with a sequence header.
      return data.length > 2 && ((data[2]! >> 3) & 15) === 1;
    case "h264":
      return nalStarts(data).some((at) => nalType(codec, data[at]!) === 5);
    case "h265":
      return nalStarts(data).some((at) => nalType(codec, data[at]!) >= 16 && nalType(codec, data[at]!) <= 21);
  }
}

/** A decoded frame with a copy of its pixels. */
export interface DecodedCopy extends Extent {
  readonly rtpTimestamp: number;
  readonly frameIndex: number;
  readonly ptsMs: number;
  readonly arrivedMs: number;
  readonly isFullRange: boolean;
  readonly sourceExtent: Extent;
  readonly bytes: Uint8Array;
}

/** A decoder that records its frames and events. */
export class TestDecoder implements AsyncDisposable {
  readonly frames: DecodedCopy[] = [];
  readonly events: string[] = [];
  readonly decoder: LiveDecoder;

  constructor(codec: VideoCodec, options: Partial<LiveDecoderOptions> = {}) {
    this.decoder = new LiveDecoder({
      runner: localRunner(tools()),
      world: world(),
      codec,
      room: freeRoom(),
      onFrame: (frame) => this.frames.push(copied(frame)),
      onKeyframeNeeded: () => this.events.push("keyframe"),
      onRestarted: (reason) => this.events.push(reason),
      onFault: (message: string) => this.events.push(`fault: ${message}`),
      ...options,
    });
  }

  push(unit: Omit<TestUnit, "width" | "height"> & Partial<Extent>, rtpTimestamp: number): void {
    this.decoder.push({
      data: unit.data,
      isKeyframe: unit.isKeyframe,
      width: unit.width ?? null,
      height: unit.height ?? null,
      rtpTimestamp,
      arrivedMs: rtpTimestamp + 1,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.decoder[Symbol.asyncDispose]();
  }
}

function copied({ pixels, ...frame }: DecodedFrame): DecodedCopy {
  const { width, height, isFullRange, sourceExtent } = pixels;
  return { ...frame, width, height, isFullRange, sourceExtent, bytes: pixels.bytes.slice() };
}

/** A world in which time passes `factor` times as fast. */
export function fastWorld(factor: number): World {
  const real = world();
  return {
    ...real,
    monotonicMs: () => real.monotonicMs() * factor,
    sleep: (ms, signal) => real.sleep(ms / factor, signal),
  };
}

/** Process ids of the programs that this process started and that are still there. */
export function children(): number[] {
  return childProcesses().filter(({ isZombie }) => !isZombie).map(({ pid }) => pid);
}

/** Pixels that stay available, with luma from a function and gray chroma. */
export function framePixels(
  { width, height }: Extent,
  luma: (x: number, y: number) => number,
  { isFullRange = false, sourceExtent = { width, height } }: Partial<FramePixels> = {},
): FramePixels {
  const bytes = new Uint8Array(width * height + 2 * Math.ceil(width / 2) * Math.ceil(height / 2)).fill(128);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) bytes[y * width + x] = luma(x, y);
  }
  return { width, height, isFullRange, sourceExtent, isAvailable: true, bytes };
}
