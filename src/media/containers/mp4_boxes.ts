/** Boxes of ISO base media files (ISO/IEC 14496-12): finds them in bytes, and writes them. */

import { joinedBytes } from "../../base/bytes.ts";

/** A box within bytes: `[start, end)` with its header, its content from `content` on. */
export interface Mp4Box {
  readonly type: string;
  readonly start: number;
  readonly content: number;
  readonly end: number;
}

/** Bytes that are no file of this kind. */
export class Mp4Error extends Error {
  override readonly name = "Mp4Error";
}

const HEADER_BYTES = 8;
const LARGE_HEADER_BYTES = 16;

/** The boxes between two places, one after the other. Errors: `Mp4Error`. */
export function boxesIn(bytes: Uint8Array, from = 0, to = bytes.length): Mp4Box[] {
  const boxes: Mp4Box[] = [];
  for (let at = from; at < to;) {
    const box = boxAt(bytes, at);
    if (box.end > to) throw new Mp4Error(`the box ${box.type} is longer than what has it`);
    boxes.push(box);
    at = box.end;
  }
  return boxes;
}

/** The box that begins at `at`; its content may not be in the bytes. */
export function boxAt(bytes: Uint8Array, at: number): Mp4Box {
  if (at + HEADER_BYTES > bytes.length) throw new Mp4Error("a box without a header");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const type = String.fromCharCode(...bytes.subarray(at + 4, at + HEADER_BYTES));
  let [size, head] = [view.getUint32(at), HEADER_BYTES];
  if (size === 1 && at + LARGE_HEADER_BYTES <= bytes.length) {
    [size, head] = [Number(view.getBigUint64(at + HEADER_BYTES)), LARGE_HEADER_BYTES];
  }
  if (size < head) throw new Mp4Error(`the box ${type} has no size`);
  return { type, start: at, content: at + head, end: at + size };
}

/**
 * The first box on the path, such as `mdia/minf/stbl`, inside `parent`. Errors: `Mp4Error` where there is
 * none.
 */
export function boxOn(bytes: Uint8Array, path: string, parent?: Pick<Mp4Box, "content" | "end">): Mp4Box {
  const [type, ...rest] = path.split("/");
  const found = boxesIn(bytes, parent?.content, parent?.end).find((box) => box.type === type);
  if (!found) throw new Mp4Error(`no box ${type}`);
  return rest.length === 0 ? found : boxOn(bytes, rest.join("/"), found);
}

/** A whole box, its header included. */
export function bytesOf(bytes: Uint8Array, { start, end }: Mp4Box): Uint8Array {
  return bytes.subarray(start, end);
}

/** The configuration record (`avcC`, `hvcC`) of the first video track of a file. */
export function decoderConfiguration(mp4: Uint8Array): Uint8Array {
  const moov = boxOn(mp4, "moov");
  for (const trak of boxesIn(mp4, moov.content, moov.end).filter(({ type }) => type === "trak")) {
    const stsd = boxOn(mp4, "mdia/minf/stbl/stsd", trak);
    const entry = boxAt(mp4, stsd.content + 8);
    if (!VIDEO_ENTRIES.includes(entry.type)) continue;
    const inside = { content: entry.content + VIDEO_ENTRY_BYTES, end: entry.end };
    const record = boxesIn(mp4, inside.content, inside.end).find(({ type }) => /^(avcC|hvcC)$/.test(type));
    if (record) return bytesOf(mp4, record);
  }
  throw new Mp4Error("no video track");
}

/** Types of video entries that clips and recordings have. */
const VIDEO_ENTRIES: readonly string[] = ["avc1", "avc3", "hvc1", "hev1"];
/** Bytes of a VisualSampleEntry before its boxes. */
const VIDEO_ENTRY_BYTES = 78;

/** A box of these parts. */
export function box(type: string, ...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const size = HEADER_BYTES + parts.reduce((sum, { length }) => sum + length, 0);
  return joinedBytes(uint32(size), new TextEncoder().encode(type), ...parts);
}

/** A box with a version and flags. */
export function fullBox(
  type: string,
  { version = 0, flags = 0 }: { readonly version?: number; readonly flags?: number },
  ...parts: readonly Uint8Array[]
): Uint8Array<ArrayBuffer> {
  return box(type, uint32(version * 2 ** 24 + flags), ...parts);
}

export function uint32(...values: readonly number[]): Uint8Array<ArrayBuffer> {
  return uint32List(values);
}

/** The bytes of many numbers of 32 bits; those below 0 in two's complement. */
export function uint32List(values: readonly number[]): Uint8Array<ArrayBuffer> {
  const bytes = new DataView(new ArrayBuffer(4 * values.length));
  values.forEach((value, index) => bytes.setUint32(4 * index, value));
  return new Uint8Array(bytes.buffer);
}

export function uint64(value: number): Uint8Array<ArrayBuffer> {
  const bytes = new DataView(new ArrayBuffer(8));
  bytes.setBigUint64(0, BigInt(value));
  return new Uint8Array(bytes.buffer);
}
