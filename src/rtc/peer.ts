/** The connection to one WHIP publisher: answers its offer, gives its access units, and detects its end. */

import type { RtcpPacket, RtpPacket } from "werift";
import { pause } from "../base/wait.ts";
import type { World } from "../base/world.ts";
import { writeAnswer } from "../model/live/answer.ts";
import { type CandidateSender, readTrickle, writeTrickle } from "../model/live/candidate.ts";
import type { Offer, OfferedSection } from "../model/live/offer.ts";
import {
  Assembler,
  type AssemblerActions,
  type AssemblerCounts,
  type VideoUnit,
} from "./receive/assembler.ts";
import type { AudioUnit } from "./receive/audio_track.ts";
import { Link, type LinkSettings } from "./link.ts";
import { AudioReceiver, VideoReceiver } from "./receive/receivers.ts";
import type { ClockMark } from "./receive/reception.ts";
import { fullIntra, genericNack, maximumBitrate, pictureLoss, receiverReport } from "./receive/rtcp.ts";

/** Why a peer ended that was not closed by its owner. See docs/live.md#session-end. */
export type PeerEnd = "peer_disconnected" | "peer_failed" | "peer_closed" | "media_idle";

export interface PeerEvents {
  onConnected(tookMs: number): void;
  /** Gets the units of the video in order. The first one, and the first one after a loss, is a keyframe. */
  onVideoUnit(unit: VideoUnit): void;
  onAudioUnit(unit: AudioUnit): void;
  /** Called at most once, after the peer has closed itself; no other event follows. */
  onEnded(cause: PeerEnd, message: string): void;
}

export interface PeerSettings {
  readonly ice: LinkSettings;
  /** The limit that is sent to the publisher, bits a second. */
  readonly bitrate: number;
  /** How long a connected publisher may send no media before it is ended. */
  readonly mediaIdleMs: number;
}

export interface PeerCounts extends AssemblerCounts {
  /** Packets of the video that came twice. */
  duplicates: number;
  late: number;
  lost: number;
  nacksSent: number;
  keyframesRequested: number;
}

const CONNECT_MS = 15_000;
/**
 * How long a publisher may send no packet before it is gone: its ICE sends checks every few seconds even
 * without media.
 */
const SILENCE_MS = 8_000;
/**
 * How long a publisher may send no packet after a close_notify that is not authentic, which anybody could
 * have sent.
 */
const SILENCE_AFTER_CLOSE_NOTIFY_MS = 3_000;
const LIVENESS_MS = 250;
const GAP_POLL_MS = 5;
const REPORT_MS = 1_000;
const KEYFRAME_REQUEST_MS = 500;
/** How long a stream may send no packets before another one may replace it. */
const REPLACE_MS = 2_000;
const STREAMS_MAX = 32;
const NACKS_MAX = 253;
const RTX_HEAD_BYTES = 2;

/** One RTP stream of the publisher, found by its SSRC. */
type Stream = { readonly receiver: VideoReceiver | AudioReceiver; readonly isRtx: boolean };

/**
 * ```
 * Link ─RTP─▶ stream by SSRC (else mid, else payload type) ─▶ VideoReceiver ─▶ onVideoUnit
 *   ▲                                                     └─▶ AudioReceiver ─▶ onAudioUnit
 *   └──RTCP: NACK every 5 ms while packets are missing; reports and REMB every second; PLI at most twice a second
 * ```
 *
 * Driven by datagrams and by two loops: one of 250 ms, and one of 5 ms that runs only while packets are
 * missing.
 */
export class Peer {
  readonly #offer: Offer;
  readonly #events: PeerEvents;
  readonly #world: World;
  readonly #closing = new AbortController();
  readonly #startedMs: number;
  readonly #ssrc: number;
  readonly #video: VideoReceiver | null;
  readonly #audio: readonly AudioReceiver[];
  readonly #streams = new Map<number, Stream>();
  readonly #actions: AssemblerActions = { units: [], nacks: [], wantsKeyframe: false };
  readonly #audioUnits: AudioUnit[] = [];
  #link: Link | null = null;
  #bitrate: number;
  #isConnected = false;
  readonly #mediaIdleMs: number;
  /** When the last packet with media came; before the first, when the publisher connected. */
  #mediaMs = Infinity;
  #isWatchingGaps = false;
  #isEnded = false;
  /** When a close_notify came that is not authentic; NaN without one. */
  #closeNotifyMs = NaN;
  #reportedMs = -Infinity;
  #requestedMs = -Infinity;
  #nacksSent = 0;
  #keyframesRequested = 0;

  private constructor(offer: Offer, settings: PeerSettings, events: PeerEvents, world: World) {
    this.#offer = offer;
    this.#events = events;
    this.#world = world;
    this.#bitrate = settings.bitrate;
    this.#mediaIdleMs = settings.mediaIdleMs;
    this.#startedMs = world.monotonicMs();
    this.#ssrc = new DataView(world.randomBytes(4).buffer).getUint32(0);
    this.#video = offer.video && new VideoReceiver(offer.video.section, () => newAssembler(offer));
    this.#audio = offer.audio.map((section, trackId) => new AudioReceiver(section, trackId));
  }

  /**
   * Opens sockets for an offer that `readOffer` accepted. The answer contains all our candidates. Throws when
   * this machine has no address to receive on.
   */
  static async answer(
    offer: Offer,
    settings: PeerSettings,
    events: PeerEvents,
    world: World,
    sender: CandidateSender,
  ): Promise<{ peer: Peer; answer: string }> {
    const peer = new Peer(offer, settings, events, world);
    const link = await Link.open(
      offer,
      settings.ice,
      {
        onConnected: () => peer.#connect(),
        onRtp: (packet) => peer.#guard(() => peer.#receive(packet)),
        onRtcp: (packet) => peer.#guard(() => peer.#receiveReport(packet)),
        onCloseNotify: (isAuthentic) => peer.#onCloseNotify(isAuthentic),
        onFailed: (message) => peer.#end("peer_failed", message),
      },
      world,
      sender,
    );
    peer.#link = link;
    if (peer.#isEnded) await link.close();
    void peer.#watch();
    const { fingerprint, setup } = link;
    const sessionId = new DataView(world.randomBytes(8).buffer).getBigUint64(0) >> 2n;
    const answer = writeAnswer(offer, {
      sessionId: String(sessionId),
      ...link.local(sender),
      fingerprint,
      setup,
    });
    return { peer, answer };
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  get counts(): PeerCounts {
    return {
      ...(this.#video?.counts ??
        { units: 0, incomplete: 0, oversize: 0, malformed: 0, duplicates: 0, late: 0, lost: 0 }),
      nacksSent: this.#nacksSent,
      keyframesRequested: this.#keyframesRequested,
    };
  }

  /**
   * Takes a body of the ICE route that is no restart: a candidate line, a fragment, or nothing. Never throws.
   */
  trickle(body: string, sender: CandidateSender): void {
    const { credentials, candidates } = readTrickle(body);
    if (!this.#link || (credentials && credentials.ufrag !== this.#link.remoteUfrag)) return;
    for (const candidate of candidates) this.#link.addCandidate(candidate, sender);
  }

  /**
   * Restarts ICE with the credentials in a fragment; returns the body of the response. Null when there are no
   * credentials, when they are the current ones, or when the publisher was not connected yet.
   */
  async restartIce(body: string, sender: CandidateSender): Promise<string | null> {
    const { credentials, candidates } = readTrickle(body);
    const link = this.#link;
    if (!credentials || !link || !this.#isConnected || credentials.ufrag === link.remoteUfrag) return null;
    await link.restart(credentials.ufrag, credentials.password);
    for (const candidate of candidates) link.addCandidate(candidate, sender);
    const [first] = this.#offer.sections.filter((section) => section.served !== null);
    return writeTrickle({ ...link.local(sender), mid: first!.mid, kind: first!.kind });
  }

  /** Asks for a keyframe, at most twice a second, until one comes. */
  requestKeyframe(): void {
    if (!this.#video || this.#isEnded) return;
    this.#video.wantsKeyframe = true;
    this.#askForKeyframe();
  }

  /** Changes the limit against overload, bits a second. It is sent to the publisher at once. */
  setBitrate(bitsPerSecond: number): void {
    this.#bitrate = bitsPerSecond;
    this.#report();
  }

  /**
   * A time on the publisher's clock, from its last sender report on its video or an audio track; null before
   * the first.
   */
  clockMark(track: "video" | number): ClockMark | null {
    return (track === "video" ? this.#video : this.#audio[track])?.reception?.clockMark ?? null;
  }

  /** Closes sockets and ends loops; no event follows. May be called several times. */
  async close(): Promise<void> {
    this.#isEnded = true;
    this.#closing.abort(new DOMException("The peer was closed", "AbortError"));
    this.#streams.clear();
    await this.#link?.close();
  }

  #connect(): void {
    if (this.#isEnded || this.#isConnected) return;
    this.#isConnected = true;
    this.#mediaMs = this.#world.monotonicMs();
    this.#events.onConnected(this.#world.monotonicMs() - this.#startedMs);
  }

  #end(cause: PeerEnd, message: string): void {
    if (this.#isEnded) return;
    void this.close();
    this.#events.onEnded(cause, message);
  }

  #onCloseNotify(isAuthentic: boolean): void {
    if (isAuthentic) this.#end("peer_closed", "the publisher closed the connection");
    else this.#closeNotifyMs = this.#world.monotonicMs();
  }

  /**
   * Reports errors in `work`, because werift swallows the errors of its listeners and a bug must not stay
   * hidden.
   */
  #guard(work: () => void): void {
    try {
      if (!this.#isEnded) work();
    } catch (error) {
      reportError(error);
    }
  }

  #receive(packet: RtpPacket): void {
    const { header, payload } = packet;
    const stream = this.#streams.get(header.ssrc) ?? this.#addStream(packet);
    if (!stream) return;
    const nowMs = this.#world.monotonicMs();
    const { receiver, isRtx } = stream;
    if (header.payloadType !== (isRtx ? receiver.served.rtxPayloadType : receiver.served.payloadType)) return;
    // Packets of nothing but padding probe the bandwidth.
    if (!isRtx && payload.length > 0) this.#mediaMs = nowMs;
    if (receiver instanceof AudioReceiver) {
      receiver.receive(header.sequenceNumber, header.timestamp, payload, nowMs, this.#audioUnits);
    } else if (!isRtx) {
      receiver.receive(header, payload, nowMs, this.#actions);
    } else if (payload.length > RTX_HEAD_BYTES) {
      const original = payload.readUInt16BE(0);
      receiver.repair(original, header, payload.subarray(RTX_HEAD_BYTES), nowMs, this.#actions);
    }
    this.#act();
    if (receiver.isWaiting) void this.#watchGaps();
  }

  /**
   * Finds the receiver of a new stream. If it has a stream already, the new one replaces that when it has
   * ended.
   */
  #addStream(packet: RtpPacket): Stream | null {
    const { ssrc, payloadType } = packet.header;
    const possible = this.#receivers.filter(({ served }) =>
      served.payloadType === payloadType || served.rtxPayloadType === payloadType
    );
    const receiver = possible.find(({ section }) => section.ssrcs.includes(ssrc)) ??
      possible.find(({ section }) => section.mid === midOf(packet, section)) ??
      (possible.length === 1 ? possible[0] : undefined);
    if (!receiver || this.#streams.size >= STREAMS_MAX) return null;
    const isRtx = receiver.served.rtxPayloadType === payloadType;
    if (!isRtx) {
      const idleMs = this.#world.monotonicMs() - receiver.lastReceivedMs;
      if (receiver.ssrc !== null && idleMs < REPLACE_MS) return null;
      for (const [other, { receiver: owner }] of this.#streams) {
        if (owner === receiver && receiver.ssrc !== null) this.#streams.delete(other);
      }
      receiver.startStream(ssrc);
    }
    const stream = { receiver, isRtx };
    this.#streams.set(ssrc, stream);
    return stream;
  }

  get #receivers(): (VideoReceiver | AudioReceiver)[] {
    return [...(this.#video ? [this.#video] : []), ...this.#audio];
  }

  #receiveReport(packet: RtcpPacket): void {
    if (!("senderInfo" in packet)) return;
    const { ntpTimestamp, rtpTimestamp } = packet.senderInfo;
    const receiver = this.#streams.get(packet.ssrc)?.receiver;
    receiver?.reception?.receiveReport(ntpTimestamp, rtpTimestamp, this.#world.monotonicMs());
  }

  /**
   * Passes units on and sends feedback. Units come first, because whoever gets them may ask for a keyframe.
   */
  #act(): void {
    const { units, nacks } = this.#actions;
    const video = this.#video;
    if (video && this.#actions.wantsKeyframe) video.wantsKeyframe = true;
    if (video && units.some(({ isKeyframe }) => isKeyframe)) video.wantsKeyframe = false;
    this.#actions.wantsKeyframe = false;
    for (const unit of units.splice(0)) {
      if (!this.#isEnded) this.#events.onVideoUnit(unit);
    }
    for (const unit of this.#audioUnits.splice(0)) {
      if (!this.#isEnded) this.#events.onAudioUnit(unit);
    }
    if (nacks.length > 0) {
      const asked = nacks.splice(0).slice(0, NACKS_MAX);
      if (video?.canNack && video.ssrc !== null) {
        this.#nacksSent += asked.length;
        this.#link?.sendRtcp([genericNack(this.#ssrc, video.ssrc, asked)]);
      }
    }
    if (video?.wantsKeyframe) this.#askForKeyframe();
  }

  #askForKeyframe(): void {
    const nowMs = this.#world.monotonicMs();
    const video = this.#video;
    if (!video || video.ssrc === null || nowMs - this.#requestedMs < KEYFRAME_REQUEST_MS) return;
    const { feedback } = video.served;
    const request = feedback.includes("nack pli")
      ? pictureLoss(this.#ssrc, video.ssrc)
      : feedback.includes("ccm fir")
      ? fullIntra(this.#ssrc, video.ssrc, this.#keyframesRequested)
      : null;
    if (!request) return;
    this.#requestedMs = nowMs;
    this.#keyframesRequested++;
    this.#link?.sendRtcp([request]);
  }

  async #watchGaps(): Promise<void> {
    if (this.#isWatchingGaps) return;
    this.#isWatchingGaps = true;
    while (!this.#isEnded && (this.#video?.isWaiting || this.#audio.some(({ isWaiting }) => isWaiting))) {
      await pause(this.#world, GAP_POLL_MS, this.#closing.signal);
      this.#guard(() => {
        const nowMs = this.#world.monotonicMs();
        this.#video?.poll(nowMs, this.#link?.roundTripMs ?? 0, this.#actions);
        for (const receiver of this.#audio) receiver.poll(nowMs, this.#audioUnits);
        this.#act();
      });
    }
    this.#isWatchingGaps = false;
  }

  async #watch(): Promise<void> {
    while (await pause(this.#world, LIVENESS_MS, this.#closing.signal)) {
      this.#guard(() => {
        this.#judgeLiveness();
        if (this.#video?.wantsKeyframe) this.#askForKeyframe();
        if (this.#world.monotonicMs() - this.#reportedMs >= REPORT_MS) this.#report();
      });
    }
  }

  #judgeLiveness(): void {
    const link = this.#link!;
    const nowMs = this.#world.monotonicMs();
    link.poll();
    if (!this.#isConnected) {
      if (nowMs - this.#startedMs >= CONNECT_MS) {
        this.#end("peer_failed", `the publisher did not connect within ${CONNECT_MS / 1000} s`);
      }
      return;
    }
    // Packets came after the close_notify, so the publisher has not sent it.
    if (link.lastReceivedMs > this.#closeNotifyMs + LIVENESS_MS) this.#closeNotifyMs = NaN;
    const limitMs = Number.isNaN(this.#closeNotifyMs) ? SILENCE_MS : SILENCE_AFTER_CLOSE_NOTIFY_MS;
    if (nowMs - link.lastReceivedMs >= limitMs) {
      this.#end("peer_disconnected", `nothing was received from the publisher for ${limitMs / 1000} s`);
    } else if (nowMs - this.#mediaMs >= this.#mediaIdleMs) {
      this.#end("media_idle", `the publisher sent no media for ${this.#mediaIdleMs / 1000} s`);
    }
  }

  #report(): void {
    if (!this.#isConnected || this.#isEnded) return;
    const nowMs = this.#world.monotonicMs();
    this.#reportedMs = nowMs;
    const blocks = this.#receivers.map(({ ssrc, reception }) =>
      ssrc === null ? null : reception?.takeBlock(ssrc, nowMs)
    ).filter((block) => block !== null && block !== undefined);
    const video = this.#video;
    const limit = video && video.ssrc !== null && video.served.feedback.includes("goog-remb")
      ? [maximumBitrate(this.#ssrc, video.ssrc, this.#bitrate)]
      : [];
    this.#link?.sendRtcp([receiverReport(this.#ssrc, blocks), ...limit]);
  }
}

function newAssembler(offer: Offer): Assembler {
  return new Assembler(offer.video!.codec, offer.parameterSets.map((set) => Uint8Array.fromBase64(set)));
}

/** The mid in the section's header extension of a packet; undefined without one. */
function midOf({ header }: RtpPacket, { midExtension }: OfferedSection): string | undefined {
  const extension = midExtension === null
    ? undefined
    : header.extensions.find(({ id }) => id === midExtension);
  return extension?.payload.toString("latin1");
}
