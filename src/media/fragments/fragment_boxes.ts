/** Writes a fragment of an MP4 (ISO/IEC 14496-12): the boxes `moof` and `mdat`. */

// mediabunny, which makes the evidence clips and the first part of these streams, ends a fragment at a key frame only: with the key
// frames of cameras, viewers would be seconds behind.

/** A unit in decoding order. */
export interface Sample {
  readonly data: Uint8Array;
  /** In ticks of the track. */
  readonly duration: number;
  /** From when it is decoded until it is shown, ticks. */
  readonly offset: number;
  readonly isKeyframe: boolean;
}

/** The samples of one track; at least one. */
export interface TrackRun {
  readonly trackId: number;
  /** When the first one is decoded, ticks of the track. */
  readonly decodeTime: number;
  readonly samples: readonly Sample[];
}

/*
 *   moof ── mfhd  number
 *        └─ traf ─┬─ tfhd  track
 *                 ├─ tfdt  decode time of the first sample
 *                 └─ trun  place of the data; for each sample: duration, size, flags, offset
 *   mdat    the data of all samples, track by track
 */
const BOX_BYTES = 8;
const MFHD_BYTES = 16;
const TFHD_BYTES = 16;
const TFDT_BYTES = 20;
const TRUN_BYTES = 20;
const SAMPLE_BYTES = 16;
/** Places of data count from the beginning of `moof`. */
const BASE_IS_MOOF = 0x020000;
/** `trun` has the place of the data, and all four fields of each sample. */
const ALL_FIELDS = 0xf01;
/** Offsets may be negative, decode times have 64 bits. */
const VERSION_1 = 1 << 24;
const DEPENDS_ON_NOTHING = 0x02000000;
const DEPENDS_ON_OTHERS = 0x01010000;

/** `number` counts fragments from 1. */
export function fragmentBytes(number: number, runs: readonly TrackRun[]): Uint8Array<ArrayBuffer> {
  const moofBytes = BOX_BYTES + MFHD_BYTES + runs.reduce((sum, run) => sum + trafBytes(run), 0);
  const dataBytes = runs.reduce((sum, run) => sum + bytesOf(run), 0);
  const bytes = new Uint8Array(moofBytes + BOX_BYTES + dataBytes);
  const boxes = new Boxes(bytes);
  boxes.begin("moof", moofBytes);
  boxes.begin("mfhd", MFHD_BYTES).numbers(0, number);
  let place = moofBytes + BOX_BYTES;
  for (const run of runs) {
    writeTrack(boxes, run, place);
    place += bytesOf(run);
  }
  boxes.begin("mdat", BOX_BYTES + dataBytes);
  for (const { samples } of runs) for (const { data } of samples) boxes.data(data);
  return bytes;
}

function writeTrack(boxes: Boxes, run: TrackRun, place: number): void {
  const { trackId, decodeTime, samples } = run;
  boxes.begin("traf", trafBytes(run));
  boxes.begin("tfhd", TFHD_BYTES).numbers(BASE_IS_MOOF, trackId);
  boxes.begin("tfdt", TFDT_BYTES).numbers(VERSION_1, Math.floor(decodeTime / 2 ** 32), decodeTime % 2 ** 32);
  boxes.begin("trun", trunBytes(run)).numbers(VERSION_1 + ALL_FIELDS, samples.length, place);
  for (const { data, duration, offset, isKeyframe } of samples) {
    boxes.numbers(duration, data.length, isKeyframe ? DEPENDS_ON_NOTHING : DEPENDS_ON_OTHERS, offset);
  }
}

function trafBytes(run: TrackRun): number {
  return BOX_BYTES + TFHD_BYTES + TFDT_BYTES + trunBytes(run);
}

function trunBytes({ samples }: TrackRun): number {
  return TRUN_BYTES + SAMPLE_BYTES * samples.length;
}

function bytesOf({ samples }: TrackRun): number {
  return samples.reduce((sum, { data }) => sum + data.length, 0);
}

class Boxes {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array<ArrayBuffer>) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer);
  }

  /** The type has four letters. */
  begin(type: string, sizeBytes: number): this {
    this.numbers(sizeBytes);
    for (let letter = 0; letter < 4; letter++) this.#bytes[this.#at++] = type.charCodeAt(letter);
    return this;
  }

  /** Of 32 bits each, negative ones as two's complement. */
  numbers(...values: readonly number[]): void {
    for (const value of values) {
      this.#view.setUint32(this.#at, value);
      this.#at += 4;
    }
  }

  data(data: Uint8Array): void {
    this.#bytes.set(data, this.#at);
    this.#at += data.length;
  }
}
