/** The JPEGs in a `multipart/x-mixed-replace` body, as cameras send it over HTTP. */

/** The body is no series of JPEGs; the message names the reason. */
export class PartsRefused extends Error {
  override readonly name = "PartsRefused";
}

/** The boundary between the parts; null where the content type is another one. */
export function boundaryOf(contentType: string | null): string | null {
  const [, quoted, plain] =
    /^multipart\/x-mixed-replace\s*;(?:[^"]*;)?\s*boundary=(?:"([^"]{1,100})"|([^\s;"]{1,100}))/i
      .exec(contentType ?? "") ?? [];
  // Some cameras write the two hyphens before a boundary into its name.
  return (quoted ?? plain)?.replace(/^--/, "") ?? null;
}

const HEAD_BYTES_MAX = 8 * 1024;
const JPEG_BYTES_MAX = 16 * 2 ** 20;
const HEAD_END = [0x0d, 0x0a, 0x0d, 0x0a];

/**
 * ```
 *   --boundary CRLF  headers CRLF CRLF  JPEG  CRLF  --boundary …
 *   └──── head ──────────────────────┘ └ body ┘
 * ```
 * A body with `Content-Length` has so many bytes, any other one reaches to the next boundary.
 */
export class JpegParts {
  readonly #delimiter: Uint8Array;
  /** What has not been used yet: the first `#length` bytes. */
  #buffer = new Uint8Array(64 * 1024);
  #length = 0;
  /** How many of them were searched for an end, so that each byte is looked at once. */
  #searched = 0;
  /** Of the part whose head was read; null between parts. */
  #body: { readonly bytes: number | null } | null = null;

  constructor(boundary: string) {
    this.#delimiter = new TextEncoder().encode(`--${boundary}`);
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

  /** How many bytes it has; null while it is not complete. */
  #readHead(bytes: Uint8Array): number | null {
    const end = this.#find(bytes, HEAD_END);
    if (end === -1 || end > HEAD_BYTES_MAX) {
      if (bytes.length > HEAD_BYTES_MAX) throw new PartsRefused("its server sends parts without a head");
      return null;
    }
    const head = new TextDecoder("latin1").decode(bytes.subarray(0, end));
    const length = /^content-length[ \t]*:[ \t]*(\d{1,9})[ \t]*$/im.exec(head)?.[1];
    if (Number(length) > JPEG_BYTES_MAX) throw tooLarge();
    this.#body = { bytes: length === undefined ? null : Number(length) };
    return end + HEAD_END.length;
  }

  /** The same. */
  #readBody(bytes: Uint8Array, jpegs: Uint8Array[]): number | null {
    const end = this.#body!.bytes ?? this.#find(bytes, this.#delimiter);
    if (end === -1 || end > bytes.length) {
      if (bytes.length > JPEG_BYTES_MAX) throw tooLarge();
      return null;
    }
    if (bytes[0] !== 0xff || bytes[1] !== 0xd8) {
      throw new PartsRefused("its server sends parts that are no JPEGs");
    }
    jpegs.push(bytes.slice(0, end));
    this.#body = null;
    return end;
  }

  /** Where the next such bytes are; -1 when they have not come. */
  #find(bytes: Uint8Array, wanted: ArrayLike<number>): number {
    const from = Math.max(0, this.#searched - wanted.length);
    this.#searched = bytes.length;
    return indexOf(bytes, wanted, from);
  }
}

function tooLarge(): PartsRefused {
  return new PartsRefused("its server sends a picture that is too large");
}

function indexOf(bytes: Uint8Array, wanted: ArrayLike<number>, from: number): number {
  for (let at = bytes.indexOf(wanted[0]!, from); at !== -1; at = bytes.indexOf(wanted[0]!, at + 1)) {
    if (at + wanted.length > bytes.length) return -1;
    let same = 1;
    while (same < wanted.length && bytes[at + same] === wanted[same]) same++;
    if (same === wanted.length) return at;
  }
  return -1;
}
