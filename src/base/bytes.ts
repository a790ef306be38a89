/** Bytes: lengths and beginnings of texts, joined arrays, texts of C, memory that is given back, and a stream
 * as lines.
 */

/** Length of `text` in UTF-8. */
export function utf8Length(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** The beginning of `text` of at most `bytesMax` bytes in UTF-8; no character is cut in two. */
export function truncatedUtf8(text: string, bytesMax: number): string {
  return text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(bytesMax)).read);
}

/** A text as C has it: its bytes in UTF-8, and a null byte at the end. */
export function cText(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`${text}\0`);
}

/** The parts joined in a new array. */
export function joinedBytes(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}

/** Whether both have the same bytes. */
export function areSameBytes(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}

/**
 * Gives the memory of arrays back at once: what waits for the garbage collector is many megabytes. The
 * arrays, and all others on the same memory, are empty afterwards.
 */
export function freeMemory(arrays: Iterable<ArrayBufferView>): void {
  for (const { buffer } of arrays) if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/**
 * The lines, as soon as each is whole, without their breaks. What comes after the last line break is no line.
 */
export async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of stream) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
}
