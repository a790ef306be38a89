/** The streams on which a client only sends: its control stream and those of QPACK (RFC 9114 6.2). */

import { ByteSource } from "./wire/byte_source.ts";
import { ConnectionFault } from "./wire/faults.ts";
import { FRAME, type FrameHead, FrameReader, isUnknown, unexpected } from "./wire/frames.ts";
import { checkEncoderBytes, DecoderCheck } from "./qpack/instructions.ts";
import { checkSettings } from "./wire/settings.ts";
import { readVarint, varintLength } from "./wire/varint.ts";

const STREAM = { CONTROL: 0x0, PUSH: 0x1, ENCODER: 0x2, DECODER: 0x3 } as const;
/** Of a frame on the control stream that is read: settings are a few numbers. */
const FRAME_BYTES_MAX = 4096;
/** Streams of types that mean nothing here, of one connection. */
const UNKNOWN_STREAMS_MAX = 64;

export class PeerStreams {
  readonly #seen = new Set<number>();
  #unknown = 0;
  #pushIdMax = -1;
  #goAwayId = Infinity;

  /** Reads one stream to its end. Throws a {@link ConnectionFault}, or what reading throws. */
  async read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const source = new ByteSource(stream);
    try {
      const type = await typeOf(source);
      if (type === null) return; // a stream may end before it says its type
      if (type === STREAM.PUSH) throw new ConnectionFault("H3_STREAM_CREATION_ERROR", "a client pushes");
      if (!isCritical(type)) {
        if (++this.#unknown > UNKNOWN_STREAMS_MAX) {
          throw new ConnectionFault("H3_EXCESSIVE_LOAD", "too many streams of unknown types");
        }
        return;
      }
      if (this.#seen.has(type)) {
        throw new ConnectionFault("H3_STREAM_CREATION_ERROR", `a second stream of type ${type}`);
      }
      this.#seen.add(type);
      await this.#readCritical(type, source);
      throw new ConnectionFault("H3_CLOSED_CRITICAL_STREAM", `the stream of type ${type} has ended`);
    } finally {
      source.stop(new Error("nothing more is read of a stream"));
    }
  }

  async #readCritical(type: number, source: ByteSource): Promise<void> {
    if (type === STREAM.CONTROL) return await this.#readControl(new FrameReader(source));
    const decoder = new DecoderCheck();
    while (await source.reach(1)) {
      const bytes = source.take(source.unread);
      if (type === STREAM.ENCODER) checkEncoderBytes(bytes);
      else decoder.take(bytes);
    }
  }

  async #readControl(frames: FrameReader): Promise<void> {
    let isFirst = true;
    for (let head = await frames.next(); head !== null; head = await frames.next()) {
      if (isFirst && head.type !== FRAME.SETTINGS) {
        throw new ConnectionFault("H3_MISSING_SETTINGS", "the control stream begins without settings");
      }
      if (!isFirst && head.type === FRAME.SETTINGS) throw unexpected(head, "stands twice");
      isFirst = false;
      if (isUnknown(head)) {
        await frames.skip(head);
        continue;
      }
      if (head.length > FRAME_BYTES_MAX) {
        throw new ConnectionFault("H3_EXCESSIVE_LOAD", "a frame on the control stream is too long");
      }
      this.#takeControl(head, await frames.whole(head));
    }
  }

  #takeControl(head: FrameHead, payload: Uint8Array): void {
    switch (head.type) {
      case FRAME.SETTINGS:
        return checkSettings(payload);
      case FRAME.GOAWAY: {
        const id = onlyNumber(payload);
        if (id > this.#goAwayId) throw new ConnectionFault("H3_ID_ERROR", "a GOAWAY takes back another");
        this.#goAwayId = id;
        return;
      }
      case FRAME.MAX_PUSH_ID: {
        const id = onlyNumber(payload);
        if (id < this.#pushIdMax) throw new ConnectionFault("H3_ID_ERROR", "fewer pushes than before");
        this.#pushIdMax = id;
        return;
      }
      case FRAME.CANCEL_PUSH:
        onlyNumber(payload);
        throw new ConnectionFault("H3_ID_ERROR", "nothing was pushed");
      default:
        throw unexpected(head, "stands on the control stream");
    }
  }
}

async function typeOf(source: ByteSource): Promise<number | null> {
  return await source.reach(1) && await source.reach(source.varintBytes) ? source.varint()! : null;
}

function isCritical(type: number): boolean {
  return type === STREAM.CONTROL || type === STREAM.ENCODER || type === STREAM.DECODER;
}

/** The payload of a frame that consists of one number. */
function onlyNumber(payload: Uint8Array): number {
  if (payload.length === 0 || varintLength(payload[0]!) !== payload.length) {
    throw new ConnectionFault("H3_FRAME_ERROR", "a frame is not one number");
  }
  return readVarint(payload);
}
