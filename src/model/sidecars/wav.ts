/** WAV files: finding the samples in one, and writing one. Only 16-bit PCM, the only format in use here. */

/** The shape of a 16-bit PCM file. */
export interface WavShape {
  readonly sampleRateHz: number;
  readonly channels: number;
  /** The position and length of the samples in bytes; whole frames only. */
  readonly dataStart: number;
  readonly dataBytes: number;
  readonly durationMs: number;
}

/**
 * Finds the samples of a 16-bit PCM WAV. A data chunk with a wrong length (0, or beyond the end, from
 * programs that do not know the length when they write the header) extends to the end of the file. A text
 * result says what is wrong.
 */
export function readWav(bytes: Uint8Array): WavShape | string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const tag = (at: number) => String.fromCharCode(...bytes.subarray(at, at + 4));
  if (bytes.length < RIFF_BYTES || tag(0) !== "RIFF" || tag(8) !== "WAVE") return "it is no RIFF WAVE file";
  let format: Pick<WavShape, "sampleRateHz" | "channels"> | undefined;
  let at = RIFF_BYTES;
  while (at + CHUNK_HEADER_BYTES <= bytes.length) {
    const id = tag(at);
    const length = view.getUint32(at + 4, true);
    const start = at + CHUNK_HEADER_BYTES;
    if (id === "fmt ") {
      if (format) return "it has two format chunks";
      if (length < FORMAT_BYTES || start + length > bytes.length) return "its format chunk is cut off";
      const code = view.getUint16(start, true);
      const isPcm = code === PCM ||
        code === EXTENSIBLE && length >= EXTENSIBLE_BYTES && view.getUint16(start + 24, true) === PCM;
      const [channels, sampleRateHz] = [view.getUint16(start + 2, true), view.getUint32(start + 4, true)];
      const [frameBytes, bits] = [view.getUint16(start + 12, true), view.getUint16(start + 14, true)];
      if (!isPcm || bits !== SAMPLE_BITS) {
        return `its samples are not 16-bit PCM (format ${code}, ${bits} bits)`;
      }
      if (channels < 1 || sampleRateHz < 1 || frameBytes !== channels * SAMPLE_BYTES) {
        return "its format contradicts itself";
      }
      format = { channels, sampleRateHz };
    } else if (id === "data") {
      if (!format) return "its samples come before their format";
      const there = bytes.length - start;
      const claimed = length === 0 || length > there ? there : length;
      const frameBytes = format.channels * SAMPLE_BYTES;
      const dataBytes = claimed - claimed % frameBytes;
      const durationMs = dataBytes / frameBytes / format.sampleRateHz * 1000;
      return { ...format, dataStart: start, dataBytes, durationMs };
    }
    at = start + length + length % 2;
  }
  return format ? "it has no samples" : "it has no format";
}

/** The samples, which may start at an odd byte. */
export function wavSamples(bytes: Uint8Array, { dataStart, dataBytes }: WavShape): Int16Array<ArrayBuffer> {
  const view = new DataView(bytes.buffer, bytes.byteOffset + dataStart, dataBytes);
  const samples = new Int16Array(dataBytes / SAMPLE_BYTES);
  for (let index = 0; index < samples.length; index += 1) {
    samples[index] = view.getInt16(index * SAMPLE_BYTES, true);
  }
  return samples;
}

/** A mono 16-bit PCM file with the shortest header. */
export function wavOf(samples: Int16Array, sampleRateHz: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(WAV_HEADER_BYTES + samples.length * SAMPLE_BYTES);
  const view = new DataView(bytes.buffer);
  const tag = (at: number, text: string) => bytes.set(new TextEncoder().encode(text), at);
  tag(0, "RIFF");
  view.setUint32(4, bytes.length - 8, true);
  tag(8, "WAVEfmt ");
  view.setUint32(16, FORMAT_BYTES, true);
  view.setUint16(20, PCM, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, sampleRateHz, true);
  view.setUint32(28, sampleRateHz * SAMPLE_BYTES, true);
  view.setUint16(32, SAMPLE_BYTES, true);
  view.setUint16(34, SAMPLE_BITS, true);
  tag(36, "data");
  view.setUint32(40, samples.length * SAMPLE_BYTES, true);
  for (let index = 0; index < samples.length; index += 1) {
    view.setInt16(WAV_HEADER_BYTES + index * SAMPLE_BYTES, samples[index]!, true);
  }
  return bytes;
}

const RIFF_BYTES = 12;
const CHUNK_HEADER_BYTES = 8;
const FORMAT_BYTES = 16;
/** The header that `wavOf` writes. */
export const WAV_HEADER_BYTES = 44;
const EXTENSIBLE_BYTES = 26;
const PCM = 1;
const EXTENSIBLE = 0xfffe;
const SAMPLE_BITS = 16;
export const SAMPLE_BYTES = 2;
/** The rate of the mono sound that the audio sidecar gets. */
export const SIDECAR_SAMPLE_RATE_HZ = 16_000;
