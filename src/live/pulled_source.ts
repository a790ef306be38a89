/** A pulled live source in its Worker: one continuous time line over several connections with gaps between
 * them.
 */

import { timer } from "../base/wait.ts";
import type { World } from "../base/world.ts";
import { VIDEO_TICKS_PER_MS } from "../media/containers/clock.ts";
import type { MediaInput } from "../media/input.ts";
import type { DecodedFrame } from "../media/live/live_decoder.ts";
import { clipSound, clipVideo } from "../media/containers/clip_codecs.ts";
import type { FrameRoom } from "../media/live/frame_room.ts";
import { PulledDecoder, type PulledDecoderOptions } from "../media/live/pulled_decoder.ts";
import type { MediaInfo } from "../media/media_info.ts";
import type { ToolRunner } from "../media/jobs/runner.ts";
import { isOfOtherCodec } from "./encoded/other_codec.ts";
import type { UnitTap } from "./encoded/unit_tap.ts";
import type { SourceLoss } from "./messages/messages.ts";
import type { CutWindow } from "./opus_windows.ts";
import { PcmWindows } from "./pcm_windows.ts";
import type { SessionCounts } from "./messages/session_counts.ts";

export interface PulledSourceOptions {
  readonly runner: ToolRunner;
  readonly world: World;
  readonly room: FrameRoom;
  readonly mediaIdleMs: number;
  /** Whether the source has no end, only gaps. */
  readonly isAlwaysOn: boolean;
  readonly counts: SessionCounts;
  readonly onFrame: (frame: DecodedFrame) => void;
  /** Where the sound goes; null where it is not wanted. */
  readonly sound: {
    /** The folder for sockets. */
    readonly socketDir: string;
    /** Called with windows of blocks of 20 ms, with their times in the session. */
    readonly onWindow: (window: CutWindow) => void;
  } | null;
  /** Where the packets go as they came. */
  readonly copy: {
    /** The folder for sockets. */
    readonly socketDir: string;
    readonly tap: UnitTap;
    /** Called where the video of this connection has another codec than MP4 can carry. */
    readonly onOtherCodec: (codec: string | null) => void;
    /** Called for the first packets of this connection that could not be taken, with the reason. */
    readonly onLost: (reason: string) => void;
  };
  /** Called when the connection has ended; `connect` may open another one. */
  readonly onGap: (gap: SourceLoss) => void;
  /** Called with the first frame after a gap. */
  readonly onResumed: () => void;
  /** Called when a source of known length was decoded to its end. */
  readonly onFinished: () => void;
  /**
   * Called where no frame came within `mediaIdleMs` after the start, over all connections. Later gaps may be
   * as long as they like.
   */
  readonly onIdle: () => void;
}

/**
 * Milliseconds that may be missing at the end of a source of known length: sound is often longer than video,
 * and headers round.
 */
const END_TOLERANCE_MS = 2_000;

/**
 * ```
 *   connection   0 … 5000 │ gap of 1800 ms │ 0 … 900
 *   session      0 … 5000 │                │ 6800 … 7700
 * ```
 * A gap is as long as the real time between the frames before and after it, so that media time follows real
 * time.
 */
export class PulledSource implements AsyncDisposable {
  readonly #options: PulledSourceOptions;
  #decoder: PulledDecoder | null = null;
  /** The sound of the present connection. */
  #windows: PcmWindows | null = null;
  #isClosed = false;
  /** The end of all earlier decoders. */
  #ending: Promise<void> = Promise.resolve();
  #frames = 0;
  #last: { readonly frame: DecodedFrame; readonly atMs: number } | null = null;
  #hasGap = false;
  /** Ends a source without a frame; runs until the first one. */
  readonly #idleTimer: Disposable;
  /** Media time of the session at time 0 of the current connection. */
  #offsetMs = 0;

  constructor(options: PulledSourceOptions) {
    this.#options = options;
    this.#idleTimer = timer(options.world, options.mediaIdleMs, options.onIdle);
  }

  /** Opens the source, for the first time or after a gap; ends an earlier connection. */
  connect({ input, info }: { readonly input: MediaInput; readonly info: MediaInfo }): void {
    if (this.#isClosed) return;
    this.#disconnect();
    let isFirst = true;
    const { runner, world, room, sound } = this.#options;
    const windows = sound && info.audioStreams > 0 ? new PcmWindows() : null;
    this.#windows = windows;
    const decoder: PulledDecoder = PulledDecoder.start({
      runner,
      world,
      input,
      // ffmpeg reads a live source as fast as it comes, but would read a recording as fast as it can.
      isPaced: info.durationMs !== null,
      room,
      ...(windows && {
        sound: { socketDir: sound!.socketDir, onBlock: (block) => this.#hear(windows.push(block)) },
      }),
      ...this.#copied(info, () => this.#decoder === decoder),
      ...(info.video && {
        streamIndex: info.video.streamIndex,
        sourceExtent: { width: info.video.width, height: info.video.height },
      }),
      onFrame: (frame) => {
        if (this.#decoder !== decoder) return;
        if (isFirst) this.#resume(frame);
        if (isFirst) this.#options.copy.tap.setOffset(this.#offsetMs);
        isFirst = false;
        this.#emit(frame);
      },
      onEnded: (reason) => {
        if (this.#decoder === decoder) this.#lose(reason, { isOver: this.#hasReachedEnd(info) });
      },
    });
    this.#decoder = decoder;
  }

  #lose(reason: string, { isOver }: { readonly isOver: boolean }): void {
    this.#disconnect();
    this.#finishSound();
    if (isOver) return this.#options.onFinished();
    this.#hasGap = true;
    const last = this.#last;
    this.#options.onGap({
      reason,
      lastPtsMs: last && last.frame.ptsMs,
      silentMs: last ? this.#options.world.monotonicMs() - last.atMs : 0,
    });
  }

  /**
   * The options by which packets are copied: none for those that MP4 cannot carry. Clips that are asked for
   * with such packets are refused before.
   */
  #copied(
    { video, audioStreams, audioCodec = null }: MediaInfo,
    isConnected: () => boolean,
  ): Pick<PulledDecoderOptions, "copy"> {
    const { socketDir, tap, onOtherCodec, onLost } = this.#options.copy;
    const codec = clipVideo(video?.codec);
    tap.end();
    if (codec === null) {
      onOtherCodec(video?.codec ?? null);
      return {};
    }
    const soundCodec = clipSound(audioCodec);
    const hasOtherSound = audioStreams > 0 && soundCodec === null;
    let first = { codec, codecData: new Uint8Array() };
    let isLossTold = false;
    return {
      copy: {
        socketDir,
        withSound: soundCodec !== null,
        onStreams: ({ video: { codecData, reorderDepth }, sound }) => {
          first = { codec, codecData };
          tap.begin({
            ...{ codec, codecData, hasOtherSound, reorderDepth },
            sound: sound && soundCodec && { ...sound, codec: soundCodec },
          });
        },
        onUnit: (unit) => {
          if (!isConnected()) return;
          if (!unit.isVideo || !isOfOtherCodec(first, unit.data)) return tap.push(unit);
          // The decoder of the first codec gives no more pictures, and only a new connection has one for the
          // other.
          this.#lose("it sends another codec", { isOver: false });
        },
        onLost: (reason) => {
          if (!isConnected()) return;
          tap.miss();
          if (!isLossTold) onLost(reason);
          isLossTold = true;
        },
        isUrgent: () => tap.isUrgent,
      },
    };
  }

  /** Ends ffmpeg and waits until it is gone. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#idleTimer[Symbol.dispose]();
    this.#disconnect();
    await this.#ending;
    this.#finishSound();
  }

  #finishSound(): void {
    this.#hear(this.#windows?.finish() ?? null);
    this.#windows = null;
  }

  #hear(window: CutWindow | null): void {
    if (!window) return;
    const { units, startPtsMs, endPtsMs } = window;
    const atMs = this.#offsetMs;
    this.#options.sound!.onWindow({ units, startPtsMs: startPtsMs + atMs, endPtsMs: endPtsMs + atMs });
  }

  #disconnect(): void {
    const decoder = this.#decoder;
    this.#decoder = null;
    if (decoder) this.#ending = Promise.all([this.#ending, decoder[Symbol.asyncDispose]()]).then(() => {});
  }

  #resume({ ptsMs }: DecodedFrame): void {
    if (this.#last) {
      const { frame: last, atMs } = this.#last;
      const gapMs = Math.max(1, Math.round(this.#options.world.monotonicMs() - atMs));
      this.#offsetMs = last.ptsMs + gapMs - ptsMs;
    }
    if (this.#hasGap) this.#options.onResumed();
    this.#hasGap = false;
  }

  /** Passes a frame on, with its number and time in the session. */
  #emit(decoded: DecodedFrame): void {
    const { world, counts, onFrame } = this.#options;
    if (!this.#last) this.#idleTimer[Symbol.dispose]();
    const frame: DecodedFrame = {
      ...decoded,
      frameIndex: this.#frames++,
      ptsMs: decoded.ptsMs + this.#offsetMs,
      rtpTimestamp: decoded.rtpTimestamp + this.#offsetMs * VIDEO_TICKS_PER_MS,
    };
    this.#last = { frame, atMs: world.monotonicMs() };
    counts.add("framesDecoded");
    onFrame(frame);
  }

  #hasReachedEnd({ durationMs }: MediaInfo): boolean {
    return !this.#options.isAlwaysOn && durationMs !== null && this.#last !== null &&
      this.#last.frame.ptsMs - this.#offsetMs >= durationMs - END_TOLERANCE_MS;
  }
}
