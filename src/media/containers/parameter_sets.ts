/** Parameter sets of H.264 and H.265, as far as an MP4 has to name them. */

/**
 * The codecs of live video that become clips: every browser plays H.264 in MP4, and those that decode H.265
 * play it too.
 */
export type ClipCodec = "h264" | "h265";

const H264_SPS = 7;
const H265_SPS = 33;
/** The first byte of a configuration record. Annex B begins with 0. */
const RECORD_VERSION = 1;

/**
 * Whether the codec data is a configuration record, with which each NAL unit has its size before it instead
 * of a start code.
 */
export function isSizedPrefix(codecData: Uint8Array): boolean {
  return codecData[0] === RECORD_VERSION;
}

/** Whether Annex B data has a sequence parameter set. */
export function hasParameterSets(codec: ClipCodec, data: Uint8Array): boolean {
  return sequenceSet(codec, data) !== null;
}

/**
 * The name by RFC 6381, such as `avc1.42e01f`, by a configuration record or Annex B data; null where neither
 * has it.
 */
export function videoCodecName(codec: ClipCodec, data: Uint8Array): string | null {
  if (codec === "h264") {
    const profile = isSizedPrefix(data) ? data.subarray(1, 4) : sequenceSet(codec, data)?.subarray(1, 4);
    return profile?.length === 3 ? `avc1.${new Uint8Array(profile).toHex()}` : null;
  }
  // Two bytes of the NAL unit and one of the set come before the profile.
  const profile = isSizedPrefix(data)
    ? data.subarray(1, 13)
    : withoutEscapes(sequenceSet(codec, data)?.subarray(3, 32))?.subarray(0, 12);
  return profile?.length === 12 ? h265Name(profile) : null;
}

/** Name of an H.265 profile by RFC 6381, see ISO/IEC 14496-15, annex E.3. */
function h265Name(profile: Uint8Array): string {
  const [first, ...compatibility] = profile.subarray(0, 5);
  const space = ["", "A", "B", "C"][first! >> 6]!;
  const flags = compatibility.reduce((bits, byte) => bits * 256 + byte, 0);
  const constraints = Array.from(profile.subarray(5, 11));
  while (constraints.at(-1) === 0) constraints.pop();
  return [
    `hvc1.${space}${first! & 31}`,
    reversed(flags).toString(16).toUpperCase(),
    `${first! & 32 ? "H" : "L"}${profile[11]}`,
    ...constraints.map((byte) => byte.toString(16).toUpperCase()),
  ].join(".");
}

function reversed(bits: number): number {
  let result = 0;
  for (let place = 0; place < 32; place++) result = result * 2 + (Math.floor(bits / 2 ** place) & 1);
  return result;
}

/**
 * The first sequence parameter set, from its NAL unit's header on; it may be followed by other bytes. Null
 * without one.
 */
export function sequenceSet(codec: ClipCodec, data: Uint8Array): Uint8Array | null {
  for (let at = startOf(data, 0); at !== -1; at = startOf(data, at)) {
    const header = data[at]!;
    if (codec === "h264" ? (header & 31) === H264_SPS : (header >> 1 & 63) === H265_SPS) {
      return data.subarray(at);
    }
  }
  return null;
}

/** The place after the next start code, -1 without one. */
function startOf(data: Uint8Array, from: number): number {
  for (let at = from; at + 3 < data.length; at++) {
    if (data[at] === 0 && data[at + 1] === 0 && data[at + 2] === 1) return at + 3;
  }
  return -1;
}

/** Takes out the byte that keeps two zeros from looking like a start code. */
function withoutEscapes(data: Uint8Array | undefined): Uint8Array | undefined {
  return data &&
    Uint8Array.from(data).filter((byte, at) => !(byte === 3 && data[at - 1] === 0 && data[at - 2] === 0));
}
