/** Finds which pictures and clips lines of events name; docs/reference/events.md#kinds lists the fields. */

import { Buffer } from "node:buffer";

export interface Blob {
  /** The last part of the route that serves it. */
  readonly kind: "keyframes" | "media";
  readonly sha256: string;
  readonly mediaType: string;
}

/** No event that names a blob is longer. One that is longer is passed over without being kept. */
const LINE_BYTES_MAX = 8 * 1024 * 1024;
const SHA256 = /^[0-9a-f]{64}$/;
const LINE_END = 0x0a;
/** Lines without it are not parsed, and not even made into text. */
const MARK = Buffer.from('_sha256":"');

export class BlobFinder {
  readonly #found = new Map<string, Blob>();
  /** The beginning of the line that has not ended yet. */
  #pieces: Buffer[] = [];
  #kept = 0;
  /** Lines so far. */
  events = 0;

  get blobs(): readonly Blob[] {
    return [...this.#found.values()];
  }

  push(bytes: Uint8Array): void {
    const piece = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let start = 0;
    for (let end = piece.indexOf(LINE_END); end >= 0; end = piece.indexOf(LINE_END, start)) {
      this.#line(piece.subarray(start, end));
      start = end + 1;
    }
    if (start === piece.length) return;
    this.#kept += piece.length - start;
    // The piece belongs to the stream, which may fill it again.
    if (this.#kept <= LINE_BYTES_MAX) this.#pieces.push(Buffer.from(piece.subarray(start)));
    else this.#pieces = [];
  }

  #line(rest: Buffer): void {
    this.events++;
    const isKept = this.#kept <= LINE_BYTES_MAX;
    const line = this.#pieces.length === 0 ? rest : Buffer.concat([...this.#pieces, rest]);
    this.#pieces = [];
    this.#kept = 0;
    if (isKept && line.includes(MARK)) this.#read(line.toString());
  }

  #read(line: string): void {
    const { kind, payload } = JSON.parse(line);
    const { evidence, feedback_audio, image_sha256, still } = payload;
    this.#add("keyframes", image_sha256, "image/jpeg");
    this.#add("keyframes", evidence?.image_sha256, "image/jpeg");
    this.#add("keyframes", still?.image_sha256, "image/jpeg");
    if (kind === "clip_stored") this.#add("media", payload.sha256, "video/mp4");
    this.#add("media", evidence?.media_sha256, evidence?.media_type);
    this.#add("media", feedback_audio?.media_sha256, feedback_audio?.media_type);
  }

  #add(kind: Blob["kind"], sha256: unknown, mediaType: unknown): void {
    if (typeof sha256 !== "string" || !SHA256.test(sha256)) return;
    this.#found.set(`${kind}/${sha256}`, { kind, sha256, mediaType: String(mediaType ?? "") });
  }
}
