/** A map whose keys are bytes in a buffer, so that a replay does millions of look-ups without creating
 * strings.
 */

export class ByteLookup<T> {
  readonly #buckets = new Map<number, Entry<T>>();

  find(bytes: Uint8Array, start: number, end: number): T | undefined {
    let entry = this.#buckets.get(hashOf(bytes, start, end));
    while (entry !== undefined && !isEqual(entry.key, bytes, start, end)) entry = entry.next;
    return entry?.value;
  }

  /** Adds a key, which must not be there yet. Returns `value`. */
  add(bytes: Uint8Array, start: number, end: number, value: T): T {
    const hash = hashOf(bytes, start, end);
    this.#buckets.set(hash, { key: bytes.slice(start, end), value, next: this.#buckets.get(hash) });
    return value;
  }
}

interface Entry<T> {
  readonly key: Uint8Array;
  readonly value: T;
  readonly next: Entry<T> | undefined;
}

/** The hash of a key: FNV-1a, shortened to 30 bits, which V8 stores as a small integer. */
function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x01000193);
  return hash >>> 2;
}

function isEqual(key: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  if (key.length !== end - start) return false;
  for (let at = 0; at < key.length; at++) if (key[at] !== bytes[start + at]) return false;
  return true;
}
