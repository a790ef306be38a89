/** The bytes of one event in a log file: how a record is written, recognized and read. */

import { crc32 } from "node:zlib";
import { PreparedPayload } from "../../model/runs/run.ts";

/*
 * The format is also described in docs/protocols.md#records.
 *
 * One record is one line of text, so that grep can search the log:
 *
 *   offset  0   1  format version
 *           1      space
 *           2   8  CRC-32 of everything from offset 11 to before the line break, lower-case hex
 *          10      space
 *          11   9  length of the body in bytes, decimal digits
 *          20      space
 *          21      body:  left SP seq TAB run_id TAB stream_id TAB pts_ms TAB kind TAB payload
 *   21+length      line break
 *
 *   1 5f0a12cd 000000124 0 7<TAB>run-5b0d...e607<TAB>stream-0<TAB>1763658553000<TAB>keepalive_refreshed<TAB>{...}
 *
 * `left` is how many records of the same commit follow this one. A commit is one write, so a log whose last
 * record has left > 0 ends in a torn commit: the write was interrupted. In run_id, stream_id and kind a
 * backslash, a tab and a line break are written as \\ \t \n. The payload is JSON text without raw tabs or
 * line breaks, so no payload can contain the bytes of a record. Therefore bytes that parse and have the right
 * checksum are a record, at whatever offset of a damaged file they are found. The length gives a record's end
 * even if its line break is damaged.
 *
 * The webhook delivery log (webhook_deliveries.ts) consists of the same records: seq is a number of that log,
 * stream_id the webhook_id, kind the state of the delivery.
 */
export const HEADER_BYTES = 21;
const MAX_BODY_BYTES = 999_999_999;

const [TAB, LINE_BREAK, SPACE, ZERO, BACKSLASH] = [0x09, 0x0a, 0x20, 0x30, 0x5c];
const HEX_DIGITS = new Uint8Array([...new TextEncoder().encode("0123456789abcdef")]);
const LARGE_PAYLOAD_CHARS = 256 * 1024;
const RETAINED_BUFFER_BYTES = 4 * 1024 * 1024;

/** The records of one commit as bytes, in a buffer that the next commit reuses. */
export class RecordBatch {
  /** What to write, in order: pieces of the buffer, and payloads that stay where they are. */
  readonly #parts: (Uint8Array | PreparedPayload)[] = [];
  /** The size of each record, line break included. */
  readonly recordBytes: number[] = [];
  sizeBytes = 0;
  readonly #encoder = new TextEncoder();
  #buffer = new Uint8Array(64 * 1024);
  #used = 0;
  #pieceStart = 0;

  /** What to write, in order. A piece may change when the next one is taken. */
  *pieces(): Iterable<Uint8Array> {
    for (const part of this.#parts) {
      if (part instanceof Uint8Array) yield part;
      else yield* part.pieces;
    }
  }

  clear(): void {
    this.#parts.length = 0;
    this.recordBytes.length = 0;
    this.sizeBytes = 0;
    this.#used = 0;
    this.#pieceStart = 0;
    if (this.#buffer.length > RETAINED_BUFFER_BYTES) this.#buffer = new Uint8Array(64 * 1024);
  }

  /** Adds one record; `columns` is the body up to the payload, its last tab included. */
  add(columns: string, payload: string | PreparedPayload): void {
    if (typeof payload !== "string") this.#addLarge(columns, payload);
    else if (payload.length <= LARGE_PAYLOAD_CHARS) this.#addSmall(columns + payload);
    else this.#addLarge(columns, new PreparedPayload(this.#encoder.encode(payload)));
  }

  /** Closes the last piece; call once, after the last `add`. */
  finish(): void {
    if (this.#used > this.#pieceStart) this.#parts.push(this.#buffer.subarray(this.#pieceStart, this.#used));
    this.#pieceStart = this.#used;
  }

  #addSmall(body: string): void {
    const start = this.#reserve(HEADER_BYTES + body.length * 3 + 1);
    this.#used = writeRecord(this.#encoder, body, this.#buffer, start);
    this.#count(this.#used - start);
  }

  /** Adds a record with a long payload, whose bytes are not copied. */
  #addLarge(columns: string, payload: PreparedPayload): void {
    const start = this.#reserve(HEADER_BYTES + columns.length * 3);
    const { written } = this.#encoder.encodeInto(columns, this.#buffer.subarray(start + HEADER_BYTES));
    const end = start + HEADER_BYTES + written;
    const bodyBytes = written + payload.sizeBytes;
    if (bodyBytes > MAX_BODY_BYTES) {
      throw new RangeError(
        `Cannot write an event as one record of at most ${MAX_BODY_BYTES} bytes: ${bodyBytes} bytes`,
      );
    }
    writeLength(this.#buffer, start, bodyBytes);
    let checksum = crc32(this.#buffer.subarray(start + 11, end));
    for (const piece of payload.pieces) checksum = crc32(piece, checksum);
    writeChecksum(this.#buffer, start, checksum);
    this.#used = end;
    this.finish();
    this.#parts.push(payload);
    this.#reserve(1);
    this.#buffer[this.#used++] = LINE_BREAK;
    this.#count(HEADER_BYTES + bodyBytes + 1);
  }

  #count(bytes: number): void {
    this.recordBytes.push(bytes);
    this.sizeBytes += bytes;
  }

  #reserve(bytes: number): number {
    if (this.#used + bytes > this.#buffer.length) {
      const grown = new Uint8Array(Math.max(this.#buffer.length * 2, this.#used + bytes));
      grown.set(this.#buffer.subarray(0, this.#used));
      this.#buffer = grown;
    }
    return this.#used;
  }
}

/** What a record's body has before its payload. */
export interface RecordColumns {
  /** How many records of the same commit follow. */
  readonly left: number;
  readonly seq: number;
  readonly runId: string;
  readonly streamId: string;
  readonly ptsMs: number;
  readonly kind: string;
}

/**
 * Writes the record with this body, at most three bytes a character and its header, at `start`; returns where
 * it ends.
 */
export function writeRecord(encoder: TextEncoder, body: string, target: Uint8Array, start: number): number {
  const { written } = encoder.encodeInto(body, target.subarray(start + HEADER_BYTES));
  const end = start + HEADER_BYTES + written;
  writeLength(target, start, written);
  writeChecksum(target, start, crc32(target.subarray(start + 11, end)));
  target[end] = LINE_BREAK;
  return end + 1;
}

/** The body of a record up to its payload. */
export function bodyColumns({ left, seq, runId, streamId, ptsMs, kind }: RecordColumns): string {
  return `${left} ${seq}\t${escaped(runId)}\t${escaped(streamId)}\t${ptsMs}\t${escaped(kind)}\t`;
}

function escaped(column: string): string {
  return /[\\\t\n]/.test(column)
    ? column.replaceAll("\\", "\\\\").replaceAll("\t", "\\t").replaceAll("\n", "\\n")
    : column;
}

function writeLength(bytes: Uint8Array, start: number, length: number): void {
  bytes[start + 10] = SPACE;
  bytes[start + 20] = SPACE;
  for (let at = start + 19; at > start + 10; at--) {
    bytes[at] = ZERO + length % 10;
    length = Math.floor(length / 10);
  }
}

function writeChecksum(bytes: Uint8Array, start: number, checksum: number): void {
  bytes[start] = ZERO + 1;
  bytes[start + 1] = SPACE;
  for (let at = start + 9; at > start + 1; at--) {
    bytes[at] = HEX_DIGITS[checksum & 15]!;
    checksum >>>= 4;
  }
}

/** A record that was parsed: the offsets of its columns. One object is reused for every record. */
export class ParsedRecord {
  /** The size including the line break, even if the line break is missing. */
  sizeBytes = 0;
  left = 0;
  seq = 0;
  ptsMs = 0;
  runStart = 0;
  runEnd = 0;
  streamStart = 0;
  streamEnd = 0;
  kindStart = 0;
  kindEnd = 0;
  payloadStart = 0;
  payloadEnd = 0;

  /**
   * Reads the record at `start`; `end` is the end of the known bytes. False when there is no whole record:
   * the header is invalid, the body goes past `end`, or the checksum is wrong.
   */
  parse(bytes: Uint8Array, start: number, end: number): boolean {
    const length = claimedBodyBytes(bytes, start, end);
    if (length < 0) return false;
    const bodyStart = start + HEADER_BYTES;
    const bodyEnd = bodyStart + length;
    // Columns first, as they are cheap to refuse: a payload that looks like a header has no tabs behind it.
    if (bodyEnd > end || !this.#parseColumns(bytes, bodyStart, bodyEnd)) return false;
    if (readChecksum(bytes, start) !== crc32(bytes.subarray(start + 11, bodyEnd))) return false;
    this.payloadEnd = bodyEnd;
    this.sizeBytes = HEADER_BYTES + length + 1;
    return true;
  }

  /**
   * Reads what stands before the payload of a record that begins at 0 and is longer than `bytes`. Its
   * checksum is still to be compared: that of the bytes from offset 11 to `payloadEnd`. Null when there is no
   * record.
   */
  parseHead(bytes: Uint8Array): { readonly checksum: number } | null {
    const length = claimedBodyBytes(bytes, 0, bytes.length);
    if (length < 0 || !this.#parseColumns(bytes, HEADER_BYTES, bytes.length)) return null;
    this.payloadEnd = HEADER_BYTES + length;
    this.sizeBytes = this.payloadEnd + 1;
    return { checksum: readChecksum(bytes, 0) };
  }

  /** The record size that the header at `start` claims, line break included; -1 when there is no header. */
  claimedBytes(bytes: Uint8Array, start: number, end: number): number {
    const length = claimedBodyBytes(bytes, start, end);
    return length < 0 ? -1 : HEADER_BYTES + length + 1;
  }

  #parseColumns(bytes: Uint8Array, start: number, end: number): boolean {
    let at = start;
    let number = 0;
    for (; at < end && isDigit(bytes[at]!); at++) number = number * 10 + bytes[at]! - ZERO;
    if (at === start || bytes[at] !== SPACE) return false;
    this.left = number;
    number = 0;
    const seqStart = ++at;
    for (; at < end && isDigit(bytes[at]!); at++) number = number * 10 + bytes[at]! - ZERO;
    if (at === seqStart || bytes[at] !== TAB) return false;
    this.seq = number;
    this.runStart = ++at;
    while (at < end && bytes[at] !== TAB) at++;
    this.runEnd = at;
    this.streamStart = ++at;
    while (at < end && bytes[at] !== TAB) at++;
    this.streamEnd = at;
    number = 0;
    const ptsStart = ++at;
    for (; at < end && isDigit(bytes[at]!); at++) number = number * 10 + bytes[at]! - ZERO;
    if (at === ptsStart || bytes[at] !== TAB) return false;
    this.ptsMs = number;
    this.kindStart = ++at;
    while (at < end && bytes[at] !== TAB) at++;
    this.kindEnd = at;
    this.payloadStart = at + 1;
    return at < end;
  }
}

/** The body length that a header at `start` claims, or -1 when the bytes there are not a header. */
function claimedBodyBytes(bytes: Uint8Array, start: number, end: number): number {
  if (start + HEADER_BYTES > end) return -1;
  if (bytes[start] !== ZERO + 1 || bytes[start + 1] !== SPACE) return -1;
  if (bytes[start + 10] !== SPACE || bytes[start + 20] !== SPACE) return -1;
  let length = 0;
  for (let at = start + 11; at < start + 20; at++) {
    if (!isDigit(bytes[at]!)) return -1;
    length = length * 10 + bytes[at]! - ZERO;
  }
  return length;
}

/** Whether bytes at the end of a log are the beginning of a record, as an interrupted write leaves them. */
export function isTornRecord(bytes: Uint8Array): boolean {
  const header = new TextDecoder().decode(bytes.subarray(0, HEADER_BYTES));
  return /^1( ([0-9a-f]{0,7}|[0-9a-f]{8}( (\d{0,8}|\d{9} ?))?))?$/.test(header);
}

export function isLineBreak(byte: number | undefined): boolean {
  return byte === LINE_BREAK;
}

/** The text of a column without its escapes. */
export function columnText(decoder: TextDecoder, bytes: Uint8Array, start: number, end: number): string {
  const text = decoder.decode(bytes.subarray(start, end));
  return bytes.subarray(start, end).includes(BACKSLASH)
    ? text.replace(/\\([\\tn])/g, (_, letter) => letter === "t" ? "\t" : letter === "n" ? "\n" : "\\")
    : text;
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= ZERO + 9;
}

/** The checksum in a header, or -1 when it is not lower-case hex. */
function readChecksum(bytes: Uint8Array, start: number): number {
  let checksum = 0;
  for (let at = start + 2; at < start + 10; at++) {
    const byte = bytes[at]!;
    const digit = isDigit(byte) ? byte - ZERO : byte >= 0x61 && byte <= 0x66 ? byte - 0x57 : -1;
    if (digit < 0) return -1;
    checksum = (checksum << 4) | digit;
  }
  return checksum >>> 0;
}
