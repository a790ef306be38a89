/** Streams of QUIC without a connection, of bytes that a test gives and keeps. */

import { Deadlines } from "../../../src/base/wait.ts";
import { realWorld } from "../../../src/base/world.ts";
import { quietLog } from "../../../src/base/log.ts";
import { PieceMemory } from "../../../src/http3/wire/byte_source.ts";
import { Http3Exchange, type Http3ExchangeOptions, type Respond } from "../../../src/http3/exchange.ts";
import type { ConnectionFault } from "../../../src/http3/wire/faults.ts";
import { FRAME, frame } from "../../../src/http3/wire/frames.ts";
import { FieldEncoder } from "../../../src/http3/qpack/field_encoder.ts";

/** The pieces one after another, and then the end. */
export function bytesStream(...pieces: readonly Uint8Array[]): ReadableStream<Uint8Array<ArrayBuffer>> {
  const left = pieces.filter((piece) => piece.length > 0).map((piece) => new Uint8Array(piece));
  return new ReadableStream({
    type: "bytes",
    pull(controller) {
      const piece = left.shift();
      if (piece !== undefined) return controller.enqueue(piece);
      controller.close();
      controller.byobRequest?.respond(0);
    },
  });
}

/** What an exchange did with the bytes of a request. */
export interface Outcome {
  readonly written: Uint8Array;
  readonly faults: readonly ConnectionFault[];
}

/** Lets an exchange answer the bytes of one request. */
export async function exchanged(
  pieces: readonly Uint8Array[],
  respond: Respond,
  memory = new PieceMemory(),
): Promise<Outcome> {
  const faults: ConnectionFault[] = [];
  const written: Uint8Array[] = [];
  const stream = {
    readable: bytesStream(...pieces),
    writable: new WritableStream<Uint8Array>({ write: (piece) => void written.push(new Uint8Array(piece)) }),
  };
  using deadlines = new Deadlines(realWorld(quietLog()), 60_000);
  await exchangeOn(stream, { respond, deadlines, memory, fail: (fault) => void faults.push(fault) }).run();
  return { written: new Uint8Array(written.flatMap((piece) => [...piece])), faults };
}

/** An exchange on the two sides of a stream, with the same deadlines for the head and the rest. */
export function exchangeOn(
  stream: { readonly readable: ReadableStream<Uint8Array>; readonly writable: WritableStream<Uint8Array> },
  { deadlines, ...options }:
    & { readonly deadlines: Deadlines }
    & Pick<Http3ExchangeOptions, "respond" | "memory" | "fail">,
): Http3Exchange {
  return new Http3Exchange(stream as unknown as Deno.QuicBidirectionalStream, {
    ...options,
    headDeadlines: deadlines,
    restDeadlines: deadlines,
    onCut() {},
  });
}

/** The HEADERS frame of these fields. */
export function headersFrame(fields: readonly (readonly [string, string])[]): Uint8Array<ArrayBuffer> {
  const encoder = new FieldEncoder();
  for (const [name, value] of fields) encoder.add(name, value);
  return frame(FRAME.HEADERS, encoder.block());
}

/** The fields of a plain request, with others in their place or behind them. */
export function requestFields(
  method = "GET",
  path = "/",
  more: readonly (readonly [string, string])[] = [],
): (readonly [string, string])[] {
  return [[":method", method], [":scheme", "https"], [":authority", "localhost"], [":path", path], ...more];
}
