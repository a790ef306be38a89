/** Decodes live video: access units in as they come, frames out in order with the exact time of their unit.
 */

import { hasEndedWithin, pause } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { type Extent, isSameExtent } from "../../model/frames/coordinates.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { VideoCodec } from "../../model/live/offer.ts";
import { ivfFrame, ivfHeader } from "../containers/ivf.ts";
import { VIDEO_TICKS_PER_MS } from "../containers/clock.ts";
import { type FramePixels, FrameRing, ringBytes } from "./frame_ring.ts";
import type { ToolRunner } from "../jobs/runner.ts";
import type { FrameRoom } from "./frame_room.ts";
import { type LiveEnd, LiveFfmpeg } from "./live_ffmpeg.ts";

/** One access unit: Annex B of H.264 and H.265, a frame of VP8 or VP9, a temporal unit of AV1. */
export interface EncodedUnit {
  readonly data: Uint8Array;
  /** Time of the unit in ticks of 90 kHz, not wrapping. */
  readonly rtpTimestamp: number;
  readonly isKeyframe: boolean;
  /** Width in pixels, of a keyframe whose header has the size; else null. */
  readonly width: number | null;
  readonly height: number | null;
  /** When the last packet of the unit came, epoch milliseconds; its frame gets the same. */
  readonly arrivedMs: number;
}

/** One decoded frame. */
export interface DecodedFrame {
  /** Counts the access units that were pushed, from 0, including those that gave no frame. */
  readonly frameIndex: number;
  readonly rtpTimestamp: number;
  /** Time of the frame, milliseconds: `rtpTimestamp` / 90, rounded. */
  readonly ptsMs: number;
  readonly arrivedMs: number;
  /** What the decoder says of the frame: bits of `REPORT`. */
  readonly report: number;
  /** Available until `RING_FRAMES - 1` more frames have come. */
  readonly pixels: FramePixels;
}

export type RestartReason = "stalled" | "exited";

export interface LiveDecoderOptions {
  readonly runner: ToolRunner;
  readonly world: World;
  readonly codec: VideoCodec;
  readonly room: FrameRoom;
  /** Called while the decoder's output is read, so it must neither wait nor throw. */
  readonly onFrame: (frame: DecodedFrame) => void;
  /**
   * Called where nothing is decoded before the next keyframe, so that the publisher should be asked for one.
   * Repeated every second.
   */
  readonly onKeyframeNeeded: () => void;
  /** Called when an ffmpeg failed and another one starts with the keyframe that came. */
  readonly onRestarted: (reason: RestartReason) => void;
  /**
   * Called when ffmpeg failed several times without giving a frame: this decoder has stopped and ignores
   * further units.
   */
  readonly onFault: (message: string, reason: "unexpected_exit" | "spawn_failure") => void;
}

/**
 * How many of the newest frames are kept: a cut is decided five frames late, and its JPEG takes a few frames
 * more.
 */
export const RING_FRAMES = 10;

/**
 * The most memory for a session's frames, bytes: the ring and the units that wait. ffmpeg's own memory (some
 * 50 MB up to 1080p) and that of the kernels (3 MiB) are not included.
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

const UNITS_QUEUED_MAX = LIMITS.live.videoUnitsQueued;
const UNIT_BYTES_MAX = LIMITS.live.videoUnitBytesMax;
/**
 * Most bytes of units that wait: 128 units of the size of large keyframes would need more memory than a
 * session may use.
 */
const QUEUED_BYTES_MAX = 8 * 2 ** 20;
/**
 * Most units that wait for their frame before the decoder is behind; it is when the oldest has also waited
 * for LATE_MS.
 */
const IN_FLIGHT_MAX = 15;
const LATE_MS = 500;
/**
 * LATE_MS while an ffmpeg starts: publishers send what they have held back at once, and a busy machine starts
 * it slowly.
 */
const START_LATE_MS = 2_000;
/** Milliseconds after which an ffmpeg that gets units and gives no frame has stalled. */
const STALL_MS = 5_000;
/** A stall counts only while units come: the last one within this time. */
const FED_MS = 2_000;
const WATCH_MS = 1_000;
/** Most restarts within the time below, without a frame: more are a fault. */
const RESTARTS_MAX = 3;
const RESTARTS_MS = 30_000;

interface NumberedUnit extends EncodedUnit {
  readonly frameIndex: number;
  readonly pushedMs: number;
}

/**
 * ```
 *   push → [128 units or 8 MiB, drop to next keyframe] → ffmpeg → FrameRing → onFrame
 *              │                                           │
 *              └ behind: over 15 units, half a second      └ no frame for 5 s, or ended: another one at the next keyframe
 * ```
 *
 * Units are only dropped up to the next keyframe, never single ones, because the units after them refer to
 * them. Decoding starts with a keyframe. A unit that cannot be decoded gives no frame, and nothing else
 * happens.
 */
export class LiveDecoder implements AsyncDisposable {
  /** Units pushed; frames given; units that were dropped before decoding; ffmpegs that were replaced. */
  readonly counts = { received: 0, decoded: 0, dropped: 0, restarts: 0 };

  readonly #options: LiveDecoderOptions;
  readonly #ring = new FrameRing(RING_FRAMES);
  readonly #closing = new AbortController();
  /** Units that are not yet written to ffmpeg. */
  #queue: NumberedUnit[] = [];
  #queuedBytes = 0;
  /** Units that are written and whose frame has not come. */
  #inFlight: Omit<NumberedUnit, "data">[] = [];
  #ffmpeg: LiveFfmpeg | null = null;
  #writing: Promise<void> | null = null;
  /** Whether a unit that is no longer queued waits for its ffmpeg, which may take as long as one starts. */
  #isPassedOn = false;
  readonly #watching: Promise<void>;
  /** A promise for each ffmpeg that has not ended; it resolves when `#onEnd` has run. */
  readonly #ending = new Set<Promise<void>>();
  /** Whether units are dropped until the next keyframe. */
  #isDropping = true;
  /** When the present ffmpeg gave its first frame; null before. */
  #firstFrameMs: number | null = null;
  /** Why the next ffmpeg replaces another one. */
  #restartReason: RestartReason | null = null;
  #restartTimesMs: number[] = [];
  /** Since when units are in flight and no frame has come; null when none is in flight. */
  #silentSinceMs: number | null = null;
  #lastPushMs = -Infinity;
  /** When the writing of the current unit began. */
  #writingSinceMs = 0;
  /** Size of the last keyframe that was written and has a size in its header. */
  #size: Extent | null = null;

  constructor(options: LiveDecoderOptions) {
    this.#options = options;
    this.#watching = this.#watch();
  }

  /** Units that wait or are being decoded. */
  get pending(): number {
    return this.#queue.length + Number(this.#isPassedOn) + this.#inFlight.length;
  }

  /** Takes the next unit in decoding order; never waits. After a fault or after disposing it does nothing. */
  push(unit: EncodedUnit): void {
    const frameIndex = this.counts.received++;
    const nowMs = this.#options.world.monotonicMs();
    this.#lastPushMs = nowMs;
    if (this.#closing.signal.aborted || !this.#admits(unit, nowMs)) {
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
    this.#writing ??= this.#writeQueue().finally(() => this.#writing = null);
  }

  /** Ends ffmpeg at any point and waits until it has ended. Frames may still come until this has resolved. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the live decoder is closing"));
    this.#queue = [];
    await this.#watching;
    await this.#writing;
    while (this.#ending.size > 0) await Promise.all(this.#ending);
  }

  /**
   * Whether the unit is decoded. If it is not, nothing is decoded before the next keyframe, except for an
   * empty unit.
   */
  #admits({ data, isKeyframe }: EncodedUnit, nowMs: number): boolean {
    const isFull = this.#queue.length >= UNITS_QUEUED_MAX ||
      this.#queuedBytes + data.length > QUEUED_BYTES_MAX;
    if (data.length === 0) return false;
    if (data.length > UNIT_BYTES_MAX || isFull) return this.#dropToKeyframe();
    if (this.#isDropping) {
      // As long as ffmpeg reads its input it works, and then a unit without a frame by now will never give
      // one.
      const isStuck = this.#writing !== null && nowMs - this.#writingSinceMs > LATE_MS;
      if (!isKeyframe || isStuck) return false;
      this.#inFlight = [];
      this.#isDropping = false;
      return true;
    }
    return this.#isBehind(nowMs) ? this.#dropToKeyframe() : true;
  }

  /**
   * Whether the decoder is behind. What came while ffmpeg started is no sign that it is slow: it is caught up
   * with from the first frame on.
   */
  #isBehind(nowMs: number): boolean {
    const oldest = this.#inFlight[0] ?? this.#queue[0];
    if (this.pending <= IN_FLIGHT_MAX || !oldest) return false;
    if (this.#firstFrameMs === null) return nowMs - oldest.pushedMs > START_LATE_MS;
    return nowMs - Math.max(oldest.pushedMs, this.#firstFrameMs) > LATE_MS;
  }

  #dropToKeyframe(): false {
    this.counts.dropped += this.#queue.length;
    this.#queue = [];
    this.#queuedBytes = 0;
    if (!this.#isDropping) this.#options.onKeyframeNeeded();
    this.#isDropping = true;
    return false;
  }

  /**
   * Whether a unit begins another size. One ffmpeg decodes frames of one size only: what its decoder still
   * holds back at a change must not wait for the pictures behind it.
   */
  #changesSize(unit: EncodedUnit): boolean {
    const size = sizeOf(unit);
    if (!size) return false;
    const before = this.#size;
    this.#size = size;
    return before !== null && !isSameExtent(before, size);
  }

  /** Writes the queued units. Only one of these runs at a time. */
  async #writeQueue(): Promise<void> {
    for (;;) {
      const unit = this.#queue.shift();
      if (!unit) return;
      this.#queuedBytes -= unit.data.length;
      this.#isPassedOn = true;
      this.#writingSinceMs = this.#options.world.monotonicMs();
      if (this.#changesSize(unit)) await this.#drain();
      try {
        const ffmpeg = this.#ffmpeg ?? await this.#startWith(unit);
        if (!ffmpeg) continue;
        const { data, ...waiting } = unit;
        this.#isPassedOn = false;
        this.#inFlight.push(waiting);
        this.#silentSinceMs ??= this.#options.world.monotonicMs();
        await ffmpeg.write(ivfFrame(data, unit.rtpTimestamp));
      } catch {
        // ffmpeg has ended and the unit is lost; `#onEnd` prepares for the next one.
        await Promise.all(this.#ending);
      } finally {
        this.#isPassedOn = false;
      }
    }
  }

  /**
   * Starts an ffmpeg whose first unit is this one; null when the unit is no keyframe, or after a fault or
   * disposing.
   */
  async #startWith(unit: NumberedUnit): Promise<LiveFfmpeg | null> {
    if (this.#closing.signal.aborted) return null;
    if (!unit.isKeyframe) {
      this.counts.dropped++;
      this.#dropToKeyframe();
      return null;
    }
    const { codec, room, onRestarted } = this.#options;
    const size = sizeOf(unit);
    if (size) await room.takeFor({ frame: size, source: size });
    if (this.#closing.signal.aborted) return null;
    if (this.#restartReason) {
      this.counts.restarts++;
      onRestarted(this.#restartReason);
      this.#restartReason = null;
    }
    const ffmpeg = this.#start();
    if (!ffmpeg) return null;
    this.#ffmpeg = ffmpeg;
    this.#firstFrameMs = null;
    this.#inFlight = [];
    this.#silentSinceMs = null;
    const ended = ffmpeg.ended.then((outcome) => this.#onEnd(ffmpeg, outcome));
    this.#ending.add(ended);
    ended.finally(() => this.#ending.delete(ended));
    await ffmpeg.write(ivfHeader(codec));
    return ffmpeg;
  }

  /**
   * Starts an ffmpeg; null when it cannot be started. That is no fault of the stream, so there is no second
   * attempt.
   */
  #start(): LiveFfmpeg | null {
    const { runner, world, codec, room } = this.#options;
    try {
      return LiveFfmpeg.start({
        runner,
        world,
        job: { kind: "live_decode", codec, maxFrame: room.maxFrame },
        ring: this.#ring,
        room,
        onPixels: (pixels, rtpTimestamp, report) => this.#emit(pixels, rtpTimestamp, report),
        signal: this.#closing.signal,
      });
    } catch (error) {
      const why = error instanceof Error ? error.name : error;
      this.#giveUp(`the decoder cannot be started: ${why}`, "spawn_failure");
      return null;
    }
  }

  /** Lets ffmpeg give its last frames and end, unless it stalls; the next unit starts another one. */
  async #drain(): Promise<void> {
    const ffmpeg = this.#ffmpeg;
    if (!ffmpeg) return;
    this.#ffmpeg = null;
    // What comes meanwhile waits as it does while an ffmpeg starts.
    this.#firstFrameMs = null;
    ffmpeg.close();
    for (let before = -1; before < this.counts.decoded;) {
      before = this.counts.decoded;
      if (await hasEndedWithin(this.#options.world, STALL_MS, ffmpeg.ended, this.#closing.signal)) return;
    }
    ffmpeg.kill();
    await ffmpeg.ended;
  }

  #emit(pixels: FramePixels, rtpTimestamp: number, report: number): void {
    const at = this.#inFlight.findIndex((unit) => unit.rtpTimestamp === rtpTimestamp);
    // Times are exact. So a frame without a unit belongs to a unit that was dropped, or was invented by the
    // decoder.
    if (at === -1) return;
    const unit = this.#inFlight[at]!;
    this.#inFlight = this.#inFlight.filter((other) => other.rtpTimestamp > rtpTimestamp);
    const nowMs = this.#options.world.monotonicMs();
    if (this.#ffmpeg) this.#firstFrameMs ??= nowMs;
    this.#silentSinceMs = this.#inFlight.length > 0 ? nowMs : null;
    this.#restartTimesMs = [];
    this.counts.decoded++;
    this.#options.onFrame({
      frameIndex: unit.frameIndex,
      rtpTimestamp,
      ptsMs: Math.round(rtpTimestamp / VIDEO_TICKS_PER_MS),
      arrivedMs: unit.arrivedMs,
      report,
      pixels,
    });
  }

  /**
   * Replaces an ffmpeg that has ended: another one starts with the next keyframe, which may already be
   * queued.
   */
  #onEnd(ffmpeg: LiveFfmpeg, { code, stderr, noRoomFor }: LiveEnd): void {
    if (this.#ffmpeg !== ffmpeg || this.#closing.signal.aborted) return;
    if (NOT_STARTED.includes(code)) {
      this.#giveUp(`the decoder cannot be started: ${lastLine(stderr)}`, "spawn_failure");
      return;
    }
    this.#ffmpeg = null;
    this.#inFlight = [];
    this.#silentSinceMs = null;
    const nowMs = this.#options.world.monotonicMs();
    if (!noRoomFor) {
      this.#restartReason ??= "exited";
      this.#restartTimesMs = [...this.#restartTimesMs.filter((time) => nowMs - time < RESTARTS_MS), nowMs];
    }
    if (this.#restartTimesMs.length > RESTARTS_MAX) {
      this.#giveUp(
        `the decoder broke down ${RESTARTS_MAX} times without a frame: ${lastLine(stderr)}`,
        "unexpected_exit",
      );
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

  #giveUp(message: string, reason: "unexpected_exit" | "spawn_failure"): void {
    this.#closing.abort(new Error("the live decoder has given up"));
    this.#queue = [];
    this.#options.onFault(message, reason);
  }

  /** Kills an ffmpeg that has stalled, and asks again for a keyframe that does not come. */
  async #watch(): Promise<void> {
    const { world, onKeyframeNeeded } = this.#options;
    while (await pause(world, WATCH_MS, this.#closing.signal)) {
      const nowMs = world.monotonicMs();
      const isFed = nowMs - this.#lastPushMs < FED_MS;
      if (isFed && this.#isDropping) onKeyframeNeeded();
      if (!isFed || this.#silentSinceMs === null || nowMs - this.#silentSinceMs < STALL_MS) continue;
      if (!this.#ffmpeg) continue;
      this.#restartReason = "stalled";
      this.#ffmpeg.kill();
    }
  }
}

/** The size of a keyframe that has it in its header; else null. */
function sizeOf({ isKeyframe, width, height }: EncodedUnit): Extent | null {
  return isKeyframe && width !== null && height !== null ? { width, height } : null;
}

/** What `prlimit` exits with when it cannot execute ffmpeg. */
const NOT_STARTED: readonly number[] = [126, 127];

/** ffmpeg's last error message. It names no path, because the units came through a pipe. */
function lastLine(stderr: string): string {
  return stderr.trim().split("\n").at(-1)!.slice(0, 200) || "no reason given";
}
