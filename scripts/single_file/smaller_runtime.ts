/**
 * Makes Deno smaller for a single file: what no program in one can use becomes zeros, of which next to
 * nothing is left when it is compressed. Deno goes on as before, but cannot check types, make desktop
 * programs, or name days and currencies in other languages than English; time zones, calendars, sorting by
 * the root rules and all ways of taking text apart stay.
 */

import { zstdDecompressSync } from "node:zlib";

export interface SmallerRuntime {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** How many bytes became zeros. */
  readonly blankedBytes: number;
}

/**
 * Makes a program smaller. Throws where it has not the parts that are known of Deno: a new version may keep
 * them elsewhere.
 */
export function smallerRuntime(program: Uint8Array): SmallerRuntime {
  const bytes = new Uint8Array(program);
  const blankedBytes = blankCompressed(bytes) + blankLanguages(bytes);
  return { bytes, blankedBytes };
}

/** Blanks each part that was compressed by itself and is for the type checker or for desktop programs. */
function blankCompressed(bytes: Uint8Array<ArrayBuffer>): number {
  let blanked = 0;
  for (const start of placesOf(bytes, ZSTD_MAGIC)) {
    const end = frameEnd(bytes, start);
    if (end === null || !isUnused(unpacked(bytes.subarray(start, end)))) continue;
    bytes.fill(0, start, end);
    blanked += end - start;
  }
  if (blanked < 1_000_000) throw new Error("this Deno has its type checker elsewhere than earlier ones");
  return blanked;
}

/** TypeScript's compiler and its types, those of Node.js and of Deno, and the beginnings of AppImages. */
function isUnused(content: Uint8Array | null): boolean {
  if (content === null) return false;
  const begins = (head: string) => head === latin1(content.subarray(0, head.length));
  if (begins("\x7fELF") || begins("/*! ****")) return true;
  const text = latin1(content);
  return text.includes("declare ") || text.includes(".d.ts");
}

const ZSTD_MAGIC = Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd);

/** Place behind the last block of a frame (RFC 8878, section 3.1.1); null where there is none. */
function frameEnd(bytes: Uint8Array, start: number): number | null {
  const descriptor = bytes[start + 4]!;
  const isSingleSegment = (descriptor & 32) !== 0;
  const sizeBytes = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >> 6]!;
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3]!;
  let at = start + 5 + (isSingleSegment ? 0 : 1) + dictionaryBytes + sizeBytes;
  while (at + 3 <= bytes.length) {
    const header = bytes[at]! | bytes[at + 1]! << 8 | bytes[at + 2]! << 16;
    const type = (header >> 1) & 3;
    if (type === 3) return null;
    at += 3 + (type === 1 ? 1 : header >> 3);
    if ((header & 1) === 1) return at + ((descriptor & 4) !== 0 ? 4 : 0);
  }
  return null;
}

function unpacked(frame: Uint8Array): Uint8Array | null {
  try {
    return zstdDecompressSync(frame);
  } catch {
    return null; // the four bytes were no beginning of a frame
  }
}

/**
 * Takes the data of other languages out of ICU's table: the items keep their places, and those that are left
 * move up in the list of names, which is sorted, so that the others are as if they had never been there.
 */
function blankLanguages(bytes: Uint8Array<ArrayBuffer>): number {
  const view = new DataView(bytes.buffer);
  const magic = placesOf(bytes, new TextEncoder().encode("CmnD")).find((at) =>
    view.getUint16(at - 10, true) === 0x27da
  );
  if (magic === undefined) {
    throw new Error("this Deno has its table of languages elsewhere than earlier ones");
  }
  const start = magic - 12;
  const table = start + view.getUint16(start, true);
  const list = table + 4;
  const items = Array.from({ length: view.getUint32(table, true) }, (_, index) => {
    const name = view.getUint32(list + index * 8, true);
    return { name, data: view.getUint32(list + index * 8 + 4, true) };
  });
  let blanked = 0;
  const left = items.filter(({ name, data }, index) => {
    const end = items[index + 1]?.data;
    const nameEnd = bytes.indexOf(0, table + name);
    const file = latin1(bytes.subarray(table + name, nameEnd)).split("/").at(-1)!;
    if (end === undefined || !OTHER_LANGUAGE.test(file)) return true;
    bytes.fill(0, table + data, table + end);
    blanked += end - data;
    return false;
  });
  if (blanked < 1_000_000) {
    throw new Error("this Deno names its tables of languages otherwise than earlier ones");
  }
  view.setUint32(table, left.length, true);
  for (let index = 0; index < items.length; index++) {
    view.setUint32(list + index * 8, left[index]?.name ?? 0, true);
    view.setUint32(list + index * 8 + 4, left[index]?.data ?? 0, true);
  }
  return blanked;
}

/**
 * `de.res`, `zh_Hant_TW.res`, dictionaries of words and rules for lines of Chinese and Japanese; not
 * `en.res`, `root.res`, `zoneinfo64.res`.
 */
const OTHER_LANGUAGE = /^(?!en[_.])[a-z]{2,3}(_\w+)?\.res$|\.dict$|_cj\.brk$/;

function placesOf(bytes: Uint8Array, wanted: Uint8Array): number[] {
  const places: number[] = [];
  for (let at = bytes.indexOf(wanted[0]!); at >= 0; at = bytes.indexOf(wanted[0]!, at + 1)) {
    if (wanted.every((byte, index) => bytes[at + index] === byte)) places.push(at);
  }
  return places;
}

const LATIN1 = new TextDecoder("latin1");
const latin1 = (bytes: Uint8Array) => LATIN1.decode(bytes);
