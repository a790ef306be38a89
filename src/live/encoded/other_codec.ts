/** Sees where a stream goes on with the other one of H.264 and H.265: ffmpeg passes its packets on as those
 * of the first one.
 */

import { type ClipCodec, isSizedPrefix } from "../../media/containers/parameter_sets.ts";
import { h264Size, h265Size } from "../../rtc/depacketize/sequence_size.ts";
import type { EncodedStreams } from "./unit_tap.ts";

/**
 * Whether a packet of video has nothing but NAL units of the other codec, and pictures of it can begin there.
 * ffmpeg may call it no key frame, and may give the parameter sets and their picture apart. The first bytes
 * tell of nearly every packet that it is as it should be.
 *
 * ```
 *   H.264   0 ref type      every picture has a type of 1 or 5, so its byte is odd
 *   H.265   0 type layer    the byte is odd from layer 32 on, and no stream has so many
 * ```
 */
export function isOfOtherCodec(
  { codec, codecData }: Pick<EncodedStreams, "codec" | "codecData">,
  data: Uint8Array,
): boolean {
  const other = codec === "h264" ? H265 : H264;
  let hasBegin = false;
  for (const at of unitStarts(data, sizeBytesOf(codec, codecData))) {
    if (!other.isUnit(data[at]!, data[at + 1])) return false;
    hasBegin ||= other.isBegin(data.subarray(at));
  }
  return hasBegin;
}

interface UnitRules {
  /** Whether a NAL unit is of the codec, by its first two bytes. */
  readonly isUnit: (first: number, second: number | undefined) => boolean;
  /** Whether a NAL unit is a picture that needs no other, or a sequence parameter set that can be read. */
  readonly isBegin: (unit: Uint8Array) => boolean;
}

const [IDR, SPS] = [5, 7];
/**
 * Types of H.264's NAL units, besides slices, that an access unit may have with a `nal_ref_idc` of 0; below
 * are those with another one.
 */
const NEVER_REFERRED = new Set([6, 9, 10, 11, 12]);
const ALWAYS_REFERRED = new Set([IDR, SPS, 8, 13, 15]);
const SOMETIMES_REFERRED = new Set([1, 14, 19, 20]);

const H264: UnitRules = {
  isUnit: (first) => {
    const [reference, type] = [first >> 5, first & 31];
    if (reference > 3) return false;
    return SOMETIMES_REFERRED.has(type) || (reference === 0 ? NEVER_REFERRED : ALWAYS_REFERRED).has(type);
  },
  isBegin: (unit) => {
    const type = unit[0]! & 31;
    return type === IDR || type === SPS && h264Size(unit) !== null;
  },
};

/**
 * First bytes of H.265's NAL units in the first layer: `type << 1`. The second byte is then 1, for the first
 * sublayer.
 */
const [FIRST_BEGIN, LAST_BEGIN, H265_SPS] = [16 << 1, 21 << 1, 33 << 1];

const H265: UnitRules = {
  isUnit: (first, second = 0) => (first & 0x81) === 0 && (second & 7) !== 0,
  isBegin: (unit) => {
    const [first, second] = unit;
    if (second !== 1) return false;
    return first! >= FIRST_BEGIN && first! <= LAST_BEGIN || first === H265_SPS && h265Size(unit) !== null;
  },
};

/** Length in bytes of the size before each NAL unit, by the configuration record; 0 for start codes. */
function sizeBytesOf(codec: ClipCodec, codecData: Uint8Array): number {
  return isSizedPrefix(codecData) ? (codecData[codec === "h264" ? 4 : 21]! & 3) + 1 : 0;
}

/** Where the NAL units begin, one after the other: most of them need not be looked for. */
function* unitStarts(data: Uint8Array, sizeBytes: number): Generator<number, void> {
  if (sizeBytes === 0) {
    // A start code ends with the only 1 that two zeros may stand before.
    for (let one = data.indexOf(1, 2); one !== -1; one = data.indexOf(1, one + 1)) {
      if (data[one - 1] === 0 && data[one - 2] === 0 && one + 1 < data.length) yield one + 1;
    }
    return;
  }
  for (let at = sizeBytes; at < data.length; at += sizeBytes) {
    yield at;
    at += data.subarray(at - sizeBytes, at).reduce((size, byte) => size * 256 + byte, 0);
  }
}
