/** An embedding sidecar for tests: checks that requests follow the protocol, records them and gives scripted
 * answers.
 */

import { joinedBytes } from "../../../src/base/bytes.ts";
import {
  decodeEmbeddingRequest,
  EMBEDDING_HEADER_BYTES,
  type EmbeddingStatus,
  encodeEmbedding,
  encodeEmbeddingFailure,
} from "../../../src/model/sidecars/embedding_protocol.ts";
import { openSidecarDouble, type SidecarDouble, type SidecarScript } from "./sidecar_double.ts";

export interface EmbeddingRequest {
  /** Counted from 0; requests of one number came over one connection. */
  readonly connection: number;
  readonly jpeg: Uint8Array;
}

export type EmbeddingScript = SidecarScript<EmbeddingRequest>;
export type EmbeddingDouble = SidecarDouble<EmbeddingRequest>;

/** Answers every picture with the same embedding, unless `script` says otherwise. */
export function openEmbeddingDouble(script: EmbeddingScript = embedded(axis(0))): EmbeddingDouble {
  return openSidecarDouble(async (read, connection) => {
    const head = await read(EMBEDDING_HEADER_BYTES);
    if (!head) return null;
    const jpeg = await read(decodeEmbeddingRequest(head).jpegBytes);
    if (!jpeg) throw new Error("the request was cut off");
    return { connection, jpeg };
  }, script);
}

/** The unit vector along one of the 768 axes. */
export function axis(index: number): Float32Array {
  return new Float32Array(768).with(index, 1);
}

export function embedded(embedding: Float32Array): EmbeddingScript {
  return () => joinedBytes(...encodeEmbedding(embedding));
}

export function refusedEmbedding(status: Exclude<EmbeddingStatus, "ok">): EmbeddingScript {
  return () => joinedBytes(...encodeEmbeddingFailure(status, "fails on request"));
}

/** A good answer with `change` made to its bytes. */
function garbled(change: (bytes: Uint8Array, view: DataView) => Uint8Array | void): EmbeddingScript {
  return () => {
    const bytes = joinedBytes(...encodeEmbedding(axis(0)));
    return change(bytes, new DataView(bytes.buffer)) ?? bytes;
  };
}

/** Answers that a client must refuse, by their fault. */
export const MALFORMED_EMBEDDINGS: Readonly<Record<string, EmbeddingScript>> = {
  "another magic": garbled((bytes) => void (bytes[3] = 0)),
  "another version": garbled((bytes) => void (bytes[4] = 2)),
  "a status that nobody knows": garbled((bytes) => void (bytes[5] = 5)),
  "other dimensions": garbled((_bytes, view) => view.setUint16(6, 512)),
  "another length": garbled((_bytes, view) => view.setUint32(8, 3_076)),
  "gigabytes of text": garbled((_bytes, view) => {
    view.setUint8(5, 2);
    view.setUint32(8, 0xffffffff);
  }),
  "a number that is none": garbled((_bytes, view) => view.setFloat32(12 + 4 * 767, NaN, true)),
  "an infinite number": garbled((_bytes, view) => view.setFloat32(12, Infinity, true)),
};
