/** Reads and writes numbers and text of a file in order, with a CRC-32 over everything read or written so
 * far.
 */

import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";

const BUFFER_BYTES = 1024 * 1024;
/** Bytes after which the reader should yield: some milliseconds of work. */
const YIELD_BYTES = 8 * BUFFER_BYTES;

/** Reads in order and updates the checksum. Throws when it is asked for more bytes than the file has. */
export class ChecksumReader {
  readonly #file: Deno.FsFile;
  #checksum = 0;
  #bytesLeft: number;
  #bytesSinceYield = 0;
  #text = Buffer.alloc(0);

  constructor(file: Deno.FsFile, sizeBytes: number) {
    this.#file = file;
    this.#bytesLeft = sizeBytes;
  }

  /** Reads one unsigned 32-bit number. */
  number(): number {
    return new DataView(this.bytes(4).buffer).getUint32(0, true);
  }

  /** Reads unsigned 32-bit numbers. */
  numbers(count: number): Uint32Array<ArrayBuffer> {
    return new Uint32Array(this.bytes(count * Uint32Array.BYTES_PER_ELEMENT).buffer);
  }

  bytes(count: number): Uint8Array<ArrayBuffer> {
    this.#take(count);
    const bytes = new Uint8Array(count);
    this.#fill(bytes);
    return bytes;
  }

  /** Reads a text with one byte for each character. */
  text(characters: number): string {
    this.#take(characters);
    if (this.#text.length < characters) this.#text = Buffer.alloc(characters);
    const bytes = this.#text.subarray(0, characters);
    this.#fill(bytes);
    return bytes.toString("latin1");
  }

  /** Reads a checksum and compares it with that of everything before; throws when they differ. */
  verifyChecksum(): void {
    const expected = this.#checksum;
    if (this.number() !== expected) throw new Error("its checksum is wrong");
  }

  /** Whether the caller should yield to other work: true after every `YIELD_BYTES`. */
  shouldYield(): boolean {
    if (this.#bytesSinceYield < YIELD_BYTES) return false;
    this.#bytesSinceYield = 0;
    return true;
  }

  #take(count: number): void {
    // The negation also catches NaN, from a damaged header.
    if (!(count <= this.#bytesLeft)) throw new Error("it ends too early");
    this.#bytesLeft -= count;
    this.#bytesSinceYield += count;
  }

  #fill(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const read = this.#file.readSync(bytes.subarray(at));
      if (!read) throw new Error("it ends too early");
      at += read;
    }
    this.#checksum = crc32(bytes, this.#checksum);
  }
}

/** Writes in order, one megabyte at a time, and updates the checksum. */
export class ChecksumWriter {
  /** Bytes that were written to the file so far. */
  writtenBytes = 0;
  readonly #file: Deno.FsFile;
  #checksum = 0;
  #used = 0;
  readonly #buffer = Buffer.alloc(BUFFER_BYTES);

  constructor(file: Deno.FsFile) {
    this.#file = file;
  }

  numbers(numbers: Uint32Array<ArrayBuffer>): Promise<void> {
    return this.bytes(new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength));
  }

  async bytes(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      if (this.#used === BUFFER_BYTES) await this.flush();
      const count = Math.min(bytes.length - at, BUFFER_BYTES - this.#used);
      this.#buffer.set(bytes.subarray(at, at + count), this.#used);
      this.#used += count;
      at += count;
    }
  }

  /** Writes a text with one byte for each character. */
  async text(text: string): Promise<void> {
    for (let at = 0; at < text.length;) {
      if (this.#used === BUFFER_BYTES) await this.flush();
      const count = Math.min(text.length - at, BUFFER_BYTES - this.#used);
      const piece = count === text.length ? text : text.slice(at, at + count);
      this.#buffer.write(piece, this.#used, count, "latin1");
      this.#used += count;
      at += count;
    }
  }

  /** Writes the checksum of everything before. */
  async checksum(): Promise<void> {
    await this.flush();
    await this.numbers(Uint32Array.of(this.#checksum));
  }

  async flush(): Promise<void> {
    const bytes = this.#buffer.subarray(0, this.#used);
    this.#checksum = crc32(bytes, this.#checksum);
    for (let at = 0; at < bytes.length;) at += await this.#file.write(bytes.subarray(at));
    this.writtenBytes += bytes.length;
    this.#used = 0;
  }
}
