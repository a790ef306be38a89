/** The binary protocol between the service and the embedding sidecar; both sides use this file. See
 * docs/protocols.md#embedding-sidecar.
 */

import { LIMITS } from "../../contract/limits.ts";

/*
 * Request: 12 bytes, then a JPEG. Response: 12 bytes, then the embedding or a text. Numbers of headers
 * big-endian.
 *
 *   0  V X E M                     0  V X E R
 *   4  version 1                   4  version 1
 *   5  flags 0                     5  status
 *   6  reserved 0, u16             6  dimensions, u16
 *   8  length of the JPEG, u32     8  length of what follows, u32
 *
 * An embedding is 768 little-endian floats of 32 bits.
 */
export const EMBEDDING_HEADER_BYTES = 12;

const REQUEST_MAGIC = 0x5658454d;
const RESPONSE_MAGIC = 0x56584552;
const VERSION = 1;
const FLOAT_BYTES = 4;
const EMBEDDING_BYTES = LIMITS.sidecar.embeddingDimensions * FLOAT_BYTES;
/** The longest error message in bytes. */
const MESSAGE_BYTES_MAX = 4_096;

/** The statuses of a response; the index in the list is the number on the wire. */
export const EMBEDDING_STATUSES = ["ok", "bad_request", "inference_error", "overloaded", "timeout"] as const;
export type EmbeddingStatus = typeof EMBEDDING_STATUSES[number];

/**
 * The error of bytes that break the protocol. The start of the next message is then unknown, so the
 * connection must be closed.
 */
export class EmbeddingProtocolFault extends Error {
  override readonly name = "EmbeddingProtocolFault";
}

/** The header before a JPEG of 1 byte to 10 MiB. */
export function embeddingRequestHeader(jpegBytes: number): Uint8Array {
  const view = header(REQUEST_MAGIC);
  view.setUint32(8, jpegBytes);
  return new Uint8Array(view.buffer);
}

/**
 * Reads the header before a JPEG: the number of its bytes. Throws an {@link EmbeddingProtocolFault} that
 * names the field.
 */
export function decodeEmbeddingRequest(bytes: Uint8Array): { readonly jpegBytes: number } {
  const view = viewOf(bytes);
  expect(view.getUint32(0), REQUEST_MAGIC, "the magic");
  expect(view.getUint8(4), VERSION, "the version");
  expect(view.getUint8(5), 0, "the flags");
  expect(view.getUint16(6), 0, "the reserved bytes");
  const maximum = LIMITS.sidecar.embeddingJpegBytesMax;
  return { jpegBytes: within(view.getUint32(8), 1, maximum, "the length of the JPEG") };
}

/** The whole response with an embedding of 768 finite numbers. */
export function encodeEmbedding(embedding: Float32Array): Uint8Array[] {
  const head = header(RESPONSE_MAGIC);
  head.setUint16(6, embedding.length);
  head.setUint32(8, embedding.length * FLOAT_BYTES);
  const payload = new DataView(new ArrayBuffer(embedding.length * FLOAT_BYTES));
  embedding.forEach((value, at) => payload.setFloat32(at * FLOAT_BYTES, value, true));
  return [new Uint8Array(head.buffer), new Uint8Array(payload.buffer)];
}

/** The whole response of a failure. */
export function encodeEmbeddingFailure(
  status: Exclude<EmbeddingStatus, "ok">,
  message: string,
): Uint8Array[] {
  const payload = new Uint8Array(MESSAGE_BYTES_MAX);
  const { written } = new TextEncoder().encodeInto(message, payload);
  const head = header(RESPONSE_MAGIC);
  head.setUint8(5, EMBEDDING_STATUSES.indexOf(status));
  head.setUint16(6, LIMITS.sidecar.embeddingDimensions);
  head.setUint32(8, written);
  return [new Uint8Array(head.buffer), payload.subarray(0, written)];
}

/** The header of a response. */
export interface EmbeddingResponseHeader {
  readonly status: EmbeddingStatus;
  readonly payloadBytes: number;
}

/**
 * Reads the 12 bytes of a header; the dimensions of a failure are ignored. Throws an {@link
 * EmbeddingProtocolFault}.
 */
export function decodeEmbeddingResponse(bytes: Uint8Array): EmbeddingResponseHeader {
  const view = viewOf(bytes);
  expect(view.getUint32(0), RESPONSE_MAGIC, "the magic");
  expect(view.getUint8(4), VERSION, "the version");
  const status =
    EMBEDDING_STATUSES[within(view.getUint8(5), 0, EMBEDDING_STATUSES.length - 1, "the status")]!;
  const payloadBytes = view.getUint32(8);
  if (status !== "ok") {
    return { status, payloadBytes: within(payloadBytes, 0, MESSAGE_BYTES_MAX, "the length of the text") };
  }
  expect(view.getUint16(6), LIMITS.sidecar.embeddingDimensions, "the number of dimensions");
  expect(payloadBytes, EMBEDDING_BYTES, "the length of the embedding");
  return { status, payloadBytes };
}

/** Reads the 768 numbers after an `ok`. Throws an {@link EmbeddingProtocolFault} when one is not finite. */
export function decodeEmbedding(payload: Uint8Array): Float32Array<ArrayBuffer> {
  expect(payload.length, EMBEDDING_BYTES, "the length of the embedding");
  const view = viewOf(payload);
  const embedding = new Float32Array(LIMITS.sidecar.embeddingDimensions);
  for (let at = 0; at < embedding.length; at++) {
    const value = view.getFloat32(at * FLOAT_BYTES, true);
    if (!Number.isFinite(value)) {
      throw new EmbeddingProtocolFault(
        `Cannot take an embedding whose number ${at} is not finite: got ${value}`,
      );
    }
    embedding[at] = value;
  }
  return embedding;
}

function header(magic: number): DataView<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(EMBEDDING_HEADER_BYTES));
  view.setUint32(0, magic);
  view.setUint8(4, VERSION);
  return view;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function expect(got: number, wanted: number, what: string): void {
  if (got === wanted) return;
  throw new EmbeddingProtocolFault(`Cannot read a message as ${what} must be ${wanted}: got ${got}`);
}

function within(value: number, minimum: number, maximum: number, what: string): number {
  if (value >= minimum && value <= maximum) return value;
  throw new EmbeddingProtocolFault(
    `Cannot read a message as ${what} must lie in [${minimum}, ${maximum}]: got ${value}`,
  );
}
