/** What a camera sends: tracks of RTP packets that ffmpeg makes once, and their endless replay with the times
 * of the test.
 */

import { join } from "node:path";
import { TempFolder } from "../media.ts";

/** One track, recorded from time 0 on. */
export interface CameraTrack {
  /** Part of the description for the track, without an address. */
  readonly sdp: readonly string[];
  readonly clockHz: number;
  /** Packets in the order in which they are sent. */
  readonly packets: readonly RtpPacket[];
  /** Ticks from the first packet to the one that follows the last. */
  readonly durationTicks: number;
}

interface RtpPacket {
  readonly bytes: Uint8Array;
  /** Time of the packet from the start of the track, in ticks. */
  readonly ticks: number;
}

const SSRC = 0x5eed_0001;
const PACKET_BYTES = 1_200;

/** The packets that ffmpeg makes of its input and encoder options: one track of `seconds`. */
export function recordTrack(args: readonly string[], { seconds, payloadType = 96 }: {
  readonly seconds: number;
  readonly payloadType?: number;
}): CameraTrack {
  using folder = new TempFolder();
  const sdpPath = join(folder.path, "track.sdp");
  const { success, stdout, stderr } = new Deno.Command("ffmpeg", {
    args: [
      ...["-nostdin", "-v", "error", ...args, "-t", String(seconds), "-f", "rtp", "-rtpflags", "skip_rtcp"],
      ...["-packetsize", String(PACKET_BYTES), "-ssrc", String(SSRC), "-seq", "0"],
      ...["-payload_type", String(payloadType), "-sdp_file", sdpPath, "pipe:1"],
    ],
    stdin: "null",
  }).outputSync();
  if (!success) throw new Error(`ffmpeg made no packets: ${new TextDecoder().decode(stderr)}`);
  const lines = Deno.readTextFileSync(sdpPath).split("\r\n");
  const sdp = lines.slice(lines.findIndex((line) => line.startsWith("m="))).filter((line) =>
    line !== "" && !line.startsWith("a=control:")
  );
  const clockHz = Number(/^a=rtpmap:\d+ [^/]+\/(\d+)/m.exec(sdp.join("\n"))![1]);
  const cut = packetsIn(stdout, payloadType);
  const timeOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset).getUint32(4);
  const firstTicks = timeOf(cut[0]!);
  const packets = cut.map((bytes) => ({ bytes, ticks: (timeOf(bytes) - firstTicks) | 0 }));
  return { sdp, clockHz, packets, durationTicks: Math.round(seconds * clockHz) };
}

/** ffmpeg writes packet after packet without their lengths, but each header is known up to its time. */
function packetsIn(bytes: Uint8Array, payloadType: number): Uint8Array[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const starts: number[] = [];
  for (let at = 0; at + 12 <= bytes.length; at++) {
    const isHeader = bytes[at] === 0x80 && (bytes[at + 1]! & 0x7f) === payloadType &&
      view.getUint16(at + 2) === (starts.length & 0xffff) && view.getUint32(at + 8) === SSRC;
    if (isHeader) starts.push(at);
  }
  return starts.map((start, index) => bytes.slice(start, starts[index + 1] ?? bytes.length));
}

export interface ReplayOptions {
  /** The RTP time of the first packet; 90,000, as ffmpeg takes 0 for none. It wraps at 2^32. */
  readonly startTicks?: number;
  /** Seconds that are left out before each replay but the first one: the clock of the camera jumps. */
  readonly jumpSeconds?: number;
  /** The place in the packets at which the first replay begins; 0. */
  readonly from?: number;
  /** How many times faster than real time; 1. */
  readonly speed?: number;
  /** How many packets are sent before the camera closes the connection; without an end. */
  readonly packetsMax?: number;
}

export interface SentPacket {
  readonly track: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** The packets of all tracks again and again as they become due, those of one moment together. */
export async function* replay(
  tracks: readonly CameraTrack[],
  { startTicks = 90_000, jumpSeconds = 0, from = 0, speed = 1, packetsMax = Infinity }: ReplayOptions,
): AsyncGenerator<SentPacket[]> {
  const sources = tracks.map((track, index) => cursor(track, { index, startTicks, jumpSeconds, from }));
  const startMs = performance.now();
  for (let left = packetsMax; left > 0;) {
    const dueMs = Math.min(...sources.map(({ dueMs }) => dueMs)) / speed;
    const earlyMs = startMs + dueMs - performance.now();
    if (earlyMs > 1) await new Promise((resolve) => setTimeout(resolve, earlyMs));
    const nowMs = (performance.now() - startMs + 1) * speed;
    const due = sources.flatMap((source) => source.take(nowMs)).slice(0, left);
    left -= due.length;
    yield due;
  }
}

function cursor(
  { packets, durationTicks, clockHz }: CameraTrack,
  { index, startTicks, jumpSeconds, from }: Required<Omit<ReplayOptions, "speed" | "packetsMax">> & {
    readonly index: number;
  },
) {
  let at = index === 0 ? from : 0;
  let round = 0;
  let sequence = 0;
  let dueMs = 0;
  const skippedMs = packets[at]!.ticks / clockHz * 1000;
  const ticksNow = () => packets[at]!.ticks + round * durationTicks;
  return {
    get dueMs() {
      return dueMs;
    },
    take(nowMs: number): SentPacket[] {
      const taken: SentPacket[] = [];
      while (dueMs <= nowMs) {
        const bytes = packets[at]!.bytes.slice();
        const view = new DataView(bytes.buffer);
        view.setUint16(2, sequence++ & 0xffff);
        view.setUint32(4, (ticksNow() + startTicks + round * jumpSeconds * clockHz) >>> 0);
        view.setUint32(8, SSRC + index);
        taken.push({ track: index, bytes });
        if (++at === packets.length) {
          at = 0;
          round++;
        }
        // Pictures that are shown later than the next ones are sent before them.
        dueMs = Math.max(dueMs, ticksNow() / clockHz * 1000 - skippedMs);
      }
      return taken;
    },
  };
}
