/** Heads of answers that the runtime's parser refuses and players read are written anew before it sees them.
 */

import { Buffer } from "node:buffer";
import type { ClientRequest } from "node:http";
import type { Socket } from "node:net";
import { freeMemory } from "../../base/bytes.ts";
import { GatheredChunks } from "./gathered_chunks.ts";

/** Says that the answer to this request may have an odd head, and a body in many small chunks. */
export function readOddHead(request: ClientRequest): void {
  request.once("socket", (socket) => {
    let mended = SOCKETS.get(socket);
    if (mended === undefined) SOCKETS.set(socket, mended = new MendedSocket(socket));
    mended.expectHead();
  });
}

const SOCKETS = new WeakMap<Socket, MendedSocket>();

/**
 * A connection whose readers get mended bytes: those of a head when it is complete, then the body as it
 * comes, its small chunks in one.
 */
class MendedSocket {
  /** What has come of a head; null where none is expected. */
  #head: Buffer | null = null;
  /** The chunks of a body that comes in chunks; null for every other body. */
  #chunks: GatheredChunks | null = null;

  constructor(socket: Socket) {
    const emit = socket.emit.bind(socket) as (event: string, ...values: unknown[]) => boolean;
    socket.emit = (event: string, ...values: unknown[]) => {
      if (event !== "data" || this.#head === null && this.#chunks === null) return emit(event, ...values);
      const received = values[0] as Buffer;
      const bytes = this.#head === null
        ? this.#ofBody(received)
        : this.#take(Buffer.concat([this.#head, received]));
      return bytes.length === 0 || emit("data", bytes);
    };
  }

  expectHead(): void {
    this.#head = Buffer.alloc(0);
    this.#chunks = null;
  }

  #ofBody(bytes: Buffer): Buffer {
    if (this.#chunks === null) return bytes;
    const gathered = this.#chunks.take(bytes);
    // What the connection has read is copied, and nobody else has it: waiting for the garbage collector are
    // tens of megabytes.
    if (gathered !== bytes && bytes.length === bytes.buffer.byteLength) freeMemory([bytes]);
    const { buffer, byteOffset, length } = gathered;
    return Buffer.from(buffer, byteOffset, length);
  }

  #take(bytes: Buffer): Buffer {
    const text = bytes.toString("latin1", 0, HEAD_BYTES_MAX);
    const [whole] = /^\s*\S[^]*?\n\r?\n/.exec(text) ?? [];
    this.#head = whole === undefined && bytes.length < HEAD_BYTES_MAX ? bytes : null;
    if (whole === undefined) return this.#head === null ? bytes : Buffer.alloc(0);
    const rest = bytes.subarray(whole.length);
    const head = mendedHead(whole);
    const mended = Buffer.from(head, "latin1");
    if (!/^HTTP\S+ 1(?!01)/.test(head)) {
      if (isChunked(head)) this.#chunks = new GatheredChunks();
      return Buffer.concat([mended, this.#ofBody(rest)]);
    }
    // An answer that is only announced: the head itself follows.
    this.#head = Buffer.alloc(0);
    return Buffer.concat([mended, this.#take(rest)]);
  }
}

/**
 * ```
 *   ICY 200 OK            →  HTTP/1.0 200
 *   HTTP/1.1 200OK        →  HTTP/1.1 200
 *   a line without colon  →  nothing, and what is folded below it
 *   Content-Length: 5     →  once, where it is there twice and the same
 * ```
 * What is no head of HTTP stays as it is.
 */
export function mendedHead(head: string): string {
  const [start = "", ...lines] = head.trimStart().split(/\r?\n/);
  const [, protocol, version, status] = /^(ICY|HTTP\/(1\.[01])) +(\d{3})/i.exec(start) ?? [];
  if (protocol === undefined) return head;
  const lengths = new Set<string>();
  let isKept = true;
  const kept = lines.filter((line) => {
    if (/^[ \t]/.test(line)) return isKept;
    const [, name, value] = /^([\w!#$%&'*+.^`|~-]+)[ \t]*:(.*)$/.exec(line) ?? [];
    isKept = name !== undefined && !(name.toLowerCase() === "content-length" && lengths.has(value!.trim()));
    if (name?.toLowerCase() === "content-length") lengths.add(value!.trim());
    return isKept;
  });
  return [`HTTP/${version ?? "1.0"} ${status} `, ...kept, "", ""].join("\r\n");
}

/** Whether the body that follows the head of an answer to GET comes in chunks. */
function isChunked(head: string): boolean {
  return /^HTTP\/1\.1 (?!101|204|304)/.test(head) &&
    /^transfer-encoding[ \t]*:.*\bchunked[ \t]*\r$/im.test(head);
}

/** The longest head in bytes: as much as the runtime's parser reads. */
const HEAD_BYTES_MAX = 16 * 1024;
