/** The transport of one publisher: ICE, DTLS and SRTP of werift, guarded against everybody else. */

import { networkInterfaces } from "node:os";
import {
  Candidate,
  type DtlsSocket,
  parseMessage,
  RTCDtlsFingerprint,
  RTCDtlsParameters,
  RTCDtlsTransport,
  RTCIceGatherer,
  RTCIceParameters,
  RTCIceTransport,
  type RtcpPacket,
  type RtpPacket,
} from "werift";
import { Buffer } from "node:buffer";
import type { World } from "../base/world.ts";
import { LIMITS } from "../model/limits.ts";
import type { IceCandidate } from "../model/live/candidate.ts";
import type { Offer } from "../model/live/offer.ts";
import { closeNotify, isCloseNotify, mayBeAlert } from "./dtls_alert.ts";
import { followRollover, type RolloverState } from "./receive/rollover.ts";

export interface IceServers {
  /** URLs such as `stun:stun.example.org:3478`; the first one is asked. */
  readonly stunServers: readonly string[];
  /** `turn:` or `turns:` URL. */
  readonly turn: { readonly url: string; readonly username: string; readonly credential: string } | null;
}

export interface LinkEvents {
  /** The publisher is who the offer says, and media may come. */
  onConnected(): void;
  onRtp(packet: RtpPacket): void;
  onRtcp(packet: RtcpPacket): void;
  /** The publisher said goodbye: surely, or in a way that a stranger could have sent. */
  onGoodbye(isCertain: boolean): void;
  onFailed(message: string): void;
}

/** Our side, for the answer. */
export interface LocalTransport {
  readonly ufrag: string;
  readonly password: string;
  /** `candidate:…` lines. */
  readonly candidates: readonly string[];
}

/** How much longer for those that a server finds, as the answer is the only place where they can be told. */
const SERVER_CANDIDATES_MS = 300;
/** Deno allots twice this per datagram and cuts what is longer; no path carries datagrams of this size. */
export const DATAGRAM_BYTES = 4_096;
const SRTP_PROFILES: ConstructorParameters<typeof RTCDtlsTransport>[3] = [0x0007, 0x0001];
/** Addresses that have proved to be the publisher's; a roaming one has a few. */
const ADDRESSES_MAX = 64;
const CANDIDATES_MAX = 64;
const SUCCEEDED = 3;
const LOOPBACK = "127.0.0.1";

/** What this file needs of werift 0.25.2 beyond its types. */
interface Datagrams {
  readonly transport?: {
    readonly socket?: { setRecvBufferSize(bytes: number): void };
    onData(data: Buffer, address: readonly [string, number]): void;
  };
}
interface Internals {
  readonly protocols: readonly Datagrams[];
  readonly userHistory: Readonly<Record<string, string>>;
}

/**
 * werift answers whoever sends a binding request and hands every other datagram to DTLS and SRTP. So datagrams are
 * looked at first: a request must carry our password's proof, anything else must come from an address that has proved
 * itself. What strangers send is dropped unread and keeps nobody alive.
 *
 * Rejections that werift leaves unhandled inside (a send on a socket that was just closed) surface as
 * `unhandledrejection`: the Worker prevents its default and logs it, as no session depends on it.
 */
export class Link {
  /** When the publisher was last heard, on the monotonic clock: media, a check, anything authentic. */
  heardMs: number;
  readonly #world: World;
  readonly #events: LinkEvents;
  readonly #ice: RTCIceTransport;
  readonly #dtls: RTCDtlsTransport;
  readonly #closing = new AbortController();
  readonly #guarded = new WeakSet<object>();
  readonly #addresses = new Set<string>();
  readonly #hasServers: boolean;
  #lastAddress: readonly [string, number] = ["", 0];
  #candidates = 0;
  #responses = 0;
  #isConnected = false;

  private constructor(offer: Offer, servers: IceServers, events: LinkEvents, world: World) {
    this.#world = world;
    this.#events = events;
    this.heardMs = world.monotonicMs();
    const stun = serverAddress(servers.stunServers[0]);
    const turn = serverAddress(servers.turn?.url);
    this.#hasServers = stun !== undefined || turn !== undefined;
    const gatherer = new RTCIceGatherer({
      ...(turn && {
        turnServer: turn,
        turnUsername: servers.turn!.username,
        turnPassword: servers.turn!.credential,
        turnTransport: turnTransport(servers.turn!.url),
      }),
      ...(hasLoopbackOnly() && { additionalHostAddresses: [LOOPBACK] }),
    });
    // Without one it would ask a public server of its own choice.
    gatherer.connection.stunServer = stun;
    this.#ice = new RTCIceTransport(gatherer);
    this.#dtls = new RTCDtlsTransport({}, this.#ice, undefined, SRTP_PROFILES);
    this.#dtls.role = offer.setup === "active" ? "server" : "client";
    this.#dtls.setRemoteParams(
      new RTCDtlsParameters(
        offer.fingerprints.map(({ algorithm, value }) => new RTCDtlsFingerprint(algorithm, value)),
        offer.setup === "active" ? "client" : "server",
      ),
    );
    this.#ice.connection.iceControlling = offer.ice.isLite;
    this.#setRemote(offer.ice.ufrag, offer.ice.password, offer.ice.isLite);
    this.#listen();
  }

  /** Opens sockets and gathers candidates; throws when there is no candidate in time. Checks start at once. */
  static async open(offer: Offer, servers: IceServers, events: LinkEvents, world: World): Promise<Link> {
    const certificate = await RTCDtlsTransport.SetupCertificate();
    const link = new Link(offer, servers, events, world);
    link.#dtls.localCertificate = certificate;
    try {
      await link.#gather();
    } catch (error) {
      await link.close();
      throw error;
    }
    for (const candidate of offer.candidates) link.addCandidate(candidate);
    link.#start();
    return link;
  }

  get local(): LocalTransport {
    const { usernameFragment, password } = this.#ice.localParameters;
    return { ufrag: usernameFragment, password, candidates: this.#ice.localCandidates.map(candidateLine) };
  }

  get fingerprint(): { algorithm: string; value: string } {
    return this.#dtls.localParameters.fingerprints[0]!;
  }

  get setup(): "active" | "passive" {
    return this.#dtls.role === "server" ? "passive" : "active";
  }

  /** The publisher's user name of the present generation. */
  get remoteUfrag(): string {
    return this.#ice.connection.remoteUsername;
  }

  /** By the last check; 0 before one. */
  get roundTripMs(): number {
    return (this.#ice.connection.nominated?.rtt ?? 0) * 1000;
  }

  /** One that the publisher trickled. Those of other generations, and more than anybody needs, are passed over. */
  addCandidate(candidate: IceCandidate): void {
    const isOther = candidate.ufrag !== null && candidate.ufrag !== this.remoteUfrag;
    if (isOther || this.#candidates >= CANDIDATES_MAX || this.#closing.signal.aborted) return;
    this.#candidates++;
    const { foundation, component, priority, address, port, type } = candidate;
    // A reflexive candidate is learnt from its checks; told, it is as good as one that a server found.
    const told = type === "prflx" ? "srflx" : type;
    void this.#ice.connection.addRemoteCandidate(
      new Candidate(foundation, component, "udp", priority, address, port, told),
    );
  }

  /** New credentials of the publisher; resolves when ours are known. Media goes on meanwhile. */
  async restart(ufrag: string, password: string): Promise<LocalTransport> {
    if (!this.#isConnected) throw new Error("ICE cannot restart before it was connected");
    this.#candidates = 0;
    this.#setRemote(ufrag, password, this.#ice.connection.remoteIsLite);
    await this.#gather();
    this.#start();
    return this.local;
  }

  /** Looks for signs of life that raise no event: answers to our own checks. */
  poll(): void {
    const responses = this.#ice.connection.nominated?.responsesReceived ?? 0;
    if (responses > this.#responses) this.#hear();
    this.#responses = responses;
  }

  sendRtcp(packets: readonly Uint8Array[]): void {
    if (!this.#isConnected || this.#closing.signal.aborted || packets.length === 0) return;
    const encrypted = this.#dtls.srtcp.encrypt(Buffer.concat(packets));
    this.#ice.connection.send(encrypted).catch(() => {});
  }

  /** Says goodbye and closes every socket. May be called again. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    const { dtls } = this.#dtls;
    const goodbye = dtls && this.#isConnected ? closeNotify(dtls) : null;
    if (goodbye) await this.#ice.connection.send(goodbye).catch(() => {});
    this.#closing.abort(new DOMException("The link was closed", "AbortError"));
    // A handshake under way repeats its flights until the other side is past them.
    if (dtls) dtls.dtls.flight = Number.MAX_SAFE_INTEGER;
    this.#dtls.onRtp.allUnsubscribe();
    this.#dtls.onRtcp.allUnsubscribe();
    await this.#dtls.stop();
  }

  #listen(): void {
    const { connection } = this.#ice;
    connection.onIceCandidate.subscribe(() => this.#guardAll());
    connection.stateChanged.subscribe((state) => {
      if (state === "connected" && this.#dtls.state === "new") this.#handshake();
      if (state === "failed") this.#events.onFailed("ICE found no way to the publisher any more");
    });
    connection.onData.subscribe((data) => this.#readAlert(data));
    this.#dtls.onStateChange.subscribe((state) => {
      if (state !== "connected" || this.#closing.signal.aborted) return;
      const context = this.#dtls.srtp.remoteContext as {
        updateRolloverCount(sequence: number, state: RolloverState): void;
      };
      context.updateRolloverCount = followRollover;
      this.#isConnected = true;
      this.#hear();
      this.#events.onConnected();
    });
    this.#dtls.onRtp.subscribe((packet) => {
      this.#hear();
      this.#events.onRtp(packet);
    });
    this.#dtls.onRtcp.subscribe((packet) => {
      this.#hear();
      this.#events.onRtcp(packet);
    });
  }

  #handshake(): void {
    this.#dtls.start().catch((error) => {
      if (this.#closing.signal.aborted) return;
      const reason = error instanceof Error ? error.message : "no reason given";
      this.#events.onFailed(`the DTLS handshake failed: ${reason}`);
    });
  }

  /** ICE that finds nothing is no failure here: more candidates may be trickled until the caller's deadline. */
  #start(): void {
    this.#ice.start().catch(() => {});
  }

  #setRemote(usernameFragment: string, password: string, iceLite: boolean): void {
    this.#ice.setRemoteParams(new RTCIceParameters({ usernameFragment, password, iceLite }));
  }

  async #gather(): Promise<void> {
    const { connection } = this.#ice;
    const first = Promise.withResolvers<void>();
    const { unSubscribe } = connection.onIceCandidate.subscribe(() => first.resolve());
    const gathered = this.#ice.gather().then(async () => {
      // Sockets that were being opened when the link closed.
      if (this.#closing.signal.aborted) await connection.close();
    });
    try {
      await this.#within(LIMITS.whip.firstCandidateMs, Promise.race([first.promise, gathered]));
      if (this.#hasServers) await this.#within(SERVER_CANDIDATES_MS, gathered);
    } finally {
      unSubscribe();
    }
    if (this.#ice.localCandidates.length === 0) throw new Error("no local address to receive media on");
    if (!this.#hasServers) await gathered;
  }

  /** Waits for `what`, but not longer than that. */
  async #within(ms: number, what: Promise<unknown>): Promise<void> {
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, this.#closing.signal]);
    await Promise.race([what, this.#world.sleep(ms, signal).catch(() => {})]);
    over.abort();
  }

  #hear(): void {
    this.heardMs = this.#world.monotonicMs();
  }

  #guardAll(): void {
    for (const protocol of (this.#ice.connection as unknown as Internals).protocols) {
      const { transport } = protocol;
      if (!transport?.socket || this.#guarded.has(transport)) continue;
      this.#guarded.add(transport);
      transport.socket.setRecvBufferSize(DATAGRAM_BYTES);
      const deliver = transport.onData;
      transport.onData = (data, address) => {
        if (this.#isWelcome(data, address)) deliver(data, address);
      };
    }
  }

  /** STUN begins with a byte below 4 (RFC 7983); werift itself checks answers to our own requests. */
  #isWelcome(data: Buffer, address: readonly [string, number]): boolean {
    if (data.length < 4) return false;
    if (data[0]! > 3) return this.#isKnown(address);
    const isRequest = (data.readUInt16BE(0) & 0x0110) === 0;
    if (!isRequest) return true;
    const message = parseMessage(data);
    const user = message?.attributesKeys.includes("USERNAME") ? message.getAttributeValue("USERNAME") : "";
    const password = (this.#ice.connection as unknown as Internals).userHistory[String(user).split(":")[0]!];
    if (!password || !parseMessage(data, Buffer.from(password))) return false;
    this.#know(address);
    this.#hear();
    return true;
  }

  #isKnown(address: readonly [string, number]): boolean {
    const [host, port] = address;
    if (port === this.#lastAddress[1] && host === this.#lastAddress[0]) return true;
    const isKnown = this.#addresses.has(`${host} ${port}`) ||
      this.#ice.connection.checkList.some(({ state, remoteAddr }) =>
        state === SUCCEEDED && remoteAddr[0] === host && remoteAddr[1] === port
      );
    if (isKnown) this.#lastAddress = address;
    return isKnown;
  }

  #know([host, port]: readonly [string, number]): void {
    const key = `${host} ${port}`;
    if (this.#addresses.has(key)) return;
    if (this.#addresses.size >= ADDRESSES_MAX) this.#addresses.clear();
    this.#addresses.add(key);
  }

  #readAlert(data: Buffer): void {
    if (!this.#isConnected || !mayBeAlert(data)) return;
    this.#events.onGoodbye(isCloseNotify(this.#dtls.dtls as DtlsSocket, data));
  }
}

/** `stun:host:port` or `turn:host:port?transport=…`. Undefined without one. */
function serverAddress(url: string | undefined): [string, number] | undefined {
  const match = /^(stun|turn)(s?):(?:\/\/)?(\[[^\]]+\]|[^:?]+)(?::(\d+))?/i.exec(url ?? "");
  if (!match) return undefined;
  const port = Number(match[4] ?? (match[2] ? 5349 : 3478));
  return [match[3]!.replace(/^\[|\]$/g, ""), port];
}

function turnTransport(url: string): "udp" | "tcp" | "tls" {
  if (/^turns:/i.test(url)) return "tls";
  return /[?&]transport=tcp\b/i.test(url) ? "tcp" : "udp";
}

function hasLoopbackOnly(): boolean {
  return Object.values(networkInterfaces()).every((addresses) =>
    addresses?.every(({ internal }) => internal) ?? true
  );
}

function candidateLine(candidate: RTCIceTransport["localCandidates"][number]): string {
  const { component, priority, ip, port, type, relatedAddress, relatedPort } = candidate;
  const foundation = candidate.foundation.replace(/^candidate:/, "");
  const related = relatedAddress ? ` raddr ${relatedAddress} rport ${relatedPort}` : "";
  return `candidate:${foundation} ${component} udp ${priority} ${ip} ${port} typ ${type}${related}`;
}
