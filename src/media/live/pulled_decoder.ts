/** Decodes a live source that ffmpeg fetches itself (RTSP, HLS), until the source ends. */

import { pause } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { Extent } from "../../model/frames/coordinates.ts";
import { VIDEO_TICKS_PER_MS } from "../formats/clock.ts";
import type { MediaInput } from "../input.ts";
import { reasonIn } from "../media_fault.ts";
import type { Outcome } from "../process.ts";
import type { ToolRunner } from "../tools/runner.ts";
import { FrameRing } from "./frame_ring.ts";
import { type DecodedFrame, RING_FRAMES } from "./live_decoder.ts";
import { type PacketSink, readPackets } from "./copied_packets.ts";
import { FilledPipe } from "./filled_pipe.ts";
import { type BlockSink, readSound } from "./pulled_sound.ts";
import { LiveFfmpeg } from "./live_ffmpeg.ts";

export interface PulledDecoderOptions {
  readonly runner: ToolRunner;
  readonly world: World;
  readonly input: MediaInput;
  /** Whether ffmpeg reads it no faster than it plays. */
  readonly isPaced?: boolean;
  /** `VideoStream.streamIndex` of a probe; absent is the first video stream. */
  readonly streamIndex?: number;
  readonly maxFrame: Extent;
  /** The size of its pictures as displayed, as the probe found it. */
  readonly sourceExtent?: Extent;
  /** Where the sound goes; absent where it is not wanted, or the source has none. */
  readonly sound?: { readonly tempDir: string; readonly onBlock: BlockSink };
  /** Where the packets go as they came; absent where they are not wanted. */
  readonly copy?: PacketSink & { readonly tempDir: string; readonly withSound: boolean };
  /** Called while the output is read: long work in it slows the source down. */
  readonly onFrame: (frame: DecodedFrame) => void;
  /** Called once, unless the decoder is disposed before. The reason names no address. */
  readonly onEnded: (reason: string) => void;
}

/** A source without frames for so long has ended. Covers the read timeout of ffmpeg (10 s) and a slow start. */
const SILENCE_MS = 30_000;
const WATCH_MS = 1_000;

/**
 * `frameIndex` counts frames from 0. `rtpTimestamp` is the time of the frame from the start of the source in 90 kHz. `arrivedMs` is when it was decoded. After a source has ended, a new decoder opens it again,
 * and its times begin at 0.
 */
export class PulledDecoder implements AsyncDisposable {
  readonly counts = { decoded: 0 };
  readonly #options: PulledDecoderOptions;
  readonly #closing = new AbortController();
  #finished: Promise<void> = Promise.resolve();
  #lastFrameMs: number;

  private constructor(options: PulledDecoderOptions) {
    this.#options = options;
    this.#lastFrameMs = options.world.monotonicMs();
  }

  /** Throws when ffmpeg cannot be started; with pipes it is started later, and `onEnded` is called then. */
  static start(options: PulledDecoderOptions): PulledDecoder {
    const decoder = new PulledDecoder(options);
    decoder.#finished = options.sound || options.copy
      ? decoder.#runWithPipes()
      : decoder.#run(decoder.#start(NO_PIPES), NO_PIPES);
    return decoder;
  }

  #start({ sound, copy }: Pipes): LiveFfmpeg {
    const { runner, world, input, isPaced = false, streamIndex = null, maxFrame, sourceExtent, onFrame } =
      this.#options;
    const soundPipe = sound && sound.path;
    const withSound = this.#options.copy?.withSound ?? false;
    return LiveFfmpeg.start({
      runner,
      world,
      job: {
        ...{ kind: "live_pull", input, isPaced, streamIndex, maxFrame, soundPipe },
        copy: copy && { pipe: copy.path, withSound },
      },
      ...(sourceExtent && { sourceExtent }),
      ring: new FrameRing(RING_FRAMES),
      onPixels: (pixels, rtpTimestamp, report) => {
        this.#lastFrameMs = world.monotonicMs();
        onFrame({
          frameIndex: this.counts.decoded++,
          rtpTimestamp,
          ptsMs: Math.round(rtpTimestamp / VIDEO_TICKS_PER_MS),
          arrivedMs: world.now(),
          report,
          pixels,
        });
      },
      signal: this.#closing.signal,
    });
  }

  /** Ends ffmpeg and waits until it is gone. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the pulled decoder is closing"));
    await this.#finished;
  }

  async #runWithPipes(): Promise<void> {
    const { runner, world, sound, copy } = this.#options;
    const context = { runner, world, signal: this.#closing.signal };
    const pipes: { -readonly [Name in keyof Pipes]: Pipes[Name] } = { ...NO_PIPES };
    let ffmpeg;
    try {
      if (sound) {
        const read = (pipe: Deno.FsFile) => readSound(pipe, sound.onBlock);
        pipes.sound = await FilledPipe.open({ ...context, tempDir: sound.tempDir, read });
      }
      if (copy) {
        const read = (pipe: Deno.FsFile) => readPackets(pipe, copy, context);
        pipes.copy = await FilledPipe.open({ ...context, tempDir: copy.tempDir, read });
      }
      ffmpeg = this.#start(pipes);
    } catch {
      await closed(pipes);
      if (!this.#closing.signal.aborted) this.#options.onEnded("the decoder cannot be started");
      return;
    }
    await this.#run(ffmpeg, pipes);
  }

  async #run(ffmpeg: LiveFfmpeg, pipes: Pipes): Promise<void> {
    const ended = new AbortController();
    const watching = this.#watch(ffmpeg, ended.signal);
    const outcome = await ffmpeg.ended;
    ended.abort();
    const wasSilent = await watching;
    await closed(pipes);
    if (this.#closing.signal.aborted) return;
    this.#options.onEnded(wasSilent ? "it gave no frame for 30 s" : reasonOf(outcome));
  }

  /** Ends an ffmpeg that gives no more frames. Returns whether it did. */
  async #watch(ffmpeg: LiveFfmpeg, ended: AbortSignal): Promise<boolean> {
    const { world } = this.#options;
    while (await pause(world, WATCH_MS, ended)) {
      if (world.monotonicMs() - this.#lastFrameMs < SILENCE_MS) continue;
      ffmpeg.kill();
      return true;
    }
    return false;
  }
}

/** What ffmpeg fills besides its output. */
interface Pipes {
  readonly sound: FilledPipe | null;
  readonly copy: FilledPipe | null;
}

const NO_PIPES: Pipes = { sound: null, copy: null };

async function closed({ sound, copy }: Pipes): Promise<void> {
  await Promise.all([sound?.[Symbol.asyncDispose](), copy?.[Symbol.asyncDispose]()]);
}

function reasonOf({ end, code, stderr }: Omit<Outcome, "stdout">): string {
  if (end !== "exited") return "the decoder broke down on it";
  return code === 0 ? "it has ended" : reasonIn(stderr);
}
