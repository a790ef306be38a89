/** The bytes of HTTP/3: the examples of the RFCs, every malformed form, and random bytes with a seed. */

import assert from "node:assert/strict";
import { ByteSource } from "../../src/http3/wire/byte_source.ts";
import { ConnectionFault, RequestFault } from "../../src/http3/wire/faults.ts";
import { FRAME, frame, FrameReader } from "../../src/http3/wire/frames.ts";
import { PeerStreams } from "../../src/http3/peer_streams.ts";
import { decodeFields, type Field } from "../../src/http3/qpack/field_decoder.ts";
import { FieldEncoder } from "../../src/http3/qpack/field_encoder.ts";
import { decodeHuffman } from "../../src/http3/qpack/huffman.ts";
import { STATIC_TABLE } from "../../src/http3/qpack/static_table.ts";
import { requestHead } from "../../src/http3/request_head.ts";
import { checkSettings, ownSettings } from "../../src/http3/wire/settings.ts";
import { readVarint, varint } from "../../src/http3/wire/varint.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { bytesStream, exchanged, headersFrame, requestFields } from "../support/http3/streams.ts";
import { seededRandom } from "../support/seeded_random.ts";

const hex = (text: string) => Uint8Array.fromHex(text.replaceAll(" ", ""));

/**
 * What `work` throws: the code of a fault of the connection, the status of one of the request, "" for
 * nothing.
 */
async function faultOf(work: () => unknown): Promise<string> {
  try {
    await work();
    return "";
  } catch (error) {
    if (error instanceof ConnectionFault) return error.code;
    if (error instanceof RequestFault) return String(error.status);
    throw error;
  }
}

Deno.test("integers have the forms of RFC 9000 A.1, and every length goes there and back", () => {
  for (
    const [bytes, value] of [["25", 37], ["4025", 37], ["7bbd", 15293], ["9d7f3e7d", 494878333]] as const
  ) {
    assert.equal(readVarint(hex(bytes)), value);
  }
  for (const bits of [0, 5, 6, 13, 14, 29, 30, 31, 52]) {
    for (const value of [2 ** bits - 1, 2 ** bits]) {
      assert.equal(readVarint(new Uint8Array(varint(value))), value);
    }
  }
  assert.equal(readVarint(hex("ffffffffffffffff")), 2 ** 62);
});

Deno.test("texts in the Huffman code are those of RFC 7541 C.4 and C.6, and wrong ones are faults", async () => {
  for (
    const [bytes, text] of [
      ["f1e3c2e5f23a6ba0ab90f4ff", "www.example.com"],
      ["a8eb10649cbf", "no-cache"],
      ["25a849e95ba97d7f", "custom-key"],
      ["25a849e95bb8e8b4bf", "custom-value"],
      ["6402", "302"],
      ["aec3771a4b", "private"],
      ["d07abe941054d444a8200595040b8166e082a62d1bff", "Mon, 21 Oct 2013 20:13:21 GMT"],
      ["9d29ad171863c78f0b97c8e9ae82ae43d3", "https://www.example.com"],
      ["", ""],
    ] as const
  ) assert.equal(decodeHuffman(hex(bytes)), text);
  // Padding with a zero, of eight bits, and the code that ends a text.
  for (const bytes of ["640200", "a8eb10649cbfff", "ffffffff", "3fffffff"]) {
    assert.equal(await faultOf(() => decodeHuffman(hex(bytes))), "QPACK_DECOMPRESSION_FAILED", bytes);
  }
});

Deno.test("fields are decoded in every form that needs no dynamic table, and the others are faults", async () => {
  const check = (bytes: string, ...fields: Field[]) =>
    assert.deepEqual(decodeFields(hex(bytes), 4096).map(([...field]) => field), fields);
  check("0000 510b 2f696e6465782e68746d6c", [":path", "/index.html"]); // RFC 9204 B.1
  check("0000 d1 c1", [":method", "GET"], [":path", "/"]);
  check("0000 ff23", ["x-frame-options", "sameorigin"]);
  check("0000 23 616263 03 787978", ["abc", "xyx"]);
  check("0000 2e a8eb10649cbf 00", ["no-cache", ""]);
  check("0000");
  for (
    const bytes of [
      ...["", "00", "0100", "0080", "ff"], // the prefix ends, or has an insert count, or a negative base
      ...["0000 80", "0000 40 00", "0000 10", "0000 00 00"], // of the dynamic table
      ...["0000 ff24", "0000 5f ffffffff7f 00"], // not in the static table
      // too short, too long
      ...["0000 51", "0000 510b 2f", "0000 51 7fffffffff7f", "0000 51 ff80808080808080808001"],
    ]
  ) assert.equal(await faultOf(() => decodeFields(hex(bytes), 4096)), "QPACK_DECOMPRESSION_FAILED", bytes);
  const encoder = new FieldEncoder();
  encoder.add("a", "b".repeat(100));
  const long = encoder.block();
  assert.equal(await faultOf(() => decodeFields(long, 133)), "");
  assert.equal(await faultOf(() => decodeFields(long, 132)), "431");
});

Deno.test("every field of the static table, and any other, goes there and back", () => {
  const random = seededRandom(3);
  const text = (characters: string, length: number) =>
    Array.from({ length }, () => characters[Math.floor(random() * characters.length)]).join("");
  const others = Array.from({ length: 200 }, (_, at) =>
    [
      text("abcxyz-", 1 + Math.floor(random() * 40)),
      text("AZaz09 \xe9;=", at % 9 === 0 ? 9000 : at),
    ] as const);
  for (const field of [...STATIC_TABLE, ...others]) {
    const encoder = new FieldEncoder();
    encoder.add(...field);
    assert.deepEqual(decodeFields(encoder.block(), 2 ** 20), [[...field]]);
  }
});

Deno.test("a request has the URL and headers that its fields say, and a malformed one is a fault with a status", async () => {
  const { method, url, headers, contentLength } = requestHead([
    ...requestFields("POST", "/v1/runs?x=1"),
    ["cookie", "a=1"],
    ["content-length", "7"],
    ["cookie", "b=2"],
  ]);
  assert.deepEqual([method, url, contentLength], ["POST", "https://localhost/v1/runs?x=1", 7]);
  assert.deepEqual(headers, [["content-length", "7"], ["cookie", "a=1; b=2"], ["host", "localhost"]]);
  const without = (name: string) => requestFields().filter(([other]) => other !== name);
  const check = async (status: string, fields: (readonly [string, string])[]) =>
    assert.equal(await faultOf(() => requestHead(fields)), status, JSON.stringify(fields));
  await check("", [...without(":authority"), ["host", "localhost:1"]]);
  await check("", [...requestFields(), ["host", "localhost"], ["te", "trailers"]]);
  for (const name of [":method", ":scheme", ":path", ":authority"]) await check("400", without(name));
  for (
    const more of [
      [":path", "/"],
      [":status", "200"],
      [":protocol", "websocket"],
      ["host", "elsewhere"],
      ["Accept", "*/*"],
      ["a b", "c"],
      ["", "c"],
      ["connection", "close"],
      ["transfer-encoding", "chunked"],
      ["upgrade", "websocket"],
      ["te", "gzip"],
      ["a", "b\r\nc: d"],
      ["a", "\0"],
      ["a", " b"],
      ["content-length", "-1"],
      ["content-length", "1e3"],
    ] as const
  ) await check("400", requestFields("GET", "/", [more]));
  await check("400", [["accept", "*/*"], ...requestFields()]);
  await check("400", requestFields("GET", "/", [["content-length", "1"], ["content-length", "2"]]));
  await check("400", requestFields("GET", "/", [["host", "localhost"], ["host", "localhost"]]));
  for (const path of ["", "v1", "*", "http://other/", "/v1/ru\tns", "/a b", "/v1/health#x"]) {
    await check("400", requestFields("GET", path));
  }
  await check("400", [...without(":scheme"), [":scheme", "http"]]);
  for (const authority of ["user@host", "a/b", "", "local\thost", "a b"]) {
    await check("400", [...without(":authority"), [":authority", authority]]);
  }
  await check("400", requestFields("G T"));
  for (const name of ["CONNECT", "TRACE", "Trace"]) await check("501", requestFields(name));
  for (const name of ["get", "Post", "delete"]) await check("405", requestFields(name));
  await check("", requestFields("patch"));
});

Deno.test("settings are read with any unknown ones, and wrong ones are faults", async () => {
  assert.deepEqual(ownSettings(), hex("04 09 0100 0700 06 80008000"));
  const check = async (fault: string, bytes: string) =>
    assert.equal(await faultOf(() => checkSettings(hex(bytes))), fault, bytes);
  await check("", "");
  await check("", "0100 0732 06c000000000010000 4199 4000");
  for (const identifier of ["00", "02", "03", "04", "05"]) {
    await check("H3_SETTINGS_ERROR", `${identifier}01`);
  }
  await check("H3_SETTINGS_ERROR", "0100 0101");
  for (const bytes of ["01", "0140", "41"]) await check("H3_FRAME_ERROR", bytes);
});

/** What a peer's own stream comes to. */
async function peerFault(...streams: Uint8Array[]): Promise<string> {
  const peer = new PeerStreams();
  let fault = "";
  for (const bytes of streams) {
    // A stream that is left open does not end with a fault, one that ends does: the control stream must not.
    fault = await faultOf(() => peer.read(bytesStream(bytes)));
    if (fault !== "H3_CLOSED_CRITICAL_STREAM") break;
  }
  return fault;
}

Deno.test("a client's control and QPACK streams are held to their rules", async () => {
  const control = (...frames: Uint8Array[]) => new Uint8Array([0, ...frames.flatMap((bytes) => [...bytes])]);
  const settings = frame(FRAME.SETTINGS, new Uint8Array());
  const only = (type: number, ...payload: number[]) => frame(type, new Uint8Array(payload));
  const check = async (fault: string, ...streams: Uint8Array[]) =>
    assert.equal(await peerFault(...streams), fault);
  // All of these end, which the control stream must not; before that nothing was wrong.
  const ended = "H3_CLOSED_CRITICAL_STREAM";
  await check(ended, control(settings, only(0x21, 1, 2), only(FRAME.GOAWAY, 9), only(FRAME.GOAWAY, 8)));
  await check(ended, control(settings, only(FRAME.MAX_PUSH_ID, 1), only(FRAME.MAX_PUSH_ID, 1)));
  await check(ended, hex("02 20 20"));
  await check(ended, hex("03 41 7f ff 01"));
  await check("H3_MISSING_SETTINGS", control(only(FRAME.GOAWAY, 0)));
  await check("H3_MISSING_SETTINGS", control(only(0x21)));
  await check("H3_FRAME_UNEXPECTED", control(settings, settings));
  for (const type of [FRAME.DATA, FRAME.HEADERS, FRAME.PUSH_PROMISE, 0x2, 0x6, 0x8, 0x9]) {
    await check("H3_FRAME_UNEXPECTED", control(settings, only(type)));
  }
  await check("H3_ID_ERROR", control(settings, only(FRAME.GOAWAY, 4), only(FRAME.GOAWAY, 8)));
  await check("H3_ID_ERROR", control(settings, only(FRAME.MAX_PUSH_ID, 4), only(FRAME.MAX_PUSH_ID, 3)));
  await check("H3_ID_ERROR", control(settings, only(FRAME.CANCEL_PUSH, 0)));
  await check("H3_FRAME_ERROR", control(settings, only(FRAME.GOAWAY)));
  await check("H3_FRAME_ERROR", control(settings, only(FRAME.GOAWAY, 1, 2)));
  await check("H3_FRAME_ERROR", control(settings).subarray(0, 2));
  await check("H3_EXCESSIVE_LOAD", control(settings, frame(FRAME.GOAWAY, new Uint8Array(5000))));
  await check("H3_STREAM_CREATION_ERROR", hex("01 00"));
  for (const type of ["00 0400", "02", "03"]) await check("H3_STREAM_CREATION_ERROR", hex(type), hex(type));
  for (const bytes of ["02 3f00", "02 21", "02 c0", "02 4161", "02 00"]) {
    await check("QPACK_ENCODER_STREAM_ERROR", hex(bytes));
  }
  for (const bytes of ["03 80", "03 01", "03 41 00"]) await check("QPACK_DECODER_STREAM_ERROR", hex(bytes));
  await check("", hex("21 ffff")); // a type that means nothing
  await check("", hex("40"));
  const peer = new PeerStreams();
  for (let count = 0; count < 64; count++) await peer.read(bytesStream(hex("21")));
  assert.equal(await faultOf(() => peer.read(bytesStream(hex("21")))), "H3_EXCESSIVE_LOAD");
});

/** Status and body of an answer. */
async function answerIn(written: Uint8Array): Promise<{ status: string; body: string }> {
  let status = "";
  let body = "";
  const frames = new FrameReader(new ByteSource(bytesStream(written)));
  for (let head = await frames.next(); head !== null; head = await frames.next()) {
    const payload = await frames.whole(head);
    if (head.type === FRAME.HEADERS) status = decodeFields(payload, 65536)[0]![1];
    else if (head.type === FRAME.DATA) body += new TextDecoder().decode(payload);
  }
  return { status, body };
}

const data = (text: string) => frame(FRAME.DATA, new TextEncoder().encode(text));
const together = (...parts: Uint8Array[]) => new Uint8Array(parts.flatMap((part) => [...part]));
const echo = async (request: Request) => new Response(`${request.method} ${await request.text()}`);

Deno.test("a body comes in any frames, with unknown ones and trailers, and is as long as declared", async () => {
  const post = (more: [string, string][] = []) => headersFrame(requestFields("POST", "/", more));
  const unknown = frame(0x2f, new Uint8Array(100));
  const check = async (pieces: Uint8Array[], body: string, faults: string[] = []) => {
    const outcome = await exchanged(
      pieces,
      (request) => echo(request).catch(() => new Response("cut", { status: 400 })),
    );
    assert.deepEqual(outcome.faults.slice(0, 1).map(({ code }) => code), faults);
    if (faults.length === 0) assert.equal((await answerIn(outcome.written)).body, body);
  };
  const trailers = headersFrame([["x-checksum", "1"]]);
  await check(
    [unknown, post(), unknown, data("ab"), unknown, data(""), data("c"), trailers, unknown],
    "POST abc",
  );
  await check(
    [...together(post([["content-length", "3"]]), data("abc"))].map((byte) => new Uint8Array([byte])),
    "POST abc",
  );
  await check([post([["content-length", "3"]]), data("ab")], "cut");
  await check([post([["content-length", "3"]]), data("abcd")], "cut");
  await check([post(), headersFrame([[":path", "/"]])], "cut");
  await check([post([["content-length", "0"]]), data("x")], "POST ");
  await check([data("x"), post()], "", ["H3_FRAME_UNEXPECTED"]);
  await check([post(), data("x").subarray(0, 2)], "", ["H3_FRAME_ERROR"]);
  await check([post().subarray(0, 9)], "", ["H3_FRAME_ERROR"]);
  await check([post(), trailers, data("x")], "", ["H3_FRAME_UNEXPECTED"]);
  await check([post(), trailers, trailers], "", ["H3_FRAME_UNEXPECTED"]);
  for (const type of [FRAME.SETTINGS, FRAME.GOAWAY, FRAME.PUSH_PROMISE, FRAME.MAX_PUSH_ID, 0x2, 0x6]) {
    await check([post(), frame(type, new Uint8Array())], "", ["H3_FRAME_UNEXPECTED"]);
    await check([frame(type, new Uint8Array())], "", ["H3_FRAME_UNEXPECTED"]);
  }
});

Deno.test("a faulty request is answered, and one with no request on it is not", async () => {
  const check = async (status: string, ...pieces: Uint8Array[]) => {
    const { written, faults } = await exchanged(pieces, echo);
    assert.deepEqual(faults, []);
    assert.equal((await answerIn(written)).status, status);
  };
  await check("200", headersFrame(requestFields()));
  await check("400", headersFrame(requestFields("GET", "nowhere")));
  await check("400", headersFrame([...requestFields().slice(0, 2), [":authority", "a:b:c"], [":path", "/"]]));
  await check("501", headersFrame(requestFields("CONNECT")));
  await check(
    "431",
    headersFrame(requestFields("GET", "/", [["a", "b".repeat(LIMITS.http3.fieldSectionBytes)]])),
  );
  await check("");
  await check("", frame(0x21, new Uint8Array(9)));
});

Deno.test("an answer whose whole text is at hand is the one that its stream would be", async () => {
  for (const text of ["", "{}", "ä", "long ".repeat(100), "longer ".repeat(5000)]) {
    for (const method of ["GET", "HEAD"]) {
      const answer = () => new Response(text, { status: 203, headers: { "content-type": "text/plain" } });
      const request = headersFrame(requestFields(method));
      const streamed = await exchanged([request], answer);
      const whole = await exchanged([request], () => Object.assign(answer(), { wholeBody: text }));
      assert.deepEqual(await answerIn(whole.written), await answerIn(streamed.written));
      assert.deepEqual(await answerIn(whole.written), { status: "203", body: method === "GET" ? text : "" });
    }
  }
});

Deno.test("random, mutated and truncated bytes end in an answer or in a fault of the protocol, and in nothing else", async () => {
  const random = seededRandom(20261124);
  const below = (count: number) => Math.floor(random() * count);
  const request = together(
    headersFrame(requestFields("POST", "/v1/runs?a=b", [["content-length", "11"], ["accept", "*/*"]])),
    data("hello "),
    frame(0x21, new Uint8Array(3)),
    data("world"),
    headersFrame([["x-checksum", "1"]]),
  );
  const control = together(new Uint8Array([0]), ownSettings(), frame(FRAME.GOAWAY, new Uint8Array([4])));
  const mutated = (valid: Uint8Array) => {
    const bytes = new Uint8Array(valid);
    for (let count = below(4); count >= 0; count--) {
      const at = below(bytes.length);
      if (random() < 0.3) bytes.copyWithin(at, below(bytes.length));
      else bytes[at] = random() < 0.5 ? below(256) : bytes[at]! ^ (1 << below(8));
    }
    return bytes.subarray(0, random() < 0.3 ? below(bytes.length) : bytes.length);
  };
  const cut = (bytes: Uint8Array) => {
    const pieces: Uint8Array[] = [];
    for (let at = 0; at < bytes.length;) pieces.push(bytes.subarray(at, at += 1 + below(40)));
    return pieces;
  };
  const statuses = new Map<string, number>();
  for (let round = 0; round < 4000; round++) {
    const bytes = round % 4 === 0
      ? Uint8Array.from({ length: below(60) }, () => below(256))
      : mutated(request);
    const { written, faults } = await exchanged(cut(bytes), async (request) => {
      const text = await request.text().catch(() => "cut");
      return new Response(text, { status: text === "cut" ? 400 : 200 });
    });
    assert.ok(faults.every((fault) => fault instanceof ConnectionFault), `round ${round}`);
    const { status } = await answerIn(written);
    const end = faults[0]?.code ?? status;
    statuses.set(end, (statuses.get(end) ?? 0) + 1);
    const own = round % 2 === 0 ? Uint8Array.from({ length: below(60) }, () => below(256)) : mutated(control);
    await faultOf(() => new PeerStreams().read(bytesStream(...cut(own))));
    await faultOf(() => decodeFields(own, 512));
  }
  // The seed reaches all kinds of ends, so that a change of the generator does not make this test empty.
  for (const end of ["200", "400", "H3_FRAME_ERROR", "H3_FRAME_UNEXPECTED", "QPACK_DECOMPRESSION_FAILED"]) {
    assert.ok((statuses.get(end) ?? 0) > 20, `${end}: ${JSON.stringify([...statuses])}`);
  }
});
