/** Whether a file ends before its container does, by the sizes that the container itself has. Reads a few bytes, wherever they are. */

export interface CutOff {
  readonly isCutOff: boolean;
  /** How long the video is by its header, milliseconds, where ffprobe would say how long the rest of a cut file is; else null. */
  readonly announcedMs: number | null;
}

const WHOLE: CutOff = { isCutOff: false, announcedMs: null };
const CUT: CutOff = { isCutOff: true, announcedMs: null };
/** Boxes at the top of an MP4 file: a long fragmented one has two for each second or so. */
const BOXES_MAX = 100_000;
const HEAD_BYTES = 4096;

/** `formatName` is ffprobe's. Of containers that do not say their size, nothing is known: they count as whole. */
export async function cutOff(path: string, formatName: string): Promise<CutOff> {
  const read = READERS.find(([format]) => format.test(formatName))?.[1];
  if (!read) return WHOLE;
  using file = await Deno.open(path, { read: true });
  const { size } = await file.stat();
  return await read(new Bytes(file), size);
}

/** Bytes of a file, at any place. */
class Bytes {
  readonly #file: Deno.FsFile;

  constructor(file: Deno.FsFile) {
    this.#file = file;
  }

  /** Up to `length` bytes from `at` on: fewer where the file ends. */
  async at(at: number, length: number): Promise<DataView<ArrayBuffer>> {
    const bytes = new Uint8Array(length);
    await this.#file.seek(at, Deno.SeekMode.Start);
    let filled = 0;
    while (filled < length) {
      const got = await this.#file.read(bytes.subarray(filled));
      if (got === null) break;
      filled += got;
    }
    return new DataView(bytes.buffer, 0, filled);
  }
}

type Reader = (bytes: Bytes, size: number) => Promise<CutOff>;

const READERS: readonly (readonly [RegExp, Reader])[] = [
  [/^mov\b/, boxes],
  [/^matroska\b/, matroska],
  [/^avi\b/, avi],
  [/^flv\b/, flv],
  [/^asf\b/, asf],
];

/** Boxes follow each other; each begins with its size, and one without a size goes to the end of the file. */
async function boxes(bytes: Bytes, size: number): Promise<CutOff> {
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

/** The EBML header, then the segment, whose size may be unknown. */
async function matroska(bytes: Bytes, size: number): Promise<CutOff> {
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
async function avi(bytes: Bytes, size: number): Promise<CutOff> {
  const head = await bytes.at(0, 64);
  if (head.byteLength < 52 || head.getUint32(AVIH_AT) !== 0x61766968) return WHOLE;
  const isCutOff = head.getUint32(4, true) + 8 > size;
  const lengthMs = head.getUint32(32, true) * head.getUint32(48, true) / 1000;
  return { isCutOff, announcedMs: isCutOff && lengthMs > 0 ? lengthMs : null };
}

const FLV_TAG_HEAD = 11;

/** The last four bytes are the length of the last tag, which begins so many bytes before them, with its own length. */
async function flv(bytes: Bytes, size: number): Promise<CutOff> {
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

/** Of the object with the properties of the file: its name, its length, the id of the file, and the size of the file. */
const ASF_PROPERTIES = [
  0xa1,
  0xdc,
  0xab,
  0x8c,
  0x47,
  0xa9,
  0xcf,
  0x11,
  0x8e,
  0xe4,
  0,
  0xc0,
  0x0c,
  0x20,
  0x53,
  0x65,
];

async function asf(bytes: Bytes, size: number): Promise<CutOff> {
  const head = await bytes.at(0, HEAD_BYTES);
  for (let at = 0; at + 48 <= head.byteLength; at++) {
    if (!ASF_PROPERTIES.every((byte, i) => head.getUint8(at + i) === byte)) continue;
    return Number(head.getBigUint64(at + 40, true)) > size ? CUT : WHOLE;
  }
  return WHOLE;
}
