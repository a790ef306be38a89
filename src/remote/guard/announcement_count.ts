/** Counts the announcements (1xx) that a server sends before its answer, in the bytes of the connection. */

import { Buffer } from "node:buffer";

const HEAD_END = "\r\n\r\n";
/** Where the status begins in `HTTP/1.1 103 Early Hints`, and the digit of announcements there. */
const STATUS_AT = 9;
const ONE = 0x31;

/** The count of one answer. A head may come in several pieces. */
export class AnnouncementCount {
  #count = 0;
  /** What the next byte is part of. */
  #state: "status" | "announcement" | "answer" = "status";
  /** The last bytes, as a status and the end of a head may come in two pieces. */
  #rest: Uint8Array = new Uint8Array();

  /** Takes the next bytes; returns how many announcements have begun. */
  add(bytes: Uint8Array): number {
    if (this.#state === "answer") return this.#count;
    const buffer = Buffer.concat([this.#rest, bytes]);
    let at = 0;
    while (this.#state !== "answer") {
      if (this.#state === "status") {
        const digit = buffer[at + STATUS_AT];
        if (digit === undefined) break;
        this.#state = digit === ONE ? "announcement" : "answer";
        if (digit === ONE) this.#count += 1;
      } else {
        const end = buffer.indexOf(HEAD_END, at);
        if (end < 0) {
          at = Math.max(at, buffer.length - HEAD_END.length + 1);
          break;
        }
        at = end + HEAD_END.length;
        this.#state = "status";
      }
    }
    this.#rest = buffer.subarray(at);
    return this.#count;
  }
}
