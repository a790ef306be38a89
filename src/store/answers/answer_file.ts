/** The file of one idempotency key: what the key was used for, and the answer once there is one. */

import { crc32 } from "node:zlib";
import { openRegular, readAt } from "../files/file_bytes.ts";

/** What a key was used for. No part of the request can be read from it. */
export interface KeyUse {
  /** The scope of the key; see `keyScope`. */
  readonly scope: string;
  readonly principalKey: string;
  /** The runs whose deletion drops the answer. */
  readonly runIds: readonly string[];
  /** The SHA-256 of the request's body. */
  readonly bodySha256: string;
  /** The id of the first request with the key. */
  readonly requestId: string;
  /** When that request began, epoch milliseconds. */
  readonly begunMs: number;
  /** The events of the request have this sequence number or a later one. */
  readonly fromSeq: number;
}

/** How the request ended. */
export type AnswerEnd =
  | { readonly status: number; readonly bytes: number; readonly crc32: number }
  /** The request succeeded, and its answer is not kept. */
  | { readonly isDropped: true };

export interface AnswerFile {
  readonly use: KeyUse;
  readonly headBytes: number;
  /**
   * How the request ended; undefined where the file stops before its end: the process stopped while it worked
   * on the request.
   */
  readonly end: AnswerEnd | undefined;
  readonly sizeBytes: number;
}

/**
 * ```
 *   <crc32, 8 hex digits> {"scope":…,"begunMs":…}\n      written before the work begins
 *   the body of the answer                               written after the work
 *   \n<crc32> {"status":200,"bytes":118,"crc32":…}\n     the end; without it the answer is not complete
 * ```
 *
 * `createNew` makes the file, so that no two requests have one key.
 */
export function createAnswerFile(path: string, use: KeyUse): number {
  using file = Deno.openSync(path, { createNew: true, write: true, mode: 0o600 });
  try {
    const head = checkedLine(use);
    writeWhole(file, head);
    return head.length;
  } catch (error) {
    Deno.removeSync(path);
    throw error;
  }
}

/** Reads the file of a key; undefined for one whose head is not whole: its request had not begun. */
export function readAnswerFile(path: string): AnswerFile | undefined {
  using file = openRegular(path);
  const first = readAt(file, 0, FIRST_BYTES);
  const isWhole = first.length < FIRST_BYTES; // as most are: then the file is not asked again
  const start = isWhole || first.includes(LINE_BREAK) ? first : readAt(file, 0, HEAD_BYTES_MAX);
  const sizeBytes = isWhole ? start.length : file.statSync().size;
  const headBytes = start.indexOf(LINE_BREAK) + 1;
  const use = parseCheckedLine<KeyUse>(start.subarray(0, headBytes));
  if (use === undefined) return undefined;
  const from = Math.max(headBytes, sizeBytes - END_BYTES_MAX);
  const last = isWhole ? start.subarray(from) : readAt(file, from, sizeBytes - from);
  return { use, headBytes, end: endIn(last, from, headBytes), sizeBytes };
}

/** Reads how the request ended from `last`, the bytes of the file from `from` on. */
function endIn(last: Uint8Array, from: number, headBytes: number): AnswerEnd | undefined {
  const lineFrom = last.lastIndexOf(LINE_BREAK, -2) + 1;
  const end = lineFrom === 0 ? undefined : parseCheckedLine<AnswerEnd>(last.subarray(lineFrom));
  if (end === undefined || "isDropped" in end) return end;
  return headBytes + end.bytes + 1 === from + lineFrom ? end : undefined;
}

/** Appends the body of an answer piece by piece, then its end. */
export class AnswerWriter implements Disposable {
  readonly #file: Deno.FsFile;
  #bytes = 0;
  #crc32 = 0;

  constructor(path: string) {
    this.#file = Deno.openSync(path, { append: true });
  }

  get bytes(): number {
    return this.#bytes;
  }

  get crc32(): number {
    return this.#crc32;
  }

  async add(piece: Uint8Array): Promise<void> {
    if (piece.length <= SHORT_BYTES) writeWhole(this.#file, piece);
    else for (let left = piece; left.length > 0;) left = left.subarray(await this.#file.write(left));
    this.#bytes += piece.length;
    this.#crc32 = crc32(piece, this.#crc32);
  }

  /** Writes the end of the answer, and returns its bytes. */
  async end(status: number, syncs: boolean): Promise<number> {
    const line = endLine({ status, bytes: this.#bytes, crc32: this.#crc32 });
    writeWhole(this.#file, line);
    if (syncs) await this.#file.syncData();
    return line.length;
  }

  [Symbol.dispose](): void {
    this.#file.close();
  }
}

/** Cuts the body out of the file and notes that; returns the size of the file. */
export function dropAnswer(path: string, headBytes: number): number {
  Deno.truncateSync(path, headBytes);
  using file = Deno.openSync(path, { append: true });
  const end = endLine({ isDropped: true });
  writeWhole(file, end);
  return headBytes + end.length;
}

/**
 * `bytes` of the body, in pieces; `crc32` is checked at the end, where it is given. Throws when the file does
 * not have them.
 */
export async function* answerPieces(
  path: string,
  headBytes: number,
  body: { readonly bytes: number; readonly crc32?: number },
): AsyncIterable<Uint8Array<ArrayBuffer>> {
  using file = await Deno.open(path, { read: true });
  await file.seek(headBytes, Deno.SeekMode.Start);
  let checksum = 0;
  for (let left = body.bytes; left > 0;) {
    const piece = new Uint8Array(Math.min(left, PIECE_BYTES));
    const count = await file.read(piece);
    if (count === null) throw new Error("Cannot read a kept answer: its file is too short");
    const read = piece.subarray(0, count);
    checksum = crc32(read, checksum);
    left -= count;
    if (left === 0 && body.crc32 !== undefined && checksum !== body.crc32) {
      throw new Error("Cannot read a kept answer: its file is damaged");
    }
    yield read;
  }
}

/** The longest head in bytes: one that names the runs of a batch, 256 at most. */
const HEAD_BYTES_MAX = 32 * 1024;
const FIRST_BYTES = 4 * 1024;
const END_BYTES_MAX = 256;
/** The most bytes that are written at once in this thread: to hand them to another one would take longer. */
const SHORT_BYTES = 64 * 1024;
const PIECE_BYTES = 64 * 1024;
const LINE_BREAK = 0x0a;

function endLine(end: AnswerEnd): Uint8Array {
  const line = checkedLine(end);
  const whole = new Uint8Array(line.length + 1);
  whole[0] = LINE_BREAK;
  whole.set(line, 1);
  return whole;
}

function checkedLine(value: object): Uint8Array {
  const json = JSON.stringify(value);
  return new TextEncoder().encode(`${crc32(json).toString(16).padStart(8, "0")} ${json}\n`);
}

function parseCheckedLine<T>(line: Uint8Array): T | undefined {
  const [, checksum, json] = /^([0-9a-f]{8}) (\{.*\})\n$/.exec(new TextDecoder().decode(line)) ?? [];
  if (json === undefined || crc32(json) !== Number.parseInt(checksum!, 16)) return undefined;
  return JSON.parse(json);
}

function writeWhole(file: Deno.FsFile, bytes: Uint8Array): void {
  for (let left = bytes; left.length > 0;) left = left.subarray(file.writeSync(left));
}
