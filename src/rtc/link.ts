/** The transport of one publisher: ICE, DTLS and SRTP of werift, protected against datagrams of others. */

import { networkInterfaces } from "node:os";
import {
  Candidate,
  type DtlsSocket,
  parseMessage,
  type Protocol,
  RTCDtlsFingerprint,
  RTCDtlsParameters,
  RTCDtlsTransport,
  RTCIceGatherer,
  RTCIceParameters,
  RTCIceTransport,
  type RtcpPacket,
  type RtpPacket,
  serverReflexiveCandidate,
} from "werift";
import { Buffer } from "node:buffer";
import { hasEndedWithin } from "../base/wait.ts";
import type { World } from "../base/world.ts";
import { LIMITS } from "../contract/limits.ts";
import type { CandidateSender, IceCandidate } from "../model/live/candidate.ts";
import type { Offer } from "../model/live/offer.ts";
import { ipv4Number, isLoopback } from "../base/ip_address.ts";
import { candidateGuard, type CandidateRules } from "./candidate_guard.ts";
import { closeNotify, isCloseNotify, mayBeAlert } from "./dtls_alert.ts";
import { isRepeatedFlight } from "./repeated_flight.ts";
import { followRollover, type RolloverState } from "./receive/rollover.ts";
import { firstSenderReport } from "./receive/rtcp.ts";

export interface LinkSettings {
  /** URLs such as `stun:stun.example.org:3478`; all of them are asked. */
  readonly stunServers: readonly string[];
  /** The TURN server: its URL with `turn:` or `turns:`, and the login. */
  readonly turn: { readonly url: string; readonly username: string; readonly credential: string } | null;
  /** The rules that say to which addresses of the publisher's candidates checks are sent. */
  readonly candidates: CandidateRules;
}

export interface LinkEvents {
  /** Called when the publisher has the certificate of its offer, and media may come. */
  onConnected(): void;
  onRtp(packet: RtpPacket): void;
  onRtcp(packet: RtcpPacket): void;
  /** Called when a close_notify came; one that is not authentic may come from anybody. */
  onCloseNotify(isAuthentic: boolean): void;
  onFailed(message: string): void;
}

/** Our side, for the answer. */
export interface LocalTransport {
  readonly ufrag: string;
  readonly password: string;
  /** The candidates, as `candidate:…` lines. */
  readonly candidates: readonly string[];
}

/**
 * How much longer to wait for candidates from servers: the answer is the only message that can contain them.
 */
const SERVER_CANDIDATES_MS = 300;
/**
 * The longest datagram in bytes. Deno allocates twice this per datagram and cuts longer ones; no network path
 * has datagrams of this size.
 */
export const DATAGRAM_BYTES = 4_096;
const SRTP_PROFILES: ConstructorParameters<typeof RTCDtlsTransport>[3] = [0x0007, 0x0001];
/** Authenticated addresses of the publisher; one that changes networks has a few. */
const ADDRESSES_MAX = 64;
const CANDIDATES_MAX = 64;
const SUCCEEDED = 3;
const LOOPBACK = "127.0.0.1";

/** Members of werift 0.25.2 that its types do not have. */
interface Datagrams {
  readonly transport?: {
    readonly socket?: { setRecvBufferSize(bytes: number): void };
    onData(data: Buffer, address: readonly [string, number]): void;
  };
}
interface Internals {
  readonly protocols: readonly (Datagrams & Protocol)[];
  appendLocalCandidate(candidate: Candidate): void;
  readonly userHistory: Readonly<Record<string, string>>;
}

/**
 * The transport of one publisher. werift answers every binding request and passes every other datagram to
 * DTLS and SRTP. So datagrams are checked first: a binding request must be authenticated with our password,
 * and any other datagram must come from an address that has sent such a request. All others are dropped and
 * do not count as a sign of life. See docs/live/whip.md#publisher-liveness.
 *
 * Some rejections inside werift are not handled there (a send on a socket that was just closed) and become
 * `unhandledrejection` events. The Worker prevents their default and logs them, because no session depends on
 * them.
 */
export class Link {
  /**
   * When the last authentic packet of the publisher came, on the monotonic clock: media, a check, or an
   * answer to ours.
   */
  lastReceivedMs: number;
  readonly #world: World;
  readonly #events: LinkEvents;
  readonly #ice: RTCIceTransport;
  readonly #dtls: RTCDtlsTransport;
  readonly #closing = new AbortController();
  readonly #guarded = new WeakSet<object>();
  readonly #addresses = new Set<string>();
  readonly #hasServers: boolean;
  readonly #stunServers: readonly (readonly [string, number])[];
  /** The questions to STUN servers that are not answered yet. */
  readonly #asking = new Set<Promise<void>>();
  readonly #isAllowed: ReturnType<typeof candidateGuard>;
  #lastAddress: readonly [string, number] = ["", 0];
  #candidates = 0;
  #responses = 0;
  #isConnected = false;

  private constructor(
    offer: Offer,
    servers: LinkSettings,
    events: LinkEvents,
    world: World,
    sender: CandidateSender,
  ) {
    this.#world = world;
    this.#events = events;
    this.lastReceivedMs = world.monotonicMs();
    this.#stunServers = servers.stunServers.flatMap((url) => {
      const server = serverAddress(url);
      return server ? [server] : [];
    });
    const turn = serverAddress(servers.turn?.url);
    this.#hasServers = this.#stunServers.length > 0 || turn !== undefined;
    this.#isAllowed = candidateGuard(servers.candidates);
    const gatherer = new RTCIceGatherer({
      ...(turn && {
        turnServer: turn,
        turnUsername: servers.turn!.username,
        turnPassword: servers.turn!.credential,
        turnTransport: turnTransport(servers.turn!.url),
      }),
      ...(sender.isOnLoopback && hasLoopbackOnly() && { additionalHostAddresses: [LOOPBACK] }),
    });
    // Unset, because by default werift asks a public server, and only one: `#askServers` asks all.
    gatherer.connection.stunServer = undefined;
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

  /**
   * Opens sockets, gathers candidates and starts connectivity checks; throws when there is no candidate in
   * time.
   */
  static async open(
    offer: Offer,
    servers: LinkSettings,
    events: LinkEvents,
    world: World,
    sender: CandidateSender,
  ): Promise<Link> {
    const certificate = await RTCDtlsTransport.SetupCertificate();
    const link = new Link(offer, servers, events, world, sender);
    link.#dtls.localCertificate = certificate;
    try {
      await link.#gather();
    } catch (error) {
      await link.close();
      throw error;
    }
    for (const candidate of offer.candidates) link.addCandidate(candidate, sender);
    link.#start();
    return link;
  }

  local({ isOnLoopback }: CandidateSender): LocalTransport {
    const { usernameFragment, password } = this.#ice.localParameters;
    const candidates = this.#ice.localCandidates.filter(({ ip }) => isOnLoopback || !isLoopback(ip));
    return { ufrag: usernameFragment, password, candidates: candidates.map(candidateLine) };
  }

  get fingerprint(): { algorithm: string; value: string } {
    return this.#dtls.localParameters.fingerprints[0]!;
  }

  get setup(): "active" | "passive" {
    return this.#dtls.role === "server" ? "passive" : "active";
  }

  /** The publisher's current ICE user name. */
  get remoteUfrag(): string {
    return this.#ice.connection.remoteUsername;
  }

  /** The round trip that the last check measured; 0 before the first. */
  get roundTripMs(): number {
    return (this.#ice.connection.nominated?.rtt ?? 0) * 1000;
  }

  /**
   * Adds a trickled candidate. Those of another ICE generation, those at an address that is not allowed, and
   * more than `CANDIDATES_MAX`, are ignored.
   */
  addCandidate(candidate: IceCandidate, sender: CandidateSender): void {
    const isOther = candidate.ufrag !== null && candidate.ufrag !== this.remoteUfrag;
    if (isOther || this.#candidates >= CANDIDATES_MAX || this.#closing.signal.aborted) return;
    this.#candidates++;
    const { foundation, component, priority, address, port, type } = candidate;
    if (!this.#isAllowed(address, sender)) return;
    // Peer-reflexive candidates are found by checks and not signalled; a signalled one is used as
    // server-reflexive.
    const signalledType = type === "prflx" ? "srflx" : type;
    void this.#ice.connection.addRemoteCandidate(
      new Candidate(foundation, component, "udp", priority, address, port, signalledType),
    );
  }

  /** Restarts ICE with new credentials of the publisher; ours are `local`. Media continues meanwhile. */
  async restart(ufrag: string, password: string): Promise<void> {
    if (!this.#isConnected) throw new Error("ICE cannot restart before it was connected");
    this.#candidates = 0;
    this.#setRemote(ufrag, password, this.#ice.connection.remoteIsLite);
    await this.#gather();
    this.#start();
  }

  /** Counts answers to our own checks as signs of life; werift has no event for them. */
  poll(): void {
    const responses = this.#ice.connection.nominated?.responsesReceived ?? 0;
    if (responses > this.#responses) this.#noteReceived();
    this.#responses = responses;
  }

  sendRtcp(packets: readonly Uint8Array[]): void {
    if (!this.#isConnected || this.#closing.signal.aborted || packets.length === 0) return;
    const encrypted = this.#dtls.srtcp.encrypt(Buffer.concat(packets));
    this.#ice.connection.send(encrypted).catch(() => {});
  }

  /** Sends a close_notify and closes all sockets. May be called several times. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    const { dtls } = this.#dtls;
    const alert = dtls && this.#isConnected ? closeNotify(dtls) : null;
    if (alert) await this.#ice.connection.send(alert).catch(() => {});
    this.#closing.abort(new DOMException("The link was closed", "AbortError"));
    // An unfinished handshake would repeat its flights until the other side has answered them.
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
      if (state === "failed") this.#events.onFailed("ICE no longer finds a path to the publisher");
    });
    connection.onData.subscribe((data) => this.#readAlert(data));
    this.#dtls.onStateChange.subscribe((state) => {
      if (state !== "connected" || this.#closing.signal.aborted) return;
      const context = this.#dtls.srtp.remoteContext as {
        updateRolloverCount(sequence: number, state: RolloverState): void;
      };
      context.updateRolloverCount = followRollover;
      this.#readOnlySenderReports();
      this.#isConnected = true;
      this.#noteReceived();
      this.#events.onConnected();
    });
    this.#dtls.onRtp.subscribe((packet) => {
      this.#noteReceived();
      this.#events.onRtp(packet);
    });
    this.#dtls.onRtcp.subscribe((packet) => this.#events.onRtcp(packet));
  }

  /** Looks at a decrypted datagram before werift parses it, which gets the first sender report only. */
  #readOnlySenderReports(): void {
    const { srtcp } = this.#dtls;
    const decrypt = srtcp.decrypt.bind(srtcp);
    srtcp.decrypt = (data) => {
      const datagram = decrypt(data);
      this.#noteReceived();
      return firstSenderReport(datagram);
    };
  }

  #handshake(): void {
    this.#dtls.start().catch((error) => {
      if (this.#closing.signal.aborted) return;
      const reason = error instanceof Error && error.message !== "" ? error.message : "no reason given";
      this.#events.onFailed(`the DTLS handshake failed: ${reason}`);
    });
  }

  /** Ignores a failure of ICE: more candidates may be trickled until the caller's deadline. */
  #start(): void {
    this.#ice.start().catch(() => {});
  }

  #setRemote(usernameFragment: string, password: string, iceLite: boolean): void {
    this.#ice.setRemoteParams(new RTCIceParameters({ usernameFragment, password, iceLite }));
  }

  async #gather(): Promise<void> {
    const { connection } = this.#ice;
    // In a restart the sockets are there already, and what the servers said of them belongs to the old
    // candidates.
    for (const protocol of (connection as unknown as Internals).protocols) this.#askServers(protocol);
    const first = Promise.withResolvers<void>();
    const { unSubscribe } = connection.onIceCandidate.subscribe(() => first.resolve());
    const gathered = this.#ice.gather().then(async () => {
      // Sockets may have been opened while the link was closed.
      if (this.#closing.signal.aborted) await connection.close();
    });
    try {
      await this.#waitFor(Promise.race([first.promise, gathered]), LIMITS.whip.firstCandidateMs);
      if (this.#hasServers) await this.#waitFor(gathered.then(() => this.#answers()), SERVER_CANDIDATES_MS);
    } finally {
      unSubscribe();
    }
    if (this.#ice.localCandidates.length === 0) throw new Error("no local address to receive media on");
    if (!this.#hasServers) await gathered;
  }

  /** Waits for `work`, at most `timeoutMs` or until the link closes. Throws if `work` fails in this time. */
  async #waitFor(work: Promise<unknown>, timeoutMs: number): Promise<void> {
    if (await hasEndedWithin(this.#world, timeoutMs, work, this.#closing.signal)) await work;
  }

  #noteReceived(): void {
    this.lastReceivedMs = this.#world.monotonicMs();
  }

  #guardAll(): void {
    for (const protocol of (this.#ice.connection as unknown as Internals).protocols) {
      const { transport } = protocol;
      if (!transport?.socket || this.#guarded.has(transport)) continue;
      this.#guarded.add(transport);
      this.#askServers(protocol);
      transport.socket.setRecvBufferSize(DATAGRAM_BYTES);
      const deliver = transport.onData;
      transport.onData = (data, address) => {
        if (this.#isAccepted(data, address)) deliver(data, address);
      };
    }
  }

  /**
   * Asks every STUN server which address the socket has for it, and adds each address once as a candidate.
   */
  #askServers(protocol: Protocol): void {
    if (ipv4Number(protocol.localCandidate?.host ?? "") === null) return;
    for (const [host, port] of this.#stunServers) {
      const asked = this.#askServer(protocol, [host, port]).catch(() => {/* the others may answer */});
      this.#asking.add(asked);
      asked.finally(() => this.#asking.delete(asked));
    }
  }

  async #askServer(protocol: Protocol, server: [string, number]): Promise<void> {
    const candidate = await serverReflexiveCandidate(protocol, server);
    if (!candidate || this.#closing.signal.aborted) return;
    const { host, port } = candidate;
    const isKnown = this.#ice.localCandidates.some(({ ip, port: own }) => ip === host && own === port);
    if (!isKnown) (this.#ice.connection as unknown as Internals).appendLocalCandidate(candidate);
  }

  async #answers(): Promise<void> {
    await Promise.all(this.#asking);
  }

  /**
   * Whether a datagram is accepted. STUN begins with a byte below 4 (RFC 7983). werift itself checks the
   * answers to our own requests.
   */
  #isAccepted(data: Buffer, address: readonly [string, number]): boolean {
    if (data.length < 4) return false;
    if (data[0]! > 3) return this.#isKnown(address) && !this.#isRepeated(data);
    const isRequest = (data.readUInt16BE(0) & 0x0110) === 0;
    if (!isRequest) return true;
    const message = parseMessage(data);
    const user = message?.attributesKeys.includes("USERNAME") ? message.getAttributeValue("USERNAME") : "";
    const password = (this.#ice.connection as unknown as Internals).userHistory[String(user).split(":")[0]!];
    if (!password || !parseMessage(data, Buffer.from(password))) return false;
    this.#addAddress(address);
    this.#noteReceived();
    return true;
  }

  #isRepeated(data: Buffer): boolean {
    const { role, dtls } = this.#dtls;
    return dtls !== undefined &&
      isRepeatedFlight(data, role === "client" ? role : "server", dtls.dtls.flight);
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

  #addAddress([host, port]: readonly [string, number]): void {
    const key = `${host} ${port}`;
    if (this.#addresses.has(key)) return;
    if (this.#addresses.size >= ADDRESSES_MAX) this.#addresses.clear();
    this.#addresses.add(key);
  }

  #readAlert(data: Buffer): void {
    if (!this.#isConnected || !mayBeAlert(data)) return;
    this.#events.onCloseNotify(isCloseNotify(this.#dtls.dtls as DtlsSocket, data));
  }
}

/** Host and port of `stun:host:port` or `turn:host:port?transport=…`; undefined without a URL. */
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
