/** The JPEGs in a `multipart/x-mixed-replace` body, as cameras send it over HTTP. */

import { LIMITS } from "../../contract/limits.ts";

/** The error of a body that is no series of JPEGs; the message names the reason. */
export class PartsRefused extends Error {
  override readonly name = "PartsRefused";
}

/** The boundary between the parts, empty where it is not said; null where the content type is another one. */
export function boundaryOf(contentType: string | null): string | null {
  if (!/^\s*multipart\/(?:x-mixed-replace|mixed|related)\b/i.test(contentType ?? "")) return null;
  const [, quoted, plain] =
    /[;,\s]boundary\s*=\s*(?:"([^"]{0,100})"|([^\s;,"]{1,100}))/i.exec(contentType!) ?? [];
  // Some cameras write the two hyphens before a boundary into its name.
  return (quoted ?? plain ?? "").trim().replace(/^--/, "");
}

const HEAD_BYTES_MAX = 8 * 1024;
const JPEG_BYTES_MAX = 16 * 2 ** 20;

/**
 * Finds the JPEGs in a body.
 *
 * ```
 *   --boundary CRLF  headers CRLF CRLF  JPEG  CRLF  --boundary …
 *   └──── head ──────────────────────┘ └ body ┘
 * ```
 * A body with `Content-Length` has so many bytes, any other one reaches to the next boundary, or to the end
 * of all of it: some cameras close after each picture. Lines end with CRLF or LF. The boundary is what the
 * first part begins with, as some cameras state another one.
 */
export class JpegParts {
  /** What stands between parts; null where the camera has not said it. */
  #delimiter: WantedBytes | null;
  /** Whether the first head was read. */
  #hasBegun = false;
  /** What has not been used yet: the first `#length` bytes. */
  #buffer = new Uint8Array(64 * 1024);
  #length = 0;
  /** How many bytes of `#buffer` were searched for an end, so that each byte is looked at once. */
  #searched = 0;
  /** The body of the part whose head was read; null between parts. */
  #body: { readonly bytes: number | null } | null = null;

  /** Parts that are no JPEGs since the last one: an empty one or a text between pictures is left out. */
  #others = 0;

  constructor(boundary: string) {
    this.#delimiter = boundary === "" ? null : wantedBytes(`--${boundary}`);
  }

  /** The JPEGs that are complete with the next bytes. Errors: `PartsRefused`. */
  take(received: Uint8Array): Uint8Array[] {
    this.#append(received);
    const jpegs: Uint8Array[] = [];
    let used = 0;
    while (true) {
      const bytes = this.#buffer.subarray(used, this.#length);
      const count = this.#body === null ? this.#readHead(bytes) : this.#readBody(bytes, jpegs);
      if (count === null) break;
      used += count;
      this.#searched = 0;
    }
    this.#buffer.copyWithin(0, used, this.#length);
    this.#length -= used;
    return jpegs;
  }

  /** Ends the body. Returns the last JPEG, where it is whole and nothing but the next boundary is missing. */
  end(): Uint8Array | null {
    const bytes = this.#buffer.subarray(0, this.#length);
    if (this.#body === null || this.#body.bytes !== null || !beginsAsJpeg(bytes)) return null;
    let end = bytes.length;
    while (bytes[end - 1] === CR || bytes[end - 1] === LF) end--;
    const isWhole = bytes[end - 2] === 0xff && bytes[end - 1] === 0xd9;
    return isWhole ? bytes.slice(0, end) : null;
  }

  #append(received: Uint8Array): void {
    const length = this.#length + received.length;
    if (length > this.#buffer.length) {
      const larger = new Uint8Array(Math.max(length, 2 * this.#buffer.length));
      larger.set(this.#buffer.subarray(0, this.#length));
      this.#buffer = larger;
    }
    this.#buffer.set(received, this.#length);
    this.#length = length;
  }

  /** Reads a head. Returns how many bytes it has; null while it is not complete. */
  #readHead(bytes: Uint8Array): number | null {
    const found = headAt(bytes, this.#searched);
    this.#searched = bytes.length;
    if (found === null || found.end > HEAD_BYTES_MAX) {
      if (bytes.length > HEAD_BYTES_MAX) throw new PartsRefused("its server sends parts without a head");
      return null;
    }
    const head = new TextDecoder("latin1").decode(bytes.subarray(found.start, found.end));
    const isStated = this.#delimiter?.bytes.every((byte, place) => bytes[found.start + place] === byte) ??
      false;
    if (!this.#hasBegun && !isStated) this.#delimiter = delimiterIn(head) ?? this.#delimiter;
    this.#hasBegun = true;
    const length = /^content-length[ \t]*:[ \t]*\+?(\d{1,9})/im.exec(head)?.[1];
    if (Number(length) > JPEG_BYTES_MAX) throw tooLarge();
    if (length === undefined && this.#delimiter === null) {
      throw new PartsRefused("its server sends parts without a boundary and a length");
    }
    this.#body = { bytes: length === undefined ? null : Number(length) };
    return found.end;
  }

  /**
   * Reads a body, and adds it to `jpegs` where it is one. Returns how many bytes it has; null while it is not
   * complete.
   */
  #readBody(bytes: Uint8Array, jpegs: Uint8Array[]): number | null {
    const end = this.#body!.bytes ?? this.#find(bytes, this.#delimiter!);
    if (end === -1 || end > bytes.length) {
      if (bytes.length > JPEG_BYTES_MAX) throw tooLarge();
      return null;
    }
    const part = bytes.subarray(0, end);
    if (beginsAsJpeg(part)) {
      jpegs.push(part.slice());
      this.#others = 0;
    } else if (++this.#others > LIMITS.sources.otherPartsMax) {
      throw new PartsRefused("its server sends parts that are no JPEGs");
    }
    this.#body = null;
    return end;
  }

  /** The place of the next bytes that are `wanted`; -1 when they have not come. */
  #find(bytes: Uint8Array, wanted: WantedBytes): number {
    const from = Math.max(0, this.#searched - wanted.bytes.length);
    this.#searched = bytes.length;
    return indexOf(bytes, wanted, from);
  }
}

/**
 * The head at the beginning of the bytes, with its empty line; empty lines before it are left out. Null while
 * it is not complete, for which `searched` bytes were searched before.
 */
function headAt(
  bytes: Uint8Array,
  searched: number,
): { readonly start: number; readonly end: number } | null {
  let start = 0;
  while (bytes[start] === CR || bytes[start] === LF) start++;
  for (let at = bytes.indexOf(LF, Math.max(start, searched - 2)); at !== -1; at = bytes.indexOf(LF, at + 1)) {
    const next = bytes[at + 1] === CR ? at + 2 : at + 1;
    if (bytes[next] === LF) return { start, end: next + 1 };
  }
  return null;
}

/** What stands between parts, as the first head has it; null where it begins with a header. */
function delimiterIn(head: string): WantedBytes | null {
  const line = /^[^\r\n]{1,200}/.exec(head)?.[0].trimEnd() ?? "";
  if (line.startsWith("--") && line.length > 2) return wantedBytes(line);
  return line === "" || line.includes(":") ? null : wantedBytes(`\n${line}`);
}

const CR = 13;
const LF = 10;

function beginsAsJpeg(bytes: Uint8Array): boolean {
  return bytes.length >= LIMITS.sources.jpegBytesMin && bytes[0] === 0xff && bytes[1] === 0xd8;
}

function tooLarge(): PartsRefused {
  return new PartsRefused("its server sends a picture that is too large");
}

/** Bytes that are searched for. */
interface WantedBytes {
  readonly bytes: Uint8Array;
  /**
   * For each beginning of the bytes, by its last one: how long the longest shorter beginning is that stands
   * at its end.
   */
  readonly repeats: readonly number[];
}

function wantedBytes(text: string): WantedBytes {
  const bytes = new TextEncoder().encode(text);
  const repeats = [0];
  for (let at = 1, same = 0; at < bytes.length; at++) {
    while (same > 0 && bytes[at] !== bytes[same]) same = repeats[same - 1]!;
    if (bytes[at] === bytes[same]) same++;
    repeats.push(same);
  }
  return { bytes, repeats };
}

/**
 * Finds bytes by the search of Knuth, Morris and Pratt: a camera that sends nearly the boundary, again and
 * again, costs no more than any other.
 */
function indexOf(bytes: Uint8Array, { bytes: wanted, repeats }: WantedBytes, from: number): number {
  let same = 0;
  for (let at = from; at < bytes.length; at++) {
    if (same === 0) {
      at = bytes.indexOf(wanted[0]!, at);
      if (at === -1) return -1;
    }
    while (same > 0 && bytes[at] !== wanted[same]) same = repeats[same - 1]!;
    if (bytes[at] === wanted[same]) same++;
    if (same === wanted.length) return at + 1 - same;
  }
  return -1;
}
