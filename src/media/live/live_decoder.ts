/** Live video into pictures: access units in as they come, pictures out in order with the exact time of their unit. */

import type { Tools } from "../../base/program_paths.ts";
import type { World } from "../../base/world.ts";
import type { Extent } from "../../model/frames/coordinates.ts";
import { LIMITS } from "../../model/limits.ts";
import type { VideoCodec } from "../../model/live/offer.ts";
import { ivfFrame, ivfHeader } from "../formats/ivf.ts";
import { type FramePixels, FrameRing, ringBytes } from "./frame_ring.ts";
import { LiveFfmpeg, TICKS_PER_SECOND } from "./live_ffmpeg.ts";

/** One access unit: Annex B of H.264 and H.265, a frame of VP8 or VP9, a temporal unit of AV1. Kept until it is written. */
export interface EncodedUnit {
  readonly data: Uint8Array;
  /** 90 kHz, not wrapping. */
  readonly rtpTimestamp: number;
  readonly isKeyframe: boolean;
  /** Of a keyframe that tells its size. */
  readonly width: number | null;
  readonly height: number | null;
  /** When its last packet came, epoch milliseconds: handed on with its picture. */
  readonly arrivedMs: number;
}

/** One decoded picture. */
export interface DecodedFrame {
  /** Counts the access units that were pushed, from 0, those without a picture included. */
  readonly frameIndex: number;
  readonly rtpTimestamp: number;
  /** `rtpTimestamp` / 90, rounded. */
  readonly ptsMs: number;
  readonly arrivedMs: number;
  /** Stays for `RING_FRAMES - 1` further pictures. */
  readonly pixels: FramePixels;
}

export type RestartReason = "stalled" | "exited";

export interface LiveDecoderOptions {
  readonly tools: Pick<Tools, "ffmpeg" | "prlimit">;
  readonly world: World;
  readonly codec: VideoCodec;
  /** What admission reserved for: pictures of more pixels are scaled down, keeping their shape. */
  readonly maxFrame: Extent;
  /** Called while the decoder's output is read, so it must neither wait nor throw. */
  readonly onFrame: (frame: DecodedFrame) => void;
  /** Nothing is decoded before the next keyframe: the publisher is to be asked for one. Repeated every second. */
  readonly onKeyframeNeeded: () => void;
  /** A decoder broke down and another one begins with the keyframe that came. */
  readonly onRestarted: (reason: RestartReason) => void;
  /** Decoders keep breaking down without a picture: this one has given up and takes nothing more. */
  readonly onFault: (message: string) => void;
}

/** So many of the newest pictures stay: a cut is decided five frames late, and its JPEG takes a few frames more. */
export const RING_FRAMES = 10;

/**
 * The most memory that a session's pictures take, bytes: the ring and the units that wait. ffmpeg's own memory (some 50 MB
 * up to 1080p) and the kernels' (3 MiB) come on top.
 *
 * ```
 *   640x480     10 x (460,800 + 272 KiB) + ...   =   7.7 MB + 8 MiB
 *   1280x720    10 x (1,382,400 + 272 KiB) + ... =  16.9 MB + 8 MiB
 *   1920x1080   10 x (3,110,400 + 272 KiB) + ... =  34.2 MB + 8 MiB
 * ```
 */
export function liveMemoryBytes(width: number, height: number): number {
  return ringBytes({ width, height }, RING_FRAMES) + QUEUED_BYTES_MAX;
}

/** Contract 11.4. */
const UNITS_QUEUED_MAX = LIMITS.live.videoUnitsQueued;
const UNIT_BYTES_MAX = LIMITS.live.videoUnitBytesMax;
/** 128 units of half a second's keyframe each would be more than a session may hold. */
const QUEUED_BYTES_MAX = 8 * 2 ** 20;
/** More units than that without a picture, one of them for so long: what is shown is no longer live. */
const IN_FLIGHT_MAX = 15;
const LATE_MS = 500;
/** A decoder that is given units and gives nothing for so long has stalled. */
const STALL_MS = 5_000;
/** Units came within this time: the decoder is being fed, and its silence means something. */
const FED_MS = 2_000;
const WATCH_MS = 1_000;
/** Restarts within the time, without a picture, after which nobody tries again. */
const RESTARTS_MAX = 3;
const RESTARTS_MS = 30_000;
/** How long an old decoder may take to give its last pictures when the size changes. */
const DRAIN_MS = 500;

interface NumberedUnit extends EncodedUnit {
  readonly frameIndex: number;
  readonly pushedMs: number;
}

/**
 * ```
 *   push → [128 units or 8 MiB, drop to next keyframe] → ffmpeg → picture ring → onFrame
 *              │                                           │
 *              └ behind: over 15 units, half a second      └ 5 s silent, or gone: another one at the next keyframe
 * ```
 *
 * Single units are never dropped: what follows would be damaged. It starts with a keyframe. A unit that cannot be decoded
 * gives no picture and nothing else happens.
 */
export class LiveDecoder implements AsyncDisposable {
  /** Units pushed; pictures given; units that were dropped before decoding; decoders that were replaced. */
  readonly counts = { received: 0, decoded: 0, dropped: 0, restarts: 0 };

  readonly #options: LiveDecoderOptions;
  readonly #ring = new FrameRing(RING_FRAMES);
  readonly #closing = new AbortController();
  /** Not yet written, and written but not yet shown. */
  #queue: NumberedUnit[] = [];
  #queuedBytes = 0;
  #inFlight: NumberedUnit[] = [];
  #source: LiveFfmpeg | null = null;
  #pumping: Promise<void> | null = null;
  readonly #watching: Promise<void>;
  /** Ends of ffmpegs that are still to be seen. */
  readonly #ending = new Set<Promise<void>>();
  /** Waiting for a keyframe. */
  #isDropping = true;
  /** Why the next decoder replaces another one. */
  #broken: RestartReason | null = null;
  #restartTimesMs: number[] = [];
  /** Since when units were written and nothing came; null when nothing is waited for. */
  #silentSinceMs: number | null = null;
  #lastPushMs = -Infinity;
  /** When the unit that is being written was begun with. */
  #writingSinceMs = 0;
  /** Of the last keyframe that was written and told it. */
  #size: Extent | null = null;

  constructor(options: LiveDecoderOptions) {
    this.#options = options;
    this.#watching = this.#watch();
  }

  /** Units that wait or are being decoded: neither shown nor given up yet. */
  get pending(): number {
    return this.#queue.length + this.#inFlight.length;
  }

  /** Takes the next unit in decoding order; never waits. After a fault or the end it does nothing. */
  push(unit: EncodedUnit): void {
    const frameIndex = this.counts.received++;
    const nowMs = this.#options.world.monotonicMs();
    this.#lastPushMs = nowMs;
    if (this.#closing.signal.aborted || !this.#takes(unit, nowMs)) {
      this.counts.dropped++;
      return;
    }
    this.#queue.push({
      data: unit.data,
      rtpTimestamp: unit.rtpTimestamp,
      isKeyframe: unit.isKeyframe,
      width: unit.width,
      height: unit.height,
      arrivedMs: unit.arrivedMs,
      frameIndex,
      pushedMs: nowMs,
    });
    this.#queuedBytes += unit.data.length;
    this.#pumping ??= this.#pump().finally(() => this.#pumping = null);
  }

  /** Ends ffmpeg, wherever it is, and waits until it is gone. Frames may still come until this has resolved. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the live decoder is closing"));
    this.#queue = [];
    await this.#watching;
    await this.#pumping;
    while (this.#ending.size > 0) await Promise.all(this.#ending);
  }

  /** Whether the unit is to be decoded; where it is not, nothing is before the next keyframe. */
  #takes({ data, isKeyframe }: EncodedUnit, nowMs: number): boolean {
    const oldest = this.#inFlight[0] ?? this.#queue[0];
    const pending = this.#inFlight.length + this.#queue.length;
    const isBehind = pending > IN_FLIGHT_MAX && nowMs - oldest!.pushedMs > LATE_MS;
    const isFull = this.#queue.length >= UNITS_QUEUED_MAX ||
      this.#queuedBytes + data.length > QUEUED_BYTES_MAX;
    if (data.length === 0) return false;
    if (data.length > UNIT_BYTES_MAX || isFull) return this.#dropToKeyframe();
    if (this.#isDropping) {
      // A decoder that reads what it is given is alive: what it has not shown by now it never will.
      const isStuck = this.#pumping !== null && nowMs - this.#writingSinceMs > LATE_MS;
      if (!isKeyframe || isStuck) return false;
      this.#inFlight = [];
      this.#isDropping = false;
      return true;
    }
    return isBehind ? this.#dropToKeyframe() : true;
  }

  #dropToKeyframe(): false {
    this.counts.dropped += this.#queue.length;
    this.#queue = [];
    this.#queuedBytes = 0;
    if (!this.#isDropping) this.#options.onKeyframeNeeded();
    this.#isDropping = true;
    return false;
  }

  /** The pictures of one decoder have one size, so that their extent is exactly what was sent. */
  #changesSize({ isKeyframe, width, height }: EncodedUnit): boolean {
    if (!isKeyframe || width === null || height === null) return false;
    const before = this.#size;
    this.#size = { width, height };
    return before !== null && (before.width !== width || before.height !== height);
  }

  /** Writes what is queued. Only one of these runs at a time. */
  async #pump(): Promise<void> {
    for (;;) {
      const unit = this.#queue.shift();
      if (!unit) return;
      this.#queuedBytes -= unit.data.length;
      this.#writingSinceMs = this.#options.world.monotonicMs();
      if (this.#changesSize(unit)) await this.#drain();
      try {
        const source = this.#source ?? await this.#begin(unit);
        if (!source) continue;
        this.#inFlight.push(unit);
        this.#silentSinceMs ??= this.#options.world.monotonicMs();
        await source.write(ivfFrame(unit.data, unit.rtpTimestamp));
      } catch {
        // An ffmpeg that has ended took the unit with it; what follows is seen to where its end is.
        await Promise.all(this.#ending);
      }
    }
  }

  /** A first decoder, or the next one; null when the unit cannot be a first one, or nothing is begun any more. */
  async #begin(unit: NumberedUnit): Promise<LiveFfmpeg | null> {
    if (this.#closing.signal.aborted) return null;
    if (!unit.isKeyframe) {
      this.counts.dropped++;
      this.#dropToKeyframe();
      return null;
    }
    const { codec, onRestarted } = this.#options;
    if (this.#broken) {
      this.counts.restarts++;
      onRestarted(this.#broken);
      this.#broken = null;
    }
    const source = this.#start();
    if (!source) return null;
    this.#source = source;
    this.#inFlight = [];
    this.#silentSinceMs = null;
    const ended = source.ended.then(({ stderr }) => this.#onEnd(source, stderr));
    this.#ending.add(ended);
    ended.finally(() => this.#ending.delete(ended));
    await source.write(ivfHeader(codec));
    return source;
  }

  /** Null when it cannot be started, which is no fault of the stream: nobody tries again. */
  #start(): LiveFfmpeg | null {
    const { tools, world, codec, maxFrame } = this.#options;
    // Not every ffmpeg knows H.265 in IVF.
    const decoder = codec === "h265" ? ["-c:v", "hevc"] : [];
    try {
      return new LiveFfmpeg({
        tools,
        world,
        // `nobuffer` must never stand here: with IVF every frame would be invalid.
        input: ["-probesize", "32", ...decoder, "-f", "ivf", "-i", "pipe:0"],
        stream: "0:v:0",
        keepsTimes: true,
        maxFrame,
        hasStdin: true,
        ring: this.#ring,
        onPixels: (pixels, rtpTimestamp) => this.#emit(pixels, rtpTimestamp),
        signal: this.#closing.signal,
      });
    } catch (error) {
      this.#giveUp(`the decoder cannot be started: ${error instanceof Error ? error.name : error}`);
      return null;
    }
  }

  /** Lets the decoder give its last pictures and end; the next one begins with the next unit. */
  async #drain(): Promise<void> {
    const source = this.#source;
    if (!source) return;
    this.#source = null;
    source.close();
    const drained = new AbortController();
    const deadline = this.#options.world.sleep(DRAIN_MS, drained.signal)
      .then(() => source.kill(), () => {/* it has ended */});
    await source.ended;
    drained.abort();
    await deadline;
  }

  #emit(pixels: FramePixels, rtpTimestamp: number): void {
    const at = this.#inFlight.findIndex((unit) => unit.rtpTimestamp === rtpTimestamp);
    // Times are exact, so a picture of no unit is one that was given up, or one that a decoder made up.
    if (at === -1) return;
    const unit = this.#inFlight[at]!;
    this.#inFlight = this.#inFlight.filter((other) => other.rtpTimestamp > rtpTimestamp);
    this.#silentSinceMs = this.#inFlight.length > 0 ? this.#options.world.monotonicMs() : null;
    this.#restartTimesMs = [];
    this.counts.decoded++;
    this.#options.onFrame({
      frameIndex: unit.frameIndex,
      rtpTimestamp,
      ptsMs: Math.round(rtpTimestamp * 1000 / TICKS_PER_SECOND),
      arrivedMs: unit.arrivedMs,
      pixels,
    });
  }

  /** Another decoder begins at the next keyframe, which may already be queued. */
  #onEnd(source: LiveFfmpeg, stderr: string): void {
    if (this.#source !== source || this.#closing.signal.aborted) return;
    this.#source = null;
    this.#inFlight = [];
    this.#silentSinceMs = null;
    this.#broken ??= "exited";
    const nowMs = this.#options.world.monotonicMs();
    this.#restartTimesMs = [...this.#restartTimesMs.filter((time) => nowMs - time < RESTARTS_MS), nowMs];
    if (this.#restartTimesMs.length > RESTARTS_MAX) {
      this.#giveUp(`the decoder broke down ${RESTARTS_MAX} times without a picture: ${lastLine(stderr)}`);
      return;
    }
    const keyframe = this.#queue.findIndex((unit) => unit.isKeyframe);
    if (keyframe === -1) {
      this.#dropToKeyframe();
      return;
    }
    this.counts.dropped += keyframe;
    for (const unit of this.#queue.splice(0, keyframe)) this.#queuedBytes -= unit.data.length;
  }

  #giveUp(message: string): void {
    this.#closing.abort(new Error("the live decoder has given up"));
    this.#queue = [];
    this.#options.onFault(message);
  }

  /** Sees decoders that stall, and asks again for a keyframe that does not come. */
  async #watch(): Promise<void> {
    const { world, onKeyframeNeeded } = this.#options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await world.sleep(WATCH_MS, signal).catch(() => {/* closing */});
      if (signal.aborted) return;
      const nowMs = world.monotonicMs();
      const isFed = nowMs - this.#lastPushMs < FED_MS;
      if (isFed && this.#isDropping) onKeyframeNeeded();
      if (!isFed || this.#silentSinceMs === null || nowMs - this.#silentSinceMs < STALL_MS) continue;
      if (!this.#source) continue;
      this.#broken = "stalled";
      this.#source.kill();
    }
  }
}

/** ffmpeg's last complaint. It names no path: the units came through a pipe. */
function lastLine(stderr: string): string {
  return stderr.trim().split("\n").at(-1)!.slice(0, 200) || "no reason given";
}
