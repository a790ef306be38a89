/** One track of a camera over UDP: two ports that hear this camera alone, and its packets in their order for
 * ffmpeg.
 */

import { numberPair, rtspTransports } from "../../model/sources/rtsp_head.ts";
import { ReorderWindow } from "../../model/sources/reorder_window.ts";
import type { SourceBudget } from "./source_budget.ts";
import { timer } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { RtspRefused } from "./rtsp_replies.ts";

/** What became of datagrams, as the metric counts them; `lost` are those that never came. */
export type DatagramOutcome = "passed" | "lost" | "late" | "dropped" | "foreign";

export type CountDatagrams = (outcome: DatagramOutcome, datagrams: number) => void;

export interface RtpDatagramsOptions {
  readonly world: World;
  /** The address of this machine by which it reached the camera. */
  readonly localAddress: string;
  /** The checked address of the camera. */
  readonly cameraAddress: string;
  /** The interleaved channels of the track, as ffmpeg names them: `0-1`. */
  readonly channels: string;
  /** Gets each packet as an interleaved frame. False where it was not taken. */
  readonly onFrame: (frame: Uint8Array) => boolean;
  /** Pays for each datagram, whoever sends it. */
  readonly budget: SourceBudget;
  readonly count: CountDatagrams;
}

/**
 * ```
 *   camera ─RTP──▶ even port ─▶ reordered: at most 100 ms, 512 packets ─▶ "$" channel length packet
 *          ─RTCP─▶ odd port  ───────────────────────────────────────────▶ the same
 *          ◀─RTCP─           ◀──── at most one a second ◀──── what ffmpeg reports
 * ```
 *
 * A datagram from another address, or from another port than the one that the camera named, is counted and
 * dropped. See docs/security/sources.md#ffmpeg.
 */
export class RtpDatagrams implements Disposable {
  readonly channels: string;
  /** The transport that the camera is asked for. */
  readonly transport: string;
  readonly #options: RtpDatagramsOptions;
  readonly #sockets: readonly [rtp: Deno.DatagramConn, rtcp: Deno.DatagramConn];
  readonly #window = new ReorderWindow<Uint8Array>({ gapWaitMs: GAP_WAIT_MS, startHoldMs: 0, nack: null });
  readonly #told = { lost: 0, late: 0 };
  /** The ports from which the camera sends; null before it has named them, and where it does not. */
  #cameraPorts: readonly [rtp: number, rtcp: number] | null = null;
  #isAccepted = false;
  #waiting: Disposable | null = null;
  #lastReportMs = -Infinity;
  #isClosed = false;
  readonly #closing = new AbortController();

  /** Opens the ports. Throws where no two ports are free. */
  constructor(options: RtpDatagramsOptions) {
    const { channels, localAddress } = options;
    this.channels = channels;
    this.#options = options;
    this.#sockets = openPair(localAddress);
    const [rtpPort] = this.#sockets.map(({ addr }) => (addr as Deno.NetAddr).port);
    this.transport = `RTP/AVP;unicast;client_port=${rtpPort}-${rtpPort! + 1}`;
    const [rtp, rtcp] = this.#sockets;
    void this.#receive(rtp, 0);
    void this.#receive(rtcp, 1);
  }

  /**
   * Takes the camera's answer to the transport. From now on its packets pass. Throws where it sends in
   * another way.
   */
  accept(transport: string): void {
    const found = rtspTransports(transport).find(({ protocol, parameters }) =>
      /^rtp\/[a-z]+(\/udp)?$/.test(protocol) && !parameters.has("multicast")
    );
    if (found === undefined) {
      throw new RtspRefused("its server sends the media neither inside the connection nor by UDP");
    }
    const stated = found.parameters.get("server_port");
    if (stated !== undefined) this.#cameraPorts = portsOf(stated);
    this.#isAccepted = true;
  }

  /** Lets a firewall on the way see that the media is wanted. */
  knock(): void {
    if (this.#cameraPorts === null) return;
    const ssrc = this.#options.world.randomBytes(4);
    this.#send(0, Uint8Array.of(0x80, 0, 0, 0, 0, 0, 0, 0, ...ssrc));
    this.#send(1, Uint8Array.of(0x80, RECEIVER_REPORT, 0, 1, ...ssrc));
  }

  /**
   * Sends what ffmpeg says of the media to the camera, but not each time: it says so after every fourth
   * packet.
   */
  report(rtcp: Uint8Array): void {
    const nowMs = this.#options.world.monotonicMs();
    if (nowMs - this.#lastReportMs < REPORT_MS) return;
    this.#lastReportMs = nowMs;
    this.#send(1, rtcp);
  }

  [Symbol.dispose](): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#closing.abort(new Error("the track is closed"));
    this.#waiting?.[Symbol.dispose]();
    for (const socket of this.#sockets) socket.close();
  }

  #send(place: 0 | 1, bytes: Uint8Array): void {
    if (this.#isClosed || this.#cameraPorts === null) return;
    const { cameraAddress: hostname } = this.#options;
    this.#sockets[place].send(bytes, { transport: "udp", hostname, port: this.#cameraPorts[place] })
      .catch(() => {/* a datagram may be lost */});
  }

  async #receive(socket: Deno.DatagramConn, place: 0 | 1): Promise<void> {
    const { world, cameraAddress, budget, count } = this.#options;
    const buffer = new Uint8Array(DATAGRAM_BYTES_MAX + 1);
    for (;;) {
      const received = await socket.receive(buffer).catch(() => null);
      if (received === null || this.#isClosed) return;
      const [bytes, { hostname, port }] = received as [Uint8Array, Deno.NetAddr];
      const isCamera = hostname === cameraAddress && this.#isAccepted &&
        (this.#cameraPorts === null || this.#cameraPorts[place] === port);
      if (!isCamera) count("foreign", 1);
      else if (!isRtp(bytes)) count("dropped", 1);
      else if (place === 1 || isRtcp(bytes)) this.#give(interleavedFrame(this.#channel(1), bytes));
      else {
        this.#window.push(
          bytes[2]! * 256 + bytes[3]!,
          interleavedFrame(this.#channel(0), bytes),
          world.monotonicMs(),
        );
        this.#drain();
      }
      // Meanwhile the system drops what has no room.
      budget.spend({ datagrams: 1, bytes: bytes.length });
      await budget.turn(this.#closing.signal)?.catch(() => {/* it is closed */});
    }
  }

  #channel(place: 0 | 1): number {
    return Number(this.channels.split("-")[place] ?? Number(this.channels) + place);
  }

  #drain(): void {
    const { world } = this.#options;
    for (;;) {
      const taken = this.#window.take(world.monotonicMs());
      if (taken === null) break;
      if (taken !== "gap") this.#give(taken);
    }
    this.#tell();
    if (!this.#window.isWaiting || this.#waiting) return;
    this.#waiting = timer(world, GAP_WAIT_MS, () => {
      this.#waiting = null;
      this.#drain();
    });
  }

  #give(frame: Uint8Array): void {
    this.#options.count(this.#options.onFrame(frame) ? "passed" : "dropped", 1);
  }

  #tell(): void {
    const { lost, late, duplicates } = this.#window;
    const { count } = this.#options;
    if (lost > this.#told.lost) count("lost", lost - this.#told.lost);
    if (late + duplicates > this.#told.late) count("late", late + duplicates - this.#told.late);
    this.#told.lost = lost;
    this.#told.late = late + duplicates;
  }
}

/** How long a packet waits for one before it. */
const GAP_WAIT_MS = 100;
const REPORT_MS = 1_000;
const RECEIVER_REPORT = 201;
/** The longest datagram, more than a network carries in one piece. Longer ones are dropped. */
const DATAGRAM_BYTES_MAX = 9_216;
const PAIR_ATTEMPTS_MAX = 100;
/** The lowest port of a camera: none sends media from one below, and other services listen there. */
const CAMERA_PORT_MIN = 1024;

/** Opens two ports, as RFC 3550 asks: RTP on an even one, its RTCP on the next one. */
function openPair(hostname: string): [Deno.DatagramConn, Deno.DatagramConn] {
  for (let attempt = 0; attempt < PAIR_ATTEMPTS_MAX; attempt++) {
    const rtp = Deno.listenDatagram({ transport: "udp", hostname, port: 0 });
    const { port } = rtp.addr as Deno.NetAddr;
    try {
      if (port % 2 === 0) {
        return [rtp, Deno.listenDatagram({ transport: "udp", hostname, port: port + 1 })];
      }
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) {
        rtp.close();
        throw error;
      }
    }
    rtp.close();
  }
  throw new Error("no two UDP ports that follow each other are free");
}

function portsOf(text: string): readonly [number, number] {
  const ports = numberPair(text, 65_535);
  if (ports === null || ports.some((port) => port < CAMERA_PORT_MIN)) {
    throw new RtspRefused("its server sends media from a UDP port that is not from 1024 to 65535");
  }
  return ports;
}

/** Whether a datagram is RTP: version 2, with a whole header. RTP has 12 bytes, RTCP at least 8. */
function isRtp(bytes: Uint8Array): boolean {
  return bytes[0]! >> 6 === 2 && bytes.length >= (isRtcp(bytes) ? 8 : 12) &&
    bytes.length <= DATAGRAM_BYTES_MAX;
}

/** Whether a datagram is RTCP, by its type (RFC 5761, section 4). */
function isRtcp(bytes: Uint8Array): boolean {
  return bytes[1]! >= 192 && bytes[1]! <= 223;
}

function interleavedFrame(channel: number, bytes: Uint8Array): Uint8Array {
  const frame = new Uint8Array(4 + bytes.length);
  frame.set([0x24, channel, bytes.length >> 8, bytes.length & 0xff]);
  frame.set(bytes, 4);
  return frame;
}
