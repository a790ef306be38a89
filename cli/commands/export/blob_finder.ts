/** Finds in the lines of events which pictures and clips they name; docs/events.md#kinds lists the fields. */

export interface Blob {
  /** The last part of the route that serves it. */
  readonly kind: "keyframes" | "media";
  readonly sha256: string;
  readonly mediaType: string;
}

/** No event that names a blob is longer. One that is longer is passed over without being kept. */
const LINE_CHARACTERS_MAX = 8 * 1024 * 1024;
const SHA256 = /^[0-9a-f]{64}$/;

export class BlobFinder {
  readonly #found = new Map<string, Blob>();
  readonly #decoder = new TextDecoder();
  #pieces: string[] = [];
  #kept = 0;
  /** Lines so far. */
  events = 0;

  get blobs(): readonly Blob[] {
    return [...this.#found.values()];
  }

  push(bytes: Uint8Array): void {
    const text = this.#decoder.decode(bytes, { stream: true });
    let start = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      this.#keep(text.slice(start, end));
      this.#line();
      start = end + 1;
    }
    this.#keep(text.slice(start));
  }

  #keep(piece: string): void {
    this.#kept += piece.length;
    if (this.#kept > LINE_CHARACTERS_MAX) this.#pieces = [];
    else if (piece !== "") this.#pieces.push(piece);
  }

  #line(): void {
    const line = this.#pieces.length === 1 ? this.#pieces[0]! : this.#pieces.join("");
    this.#pieces = [];
    this.#kept = 0;
    this.events++;
    if (!line.includes('_sha256":"')) return;
    const { payload } = JSON.parse(line);
    const { evidence, feedback_audio } = payload;
    this.#add("keyframes", payload.image_sha256, "image/jpeg");
    this.#add("keyframes", evidence?.image_sha256, "image/jpeg");
    this.#add("media", evidence?.media_sha256, evidence?.media_type);
    this.#add("media", feedback_audio?.media_sha256, feedback_audio?.media_type);
  }

  #add(kind: Blob["kind"], sha256: unknown, mediaType: unknown): void {
    if (typeof sha256 !== "string" || !SHA256.test(sha256)) return;
    this.#found.set(`${kind}/${sha256}`, { kind, sha256, mediaType: String(mediaType ?? "") });
  }
}
