/** Decodes a live source that ffmpeg fetches itself (RTSP, HLS), until the source ends. */

import { pause } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { Extent } from "../../model/frames/coordinates.ts";
import { VIDEO_TICKS_PER_MS } from "../containers/clock.ts";
import type { MediaInput } from "../input.ts";
import { reasonIn } from "../media_fault.ts";
import type { ToolRunner } from "../jobs/runner.ts";
import { FrameRing } from "./frame_ring.ts";
import { type DecodedFrame, RING_FRAMES } from "./live_decoder.ts";
import { type PacketSink, readPackets } from "../containers/copied_packets.ts";
import { FilledSocket } from "./filled_socket.ts";
import { type BlockSink, readSound } from "./pulled_sound.ts";
import type { FrameRoom } from "./frame_room.ts";
import { type LiveEnd, LiveFfmpeg } from "./live_ffmpeg.ts";

export interface PulledDecoderOptions {
  readonly runner: ToolRunner;
  readonly world: World;
  readonly input: MediaInput;
  /** Whether ffmpeg reads it no faster than it plays. */
  readonly isPaced?: boolean;
  /** `VideoStream.streamIndex` of a probe; absent is the first video stream. */
  readonly streamIndex?: number;
  readonly room: FrameRoom;
  /** The size of its pictures as displayed, as the probe found it. */
  readonly sourceExtent?: Extent;
  /** Where the sound goes; absent where it is not wanted, or the source has none. */
  readonly sound?: { readonly socketDir: string; readonly onBlock: BlockSink };
  /** Where the packets go as they came; absent where they are not wanted. */
  readonly copy?: PacketSink & { readonly socketDir: string; readonly withSound: boolean };
  /** Called while the output is read: long work in it slows the source down. */
  readonly onFrame: (frame: DecodedFrame) => void;
  /** Called once, unless the decoder is disposed before. The reason names no address. */
  readonly onEnded: (reason: string) => void;
}

/**
 * Milliseconds without a frame after which a source has ended. Covers a slow start, and cameras that send a
 * picture now and then.
 */
const SILENCE_MS = 30_000;
const WATCH_MS = 1_000;
/**
 * Milliseconds without a frame after which the end of an ffmpeg means that its source was silent: it ends
 * after 10 s of silence as if the source had, and only the time tells. A little less than 10 s, as the last
 * frame may come late out of the decoder.
 */
const SILENT_END_MS = 9_000;

/**
 * Decodes a source until it ends. `frameIndex` counts frames from 0. `rtpTimestamp` is the time of the frame
 * from the start of the source in 90 kHz. `arrivedMs` is when it was decoded. After a source has ended, a new
 * decoder opens it again, and its times begin at 0.
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

  /** Throws when ffmpeg cannot be started. */
  static start(options: PulledDecoderOptions): PulledDecoder {
    const decoder = new PulledDecoder(options);
    const sockets = decoder.#sockets();
    try {
      decoder.#finished = decoder.#run(decoder.#start(sockets), sockets);
    } catch (error) {
      void closed(sockets);
      throw error;
    }
    return decoder;
  }

  #start({ sound, copy }: Sockets): LiveFfmpeg {
    const { runner, world, input, isPaced = false, streamIndex = null, room, sourceExtent, onFrame } =
      this.#options;
    const soundSocket = sound && sound.path;
    const withSound = this.#options.copy?.withSound ?? false;
    return LiveFfmpeg.start({
      runner,
      world,
      job: {
        ...{ kind: "live_pull", input, isPaced, streamIndex, maxFrame: room.maxFrame, soundSocket },
        copy: copy && { socket: copy.path, withSound },
      },
      ...(sourceExtent && { sourceExtent }),
      ring: new FrameRing(RING_FRAMES),
      room,
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

  #sockets(): Sockets {
    const { world, sound = null, copy = null } = this.#options;
    const context = { world, signal: this.#closing.signal };
    return {
      sound: sound &&
        new FilledSocket({ ...sound, world, read: (connection) => readSound(connection, sound.onBlock) }),
      copy: copy &&
        new FilledSocket({ ...copy, world, read: (connection) => readPackets(connection, copy, context) }),
    };
  }

  async #run(ffmpeg: LiveFfmpeg, sockets: Sockets): Promise<void> {
    const ended = new AbortController();
    const watching = this.#watch(ffmpeg, ended.signal);
    const outcome = await ffmpeg.ended;
    ended.abort();
    const wasSilent = await watching;
    await closed(sockets);
    if (this.#closing.signal.aborted) return;
    const silentMs = wasSilent ? SILENCE_MS : this.#options.world.monotonicMs() - this.#lastFrameMs;
    this.#options.onEnded(wasSilent ? silenceOf(silentMs) : reasonOf(outcome, silentMs));
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
interface Sockets {
  readonly sound: FilledSocket | null;
  readonly copy: FilledSocket | null;
}

async function closed({ sound, copy }: Sockets): Promise<void> {
  await Promise.all([sound?.[Symbol.asyncDispose](), copy?.[Symbol.asyncDispose]()]);
}

function reasonOf({ end, code, stderr, noRoomFor, notUnderstood }: LiveEnd, silentMs: number): string {
  if (noRoomFor) return `there is no memory for its pictures of ${noRoomFor.width}x${noRoomFor.height}`;
  if (notUnderstood !== null) return `the decoder gave what is not understood: ${notUnderstood}`;
  if (end !== "exited") return "the decoder broke down on it";
  if (code !== 0) return reasonIn(stderr);
  return silentMs < SILENT_END_MS ? "it has ended" : silenceOf(silentMs);
}

function silenceOf(ms: number): string {
  return `it gave no frame for ${Math.round(ms / 1000)} s`;
}
