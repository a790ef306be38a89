/** Heads of HTTP/2 requests (RFC 9113, 7541), frame by frame, for what no client would send. */

const ENCODER = new TextEncoder();
const [HEADERS, SETTINGS] = [1, 4];
const END_STREAM_AND_HEADERS = 0x05;
/** An entry of the dynamic table: the last one that was added. */
const LAST_ADDED = 0xbe;
/** Fields `:method GET` and `:scheme https` of the static table. */
const GET_BY_HTTPS = [0x82, 0x87];

/** Begins a connection, with the settings that are the default. */
export function http2Preface(): Uint8Array<ArrayBuffer> {
  return Uint8Array.from([
    ...ENCODER.encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ...frameOf(SETTINGS, 0, 0, []),
  ]);
}

/**
 * A request that adds a header of 3,900 bytes to the table, and names it so many times more, with one byte
 * each.
 */
export function referringHead(stream: number, authority: string, path: string, times: number): Uint8Array {
  const fields = [
    ...GET_BY_HTTPS,
    ...[0x01, ...textOf(authority), 0x04, ...textOf(path)],
    ...[0x40, ...textOf("x-a"), ...textOf("a".repeat(3900))],
    ...Array(times).fill(LAST_ADDED),
  ];
  return Uint8Array.from(frameOf(HEADERS, END_STREAM_AND_HEADERS, stream, fields));
}

/** Whether the bytes of a server have a frame with the head of an answer on the stream. */
export function hasAnswerOn(stream: number, bytes: Uint8Array): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at + 9 <= bytes.length; at += 9 + (view.getUint32(at) >>> 8)) {
    if (bytes[at + 3] === HEADERS && view.getUint32(at + 5) === stream) return true;
  }
  return false;
}

function frameOf(type: number, flags: number, stream: number, payload: readonly number[]): number[] {
  const head = new DataView(new ArrayBuffer(9));
  head.setUint32(0, payload.length << 8);
  head.setUint8(3, type);
  head.setUint8(4, flags);
  head.setUint32(5, stream);
  return [...new Uint8Array(head.buffer), ...payload];
}

/** A string of HPACK, not compressed: its length, with 7 bits in the first byte, and its bytes. */
function textOf(text: string): number[] {
  const bytes = [...ENCODER.encode(text)];
  if (bytes.length < 127) return [bytes.length, ...bytes];
  const length = [127];
  let left = bytes.length - 127;
  for (; left >= 128; left >>= 7) length.push(left & 127 | 128);
  return [...length, left, ...bytes];
}
