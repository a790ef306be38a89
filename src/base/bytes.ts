/** Bytes: how many a text takes, its beginning in so many of them, and several arrays as one. */

/** Length of `text` in UTF-8. */
export function utf8Length(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** The beginning of `text` that takes at most `bytesMax` bytes in UTF-8; no character is cut in two. */
export function truncatedUtf8(text: string, bytesMax: number): string {
  return text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(bytesMax)).read);
}

/** The parts behind each other, in an array of their own. */
export function joinedBytes(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}
