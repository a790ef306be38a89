/** Reads the frame size from a sequence parameter set of H.264 or H.265, with cropping applied. */

import { BitReader, unescaped } from "./bit_reader.ts";

interface Size {
  readonly width: number;
  readonly height: number;
}

/** Bytes of a set that are read: enough for everything before the size, including scaling lists. */
const BYTES_READ = 1024;
/** The longest side: no level of either standard has a longer one. */
const SIDE_MAX = 16_384;

const PROFILES_WITH_CHROMA = new Set([100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135]);

/** The size in a set of H.264 (7.3.2.1.1); null when the set is cut off or invalid. */
export function h264Size(nal: Uint8Array): Size | null {
  const bits = new BitReader(unescaped(nal, BYTES_READ), 1);
  const profile = bits.read(8);
  bits.skip(16);
  bits.readGolomb();
  const chroma = PROFILES_WITH_CHROMA.has(profile) ? readChroma(bits) : 1;
  bits.readGolomb();
  const orderType = bits.readGolomb();
  if (orderType === 0) bits.readGolomb();
  if (orderType === 1) skipOrderCycle(bits);
  bits.readGolomb();
  bits.skip(1);
  const widthBlocks = bits.readGolomb() + 1;
  const heightUnits = bits.readGolomb() + 1;
  const fieldFactor = 2 - bits.read(1);
  if (fieldFactor === 2) bits.skip(1);
  bits.skip(1);
  const crop = readCrop(bits);
  const unitX = chroma === 1 || chroma === 2 ? 2 : 1;
  const unitY = (chroma === 1 ? 2 : 1) * fieldFactor;
  return sizeOf(bits, {
    width: widthBlocks * 16 - crop.horizontal * unitX,
    height: heightUnits * 16 * fieldFactor - crop.vertical * unitY,
  });
}

/** The size in a set of H.265 (7.3.2.2.1); null when the set is cut off or invalid. */
export function h265Size(nal: Uint8Array): Size | null {
  const bits = new BitReader(unescaped(nal, BYTES_READ), 2);
  bits.skip(4);
  const subLayers = bits.read(3);
  bits.skip(1);
  bits.skip(96);
  const present = Array.from({ length: subLayers }, () => [bits.read(1), bits.read(1)] as const);
  if (subLayers > 0) bits.skip(2 * (8 - subLayers));
  for (const [profile, level] of present) bits.skip(profile * 88 + level * 8);
  bits.readGolomb();
  const chroma = bits.readGolomb();
  if (chroma === 3) bits.skip(1);
  const width = bits.readGolomb();
  const height = bits.readGolomb();
  const crop = readCrop(bits);
  return sizeOf(bits, {
    width: width - crop.horizontal * (chroma === 1 || chroma === 2 ? 2 : 1),
    height: height - crop.vertical * (chroma === 1 ? 2 : 1),
  });
}

function sizeOf(bits: BitReader, size: Size): Size | null {
  const isSide = (side: number) => side >= 1 && side <= SIDE_MAX;
  return !bits.isPastEnd && isSide(size.width) && isSide(size.height) ? size : null;
}

function readCrop(bits: BitReader): { horizontal: number; vertical: number } {
  if (bits.read(1) === 0) return { horizontal: 0, vertical: 0 };
  const horizontal = bits.readGolomb() + bits.readGolomb();
  return { horizontal, vertical: bits.readGolomb() + bits.readGolomb() };
}

/**
 * Reads from `chroma_format_idc` to the end of the scaling lists; returns `chroma_format_idc`, or 0 for
 * separate planes.
 */
function readChroma(bits: BitReader): number {
  const chroma = bits.readGolomb();
  const isSeparate = chroma === 3 && bits.read(1) === 1;
  bits.readGolomb();
  bits.readGolomb();
  bits.skip(1);
  if (bits.read(1) === 1) {
    for (let list = 0; list < (chroma === 3 ? 12 : 8); list++) {
      if (bits.read(1) === 1) skipScalingList(bits, list < 6 ? 16 : 64);
    }
  }
  return isSeparate ? 0 : chroma;
}

function skipScalingList(bits: BitReader, entries: number): void {
  let last = 8;
  let next = 8;
  for (let entry = 0; entry < entries; entry++) {
    if (next !== 0) next = (last + bits.readSignedGolomb() + 256) % 256;
    if (next !== 0) last = next;
  }
}

function skipOrderCycle(bits: BitReader): void {
  bits.skip(1);
  bits.readGolomb();
  bits.readGolomb();
  const frames = Math.min(bits.readGolomb(), 255);
  for (let frame = 0; frame < frames; frame++) bits.readGolomb();
}
