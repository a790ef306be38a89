/** Some thousand texts to search in: their bytes, and a signature that says which blocks of them are worth a look. */

import { Column } from "./column.ts";

/*
 *   segment   8,192 texts, 128 blocks
 *   block     64 texts one behind the other in one string; `ends` says where each one stops
 *   signature a row for each of 8,192 classes of three or four characters, a bit in it for each block that has such
 *             characters next to each other
 *
 *                       block 0 1 2 3 … 127
 *     class of "tru"          1 0 1 0    1    A text with "truck" can only be in a block that has a bit in all these
 *     class of "ruc"          0 0 1 0    1    rows: here 2 and 127, if there.
 *     class of "uck"          1 0 1 1    1
 *     class of "truc"         1 0 1 0    1
 *     class of "ruck"         0 0 1 1    1
 *
 * Texts are UTF-8 bytes, one to a character of the string, so that every string takes one byte a character and the
 * engine's own search runs over them at memory speed. UTF-8 is such that bytes are found where characters would be.
 */
export const SEGMENT_TEXTS = 8192;
export const BLOCK_TEXTS = 64;
const BLOCKS = SEGMENT_TEXTS / BLOCK_TEXTS;
const ROW_WORDS = BLOCKS / 32;
const ROW_BITS = 13;
export const SIGNATURE_WORDS = (1 << ROW_BITS) * ROW_WORDS;
/** A segment with fewer full blocks is searched whole: its signature would be larger than its texts. */
const SIGNED_BLOCKS_MIN = BLOCKS / 2;

/** What a segment holds at a moment. */
export interface SegmentContent {
  readonly blocks: readonly string[];
  /** Of every text its end within its block; those of `open` are not in it. */
  readonly ends: Uint32Array<ArrayBuffer>;
  readonly signature: Uint32Array<ArrayBuffer> | undefined;
  /** The texts that do not fill a block yet. */
  readonly open: readonly string[];
}

export class TextSegment {
  #blocks: string[];
  readonly #ends: Column;
  #signature: Uint32Array<ArrayBuffer> | undefined;
  #open: string[];

  constructor(
    content: SegmentContent = { blocks: [], ends: new Uint32Array(), signature: undefined, open: [] },
  ) {
    this.#blocks = [...content.blocks];
    this.#ends = new Column(content.ends);
    this.#signature = content.signature;
    this.#open = [...content.open];
  }

  get count(): number {
    return this.#blocks.length * BLOCK_TEXTS + this.#open.length;
  }

  /** Only while `count` is below SEGMENT_TEXTS. */
  add(text: string): void {
    if (this.#open.push(text) === BLOCK_TEXTS) this.#closeBlock();
  }

  /** Whether text `number` is `text`. */
  holds(number: number, text: string): boolean {
    const blockNumber = Math.floor(number / BLOCK_TEXTS);
    if (blockNumber === this.#blocks.length) return this.#open[number % BLOCK_TEXTS] === text;
    const start = number % BLOCK_TEXTS === 0 ? 0 : this.#ends.get(number - 1);
    return this.#ends.get(number) - start === text.length &&
      this.#blocks[blockNumber]!.startsWith(text, start);
  }

  /**
   * Calls `found` with the number of every text that contains the needle, in order. Returns how many characters it
   * looked through, for the caller to know how long it took.
   */
  search({ text: needle, rows }: Needle, found: (number: number) => void): number {
    let looked = 0;
    const candidates = this.#candidates(rows);
    for (let number = 0; number < this.#blocks.length; number++) {
      if ((candidates[number >>> 5]! >>> (number & 31) & 1) === 0) continue;
      const block = this.#blocks[number]!;
      searchBlock(block, this.#ends.values(), number * BLOCK_TEXTS, needle, found);
      looked += block.length;
    }
    const first = this.#blocks.length * BLOCK_TEXTS;
    this.#open.forEach((text, at) => {
      if (text.includes(needle)) found(first + at);
      looked += text.length;
    });
    return looked;
  }

  /** The texts as they are now; the signature goes on to change, but only so that it has more bits. */
  content(): SegmentContent {
    return {
      blocks: this.#blocks.slice(),
      ends: this.#ends.values(),
      signature: this.#signature,
      open: this.#open.slice(),
    };
  }

  #closeBlock(): void {
    let end = 0;
    for (const text of this.#open) this.#ends.push(end += text.length);
    const block = this.#open.join("");
    this.#open = [];
    const number = this.#blocks.push(block) - 1;
    if (this.#signature !== undefined) sign(this.#signature, number, block);
    else if (this.#blocks.length === SIGNED_BLOCKS_MIN) {
      const signature = this.#signature = new Uint32Array(SIGNATURE_WORDS);
      this.#blocks.forEach((each, at) => sign(signature, at, each));
    }
    if (this.#blocks.length === BLOCKS) this.#blocks = blocksOf(this.#blocks.join(""), this.#ends.values());
  }

  /** A bit for each block that may have the needle. */
  #candidates(rows: readonly number[]): Uint32Array {
    const candidates = new Uint32Array(ROW_WORDS).fill(0xffff_ffff);
    if (this.#signature === undefined) return candidates;
    for (const row of rows) {
      for (let word = 0; word < ROW_WORDS; word++) {
        candidates[word]! &= this.#signature[row * ROW_WORDS + word]!;
      }
    }
    return candidates;
  }
}

/**
 * The blocks of a segment as parts of one long string: the engine never moves a long one, while it would copy each
 * short one twice and keep as much memory again ready for that.
 */
export function blocksOf(whole: string, ends: Uint32Array): string[] {
  const blocks: string[] = [];
  let start = 0;
  for (let last = BLOCK_TEXTS - 1; last < ends.length; last += BLOCK_TEXTS) {
    blocks.push(whole.slice(start, start += ends[last]!));
  }
  return blocks;
}

/** What is searched for. */
export class Needle {
  /** The classes of its characters; none when it is too short to have one, and then every block is looked at. */
  readonly rows: readonly number[];

  constructor(readonly text: string) {
    const rows = new Set<number>();
    for (let last = 2, four = firstTwo(text); last < text.length; last++) {
      four = four << 8 | text.charCodeAt(last);
      rows.add(rowOf(four & THREE));
      if (last > 2) rows.add(rowOf(four));
    }
    this.rows = [...rows];
  }
}

/** `ends[first]` is the end of the block's first text. */
function searchBlock(
  block: string,
  ends: Uint32Array,
  first: number,
  needle: string,
  found: (number: number) => void,
): void {
  let text = first;
  for (let at = block.indexOf(needle); at >= 0;) {
    while (ends[text]! <= at) text++;
    const end = ends[text]!;
    // What lies across the end of a text is in neither of the two, and what comes behind it in the first does, too.
    if (at + needle.length <= end) found(text);
    at = block.indexOf(needle, end);
  }
}

function sign(signature: Uint32Array, blockNumber: number, block: string): void {
  const word = blockNumber >>> 5;
  const bit = 1 << (blockNumber & 31);
  let four = firstTwo(block);
  for (let last = 2; last < block.length; last++) {
    four = four << 8 | block.charCodeAt(last);
    signature[rowOf(four & THREE) * ROW_WORDS + word]! |= bit;
    signature[rowOf(four) * ROW_WORDS + word]! |= bit;
  }
}

/** The last three of four characters of one byte each. */
const THREE = 0xff_ffff;

function firstTwo(text: string): number {
  return text.charCodeAt(0) << 8 | text.charCodeAt(1);
}

/** The top bits of a product with an odd number spread what a language prefers evenly over the classes. */
function rowOf(characters: number): number {
  return Math.imul(characters, 0x9e37_79b1) >>> (32 - ROW_BITS);
}
