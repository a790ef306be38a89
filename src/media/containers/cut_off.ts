/** Whether a file ends before its container does, by the sizes that the container itself has. Reads a few
 * bytes, wherever they are.
 */

import { FileBytes } from "./file_bytes.ts";

export interface CutOff {
  readonly isCutOff: boolean;
  /**
   * How long the video is by its header, milliseconds, where ffprobe would say how long the rest of a cut
   * file is; else null.
   */
  readonly announcedMs: number | null;
}

const WHOLE: CutOff = { isCutOff: false, announcedMs: null };
const CUT: CutOff = { isCutOff: true, announcedMs: null };
/** Boxes at the top of an MP4 file: a long fragmented one has two for each second or so. */
const BOXES_MAX = 100_000;
const HEAD_BYTES = 4096;

/**
 * Whether a file is cut off. `formatName` is ffprobe's. A container that does not say its size counts as
 * whole.
 */
export async function cutOff(path: string, formatName: string): Promise<CutOff> {
  const read = READERS.find(([format]) => format.test(formatName))?.[1];
  if (!read) return WHOLE;
  using file = await Deno.open(path, { read: true });
  const { size } = await file.stat();
  return await read(new FileBytes(file), size);
}

type Reader = (bytes: FileBytes, size: number) => Promise<CutOff>;

const READERS: readonly (readonly [RegExp, Reader])[] = [
  [/^mov\b/, boxes],
  [/^matroska\b/, matroska],
  [/^avi\b/, avi],
  [/^flv\b/, flv],
  [/^asf\b/, asf],
  [/^mxf\b/, mxf],
  [/^ogg\b/, ogg],
  [/^gif\b/, gif],
];

/**
 * Whether a file of boxes is cut off. They follow each other; each begins with its size, and one without a
 * size goes to the end of the file.
 */
async function boxes(bytes: FileBytes, size: number): Promise<CutOff> {
  let at = 0;
  for (let count = 0; at < size && count < BOXES_MAX; count++) {
    const head = await bytes.at(at, 16);
    if (head.byteLength < 8) return CUT;
    const short = head.getUint32(0);
    // Zeros behind the last box are no box.
    if (short === 0 && head.getUint32(4) === 0) return WHOLE;
    if (short === 0) return WHOLE;
    if (short === 1 && head.byteLength < 16) return CUT;
    const length = short === 1 ? Number(head.getBigUint64(8)) : short;
    // What is no box is another fault.
    if (length < 8) return WHOLE;
    at += length;
  }
  return at > size ? CUT : WHOLE;
}

/** Whether a Matroska file is cut off: by the EBML header and then the segment, whose size may be unknown. */
async function matroska(bytes: FileBytes, size: number): Promise<CutOff> {
  const head = await bytes.at(0, HEAD_BYTES);
  const header = element(head, 0);
  const segment = header && header.length !== null ? element(head, header.dataAt + header.length) : null;
  if (!segment || segment.length === null) return WHOLE;
  return segment.dataAt + segment.length > size ? CUT : WHOLE;
}

/** An element that begins at `at`: where its data begin, and how many bytes they have; null for unknown. */
function element(view: DataView, at: number): { dataAt: number; length: number | null } | null {
  const idBytes = at < view.byteLength ? Math.clz32(view.getUint8(at)) - 23 : 0;
  const sizeAt = at + idBytes;
  if (idBytes < 1 || idBytes > 4 || sizeAt >= view.byteLength) return null;
  const sizeBytes = Math.clz32(view.getUint8(sizeAt)) - 23;
  if (sizeBytes > 8 || sizeAt + sizeBytes > view.byteLength) return null;
  let length = view.getUint8(sizeAt) & (0xff >> sizeBytes);
  let isUnknown = length === 0xff >> sizeBytes;
  for (let i = 1; i < sizeBytes; i++) {
    const byte = view.getUint8(sizeAt + i);
    isUnknown &&= byte === 0xff;
    length = length * 256 + byte;
  }
  return { dataAt: sizeAt + sizeBytes, length: isUnknown ? null : length };
}

const AVIH_AT = 24;

/**
 * ```
 *   RIFF size AVI_ | LIST size hdrl | avih size | microseconds of a frame, rate, grid, flags, frames, ...
 *   0              12               24          32
 * ```
 */
async function avi(bytes: FileBytes, size: number): Promise<CutOff> {
  const head = await bytes.at(0, 64);
  if (head.byteLength < 52 || head.getUint32(AVIH_AT) !== 0x61766968) return WHOLE;
  const isCutOff = head.getUint32(4, true) + 8 > size;
  const lengthMs = head.getUint32(32, true) * head.getUint32(48, true) / 1000;
  return { isCutOff, announcedMs: isCutOff && lengthMs > 0 ? lengthMs : null };
}

const FLV_TAG_HEAD = 11;

/**
 * Whether an FLV file is cut off. The last four bytes are the length of the last tag: that many bytes before
 * them it begins, with its own length.
 */
async function flv(bytes: FileBytes, size: number): Promise<CutOff> {
  const last = await bytes.at(Math.max(0, size - 4), 4);
  if (last.byteLength < 4) return CUT;
  const length = last.getUint32(0);
  const tagAt = size - 4 - length;
  if (length < FLV_TAG_HEAD || tagAt < 9) return CUT;
  const tag = await bytes.at(tagAt, 4);
  const said = (tag.getUint32(0) & 0xffffff) + FLV_TAG_HEAD;
  // Some writers leave out the head of the tag.
  return said === length || said === length + FLV_TAG_HEAD ? WHOLE : CUT;
}

/** Identifier (hexadecimal) of ASF's object with the properties of the file. */
const ASF_PROPERTIES = "a1dcab8c47a9cf118ee400c00c205365";

/**
 * ```
 *   name, length, id of the file, size of the file, date, packets, duration in 100 ns, duration of sending, preroll in ms
 *   0     16      24              40                48    56       64                  72                   80
 * ```
 */
async function asf(bytes: FileBytes, size: number): Promise<CutOff> {
  const head = await bytes.at(0, HEAD_BYTES);
  const at = placeOf(ASF_PROPERTIES, head);
  if (at === null || at + 88 > head.byteLength) return WHOLE;
  if (Number(head.getBigUint64(at + 40, true)) <= size) return WHOLE;
  const lengthMs = Number(head.getBigUint64(at + 64, true)) / 10_000 -
    Number(head.getBigUint64(at + 80, true));
  return { isCutOff: true, announcedMs: lengthMs > 0 ? lengthMs : null };
}

/** Key (hexadecimal) of MXF's partition with the header, without the kind of partition. */
const MXF_PARTITION = "060e2b34020501010d01020101";

/**
 * The header says where the footer begins, once that is written.
 *
 * ```
 *   key, length (4 or 9 bytes), versions, grid, place of it, place of the one before, place of the footer
 *   0    16                     +0        +4    +8           +16                      +24
 * ```
 */
async function mxf(bytes: FileBytes, size: number): Promise<CutOff> {
  const head = await bytes.at(0, HEAD_BYTES);
  const at = placeOf(MXF_PARTITION, head);
  if (at === null || at + 64 > head.byteLength) return WHOLE;
  const long = head.getUint8(at + 16);
  const footerAt = Number(head.getBigUint64(at + 17 + (long > 0x80 ? long - 0x80 : 0) + 24));
  return footerAt >= size ? CUT : WHOLE;
}

const OGG_PAGE = "4f676753";
const OGG_PAGE_BYTES_MAX = 27 + 255 + 255 * 255;

/**
 * Whether an Ogg file is cut off. The last page ends with the file; the sizes of its parts are in its head.
 */
async function ogg(bytes: FileBytes, size: number): Promise<CutOff> {
  const from = Math.max(0, size - OGG_PAGE_BYTES_MAX);
  const tail = await bytes.at(from, OGG_PAGE_BYTES_MAX);
  const at = placeOf(OGG_PAGE, tail, true);
  if (at === null) return WHOLE;
  const partsAt = at + 27;
  const dataAt = at + 26 < tail.byteLength ? partsAt + tail.getUint8(at + 26) : Infinity;
  if (dataAt > tail.byteLength) return CUT;
  const parts = new Uint8Array(tail.buffer, partsAt, dataAt - partsAt);
  return dataAt + parts.reduce((sum, part) => sum + part, 0) > tail.byteLength ? CUT : WHOLE;
}

const GIF_END = 0x3b;
/** Bytes behind the end of a GIF that still count as whole: some writers put zeros there. */
const GIF_REST_BYTES = 64;

async function gif(bytes: FileBytes, size: number): Promise<CutOff> {
  const tail = await bytes.at(Math.max(0, size - GIF_REST_BYTES), GIF_REST_BYTES);
  const rest = new Uint8Array(tail.buffer, 0, tail.byteLength);
  return rest.findLast((byte) => byte !== 0) === GIF_END ? WHOLE : CUT;
}

/** Where these bytes (hexadecimal) begin, first or last; null where they are not. */
function placeOf(
  wanted: string,
  { buffer, byteLength }: DataView<ArrayBuffer>,
  isLast = false,
): number | null {
  const bytes = new Uint8Array(buffer, 0, byteLength);
  const sought = Uint8Array.fromHex(wanted);
  const isThere = (_: number, at: number) => sought.every((byte, i) => bytes[at + i] === byte);
  const at = isLast ? bytes.findLastIndex(isThere) : bytes.findIndex(isThere);
  return at < 0 ? null : at;
}
