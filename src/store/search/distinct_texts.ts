/** Distinct texts, each stored once and numbered from 0, because a camera often gives the same description
 * all day.
 */

import { Buffer } from "node:buffer";
import { foldedText } from "../../model/events/folded_text.ts";
import { Column } from "./column.ts";
import { type Needle, SEGMENT_TEXTS, TextSegment } from "./text_segment.ts";

const FIRST_SLOTS = 32;
const ASCII = /^[\0-\x7f]*$/;

/**
 * The form in which descriptions and queries are compared: `foldedText` as UTF-8 with one byte in each
 * character of the string. Half a surrogate pair counts as U+FFFD.
 */
export function comparableText(text: string): string {
  const folded = foldedText(text);
  return ASCII.test(folded) ? folded : Buffer.from(folded, "utf8").toString("latin1");
}

export class DistinctTexts {
  readonly segments: TextSegment[];
  readonly #hashes: Column;
  /** A hash table with open addressing: the number of a text plus one, or 0 in a free slot. */
  #slots: Uint32Array;

  /** Starts with the texts of `segments`; `hashes` has the hash of each text. */
  constructor(segments: TextSegment[] = [], hashes: Uint32Array<ArrayBuffer> = new Uint32Array()) {
    this.segments = segments;
    this.#hashes = new Column(hashes);
    let slots = FIRST_SLOTS;
    while (slots * 3 < hashes.length * 4) slots *= 2;
    this.#slots = new Uint32Array(slots);
    this.#fillSlots();
  }

  get count(): number {
    return this.#hashes.length;
  }

  get hashes(): Uint32Array<ArrayBuffer> {
    return this.#hashes.values();
  }

  /** The text's number; a new text gets the next one. */
  add(text: string): number {
    const hash = hashOf(text);
    const mask = this.#slots.length - 1;
    let slot = hash & mask;
    for (let entry = this.#slots[slot]!; entry !== 0; entry = this.#slots[slot]!) {
      if (this.#hashes.get(entry - 1) === hash && this.#isText(entry - 1, text)) return entry - 1;
      slot = (slot + 1) & mask;
    }
    let last = this.segments.at(-1);
    if (last === undefined || last.count === SEGMENT_TEXTS) this.segments.push(last = new TextSegment());
    last.add(text);
    this.#hashes.push(hash);
    this.#slots[slot] = this.count;
    if (this.count * 4 > this.#slots.length * 3) {
      this.#slots = new Uint32Array(this.#slots.length * 2);
      this.#fillSlots();
    }
    return this.count - 1;
  }

  /**
   * Sets a bit in `matches` for each text that contains the needle. Yields after each segment how many
   * characters it read.
   */
  *search(needle: Needle, matches: Uint32Array): Iterable<number> {
    for (const [number, segment] of this.segments.entries()) {
      const first = number * SEGMENT_TEXTS;
      yield segment.search(needle, (text) => {
        const id = first + text;
        matches[id >>> 5]! |= 1 << (id & 31);
      });
    }
  }

  #isText(number: number, text: string): boolean {
    return this.segments[Math.floor(number / SEGMENT_TEXTS)]!.holds(number % SEGMENT_TEXTS, text);
  }

  #fillSlots(): void {
    const mask = this.#slots.length - 1;
    for (let number = 0; number < this.count; number++) {
      let slot = this.#hashes.get(number) & mask;
      while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
      this.#slots[slot] = number + 1;
    }
  }
}

/** The hash of a text: FNV-1a. Its bits are mixed once more, because the slots use the low bits. */
function hashOf(text: string): number {
  let hash = 0x811c_9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x0100_0193);
  return (hash ^ hash >>> 15) >>> 0;
}
