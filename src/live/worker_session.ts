/** One live session in its Worker: from its offer or source until everything is let go of again. */

import type { World } from "../base/world.ts";
import type { JpegEncoders } from "../media/live/jpeg_encoder.ts";
import { LiveDecoder } from "../media/live/live_decoder.ts";
import { readOffer, type VideoCodec } from "../model/live/offer.ts";
import type { VideoUnit } from "../rtc/receive/assembler.ts";
import { Peer, type PeerCounts } from "../rtc/peer.ts";
import { AudioStage } from "./audio_stage.ts";
import { BitrateController } from "./bitrate_controller.ts";
import { SessionCounts } from "./session_counts.ts";
import type {
  EndCause,
  LiveOrder,
  LiveStart,
  SessionReport,
  SessionSettings,
  WithoutSessionId,
} from "./messages.ts";
import { Outbox, type PostReport } from "./outbox.ts";
import { PulledSource } from "./pulled_source.ts";
import { VideoStage } from "./video_stage.ts";

/** What all sessions of a Worker share. */
export interface SessionHost extends LiveStart {
  readonly world: World;
  readonly post: PostReport;
  /** Made by the first who needs it. */
  readonly encoders: () => JpegEncoders;
  /** The session holds nothing of its own any more; resolves when the host holds nothing for it either. */
  readonly onGone: (sessionId: string) => Promise<void>;
}

export type OpeningOrder = Extract<LiveOrder, { kind: "offer" | "pull" }>;
export type LaterOrder = Exclude<LiveOrder, { kind: "start" | "offer" }>;

const COUNTS_MS = 1_000;
/** How long the goodbye to a publisher may take. */
const PEER_CLOSE_MS = 3_000;

/**
 * ```
 *   opening ──▶ answered ──▶ connected ──▶ ended ──▶ closed
 *      │            └────────────┴── close order ──▶ closed
 *      └──▶ refused
 * ```
 * `ended` is said at most once, by whoever ends it from this side; `closed`, or `refused`, is the last word.
 */
export class WorkerSession {
  readonly #host: SessionHost;
  readonly #settings: SessionSettings;
  readonly #outbox: Outbox;
  readonly #counts = new SessionCounts();
  readonly #knob = new BitrateController();
  readonly #audio: AudioStage;
  readonly #opening: Promise<void>;
  readonly #ticking = new AbortController();
  /** Turns the monotonic clock of packets into epoch milliseconds, the same way for all of a session. */
  readonly #epochMs: number;
  #peer: Peer | null = null;
  #decoder: LiveDecoder | null = null;
  #pulled: PulledSource | null = null;
  #video: VideoStage | null = null;
  #isRefused = false;
  #isEnded = false;
  #closing: Promise<void> | null = null;
  #counted = NOTHING_COUNTED;

  constructor(host: SessionHost, order: OpeningOrder) {
    const { settings } = order;
    this.#host = host;
    this.#settings = settings;
    this.#outbox = new Outbox(settings.sessionId, host.post, { hasClips: settings.clip !== null });
    this.#audio = new AudioStage({
      outbox: this.#outbox,
      counts: this.#counts,
      isWanted: settings.wantsAudio,
    });
    this.#epochMs = host.world.now() - host.world.monotonicMs();
    this.#opening = this.#open(order);
  }

  take(order: LaterOrder): void {
    switch (order.kind) {
      case "pull":
        return this.#closing ? undefined : this.#pulled?.begin(order);
      case "candidate":
        return this.#peer?.trickle(order.fragment);
      case "restart_ice":
        return void this.#restartIce(order.fragment, order.orderId);
      case "acknowledge":
        return this.#outbox.giveBack(order);
      case "close":
        return void this.#close();
    }
  }

  /** Never rejects. */
  async #open(order: OpeningOrder): Promise<void> {
    try {
      if (order.kind === "offer") await this.#answer(order.offer);
      else await this.#pull(order);
    } catch (error) {
      if (order.kind === "offer") await this.#refuse(500, messageOf(error));
      else this.#end("worker_fault", messageOf(error));
    }
    if (!this.#isRefused) void this.#tick();
  }

  async #answer(text: string): Promise<void> {
    const verdict = readOffer(text, new Set(this.#host.decodes ?? []));
    if (!verdict.isServed) return await this.#refuse(verdict.status, verdict.message);
    const { offer } = verdict;
    if (offer.video) await this.#startVideo(offer.video.codec);
    const { peer, answer } = await Peer.answer(
      offer,
      { ice: this.#settings.ice, bitrate: this.#knob.bitrate },
      {
        onConnected: (tookMs) => this.#report({ kind: "connected", tookMs }),
        onVideoUnit: (unit) => this.#decode(unit),
        onAudioUnit: (unit) => this.#audio.push(unit),
        onEnded: (cause, message) => this.#end(cause, message),
      },
      this.#host.world,
    );
    this.#peer = peer;
    this.#counts.add("audioTracks", offer.audio.length);
    if (this.#isEnded) return; // it failed at once
    const video = offer.video && { codec: offer.video.codec };
    this.#report({ kind: "answered", answer, video, audioTracks: offer.audio.length });
  }

  async #pull(order: Extract<OpeningOrder, { kind: "pull" }>): Promise<void> {
    const video = await this.#loadVideo();
    const { tools, world } = this.#host;
    this.#pulled = new PulledSource({
      tools,
      world,
      maxFrame: this.#settings.maxFrame,
      counts: this.#counts,
      onFrame: (frame) => this.#guarded(() => video.show(frame)),
      onGap: (reason, lastPtsMs) => {
        video.interrupt();
        this.#report({ kind: "gap", reason, lastPtsMs });
      },
      onResumed: () => this.#report({ kind: "resumed" }),
      onFinished: () => this.#end("source_ended", "the source has ended"),
    });
    this.#pulled.begin(order);
  }

  async #startVideo(codec: VideoCodec): Promise<void> {
    const video = await this.#loadVideo();
    const { tools, world } = this.#host;
    const decoder: LiveDecoder = new LiveDecoder({
      tools,
      world,
      codec,
      maxFrame: this.#settings.maxFrame,
      onFrame: (frame) => this.#guarded(() => video.show(frame)),
      onKeyframeNeeded: () => this.#peer?.requestKeyframe(),
      onRestarted: (reason) =>
        this.#report({
          kind: "decoder_restarted",
          reason,
          ptsMs: video.lastPtsMs ?? 0,
          restarts: decoder.counts.restarts,
        }),
      onFault: (message) => this.#end("worker_fault", message),
    });
    this.#decoder = decoder;
  }

  async #loadVideo(): Promise<VideoStage> {
    this.#video = await VideoStage.load({
      settings: this.#settings,
      world: this.#host.world,
      encoders: this.#host.encoders(),
      outbox: this.#outbox,
      counts: this.#counts,
      onFault: (error) => this.#end("worker_fault", messageOf(error)),
    });
    return this.#video;
  }

  #decode({ data, rtpTimestamp, isKeyframe, width, height, lastPacketMs }: VideoUnit): void {
    const arrivedMs = this.#epochMs + lastPacketMs;
    this.#decoder?.push({ data, rtpTimestamp, isKeyframe, width, height, arrivedMs });
  }

  async #restartIce(fragment: string, orderId: number): Promise<void> {
    const answer = await this.#peer?.restartIce(fragment).catch(() => null) ?? null;
    this.#report({ kind: "ice_restarted", orderId, fragment: answer });
  }

  async #refuse(status: 400 | 415 | 500, message: string): Promise<void> {
    this.#isRefused = true;
    await this.#letGo();
    this.#report({ kind: "refused", status, message });
  }

  #end(cause: EndCause, message: string): void {
    if (this.#isEnded || this.#closing) return;
    this.#isEnded = true;
    this.#report({ kind: "ended", cause, message });
    void this.#close();
  }

  /** What is thrown here is a bug; the session ends, and the others do not. */
  #guarded(work: () => void): void {
    try {
      if (!this.#isEnded) work();
    } catch (error) {
      this.#end("worker_fault", messageOf(error));
    }
  }

  #close(): Promise<void> {
    return this.#closing ??= this.#closeAll();
  }

  async #closeAll(): Promise<void> {
    await this.#opening;
    if (this.#isRefused) return;
    await this.#letGo();
    this.#reportCounts();
    this.#report({ kind: "closed" });
  }

  /** In the order in which media flows, so that what has arrived is still looked at. */
  async #letGo(): Promise<void> {
    this.#ticking.abort();
    if (this.#peer) await this.#within(PEER_CLOSE_MS, this.#peer.close());
    this.#audio.finish();
    await this.#decoder?.[Symbol.asyncDispose]();
    await this.#pulled?.[Symbol.asyncDispose]();
    await this.#video?.[Symbol.asyncDispose]();
    await this.#host.onGone(this.#settings.sessionId);
  }

  async #tick(): Promise<void> {
    const { world } = this.#host;
    const { signal } = this.#ticking;
    while (!signal.aborted) {
      await world.sleep(COUNTS_MS, signal).catch(() => {/* closing */});
      if (signal.aborted) return;
      const dropped = this.#reportCounts();
      const bitrate = this.#knob.step({ dropped, waiting: this.#decoder?.pending ?? 0 });
      if (bitrate !== null) this.#peer?.setBitrate(bitrate);
    }
  }

  /** Says what was counted since the last time. Returns the units that the decoder took and has given up since. */
  #reportCounts(): number {
    const before = this.#counted;
    const { received, decoded } = this.#decoder?.counts ?? NOTHING_COUNTED;
    // Each unit is shown, on its way or gone; one that is just being handed over is taken for gone, but only once.
    const gone = Math.max(before.gone, received - decoded - (this.#decoder?.pending ?? 0));
    const now = { received, decoded, gone, broken: brokenUnits(this.#peer?.counts) };
    this.#counted = now;
    this.#counts.add("rtpFramesReceived", now.received - before.received);
    this.#counts.add("framesDecoded", now.decoded - before.decoded);
    this.#counts.add("framesDropped", now.gone - before.gone + now.broken - before.broken);
    const counts = this.#counts.take();
    if (counts) this.#report({ kind: "counts", counts });
    return now.gone - before.gone;
  }

  #report(report: WithoutSessionId<SessionReport>): void {
    this.#outbox.send(report);
  }

  async #within(ms: number, work: Promise<void>): Promise<void> {
    const over = new AbortController();
    const late = this.#host.world.sleep(ms, over.signal).catch(() => {/* in time */});
    await Promise.race([work.catch(() => {/* it is let go of all the same */}), late]);
    over.abort();
  }
}

/** What was counted of the units when counts were last reported. */
const NOTHING_COUNTED = { received: 0, decoded: 0, gone: 0, broken: 0 };

/** Units that never became whole. */
function brokenUnits(counts: PeerCounts | undefined): number {
  return counts ? counts.incomplete + counts.oversize + counts.malformed : 0;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
