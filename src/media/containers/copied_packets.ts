/** The encoded packets of a pulled live source as they came: ffmpeg copies them into a socket beside its
 * decode.
 */

import { joinedBytes } from "../../base/bytes.ts";
import { pause } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { Extent } from "../../model/frames/coordinates.ts";
import { LIMITS } from "../../contract/limits.ts";
import { COPY_OFFSET_MS } from "./clock.ts";
import { NutError, NutReader, type NutStream } from "./nut.ts";

/** One encoded unit of video or sound, as it came. */
export interface CopiedUnit {
  readonly isVideo: boolean;
  /** Whether decoding can start here; always true for sound. */
  readonly isKeyframe: boolean;
  readonly data: Uint8Array<ArrayBuffer>;
  /** When the unit is shown or heard, milliseconds with their fraction. */
  readonly ptsMs: number;
  /** Size of the picture, of a keyframe whose size is known; else null. */
  readonly size: Extent | null;
}

export interface PacketSink {
  /** Called when the headers are read, before the first unit. */
  readonly onStreams: (streams: { readonly video: NutStream; readonly sound: NutStream | null }) => void;
  /**
   * Called with each packet in the order in which it came; times are those of the decoded frames. Must
   * neither wait nor throw.
   */
  readonly onUnit: (unit: CopiedUnit) => void;
  /**
   * Called where units are left out: those up to the next key frame, or one of sound alone. Where the bytes
   * are no longer understood, nothing follows.
   */
  readonly onLost: (reason: string) => void;
  /** Whether somebody waits for the next unit, as for the live view. */
  readonly isUrgent: () => boolean;
}

const READ_BYTES = 64 << 10;
/**
 * Pause between two reads, milliseconds. A source sends some seventy packets a second, and to be woken for
 * each would cost more than it brings.
 */
const REST_MS = 50;
/** Pause between two reads where nobody waits for the packets, milliseconds. */
const LONG_REST_MS = 250;
/**
 * Bytes that may come in a pause; the socket holds twice as much before ffmpeg, and with it the decode, has
 * to wait.
 */
const REST_BYTES = 48 << 10;
/** At the start a pause is the time for which it has read so far, divided by this. */
const START_SHARE = 8;
const UNIT_BYTES_MAX = LIMITS.live.videoUnitBytesMax;
/** Longest element that is no packet, such as a header; the header of a packet is short. */
const ELEMENT_BYTES_MAX = UNIT_BYTES_MAX + 4096;

/**
 * Reads to the end, even where the bytes are no longer understood. It rests between reads, for less long
 * where much comes.
 */
export async function readPackets(
  connection: Deno.UnixConn,
  sink: PacketSink,
  { world, signal }: { readonly world: World; readonly signal: AbortSignal },
): Promise<void> {
  using _connection = connection;
  const packets = new PacketReader(sink);
  const buffer = new Uint8Array(READ_BYTES);
  const startMs = world.monotonicMs();
  let sinceMs = startMs;
  let came = 0;
  for (;;) {
    const count = await connection.read(buffer).catch(() => null);
    if (count === null) return;
    packets.push(buffer.subarray(0, count));
    came += count;
    if (count === READ_BYTES) continue;
    const nowMs = world.monotonicMs();
    // What comes first says nothing of what follows, and the first picture is waited for.
    const fittingMs = Math.min((nowMs - sinceMs) * REST_BYTES / came, (nowMs - startMs) / START_SHARE);
    sinceMs = nowMs;
    came = 0;
    await pause(world, Math.min(sink.isUrgent() ? REST_MS : LONG_REST_MS, fittingMs), signal);
  }
}

/**
 * Finds the packets in the bytes of a NUT stream, which come in pieces. A packet that is too long is never
 * held.
 */
class PacketReader {
  readonly #sink: PacketSink;
  readonly #reader = new NutReader({ streamsMax: 2, frameBytesMax: UNIT_BYTES_MAX });
  #bytes = new Uint8Array(4 * READ_BYTES);
  /**
   * The unread bytes are `[at, end)`. `at` may be greater than `end`, while a skipped element is not
   * complete.
   */
  #at = 0;
  #end = 0;
  #isAnnounced = false;
  /**
   * Whether packets are left out until the next key frame: a picture is missing, and those that follow are
   * made of it.
   */
  #waitsForKeyframe = false;
  #isBroken = false;

  constructor(sink: PacketSink) {
    this.#sink = sink;
  }

  push(piece: Uint8Array): void {
    if (this.#isBroken) return;
    try {
      this.#append(piece);
      this.#readAll();
    } catch (error) {
      if (!(error instanceof NutError)) throw error;
      this.#isBroken = true;
      this.#sink.onLost(`its packets are not understood: ${error.message}`);
    }
  }

  #append(piece: Uint8Array): void {
    const unread = Math.max(0, this.#end - this.#at);
    if (this.#end + piece.length > this.#bytes.length) {
      const wanted = unread + piece.length;
      if (wanted > ELEMENT_BYTES_MAX + 2 * READ_BYTES) throw new NutError("a header that is too long");
      const bytes = wanted > this.#bytes.length ? new Uint8Array(2 * wanted) : this.#bytes;
      bytes.set(this.#bytes.subarray(this.#end - unread, this.#end));
      this.#at = Math.max(0, this.#at - this.#end);
      this.#end = unread;
      this.#bytes = bytes;
    }
    this.#bytes.set(piece, this.#end);
    this.#end += piece.length;
  }

  #readAll(): void {
    const reader = this.#reader;
    for (;;) {
      const next = reader.read(this.#bytes, this.#at, this.#end);
      if (next === -1) return;
      this.#at = next;
      if (reader.hasFrame) this.#give(reader);
      else if (reader.isTooLong) this.#leaveOut(reader);
    }
  }

  #leaveOut({ streams, frameStream, frameBytes }: NutReader): void {
    const { isVideo } = streams[frameStream]!;
    this.#waitsForKeyframe ||= isVideo;
    const what = isVideo ? "a picture" : "a packet of sound";
    this.#sink.onLost(`${what} has ${frameBytes} bytes, and at most ${UNIT_BYTES_MAX} are kept`);
  }

  #give({ streams, frameStream, frameOffset, frameBytes, frameHead, framePts, isKeyframe }: NutReader): void {
    const stream = streams[frameStream]!;
    if (stream.isVideo && isKeyframe) this.#waitsForKeyframe = false;
    if (stream.isVideo && this.#waitsForKeyframe) return;
    if (!this.#isAnnounced) {
      const video = streams.find(({ isVideo }) => isVideo);
      if (!video) throw new NutError("no video stream");
      this.#sink.onStreams({ video, sound: streams.find(({ isVideo }) => !isVideo) ?? null });
      this.#isAnnounced = true;
    }
    const bytes = this.#bytes.subarray(frameOffset, frameOffset + frameBytes);
    const data = frameHead.length === 0 ? bytes.slice() : joinedBytes(frameHead, bytes);
    const { isVideo, width, height, numerator, denominator } = stream;
    this.#sink.onUnit({
      isVideo,
      isKeyframe: isKeyframe || !isVideo,
      data,
      ptsMs: framePts * numerator * 1000 / denominator - COPY_OFFSET_MS,
      size: isVideo && isKeyframe ? { width, height } : null,
    });
  }
}
