import assert from "node:assert/strict";
import { joinedBytes } from "../../../src/base/bytes.ts";
import {
  decodeEmbedding,
  decodeEmbeddingRequest,
  decodeEmbeddingResponse,
  EMBEDDING_STATUSES,
  EmbeddingProtocolFault,
  embeddingRequestHeader,
  encodeEmbedding,
  encodeEmbeddingFailure,
} from "../../../src/model/sidecars/embedding_protocol.ts";

const EMBEDDING = Float32Array.from({ length: 768 }, (_, index) => (index - 300) / 7);

/** A copy of `bytes` with some of them replaced. */
function changed(bytes: Uint8Array, at: number, ...values: number[]): Uint8Array {
  const copy = bytes.slice();
  copy.set(values, at);
  return copy;
}

Deno.test("a request is twelve bytes, the length big-endian", () => {
  const header = embeddingRequestHeader(0x010203);
  assert.equal(header.toHex(), "5658454d" + "01" + "00" + "0000" + "00010203");
  assert.deepEqual(decodeEmbeddingRequest(header), { jpegBytes: 0x010203 });
  // A header may be anywhere in a larger buffer.
  const inside = joinedBytes(new Uint8Array(5), header).subarray(5);
  assert.deepEqual(decodeEmbeddingRequest(inside), { jpegBytes: 0x010203 });
});

Deno.test("a request that breaks the protocol is refused by the field", () => {
  const valid = embeddingRequestHeader(10);
  const check = (header: Uint8Array, message: RegExp) =>
    assert.throws(() => decodeEmbeddingRequest(header), (error: Error) => {
      assert.match(error.message, message);
      return error instanceof EmbeddingProtocolFault;
    });
  check(changed(valid, 0, 0x57), /the magic must be/);
  check(changed(valid, 4, 2), /the version must be 1: got 2/);
  check(changed(valid, 5, 1), /the flags must be 0/);
  check(changed(valid, 7, 1), /the reserved bytes must be 0/);
  check(changed(valid, 8, 0, 0, 0, 0), /the length of the JPEG must lie in \[1, 10485760\]: got 0/);
  check(embeddingRequestHeader(10 * 2 ** 20 + 1), /got 10485761/);
  assert.deepEqual(decodeEmbeddingRequest(embeddingRequestHeader(10 * 2 ** 20)).jpegBytes, 10 * 2 ** 20);
});

Deno.test("an embedding is 768 little-endian floats behind a big-endian header", () => {
  const [header, payload] = encodeEmbedding(EMBEDDING);
  assert.equal(header!.toHex(), "56584552" + "01" + "00" + "0300" + "00000c00");
  assert.equal(payload!.length, 3_072);
  assert.equal(encodeEmbedding(new Float32Array(768).fill(1))[1]!.subarray(0, 4).toHex(), "0000803f");
  assert.deepEqual(decodeEmbeddingResponse(header!), { status: "ok", payloadBytes: 3_072 });
  assert.deepEqual(decodeEmbedding(payload!), EMBEDDING);
});

Deno.test("a failure has one of four statuses and a text of bounded length", () => {
  for (const [number, status] of EMBEDDING_STATUSES.entries()) {
    if (status === "ok") continue;
    const [header, text] = encodeEmbeddingFailure(status, "why not");
    assert.equal(header![5], number);
    assert.deepEqual(decodeEmbeddingResponse(header!), { status, payloadBytes: 7 });
    assert.equal(new TextDecoder().decode(text), "why not");
  }
  const [header, text] = encodeEmbeddingFailure("overloaded", "é".repeat(10_000));
  assert.equal(text!.length, 4_096);
  assert.equal(decodeEmbeddingResponse(header!).payloadBytes, 4_096);
  // The dimensions of a failure have no meaning.
  assert.equal(decodeEmbeddingResponse(changed(header!, 6, 9, 9)).status, "overloaded");
});

Deno.test("a response that breaks the protocol is refused by the field", () => {
  const [valid, payload] = encodeEmbedding(EMBEDDING);
  const check = (header: Uint8Array, message: RegExp) =>
    assert.throws(() => decodeEmbeddingResponse(header), (error: Error) => {
      assert.match(error.message, message);
      return error instanceof EmbeddingProtocolFault;
    });
  check(changed(valid!, 3, 0x4d), /the magic/);
  check(changed(valid!, 4, 0), /the version/);
  check(changed(valid!, 5, 5), /the status must lie in \[0, 4\]: got 5/);
  check(changed(valid!, 6, 2, 255), /the number of dimensions must be 768: got 767/);
  check(changed(valid!, 10, 11), /the length of the embedding must be 3072/);
  check(changed(valid!, 5, 3, 3, 0, 0, 0, 16, 1), /the length of the text must lie in \[0, 4096\]: got 4097/);
  const withNumber = (value: number) => encodeEmbedding(EMBEDDING.with(5, value))[1]!;
  for (const value of [NaN, Infinity, -Infinity]) {
    assert.throws(() => decodeEmbedding(withNumber(value)), /number 5 is not finite/);
  }
  assert.throws(() => decodeEmbedding(payload!.subarray(4)), EmbeddingProtocolFault);
});
