/** Reads a NUT container in place, in a window of bytes: one video stream, or several copied ones; allocates
 * nothing per frame.
 */

/** The bytes are not the NUT stream that ffmpeg was asked for. */
export class NutError extends Error {
  override readonly name = "NutError";
}

/** One stream of a NUT container, by its header. */
export interface NutStream {
  readonly isVideo: boolean;
  /** Seconds = pts * numerator / denominator. */
  readonly numerator: number;
  readonly denominator: number;
  /** The codec's own data, such as parameter sets; empty for none. */
  readonly codecData: Uint8Array<ArrayBuffer>;
  /** Pixels of a video stream, else 0. */
  readonly width: number;
  readonly height: number;
  /** The most pictures that are shown later than one that comes after them. */
  readonly reorderDepth: number;
  /** Samples a second of a sound stream, else 0. */
  readonly sampleRateHz: number;
  readonly channels: number;
}

interface ReadStream extends NutStream {
  readonly ptsShift: number;
  lastPts: number;
}

/**
 * A pull parser. `read` gets a window of bytes, parses one element and returns the position after it:
 *
 * ```
 *   file id | main header | stream header | info* | ( syncpoint? frame )* | headers again, index
 *
 *   element   = startcode(8) forward_ptr [header checksum(4)] payload checksum(4)
 *   syncpoint = an element that resets the time predictor
 *   frame     = frame_code(1) [fields, as the frame code's flags say] data
 * ```
 *
 * Checksums are skipped: the bytes come through a pipe from a child process and never touch a disk or a
 * network.
 */
export class NutReader {
  /** Whether the last `read` parsed a frame; the fields below then describe it. */
  hasFrame = false;
  /**
   * Whether the last `read` skipped a frame that is too long: then only its stream and its size are
   * described.
   */
  isTooLong = false;
  /** Index into `streams` of the stream of the frame. */
  frameStream = 0;
  isKeyframe = false;
  /** Bytes that belong before the frame's data; always empty for raw video. */
  frameHead: Uint8Array<ArrayBuffer> = NO_BYTES;
  /** Where the frame's data begins in the bytes that were passed to `read`. */
  frameOffset = 0;
  /**
   * Bytes of the frame's data. Like its time, they are known as soon as the window has what stands before the
   * data.
   */
  frameBytes = 0;
  /** Time of the frame, in units of its stream's time base. */
  framePts = 0;
  /** The time base of the first stream, seconds = pts * numerator / denominator. */
  timeBaseNumerator = 0;
  timeBaseDenominator = 1;
  /** Size of the first stream's frames in pixels; 0 before its header was read. */
  width = 0;
  height = 0;

  readonly #streamsMax: number;
  readonly #frameBytesMax: number;
  readonly #streams: ReadStream[] = [];

  readonly #timeBases: { numerator: number; denominator: number }[] = [];
  readonly #codes = new FrameCodes();
  #version = 0;
  #hasMainHeader = false;
  /** The headers that frames may leave out. ffmpeg leaves out none for raw video. */
  #elided: Uint8Array<ArrayBuffer>[] = [NO_BYTES];
  #isBroadcast = false;

  /** The window of the current `read`, and whether it ran out of bytes. */
  #bytes: Uint8Array = new Uint8Array();
  #at = 0;
  #to = 0;
  #isShort = false;

  /** Makes a reader. Unless given, it takes one stream, which must be video, and frames of any size. */
  constructor(
    { streamsMax = 1, frameBytesMax = Infinity }: {
      readonly streamsMax?: number;
      readonly frameBytesMax?: number;
    } = {},
  ) {
    this.#streamsMax = streamsMax;
    this.#frameBytesMax = frameBytesMax;
  }

  /** The streams whose headers were read. */
  get streams(): readonly NutStream[] {
    return this.#streams;
  }

  /** Prepares for a new file. */
  reset(): void {
    this.hasFrame = false;
    this.#timeBases.length = 0;
    this.#hasMainHeader = false;
    this.#streams.length = 0;
    this.width = 0;
    this.height = 0;
  }

  /**
   * Parses the element that starts at `from`. Returns the position after it, or -1 when the window `[from,
   * to)` does not contain all of it. The position may be greater than `to`: then the rest of a skipped
   * element is still to come.
   */
  read(bytes: Uint8Array, from: number, to: number): number {
    this.hasFrame = false;
    this.isTooLong = false;
    this.#bytes = bytes;
    this.#at = from;
    this.#to = to;
    this.#isShort = false;
    if (from >= to) return -1;
    if (!this.#hasMainHeader && bytes[from] === LOWERCASE_N) return this.#skipFileId();
    if (bytes[from] === UPPERCASE_N) return this.#readElement();
    return this.#readFrame();
  }

  #skipFileId(): number {
    if (this.#to - this.#at < FILE_ID.length) return -1;
    for (let i = 0; i < FILE_ID.length; i++) {
      if (this.#bytes[this.#at + i] !== FILE_ID.charCodeAt(i)) throw new NutError("no NUT file id");
    }
    return this.#at + FILE_ID.length;
  }

  #readElement(): number {
    const high = this.#uint32();
    const low = this.#uint32();
    const forward = this.#number();
    if (forward > LONG_ELEMENT_BYTES) this.#uint32();
    if (this.#isShort) return -1;
    const end = this.#at + forward;
    const kind = low === startcodeLow(high) ? high : 0;
    if (kind === INFO || kind === INDEX) return end;
    if (end > this.#to) return -1;
    if (kind === MAIN) this.#readMainHeader(end - CHECKSUM_BYTES);
    else if (kind === STREAM) this.#readStreamHeader();
    else if (kind === SYNCPOINT) this.#readSyncpoint();
    else throw new NutError("unknown startcode");
    if (this.#isShort || this.#at > end) throw new NutError("a header is longer than it says");
    return end;
  }

  #readMainHeader(end: number): void {
    this.#version = this.#number();
    if (this.#version < 2 || this.#version > 4) throw new NutError(`NUT version ${this.#version}`);
    if (this.#version > 3) this.#number(); // minor version
    const streams = this.#number();
    if (streams < 1 || streams > this.#streamsMax) {
      throw new NutError(this.#streamsMax === 1 ? "not exactly one stream" : `${streams} streams`);
    }
    this.#number(); // max_distance
    this.#timeBases.length = 0;
    for (let left = this.#number(); left > 0 && !this.#isShort; left--) {
      this.#timeBases.push({ numerator: this.#number(), denominator: this.#number() });
    }
    this.#readFrameCodes();
    this.#elided = [NO_BYTES];
    if (this.#at < end) {
      for (let left = this.#number(); left > 0 && !this.#isShort; left--) this.#elided.push(this.#blob());
    }
    this.#isBroadcast = this.#at < end && (this.#number() & BROADCAST_MODE) !== 0;
    this.#hasMainHeader = true;
  }

  /** The 256 rows are run-length coded: each run repeats a row, counting up the size. */
  #readFrameCodes(): void {
    const codes = this.#codes;
    let ptsDelta = 0;
    let multiplier = 1;
    let stream = 0;
    let elision = 0;
    for (let code = 0; code < 256 && !this.#isShort;) {
      const flags = this.#number();
      const fields = this.#number();
      if (fields > 0) ptsDelta = this.#signed();
      if (fields > 1) multiplier = this.#number();
      if (fields > 2) stream = this.#number();
      const size = fields > 3 ? this.#number() : 0;
      const reserved = fields > 4 ? this.#number() : 0;
      let run = fields > 5 ? this.#number() : multiplier - size;
      if (fields > 6) this.#signed(); // match time
      if (fields > 7) elision = this.#number();
      for (let extra = 8; extra < fields; extra++) this.#number();
      if (run <= 0 && !this.#isShort) throw new NutError("an empty run of frame codes");
      for (let i = 0; run > 0 && code < 256; code++) {
        if (code === UPPERCASE_N) {
          codes.flags[code] = IS_INVALID;
          continue;
        }
        codes.flags[code] = flags;
        codes.ptsDelta[code] = ptsDelta;
        codes.sizeMultiplier[code] = multiplier;
        codes.stream[code] = stream;
        codes.size[code] = size + i;
        codes.reserved[code] = reserved;
        codes.elision[code] = elision;
        i++;
        run--;
      }
    }
  }

  #readStreamHeader(): void {
    const stream = this.#number();
    const streamClass = this.#number();
    this.#skipBlob(); // fourcc
    const timeBase = this.#timeBases[this.#number()];
    const ptsShift = this.#number();
    const isVideo = streamClass === VIDEO_CLASS;
    const isReadable = isVideo || (this.#streamsMax > 1 && streamClass === SOUND_CLASS);
    if (stream >= this.#streamsMax || !isReadable || !timeBase || ptsShift > 30) {
      throw new NutError("not a video stream");
    }
    this.#number(); // distance of times
    const reorderDepth = this.#number();
    this.#number(); // flags
    const codecData = this.#blob();
    const [first, second, third] = [this.#number(), this.#number(), this.#number()];
    // The headers may come again, and times go on.
    this.#streams[stream] ??= {
      ...{ isVideo, ...timeBase, codecData, reorderDepth, ptsShift, lastPts: 0 },
      ...{ width: isVideo ? first : 0, height: isVideo ? second : 0 },
      ...{ sampleRateHz: isVideo ? 0 : first / Math.max(1, second), channels: isVideo ? 0 : third },
    };
    if (stream !== 0) return;
    this.timeBaseNumerator = timeBase.numerator;
    this.timeBaseDenominator = timeBase.denominator;
    this.width = isVideo ? first : 0;
    this.height = isVideo ? second : 0;
  }

  /** The time is coded together with the index of its time base: value = pts * count + index. */
  #readSyncpoint(): void {
    const coded = this.#number();
    this.#number(); // distance back to the last syncpoint
    if (this.#isBroadcast) this.#number(); // wall-clock time of a broadcast
    const count = this.#timeBases.length;
    const index = coded % count;
    const base = this.#timeBases[index];
    if (!base || this.#streams.length === 0) throw new NutError("a syncpoint before the headers");
    const pts = (coded - index) / count;
    for (const stream of this.#streams) {
      const { numerator, denominator } = stream;
      stream.lastPts = base.numerator === numerator && base.denominator === denominator
        ? pts
        : Math.floor(pts * base.numerator * denominator / (base.denominator * numerator));
    }
  }

  #readFrame(): number {
    if (this.#streams.length === 0) throw new NutError("a frame before the headers");
    const codes = this.#codes;
    const code = this.#bytes[this.#at++]!;
    let flags = codes.flags[code]!;
    if (flags & IS_INVALID) throw new NutError("an invalid frame code");
    if (flags & HAS_CODED_FLAGS) flags ^= this.#number();
    const index = flags & HAS_STREAM ? this.#number() : codes.stream[code]!;
    const stream = this.#streams[index];
    if (!stream) {
      if (this.#isShort) return -1;
      throw new NutError("a frame of another stream");
    }
    const pts = flags & HAS_PTS ? fullPts(this.#number(), stream) : stream.lastPts + codes.ptsDelta[code]!;
    let size = codes.size[code]!;
    if (flags & HAS_SIZE) size += codes.sizeMultiplier[code]! * this.#number();
    if (flags & HAS_MATCH_TIME) this.#signed();
    const elision = flags & HAS_ELISION ? this.#number() : codes.elision[code]!;
    const reserved = flags & HAS_RESERVED ? this.#number() : codes.reserved[code]!;
    for (let i = 0; i < reserved && !this.#isShort; i++) this.#number();
    if (flags & HAS_CHECKSUM) this.#uint32();
    if (this.#isShort) return -1;
    const head = size > MAX_ELIDED_FRAME_BYTES ? NO_BYTES : this.#elided[elision];
    if (!head || (head.length > 0 && this.#streamsMax === 1)) throw new NutError("an elided header");
    if (flags & HAS_SIDE_DATA) throw new NutError("a frame with side data");
    size -= head.length;
    this.framePts = pts;
    this.frameBytes = size;
    const end = this.#at + size;
    this.isTooLong = size > this.#frameBytesMax;
    if (end > this.#to && !this.isTooLong) return -1;
    stream.lastPts = pts;
    this.frameStream = index;
    if (this.isTooLong) return end;
    this.isKeyframe = (flags & IS_KEYFRAME) !== 0;
    this.frameHead = head;
    this.frameOffset = this.#at;
    this.hasFrame = (flags & IS_END_OF_RELEVANCE) === 0;
    return end;
  }

  /**
   * Reads a number of seven bits a byte, most significant first; the high bit says that another byte follows.
   */
  #number(): number {
    let value = 0;
    for (;;) {
      if (this.#at >= this.#to) {
        this.#isShort = true;
        return 0;
      }
      const byte = this.#bytes[this.#at++]!;
      value = value * 128 + (byte & 127);
      if (byte < 128) return value;
    }
  }

  /** Reads a signed number: 0, 1, -1, 2, -2, ... are coded as 0, 1, 2, 3, 4, ... */
  #signed(): number {
    const coded = this.#number();
    return coded % 2 === 1 ? (coded + 1) / 2 : -coded / 2;
  }

  #uint32(): number {
    if (this.#at + 4 > this.#to) {
      this.#isShort = true;
      this.#at = this.#to;
      return 0;
    }
    const bytes = this.#bytes;
    const at = this.#at;
    this.#at += 4;
    return bytes[at]! * 0x1000000 + (bytes[at + 1]! << 16 | bytes[at + 2]! << 8 | bytes[at + 3]!);
  }

  #skipBlob(): void {
    const size = this.#number();
    this.#at += size;
  }

  /** Reads a length and the bytes, as a copy; of those that are not complete, what is there. */
  #blob(): Uint8Array<ArrayBuffer> {
    const size = this.#number();
    const begin = this.#at;
    this.#at += size;
    return new Uint8Array(this.#bytes.subarray(begin, this.#at));
  }
}

/**
 * A coded pts below 2^shift has only the low bits: of the values with these low bits, it means the one
 * nearest to the last pts. A larger one is complete, with 2^shift added.
 */
function fullPts(coded: number, { ptsShift, lastPts }: ReadStream): number {
  const range = 2 ** ptsShift;
  if (coded >= range) return coded - range;
  const lowest = lastPts - Math.floor((range - 1) / 2);
  const offset = (coded - lowest) % range;
  return lowest + (offset < 0 ? offset + range : offset);
}

/** The defaults of each frame code, one row a code. */
class FrameCodes {
  readonly flags = new Uint16Array(256).fill(IS_INVALID);
  readonly ptsDelta = new Int32Array(256);
  readonly sizeMultiplier = new Uint32Array(256);
  readonly stream = new Uint16Array(256);
  readonly size = new Uint32Array(256);
  readonly reserved = new Uint32Array(256);
  readonly elision = new Uint8Array(256);
}

const FILE_ID = "nut/multimedia container\0";
const LOWERCASE_N = 0x6e;
const UPPERCASE_N = 0x4e;
/** Bytes from which on an element also has a checksum of its header. */
const LONG_ELEMENT_BYTES = 4096;
const CHECKSUM_BYTES = 4;
const VIDEO_CLASS = 0;
const SOUND_CLASS = 1;
const NO_BYTES = new Uint8Array();
const BROADCAST_MODE = 1;
/** Header elision applies only to frames up to this size. */
const MAX_ELIDED_FRAME_BYTES = 4096;

/** High halves of the startcodes; each begins with "N" and a letter. */
const MAIN = 0x4e4d7a56;
const STREAM = 0x4e531140;
const SYNCPOINT = 0x4e4be4ad;
const INDEX = 0x4e58dd67;
const INFO = 0x4e49ab68;

function startcodeLow(high: number): number {
  switch (high) {
    case MAIN:
      return 0x1f5f04ad;
    case STREAM:
      return 0x5bf2f9db;
    case SYNCPOINT:
      return 0xeeca4569;
    case INDEX:
      return 0x2f23e64e;
    case INFO:
      return 0xb596ba78;
    default:
      return -1;
  }
}

/** Frame flags. */
const IS_KEYFRAME = 1;
const IS_END_OF_RELEVANCE = 1 << 1;
const HAS_PTS = 1 << 3;
const HAS_STREAM = 1 << 4;
const HAS_SIZE = 1 << 5;
const HAS_CHECKSUM = 1 << 6;
const HAS_RESERVED = 1 << 7;
const HAS_SIDE_DATA = 1 << 8;
const HAS_ELISION = 1 << 10;
const HAS_MATCH_TIME = 1 << 11;
const HAS_CODED_FLAGS = 1 << 12;
const IS_INVALID = 1 << 13;
