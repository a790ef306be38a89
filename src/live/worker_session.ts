/** One live session in its Worker: from its offer or source until all its resources are released. */

import { errorText } from "../base/log.ts";
import { hasEndedWithin, pause } from "../base/wait.ts";
import type { World } from "../base/world.ts";
import type { JpegEncoderPool } from "../media/live/jpeg_encoder.ts";
import { LiveDecoder } from "../media/live/live_decoder.ts";
import type { ToolRunner } from "../media/jobs/runner.ts";
import { VIDEO_TICKS_PER_MS } from "../media/containers/clock.ts";
import { opusSamples } from "../media/containers/opus_packet.ts";
import { clipVideo } from "../media/containers/clip_codecs.ts";
import { LIMITS } from "../contract/limits.ts";
import type { Offer, VideoCodec } from "../model/live/offer.ts";
import { keptBytesMax } from "../model/live/recording/record_plan.ts";
import { segmentBytesMax } from "../model/sources/recording_plan.ts";
import { SoundClock } from "../rtc/receive/sound_clock.ts";
import type { AudioUnit } from "../rtc/receive/audio_track.ts";
import type { VideoUnit } from "../rtc/receive/assembler.ts";
import { Peer, type PeerCounts } from "../rtc/peer.ts";
import { AudioStage } from "./audio_stage.ts";
import { BitrateController } from "./bitrate_controller.ts";
import { ClipStage } from "./encoded/clip_stage.ts";
import { RecordingStage } from "./encoded/recording_stage.ts";
import { UnitTaps } from "./encoded/unit_taps.ts";
import { ViewStage } from "./encoded/view_stage.ts";
import { SessionCounts } from "./messages/session_counts.ts";
import type {
  EndCause,
  LiveOrder,
  LiveStart,
  SessionReport,
  SessionSettings,
  WithoutSessionId,
  WorkerFault,
} from "./messages/messages.ts";
import { Outbox, type PostReport } from "./messages/outbox.ts";
import { PictureRoom } from "./picture_room.ts";
import { PulledSource } from "./pulled_source.ts";
import { SignalSamples } from "./signal_samples.ts";
import { VideoStage } from "./video_stage.ts";

/** What all sessions of a Worker share. */
export interface SessionHost extends LiveStart {
  readonly world: World;
  readonly runner: ToolRunner;
  readonly post: PostReport;
  /** Creates the pool on the first call. */
  readonly encoders: () => JpegEncoderPool;
  /**
   * Called when a session has released its resources; resolves when the host has released those it had for
   * the session.
   */
  readonly onReleased: (sessionId: string) => Promise<void>;
}

export type OpeningOrder = Extract<LiveOrder, { kind: "offer" | "pull" }>;
export type LaterOrder = Exclude<LiveOrder, { kind: "start" | "offer" }>;

const COUNTS_MS = 1_000;
/** Ticks of COUNTS_MS from one request for a key frame to the next. */
const KEYFRAME_EVERY = LIMITS.evidence.keyframeAskedMs / COUNTS_MS;
/** Milliseconds that closing the connection to a publisher may take. */
const PEER_CLOSE_MS = 3_000;

/**
 * ```
 *   opening ──▶ answered ──▶ connected ──▶ ended ──▶ closed
 *      │            └────────────┴── close order ──▶ closed
 *      └──▶ refused
 * ```
 * `ended` is reported at most once, when the session ends without a close order. `closed` or `refused` is the
 * last report.
 */
export class WorkerSession {
  readonly #host: SessionHost;
  readonly #settings: SessionSettings;
  readonly #outbox: Outbox;
  readonly #counts = new SessionCounts();
  readonly #samples = new SignalSamples();
  readonly #bitrate = new BitrateController();
  readonly #audio: AudioStage;
  #opening: Promise<void> = Promise.resolve();
  readonly #ticking = new AbortController();
  /**
   * What is added to the monotonic times of packets to get epoch milliseconds; constant for the whole
   * session.
   */
  readonly #epochMs: number;
  #peer: Peer | null = null;
  #decoder: LiveDecoder | null = null;
  #pulled: PulledSource | null = null;
  #video: VideoStage | null = null;
  /** The stage of evidence clips; null without them. */
  readonly #clips: ClipStage | null;
  /** The stage of the continuous recording; null where the source is not recorded all day. */
  readonly #recording: RecordingStage | null;
  readonly #view: ViewStage;
  /** All that take encoded units. */
  readonly #taps: UnitTaps;
  readonly #room: PictureRoom;
  readonly #soundClock = new SoundClock();
  /** Whether a snapshot was ordered before there was a stage for it. */
  #isSnapshotWanted = false;
  #isArmed: boolean | null = null;
  #isRefused = false;
  #isEnded = false;
  #closing: Promise<void> | null = null;
  #counted = NOTHING_COUNTED;

  private constructor(host: SessionHost, { settings, kind }: OpeningOrder) {
    const isPublished = kind === "offer";
    this.#host = host;
    this.#settings = settings;
    this.#outbox = new Outbox(settings.sessionId, host.post, { hasClips: settings.clip !== null });
    this.#audio = new AudioStage({
      outbox: this.#outbox,
      counts: this.#counts,
      isWanted: settings.wantsAudio,
    });
    this.#clips = settings.record && new ClipStage({
      ...{ plan: settings.record, world: host.world, outbox: this.#outbox, counts: this.#counts },
    });
    this.#view = new ViewStage({
      outbox: this.#outbox,
      counts: this.#counts,
      askForKeyframe: isPublished ? () => this.#peer?.requestKeyframe() : null,
    });
    this.#recording = settings.recording && new RecordingStage({
      ...{ plan: settings.recording, world: host.world, outbox: this.#outbox, counts: this.#counts },
    });
    this.#room = new PictureRoom({
      reserved: settings.maxFrame,
      report: (size) => this.#report({ kind: "picture_size", ...size }),
      onReserved: (picture) => {
        if (settings.record) this.#clips?.limit(keptBytesMax(picture, settings.record));
        this.#recording?.limit(segmentBytesMax(picture));
      },
    });
    this.#taps = new UnitTaps([this.#clips, this.#recording, this.#view].filter((tap) => tap !== null));
    this.#epochMs = host.world.now() - host.world.monotonicMs();
  }

  /** Opens a session. Returns at once; the reports give the result. */
  static open(host: SessionHost, order: OpeningOrder): WorkerSession {
    const session = new WorkerSession(host, order);
    session.#opening = session.#open(order);
    return session;
  }

  take(order: LaterOrder): void {
    switch (order.kind) {
      case "pull":
        return this.#closing ? undefined : this.#connect(order);
      case "candidate":
        return this.#peer?.trickle(order.fragment, order);
      case "restart_ice":
        return void this.#restartIce(order);
      case "arm":
        if (order.isArmed && this.#isArmed === false) this.#video?.beginAgain();
        return void (this.#isArmed = order.isArmed);
      case "snapshot":
        this.#isSnapshotWanted = this.#video === null;
        return this.#video?.wantSnapshot();
      case "room":
        return this.#room.onOrder(order);
      case "watch":
        return this.#view.watch(order.viewId);
      case "acknowledge":
        return this.#outbox.giveBack(order.credit, order.count);
      case "close":
        return void this.#close();
    }
  }

  /** Opens the session by its order. Never rejects. */
  async #open(order: OpeningOrder): Promise<void> {
    try {
      if (order.kind === "offer") await this.#answer(order);
      else await this.#pull(order);
    } catch (error) {
      if (order.kind === "offer") await this.#refuse(errorText(error));
      else this.#fail({ stage: "analysis", reason: "spawn_failure" }, error);
    }
    if (!this.#isRefused) void this.#tick();
  }

  async #answer(order: Extract<OpeningOrder, { kind: "offer" }>): Promise<void> {
    const { offer } = order;
    if (offer.video) await this.#startVideo(offer.video.codec);
    this.#startTaps(offer);
    const { peer, answer } = await Peer.answer(
      offer,
      { ice: this.#settings.ice, bitrate: this.#bitrate.bitrate, mediaIdleMs: this.#settings.mediaIdleMs },
      {
        onConnected: (tookMs) => this.#report({ kind: "connected", tookMs }),
        onVideoUnit: (unit) => this.#decode(unit),
        onAudioUnit: (unit) => this.#hear(unit),
        onEnded: (cause, message) => this.#end(cause, message),
      },
      this.#host.world,
      order,
    );
    this.#peer = peer;
    this.#counts.add("audioTracks", offer.audio.length);
    if (this.#isEnded) return; // the connection failed at once
    const video = offer.video && { codec: offer.video.codec };
    this.#report({ kind: "answered", answer, video, audioTracks: offer.audio.length });
  }

  async #pull(order: Extract<OpeningOrder, { kind: "pull" }>): Promise<void> {
    const video = await this.#loadVideo();
    const { runner, socketDir, world } = this.#host;
    this.#pulled = new PulledSource({
      runner,
      world,
      room: this.#room,
      mediaIdleMs: this.#settings.mediaIdleMs,
      isAlwaysOn: this.#settings.isAlwaysOn,
      counts: this.#counts,
      onFrame: (frame) => this.#guarded(() => video.take(frame)),
      sound: this.#settings.wantsAudio
        ? { socketDir, onWindow: (window) => this.#audio.takeSamples(window) }
        : null,
      copy: {
        ...{ socketDir, tap: this.#taps, onOtherCodec: (codec) => this.#view.refuse(codec) },
        onLost: (reason) => this.#report({ kind: "packets_lost", reason }),
      },
      onGap: (gap) => {
        video.interrupt();
        this.#taps.interrupt();
        this.#report({ kind: "gap", ...gap });
      },
      onResumed: () => this.#report({ kind: "resumed" }),
      onFinished: () => this.#end("source_ended", "the source has ended"),
      onIdle: () => this.#end("media_idle", "the source has never given a frame"),
    });
    this.#connect(order);
  }

  #connect(order: Parameters<PulledSource["connect"]>[0]): void {
    try {
      this.#pulled?.connect(order);
    } catch (error) {
      this.#fail({ stage: "decode", reason: "spawn_failure" }, error);
    }
  }

  async #startVideo(codec: VideoCodec): Promise<void> {
    const video = await this.#loadVideo();
    const { runner, world } = this.#host;
    const decoder: LiveDecoder = new LiveDecoder({
      runner,
      world,
      codec,
      room: this.#room,
      onFrame: (frame) => this.#guarded(() => video.take(frame)),
      onKeyframeNeeded: () => this.#peer?.requestKeyframe(),
      onRestarted: (reason) =>
        this.#report({
          kind: "decoder_restarted",
          reason,
          ptsMs: video.lastPtsMs ?? 0,
          restarts: decoder.counts.restarts,
        }),
      onFault: (message, reason) => this.#fail({ stage: "decode", reason }, message),
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
      samples: this.#samples,
      isArmed: () => this.#isArmed,
      onPicture: (picture) => this.#clips?.onPicture(picture),
      onFault: (stage, error) => this.#fail({ stage, reason: "panic" }, error),
    });
    if (this.#isSnapshotWanted) this.#video.wantSnapshot();
    return this.#video;
  }

  #decode({ data, rtpTimestamp, isKeyframe, width, height, lastPacketMs }: VideoUnit): void {
    const arrivedMs = this.#epochMs + lastPacketMs;
    this.#decoder?.push({ data, rtpTimestamp, isKeyframe, width, height, arrivedMs });
    this.#soundClock.onVideo(rtpTimestamp, lastPacketMs);
    const size = isKeyframe && width !== null && height !== null ? { width, height } : null;
    const unit = { isVideo: true, isKeyframe, ptsMs: rtpTimestamp / VIDEO_TICKS_PER_MS, size };
    this.#guarded(() => this.#taps.push({ ...unit, data }));
  }

  /** Passes sound on. Clips and the live view have the sound of the first track. */
  #hear(unit: AudioUnit): void {
    this.#audio.push(unit);
    if (!this.#decoder || unit.trackId !== 0 || opusSamples(unit.data) === 0) return;
    const peer = this.#peer;
    const marks = { video: peer?.clockMark("video") ?? null, sound: peer?.clockMark(0) ?? null };
    const ptsMs = this.#soundClock.onSound(unit.rtpTimestamp, this.#host.world.monotonicMs(), marks);
    if (ptsMs === null) return;
    const { data } = unit;
    this.#guarded(() => this.#taps.push({ isVideo: false, isKeyframe: true, data, ptsMs, size: null }));
  }

  /**
   * Begins what takes encoded units. With evidence clips, the offer has a codec that MP4 carries, as it is
   * read with that condition.
   */
  #startTaps({ video, audio }: Offer): void {
    const codec = clipVideo(video?.codec);
    if (codec === null) return this.#view.refuse(video?.codec ?? null);
    const sound = audio.length > 0
      ? { codec: "opus", sampleRateHz: 48_000, channels: 2, codecData: new Uint8Array() } as const
      : null;
    const codecData = new Uint8Array();
    this.#taps.begin({ codec, codecData, sound, hasOtherSound: false, reorderDepth: 0 });
    this.#taps.setOffset(0);
  }

  async #restartIce(order: Extract<LiveOrder, { kind: "restart_ice" }>): Promise<void> {
    const { fragment, orderId } = order;
    const answer = await this.#peer?.restartIce(fragment, order).catch(() => null) ?? null;
    this.#report({ kind: "ice_restarted", orderId, fragment: answer });
  }

  async #refuse(message: string): Promise<void> {
    this.#isRefused = true;
    await this.#release();
    this.#report({ kind: "refused", message });
  }

  #end(cause: EndCause, message: string, fault?: WorkerFault): void {
    if (this.#isEnded || this.#closing) return;
    this.#isEnded = true;
    this.#report({ kind: "ended", cause, message, ...(fault && { fault }) });
    void this.#close();
  }

  /** Runs `work`. An error in it is a bug, which ends this session but not the others of the Worker. */
  #guarded(work: () => void): void {
    try {
      if (!this.#isEnded) work();
    } catch (error) {
      this.#fail({ stage: "analysis", reason: "panic" }, error);
    }
  }

  #fail(fault: WorkerFault, error: unknown): void {
    this.#end("worker_fault", errorText(error), fault);
  }

  #close(): Promise<void> {
    return this.#closing ??= this.#closeAll();
  }

  async #closeAll(): Promise<void> {
    await this.#opening;
    if (this.#isRefused) return;
    await this.#release();
    this.#reportCounts();
    this.#report({ kind: "closed" });
  }

  /**
   * Releases the stages in the order in which media flows, so that media that has arrived is still processed.
   */
  async #release(): Promise<void> {
    this.#ticking.abort();
    this.#room[Symbol.dispose]();
    if (this.#peer) await hasEndedWithin(this.#host.world, PEER_CLOSE_MS, this.#peer.close());
    this.#audio.finish();
    await this.#decoder?.[Symbol.asyncDispose]();
    await this.#pulled?.[Symbol.asyncDispose]();
    await this.#video?.[Symbol.asyncDispose]();
    await this.#clips?.[Symbol.asyncDispose]();
    await this.#recording?.[Symbol.asyncDispose]();
    await this.#host.onReleased(this.#settings.sessionId);
  }

  /**
   * To be called once a second: reports the counts and adapts the bitrate. Clips begin with a key frame, so
   * the publisher is asked for them.
   */
  async #tick(): Promise<void> {
    for (let seconds = 1; await pause(this.#host.world, COUNTS_MS, this.#ticking.signal); seconds++) {
      if (this.#clips && seconds % KEYFRAME_EVERY === 0) this.#peer?.requestKeyframe();
      const dropped = this.#reportCounts();
      const bitrate = this.#bitrate.step({ dropped, waiting: this.#decoder?.pending ?? 0 });
      if (bitrate !== null) this.#peer?.setBitrate(bitrate);
    }
  }

  /**
   * Reports what was counted since the last call. Returns how many units the decoder has dropped since then.
   */
  #reportCounts(): number {
    const before = this.#counted;
    const { received, decoded } = this.#decoder?.counts ?? NOTHING_COUNTED;
    // Each unit is decoded, pending or dropped.
    const dropped = received - decoded - (this.#decoder?.pending ?? 0);
    const now = { received, decoded, dropped, broken: brokenUnits(this.#peer?.counts) };
    this.#counted = now;
    this.#counts.add("rtpFramesReceived", now.received - before.received);
    this.#counts.add("framesDecoded", now.decoded - before.decoded);
    this.#counts.add("framesDropped", now.dropped - before.dropped + now.broken - before.broken);
    const counts = this.#counts.take();
    if (counts) this.#report({ kind: "counts", counts });
    const samples = this.#samples.take();
    if (samples.length > 0) this.#report({ kind: "samples", samples });
    return now.dropped - before.dropped;
  }

  #report(report: WithoutSessionId<SessionReport>): void {
    this.#outbox.send(report);
  }
}

/** The totals of units at the last report of counts. */
const NOTHING_COUNTED = { received: 0, decoded: 0, dropped: 0, broken: 0 };

/** How many units never became complete. */
function brokenUnits(counts: PeerCounts | undefined): number {
  return counts ? counts.incomplete + counts.oversize + counts.malformed : 0;
}
