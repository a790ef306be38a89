/** Numbers and text of a file in order, with a CRC-32 over all that was read or written so far. */

import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";

const BUFFER_BYTES = 1024 * 1024;
const TURN_BYTES = 8 * BUFFER_BYTES;

/** Reads in order and sums what it read; what it is asked for is never more than the file has. */
export class SummedReader {
  #sum = 0;
  #left: number;
  #turnBytes = 0;
  #text = Buffer.alloc(0);

  constructor(private readonly file: Deno.FsFile) {
    this.#left = file.statSync().size;
  }

  numbers(count: number): Uint32Array<ArrayBuffer> {
    return new Uint32Array(this.bytes(count * Uint32Array.BYTES_PER_ELEMENT).buffer);
  }

  bytes(count: number): Uint8Array<ArrayBuffer> {
    this.#take(count);
    const bytes = new Uint8Array(count);
    this.#fill(bytes);
    return bytes;
  }

  /** Text of one byte a character. */
  text(characters: number): string {
    this.#take(characters);
    if (this.#text.length < characters) this.#text = Buffer.alloc(characters);
    const bytes = this.#text.subarray(0, characters);
    this.#fill(bytes);
    return bytes.toString("latin1");
  }

  /** Reads the checksum of everything before; throws when it is another one. */
  checkSum(): void {
    const expected = this.#sum;
    if (this.numbers(1)[0] !== expected) throw new Error("its checksum is wrong");
  }

  /** True once for each so many bytes: time to let others work. */
  isTurnOver(): boolean {
    if (this.#turnBytes < TURN_BYTES) return false;
    this.#turnBytes = 0;
    return true;
  }

  #take(count: number): void {
    if (!(count <= this.#left)) throw new Error("it ends too early");
    this.#left -= count;
    this.#turnBytes += count;
  }

  #fill(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const read = this.file.readSync(bytes.subarray(at));
      if (!read) throw new Error("it ends too early");
      at += read;
    }
    this.#sum = crc32(bytes, this.#sum);
  }
}

/** Writes in order, by the megabyte, and sums what it wrote. */
export class SummedWriter {
  written = 0;
  #sum = 0;
  #used = 0;
  readonly #buffer = Buffer.alloc(BUFFER_BYTES);

  constructor(private readonly file: Deno.FsFile) {}

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

  /** Text of one byte a character. */
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

  /** The checksum of everything before. */
  async sum(): Promise<void> {
    await this.flush();
    await this.numbers(Uint32Array.of(this.#sum));
  }

  async flush(): Promise<void> {
    const bytes = this.#buffer.subarray(0, this.#used);
    this.#sum = crc32(bytes, this.#sum);
    for (let at = 0; at < bytes.length;) at += await this.file.write(bytes.subarray(at));
    this.written += bytes.length;
    this.#used = 0;
  }
}
