/** One WHIP publisher: answers its offer, gives its access units, and says when it is gone. */

import type { RtcpPacket, RtpPacket } from "werift";
import type { World } from "../base/world.ts";
import { writeAnswer } from "../model/live/answer.ts";
import { readTrickle, writeTrickle } from "../model/live/candidate.ts";
import type { Offer, OfferedSection } from "../model/live/offer.ts";
import {
  Assembler,
  type AssemblerActions,
  type AssemblerCounts,
  type VideoUnit,
} from "./receive/assembler.ts";
import { AudioTrack, type AudioUnit } from "./receive/audio_track.ts";
import { type IceServers, Link } from "./link.ts";
import { type ClockMark, Reception } from "./receive/reception.ts";
import { fullIntra, genericNack, maximumBitrate, pictureLoss, receiverReport } from "./rtcp.ts";

/** Contract 11.6; a peer that is closed by its owner has no cause. */
export type PeerEnd = "peer_disconnected" | "peer_failed" | "peer_closed";

export interface PeerEvents {
  onConnected(tookMs: number): void;
  /** In order, beginning with a keyframe; after loss again with a keyframe. */
  onVideoUnit(unit: VideoUnit): void;
  onAudioUnit(unit: AudioUnit): void;
  /** Once; nothing follows, and the peer has closed itself. */
  onEnded(cause: PeerEnd, message: string): void;
}

export interface PeerSettings {
  readonly ice: IceServers;
  /** What the publisher is told that it may send, bits a second. */
  readonly bitrate: number;
}

export interface PeerCounts extends AssemblerCounts {
  /** Of the video's packets. */
  duplicates: number;
  late: number;
  lost: number;
  nacksSent: number;
  keyframesRequested: number;
}

const CONNECT_MS = 15_000;
/** The publisher's ICE sends something every few seconds, media or not. */
const SILENCE_MS = 8_000;
/** After a goodbye that anybody could have sent. */
const SILENCE_AFTER_GOODBYE_MS = 3_000;
const LIVENESS_MS = 250;
const GAP_POLL_MS = 5;
const REPORT_MS = 1_000;
const KEYFRAME_REQUEST_MS = 500;
/** A stream that another one may replace has been silent for so long. */
const REPLACE_MS = 2_000;
const STREAMS_MAX = 32;
const NACKS_MAX = 253;
const RTX_HEAD_BYTES = 2;

/** A media stream of the publisher, by its SSRC. */
type Stream = { readonly track: VideoTrack | AudioReceiver; readonly isRtx: boolean };

/**
 * ```
 * Link ─RTP─▶ stream by SSRC (else mid, else payload type) ─▶ Assembler ──▶ onVideoUnit
 *   ▲                                                     └─▶ AudioTrack ─▶ onAudioUnit
 *   └──RTCP: NACK every 5 ms while something is missing; reports and REMB every second; PLI at most twice a second
 * ```
 *
 * Runs in the thread that made it, driven by datagrams and by two loops of `World.sleep`: one of 250 ms, and one of
 * 5 ms that exists only while packets are waited for.
 */
export class Peer {
  readonly #offer: Offer;
  readonly #events: PeerEvents;
  readonly #world: World;
  readonly #closing = new AbortController();
  readonly #startedMs: number;
  readonly #ssrc: number;
  readonly #video: VideoTrack | null;
  readonly #audio: readonly AudioReceiver[];
  readonly #streams = new Map<number, Stream>();
  readonly #actions: AssemblerActions = { units: [], nacks: [], wantsKeyframe: false };
  readonly #audioUnits: AudioUnit[] = [];
  #link: Link | null = null;
  #bitrate: number;
  #isConnected = false;
  #isWatchingGaps = false;
  #isEnded = false;
  #goodbyeMs = NaN;
  #reportedMs = -Infinity;
  #requestedMs = -Infinity;
  #nacksSent = 0;
  #keyframesRequested = 0;

  private constructor(offer: Offer, settings: PeerSettings, events: PeerEvents, world: World) {
    this.#offer = offer;
    this.#events = events;
    this.#world = world;
    this.#bitrate = settings.bitrate;
    this.#startedMs = world.monotonicMs();
    this.#ssrc = new DataView(world.randomBytes(4).buffer).getUint32(0);
    this.#video = offer.video && new VideoTrack(offer.video.section, () => newAssembler(offer));
    this.#audio = offer.audio.map((section, trackId) => new AudioReceiver(section, trackId));
  }

  /**
   * Opens sockets for an offer that `readOffer` accepted. The answer is complete: candidates do not follow it.
   * Throws when this machine has no address to receive on.
   */
  static async answer(
    offer: Offer,
    settings: PeerSettings,
    events: PeerEvents,
    world: World,
  ): Promise<{ peer: Peer; answer: string }> {
    const peer = new Peer(offer, settings, events, world);
    const link = await Link.open(offer, settings.ice, {
      onConnected: () => peer.#connect(),
      onRtp: (packet) => peer.#guard(() => peer.#receive(packet)),
      onRtcp: (packet) => peer.#guard(() => peer.#receiveReport(packet)),
      onGoodbye: (isCertain) => peer.#hearGoodbye(isCertain),
      onFailed: (message) => peer.#end("peer_failed", message),
    }, world);
    peer.#link = link;
    if (peer.#isEnded) await link.close();
    void peer.#watch();
    const { local, fingerprint, setup } = link;
    const sessionId = new DataView(world.randomBytes(8).buffer).getBigUint64(0) >> 2n;
    const answer = writeAnswer(offer, { sessionId: String(sessionId), ...local, fingerprint, setup });
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

  /** A body of the ICE route that is no restart: a candidate line, a fragment, or nothing. Never throws. */
  trickle(body: string): void {
    const { credentials, candidates } = readTrickle(body);
    if (!this.#link || (credentials && credentials.ufrag !== this.#link.remoteUfrag)) return;
    for (const candidate of candidates) this.#link.addCandidate(candidate);
  }

  /**
   * A fragment with new credentials; the body that answers it. Null when it is none, when they are the present ones,
   * or when the publisher was not connected yet.
   */
  async restartIce(body: string): Promise<string | null> {
    const { credentials, candidates } = readTrickle(body);
    const link = this.#link;
    if (!credentials || !link || !this.#isConnected || credentials.ufrag === link.remoteUfrag) return null;
    const local = await link.restart(credentials.ufrag, credentials.password);
    for (const candidate of candidates) link.addCandidate(candidate);
    const [first] = this.#offer.sections.filter((section) => section.served !== null);
    return writeTrickle({ ...local, mid: first!.mid, kind: first!.kind });
  }

  /** Asks for a keyframe, at most twice a second, until one comes. */
  requestKeyframe(): void {
    if (!this.#video || this.#isEnded) return;
    this.#video.wantsKeyframe = true;
    this.#askForKeyframe();
  }

  /** The knob against overload, bits a second. Told to the publisher at once. */
  setBitrate(bitsPerSecond: number): void {
    this.#bitrate = bitsPerSecond;
    this.#report();
  }

  /** The publisher's last report on its video, or on an audio track: relates RTP time to its clock. Null before. */
  clockMark(track: "video" | number): ClockMark | null {
    return (track === "video" ? this.#video : this.#audio[track])?.reception?.clockMark ?? null;
  }

  /** Closes sockets and ends loops; no event follows. May be called again. */
  async close(): Promise<void> {
    this.#isEnded = true;
    this.#closing.abort(new DOMException("The peer was closed", "AbortError"));
    this.#streams.clear();
    await this.#link?.close();
  }

  #connect(): void {
    if (this.#isEnded || this.#isConnected) return;
    this.#isConnected = true;
    this.#events.onConnected(this.#world.monotonicMs() - this.#startedMs);
  }

  #end(cause: PeerEnd, message: string): void {
    if (this.#isEnded) return;
    void this.close();
    this.#events.onEnded(cause, message);
  }

  #hearGoodbye(isCertain: boolean): void {
    if (isCertain) this.#end("peer_closed", "the publisher closed the connection");
    else this.#goodbyeMs = this.#world.monotonicMs();
  }

  /** werift keeps what its listeners throw to itself; a bug must be seen. */
  #guard(work: () => void): void {
    try {
      if (!this.#isEnded) work();
    } catch (error) {
      reportError(error);
    }
  }

  #receive(packet: RtpPacket): void {
    const { header, payload } = packet;
    const stream = this.#streams.get(header.ssrc) ?? this.#learn(packet);
    if (!stream) return;
    const nowMs = this.#world.monotonicMs();
    const { track, isRtx } = stream;
    if (header.payloadType !== (isRtx ? track.served.rtxPayloadType : track.served.payloadType)) return;
    if (track instanceof AudioReceiver) {
      track.receive(header.sequenceNumber, header.timestamp, payload, nowMs, this.#audioUnits);
    } else if (!isRtx) {
      track.receive(header, payload, nowMs, this.#actions);
    } else if (payload.length > RTX_HEAD_BYTES) {
      const original = payload.readUInt16BE(0);
      track.repair(original, header, payload.subarray(RTX_HEAD_BYTES), nowMs, this.#actions);
    }
    this.#act();
    if (track.isWaiting) void this.#watchGaps();
  }

  /** Which track a new stream is of. A track has one stream at a time; another one replaces it when it has ended. */
  #learn(packet: RtpPacket): Stream | null {
    const { ssrc, payloadType } = packet.header;
    const tracks = [...(this.#video ? [this.#video] : []), ...this.#audio].filter(({ served }) =>
      served.payloadType === payloadType || served.rtxPayloadType === payloadType
    );
    const track = tracks.find(({ section }) => section.ssrcs.includes(ssrc)) ??
      tracks.find(({ section }) => section.mid === midOf(packet, section)) ??
      (tracks.length === 1 ? tracks[0] : undefined);
    if (!track || this.#streams.size >= STREAMS_MAX) return null;
    const isRtx = track.served.rtxPayloadType === payloadType;
    if (!isRtx) {
      if (track.ssrc !== null && this.#world.monotonicMs() - track.heardMs < REPLACE_MS) return null;
      for (const [other, { track: owner }] of this.#streams) {
        if (owner === track && track.ssrc !== null) this.#streams.delete(other);
      }
      track.begin(ssrc);
    }
    const stream = { track, isRtx };
    this.#streams.set(ssrc, stream);
    return stream;
  }

  #receiveReport(packet: RtcpPacket): void {
    if (!("senderInfo" in packet)) return;
    const { ntpTimestamp, rtpTimestamp } = packet.senderInfo;
    const track = this.#streams.get(packet.ssrc)?.track;
    track?.reception?.receiveReport(ntpTimestamp, rtpTimestamp, this.#world.monotonicMs());
  }

  /** Hands on what has become due. Units first: their receiver may ask for a keyframe. */
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
      await this.#sleep(GAP_POLL_MS);
      this.#guard(() => {
        const nowMs = this.#world.monotonicMs();
        this.#video?.poll(nowMs, this.#link?.roundTripMs ?? 0, this.#actions);
        for (const track of this.#audio) track.poll(nowMs, this.#audioUnits);
        this.#act();
      });
    }
    this.#isWatchingGaps = false;
  }

  async #watch(): Promise<void> {
    while (!this.#isEnded) {
      await this.#sleep(LIVENESS_MS);
      if (this.#isEnded) return;
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
    // Who is still heard has not gone: the goodbye was not the publisher's.
    if (link.heardMs > this.#goodbyeMs + LIVENESS_MS) this.#goodbyeMs = NaN;
    const limitMs = Number.isNaN(this.#goodbyeMs) ? SILENCE_MS : SILENCE_AFTER_GOODBYE_MS;
    if (nowMs - link.heardMs >= limitMs) {
      this.#end("peer_disconnected", `nothing was heard of the publisher for ${limitMs / 1000} s`);
    }
  }

  #report(): void {
    if (!this.#isConnected || this.#isEnded) return;
    const nowMs = this.#world.monotonicMs();
    this.#reportedMs = nowMs;
    const blocks = [...(this.#video ? [this.#video] : []), ...this.#audio].map(({ ssrc, reception }) =>
      ssrc === null ? null : reception?.takeBlock(ssrc, nowMs)
    ).filter((block) => block !== null && block !== undefined);
    const video = this.#video;
    const limit = video && video.ssrc !== null && video.served.feedback.includes("goog-remb")
      ? [maximumBitrate(this.#ssrc, video.ssrc, this.#bitrate)]
      : [];
    this.#link?.sendRtcp([receiverReport(this.#ssrc, blocks), ...limit]);
  }

  async #sleep(ms: number): Promise<void> {
    await this.#world.sleep(ms, this.#closing.signal).catch(() => {});
  }
}

/** The stream that is the video now. */
class VideoTrack {
  readonly section: OfferedSection;
  readonly served: NonNullable<OfferedSection["served"]>;
  readonly canNack: boolean;
  ssrc: number | null = null;
  heardMs = -Infinity;
  reception: Reception | null = null;
  wantsKeyframe = false;
  readonly #newAssembler: () => Assembler;
  #assembler: Assembler;
  /** Of streams before the present one. */
  readonly #countsBefore = {
    units: 0,
    incomplete: 0,
    oversize: 0,
    malformed: 0,
    duplicates: 0,
    late: 0,
    lost: 0,
  };

  constructor(section: OfferedSection, newAssembler: () => Assembler) {
    this.section = section;
    this.served = section.served!;
    this.canNack = this.served.feedback.includes("nack");
    this.#newAssembler = newAssembler;
    this.#assembler = newAssembler();
  }

  get isWaiting(): boolean {
    return this.#assembler.isWaiting;
  }

  get counts(): AssemblerCounts & { duplicates: number; late: number; lost: number } {
    const sum = { ...this.#countsBefore };
    const present = { ...this.#assembler.counts, ...this.#assembler.packetCounts };
    for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += present[name];
    return sum;
  }

  begin(ssrc: number): void {
    if (this.ssrc !== null) {
      Object.assign(this.#countsBefore, this.counts);
      this.#assembler = this.#newAssembler();
    }
    this.ssrc = ssrc;
    this.reception = new Reception(this.served.clockRate);
  }

  receive(header: RtpPacket["header"], payload: Uint8Array, nowMs: number, into: AssemblerActions): void {
    this.heardMs = nowMs;
    this.reception?.receive(header.sequenceNumber, header.timestamp, nowMs);
    this.repair(header.sequenceNumber, header, payload, nowMs, into);
  }

  /** A packet that came again under another number: `sequence` is its own. */
  repair(
    sequence: number,
    header: RtpPacket["header"],
    payload: Uint8Array,
    nowMs: number,
    into: AssemblerActions,
  ): void {
    if (this.ssrc === null) return;
    const { timestamp, marker } = header;
    this.#assembler.push({ sequence, timestamp, isMarked: marker, payload, arrivedMs: nowMs }, nowMs, into);
  }

  poll(nowMs: number, roundTripMs: number, into: AssemblerActions): void {
    this.#assembler.poll(nowMs, roundTripMs, into);
  }
}

/** The stream that is an audio track now. */
class AudioReceiver {
  readonly section: OfferedSection;
  readonly served: NonNullable<OfferedSection["served"]>;
  ssrc: number | null = null;
  heardMs = -Infinity;
  reception: Reception | null = null;
  readonly #trackId: number;
  #track: AudioTrack;

  constructor(section: OfferedSection, trackId: number) {
    this.section = section;
    this.served = section.served!;
    this.#trackId = trackId;
    this.#track = new AudioTrack(trackId);
  }

  get isWaiting(): boolean {
    return this.#track.isWaiting;
  }

  begin(ssrc: number): void {
    if (this.ssrc !== null) this.#track = new AudioTrack(this.#trackId);
    this.ssrc = ssrc;
    this.reception = new Reception(this.served.clockRate);
  }

  receive(sequence: number, timestamp: number, payload: Uint8Array, nowMs: number, into: AudioUnit[]): void {
    this.heardMs = nowMs;
    this.reception?.receive(sequence, timestamp, nowMs);
    this.#track.push({ sequence, timestamp, payload }, nowMs, into);
  }

  poll(nowMs: number, into: AudioUnit[]): void {
    this.#track.poll(nowMs, into);
  }
}

function newAssembler(offer: Offer): Assembler {
  return new Assembler(offer.video!.codec, offer.parameterSets.map((set) => Uint8Array.fromBase64(set)));
}

/** The mid that a packet carries in the section's extension; undefined without one. */
function midOf({ header }: RtpPacket, { midExtension }: OfferedSection): string | undefined {
  const extension = midExtension === null
    ? undefined
    : header.extensions.find(({ id }) => id === midExtension);
  return extension?.payload.toString("latin1");
}
