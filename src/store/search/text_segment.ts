/** Up to 8,192 texts to search: their bytes, and a signature that says which blocks of texts can contain a
 * match.
 */

import { Column } from "./column.ts";

/*
 *   segment   8,192 texts in 128 blocks
 *   block     64 texts joined into one string; `ends` has the end of each
 *   signature a bit matrix: a row for each of 8,192 classes (hashes) of three or four adjacent characters, and in it a
 *             bit for each block that contains such characters
 *
 *                       block 0 1 2 3 … 127
 *     class of "tru"          1 0 1 0    1    A text with "truck" can only be in a block with a 1 in all of these
 *     class of "ruc"          0 0 1 0    1    rows: here only 2 and 127 are searched.
 *     class of "uck"          1 0 1 1    1
 *     class of "truc"         1 0 1 0    1
 *     class of "ruck"         0 0 1 1    1
 *
 * Texts are UTF-8 with one byte in each character of the string, so a string takes one byte a character in
 * memory and the engine's own search is as fast as the memory. In UTF-8 a search for bytes finds exactly the
 * matches of characters.
 */
export const SEGMENT_TEXTS = 8192;
export const BLOCK_TEXTS = 64;
const BLOCKS = SEGMENT_TEXTS / BLOCK_TEXTS;
const ROW_WORDS = BLOCKS / 32;
const ROW_BITS = 13;
export const SIGNATURE_WORDS = (1 << ROW_BITS) * ROW_WORDS;
/**
 * The least number of full blocks with a signature. A segment with fewer is searched whole: the signature
 * would be larger than the texts.
 */
const SIGNED_BLOCKS_MIN = BLOCKS / 2;

/** The content of a segment at one time. */
export interface TextSegmentContent {
  readonly blocks: readonly string[];
  /** The end within its block of every text in a block; the texts of `open` are not in it. */
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
    content: TextSegmentContent = { blocks: [], ends: new Uint32Array(), signature: undefined, open: [] },
  ) {
    this.#blocks = [...content.blocks];
    this.#ends = new Column(content.ends);
    this.#signature = content.signature;
    this.#open = [...content.open];
  }

  get count(): number {
    return this.#blocks.length * BLOCK_TEXTS + this.#open.length;
  }

  /** Adds a text, only while `count` is below SEGMENT_TEXTS. */
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
   * Calls `found` with the number of every text that contains the needle, in order. Returns how many
   * characters it searched, as a measure of the time.
   */
  search({ text: needle, rows }: Needle, found: (number: number) => void): number {
    let searched = 0;
    const candidates = this.#candidates(rows);
    for (let number = 0; number < this.#blocks.length; number++) {
      if ((candidates[number >>> 5]! >>> (number & 31) & 1) === 0) continue;
      const block = this.#blocks[number]!;
      searchBlock(block, this.#ends.values(), number * BLOCK_TEXTS, needle, found);
      searched += block.length;
    }
    const first = this.#blocks.length * BLOCK_TEXTS;
    this.#open.forEach((text, at) => {
      if (text.includes(needle)) found(first + at);
      searched += text.length;
    });
    return searched;
  }

  /** The current texts. The signature is not a copy and may get more bits later, which does no harm. */
  content(): TextSegmentContent {
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

  /** A bit for each block that may contain the needle. */
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
 * The blocks of a segment as parts of one long string, which saves memory: the garbage collector never moves
 * a string of that length, but copies each short one twice, and reserves as much memory again for that.
 */
export function blocksOf(whole: string, ends: Uint32Array): string[] {
  const blocks: string[] = [];
  let start = 0;
  for (let last = BLOCK_TEXTS - 1; last < ends.length; last += BLOCK_TEXTS) {
    blocks.push(whole.slice(start, start += ends[last]!));
  }
  return blocks;
}

/** The text to search for. */
export class Needle {
  /**
   * The signature rows of its characters; empty when it has fewer than three, and then every block is
   * searched.
   */
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

/** Searches one block; `ends[first]` is the end of its first text. */
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
    // A match across the end of a text is in neither text, and every later one that starts in it crosses that
    // end too.
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

/** The bits of the last three of four characters of one byte each. */
const THREE = 0xff_ffff;

function firstTwo(text: string): number {
  return text.charCodeAt(0) << 8 | text.charCodeAt(1);
}

/**
 * The row of three characters, by multiplicative hashing: the top bits of a product with an odd number, so
 * that frequent characters spread evenly.
 */
function rowOf(characters: number): number {
  return Math.imul(characters, 0x9e37_79b1) >>> (32 - ROW_BITS);
}
