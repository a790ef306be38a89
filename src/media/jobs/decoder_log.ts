/** Reads ffmpeg's log while it runs: what the decoder says of each frame becomes a report, errors are kept as
 * text.
 */

import { joinedBytes } from "../../base/bytes.ts";
import { REPORT, type ReportWriter } from "../frame_reports.ts";

/**
 * Options with which ffmpeg logs to its error output all that is read here, with the level of each line.
 * `repeat`: equal lines are not counted together. The lines of the decoder are at the level `info`; only at
 * the level `debug` does H.264 tell of lost references.
 */
export const REPORTING = ["-nostats", "-v", "repeat+level+debug", "-debug_ts"];

/**
 * Options with which all of ffmpeg's log goes to the file of {@link reportsTo}, and errors to the error
 * output as well.
 */
export const REPORTING_TO_FILE = ["-nostats", "-v", "repeat+level+error", "-debug_ts"];
/** Number of ffmpeg's level `AV_LOG_DEBUG`. */
const DEBUG_LEVEL = 48;

/**
 * Variables of the environment that make ffmpeg write its log to a file or a pipe as well: there it comes a
 * line at a time, not in pieces of a line.
 */
export function reportsTo(path: string): Readonly<Record<string, string>> {
  const name = path.replace(/[\\':]/g, "\\$&").replaceAll("%", "%%");
  return { FFREPORT: `file=${name}:level=${DEBUG_LEVEL}` };
}

/** Most bytes of a line that are looked at; the rest of a longer one goes where its beginning went. */
const LINE_BYTES = 16 << 10;
const NEWLINE = 10, SPACE = 32, OPEN = 91, CLOSE = 93, DIGIT_0 = 48, MINUS = 45;
/** Numbers of ffmpeg's `AV_PICTURE_TYPE_I` and `AV_PICTURE_TYPE_B`. */
const INTRA = 1, BIDIRECTIONAL = 3;

const FRAME = bytesOf("decoder -> ");
const PACKET = bytesOf("demuxer+ffmpeg -> ist_index:");
const OF_VIDEO = bytesOf(" type:video ");
const H264 = bytesOf("[h264 @ 0x");
/** Decoders that say which references they miss, or give no frame that is made of a missing one. */
const TELLING = [H264, bytesOf("[hevc @ 0x"), bytesOf("[libdav1d @ 0x")];
/** Decoders that make a picture of any bytes. */
const SILENT = [bytesOf("[hevc @ 0x"), bytesOf("[vp8 @ 0x")];
/** A message for the decoder that comes before slices. */
const ANNOUNCEMENT = bytesOf("nal_unit_type: 6(SEI)");
const STREAM = bytesOf("  Stream #");
/** How the list of the input's streams names H.264 with a profile from High on. */
const CAREFUL = bytesOf(": Video: h264 (High");
const KEYFRAME = bytesOf(" keyframe:");
const FRAME_TYPE = bytesOf(" frame_type:");
/**
 * How the scaler says of which size its pictures are from here on, and what it makes of them; and the first
 * of these that it gives.
 */
const SCALER = bytesOf("[Parsed_scale_");
const SCALED = bytesOf(" -> w:");
const FILTERED = bytesOf("filter -> pts:");
const VIDEO_TIMES = bytesOf(" time_base:1/90000");
/**
 * How ffmpeg says that it closed a jump of the clock: in version 5 at the level `debug`, in later ones as a
 * warning.
 */
const JUMP = bytesOf("timestamp discontinuity");
const CORRUPT = bytesOf("corrupt decoded frame");
const CORRUPT_IN_STREAM = bytesOf("corrupt decoded frame in stream ");
/** How decoders say that a frame refers to one that did not come. Each begins its message. */
const LOST_REFERENCE = [
  "Frame num gap",
  "reference picture missing",
  "Missing reference picture",
  "Could not find ref with POC",
].map(bytesOf);
/**
 * How H.264 says that it was to forget a frame that is not there. No picture is made of such a frame, and it
 * is said of undamaged films that were cut and joined inside an open group of pictures.
 */
const FORGETS_NOTHING = bytesOf("mmco: unref short failure");
/** How the lines of the filter that chooses frames begin, which are written in pieces, and how they end. */
const CHOICE = ["n:", " interlace_type:"].map(bytesOf);
const CHOICE_END = bytesOf(" -> select:");
/** Words of errors that have no level of their own. */
const ERROR_WORDS = [
  "[error] ",
  "[fatal] ",
  "rror ",
  "nvalid",
  "damaged",
  "concealing",
  "missing",
  "mismatch",
  "out of range",
  "overread",
  "truncated",
  "illegal",
  "failed",
].map(bytesOf);
/** How the lines begin that `-debug_ts` adds for packets and frames. */
const TIMES = ["decoder", "demuxer", "encoder", "filter", "muxer"].map(bytesOf);

/** Level of a line: panic, fatal and error count as `error`; all that says more than `info` is `detail`. */
type LineLevel = "error" | "warning" | "info" | "detail";
const LEVELS: Readonly<Record<string, LineLevel>> = {
  panic: "error",
  fatal: "error",
  error: "error",
  warning: "warning",
  info: "info",
  verbose: "detail",
  debug: "detail",
  trace: "detail",
};
const LEVEL_NAMES = Object.entries(LEVELS).map(([name, level]) => ({ name: bytesOf(`${name}]`), level }));

/**
 * ```
 *   log ─────→ [h264 @ 0x55d0] [debug] Frame num gap 9 7                        ─→ report: a reference is lost
 *              [warning] film.ts: corrupt decoded frame in stream 0             ─→ report: corrupt
 *              [info] decoder -> pts:... keyframe:0 frame_type:2 ...            ─→ the report of the next frame is whole
 *              [h264 @ 0x55d0] [error] error while decoding MB 3 4              ─→ kept: [h264 @ 0x55d0] error while ...
 *              everything else                                                  ─→ dropped
 * ```
 *
 * The lines of a frame, except those of lost references, come from one thread and in this order, before the
 * frame itself is written. Errors are kept as they are without levels. An endless stream needs no more memory
 * than its longest line.
 */
export class DecoderLog {
  readonly #reports: ReportWriter | null;
  readonly #keepsInfo: boolean;
  /** The start of a line that was not complete. */
  readonly #line = new Uint8Array(LINE_BYTES);
  #lineBytes = 0;
  /** Whether the beginning of the present line was judged, because it was too long. */
  #isInside = false;
  /**
   * Whether the present line is kept, or the last one: a line without a level belongs to the line before.
   * Before the first level only what starts ffmpeg speaks.
   */
  #isKept = true;
  /**
   * Whether a packet has come for the decoder. What is told before comes from the search for streams, or is a
   * text of the film.
   */
  #hasPackets = false;
  /** Bits that each report has. */
  #common: number = REPORT.isReported;
  /** Bits of the report of the next frame. */
  #report: number = REPORT.isReported;
  #kept: Uint8Array[] = [];

  /** Whether the scaler has told of a size, and has not given a picture of it yet. */
  #hasScaled = false;

  /**
   * Makes a reader of one log. Without reports, it only says what is kept. With `keepsInfo`, information
   * about inputs and outputs is kept as well, with warnings.
   */
  constructor(reports: ReportWriter | null, { keepsInfo }: { readonly keepsInfo: boolean }) {
    this.#reports = reports;
    this.#keepsInfo = keepsInfo;
  }

  /** Takes the next bytes. Returns what is kept of the lines that have ended; usually nothing. */
  read(part: Uint8Array): Uint8Array {
    for (let at = 0; at < part.length;) {
      const newline = part.indexOf(NEWLINE, at);
      const end = newline === -1 ? part.length : newline + 1;
      this.#take(part, at, end, newline !== -1);
      at = end;
    }
    return this.#takeKept();
  }

  /** The log has ended; returns what is kept of a last line without an end. */
  end(): Uint8Array {
    if (this.#lineBytes > 0) this.#judge(this.#line, 0, this.#lineBytes);
    this.#lineBytes = 0;
    this.#reports?.end();
    return this.#takeKept();
  }

  #take(part: Uint8Array, at: number, end: number, isEnd: boolean): void {
    if (this.#isInside) {
      if (this.#isKept) this.#keep(part, at, end);
      this.#isInside = !isEnd;
      return;
    }
    if (isEnd && this.#lineBytes === 0) return this.#judge(part, at, end);
    const taken = Math.min(end - at, LINE_BYTES - this.#lineBytes);
    this.#line.set(part.subarray(at, at + taken), this.#lineBytes);
    this.#lineBytes += taken;
    if (!isEnd && this.#lineBytes < LINE_BYTES) return;
    this.#judge(this.#line, 0, this.#lineBytes);
    this.#lineBytes = 0;
    const rest = at + taken;
    this.#isInside = !(isEnd && rest === end);
    if (this.#isInside && rest < end) this.#take(part, rest, end, isEnd);
  }

  /** A line, or as much of a long one as is looked at. */
  #judge(bytes: Uint8Array, start: number, end: number): void {
    let at = start;
    while (at < end && bytes[at] === OPEN) {
      const level = levelAt(bytes, at + 1, end);
      let close = at + 1;
      while (close < end && bytes[close] !== CLOSE) close++;
      if (close + 2 > end || bytes[close + 1] !== SPACE) break;
      if (level !== null) return this.#judgeMessage(level, bytes, { start, level: at, text: close + 2, end });
      at = close + 2;
    }
    this.#noteInserted(bytes, start, end);
    if (this.#isKept) this.#keep(bytes, start, end);
  }

  #judgeMessage(level: LineLevel, bytes: Uint8Array, place: LinePlace): void {
    const { start, text, end } = place;
    if (level === "detail") {
      this.#noteDecoder(bytes, place);
      if (isBrokenChoice(bytes, text, end)) this.#noteInserted(bytes, text, end);
    } else {
      this.#noteFrameWithin(bytes, text, end);
      if (level !== "error" && beginsWith(bytes, text, end, JUMP)) this.#report |= REPORT.isJump;
    }
    const isError = level === "error" && !beginsWith(bytes, text, end, FORGETS_NOTHING);
    if (isError && this.#hasPackets) this.#report |= REPORT.isAfterError;
    if (level === "info") this.#noteInfo(bytes, place);
    else if (level === "warning") {
      if (isCorrupt(bytes, place)) this.#report |= REPORT.isCorrupt;
    } else if (place.level > start && LOST_REFERENCE.some((words) => beginsWith(bytes, text, end, words))) {
      this.#report |= REPORT.isReferenceLost;
    }
    this.#isKept = level === "error" ||
      (this.#keepsInfo &&
        (this.#isOfScaling(level, bytes, place) || (level !== "detail" && !isTime(bytes, text, end))));
    if (!this.#isKept) return;
    this.#keep(bytes, start, place.level);
    this.#keep(bytes, text, end);
  }

  #isOfScaling(level: LineLevel, bytes: Uint8Array, { start, text, end }: LinePlace): boolean {
    if (level === "detail") {
      const isScaling = beginsWith(bytes, start, end, SCALER) && indexOf(bytes, SCALED, text, end) !== -1;
      if (isScaling) this.#reports?.noteScaled();
      this.#hasScaled ||= isScaling;
      return isScaling;
    }
    const isFiltered = beginsWith(bytes, text, end, FILTERED) &&
      indexOf(bytes, VIDEO_TIMES, text, end) !== -1;
    if (!isFiltered) return false;
    this.#reports?.noteFiltered();
    const isFirst = this.#hasScaled;
    this.#hasScaled = false;
    return isFirst;
  }

  #noteDecoder(bytes: Uint8Array, { start, text, end }: LinePlace): void {
    if ((this.#common & REPORT.tellsLosses) === 0) {
      const tells = TELLING.some((name) => beginsWith(bytes, start, end, name));
      if (tells) this.#common |= REPORT.tellsLosses;
    }
    if ((this.#common & REPORT.isSilent) === 0) {
      const isSilent = SILENT.some((name) => beginsWith(bytes, start, end, name));
      if (isSilent) this.#common |= REPORT.isSilent;
    }
    if (beginsWith(bytes, text, end, ANNOUNCEMENT)) this.#report |= REPORT.isAnnounced;
  }

  #noteInfo(bytes: Uint8Array, { text, end }: LinePlace): void {
    if (this.#noteTimes(bytes, text, end)) return;
    if (beginsWith(bytes, text, end, STREAM) && indexOf(bytes, CAREFUL, text, end) !== -1) {
      this.#common |= REPORT.isCareful;
    }
  }

  /**
   * Notes what an inserted line tells. Some lines are written in pieces, and another thread may put its own
   * line between two of them; then nothing tells its level. All is noted that its words tell. Decoders mostly
   * tell of an error in several lines, and one of them is enough. Before the first packet there are no
   * threads yet, but texts of the film.
   */
  #noteInserted(bytes: Uint8Array, text: number, end: number): void {
    if (!this.#hasPackets) return;
    const holds = (words: Uint8Array) => indexOf(bytes, words, text, end) !== -1;
    const told = (holds(CORRUPT) ? REPORT.isCorrupt : 0) | (holds(JUMP) ? REPORT.isJump : 0) |
      (LOST_REFERENCE.some(holds) ? REPORT.isReferenceLost : 0) |
      (holds(ANNOUNCEMENT) ? REPORT.isAnnounced : 0);
    this.#report |= told;
    if (ERROR_WORDS.some(holds) && !holds(FORGETS_NOTHING)) this.#report |= REPORT.isAfterError;
    if (holds(FILTERED) && holds(VIDEO_TIMES)) this.#reports?.noteFiltered();
    this.#noteFrameWithin(bytes, text - 1, end);
  }

  /** Notes the frame within a line of the list of the output's streams, which is written in pieces, too. */
  #noteFrameWithin(bytes: Uint8Array, text: number, end: number): void {
    if (!this.#hasPackets) return;
    const at = indexOf(bytes, FRAME, text + 1, end);
    if (at !== -1) this.#noteTimes(bytes, at, end);
  }

  /** Returns whether the text is a frame or a packet of the video. */
  #noteTimes(bytes: Uint8Array, text: number, end: number): boolean {
    if (beginsWith(bytes, text, end, FRAME)) {
      this.#endReport(bytes, text, end);
      return true;
    }
    if (!beginsWith(bytes, text, end, PACKET)) return false;
    if (indexOf(bytes, OF_VIDEO, text, end) !== -1) this.#hasPackets = true;
    return true;
  }

  #endReport(bytes: Uint8Array, text: number, end: number): void {
    if (numberAfter(bytes, KEYFRAME, text, end) === 1) this.#report |= REPORT.isKey;
    const type = numberAfter(bytes, FRAME_TYPE, text, end);
    if (type === BIDIRECTIONAL) this.#report |= REPORT.isBidirectional;
    if (type === INTRA) this.#report |= REPORT.isIntra;
    this.#reports?.add(this.#report | this.#common);
    this.#report = REPORT.isReported;
  }

  #keep(bytes: Uint8Array, start: number, end: number): void {
    if (end > start) this.#kept.push(bytes.slice(start, end));
  }

  #takeKept(): Uint8Array {
    const kept = this.#kept;
    if (kept.length === 0) return NOTHING;
    this.#kept = [];
    return joinedBytes(...kept);
  }
}

/** Where in the bytes a line begins, its level, its text, and its end. */
interface LinePlace {
  readonly start: number;
  readonly level: number;
  readonly text: number;
  readonly end: number;
}

const NOTHING = new Uint8Array();

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/**
 * The level that is named after the bracket before `at`; null where it is something else, such as `h264 @
 * 0x55d0`.
 */
function levelAt(bytes: Uint8Array, at: number, end: number): LineLevel | null {
  for (const { name, level } of LEVEL_NAMES) if (beginsWith(bytes, at, end, name)) return level;
  return null;
}

/** Whether a line of the filter that chooses frames has another thread's in it. */
function isBrokenChoice(bytes: Uint8Array, at: number, end: number): boolean {
  return CHOICE.some((words) => beginsWith(bytes, at, end, words)) &&
    indexOf(bytes, CHOICE_END, at, end) === -1;
}

function isTime(bytes: Uint8Array, at: number, end: number): boolean {
  return TIMES.some((word) => beginsWith(bytes, at, end, word));
}

/**
 * Whether a decoder says that a frame is corrupt. In version 5 this comes behind the name of the input, which
 * may be anything, and before the number of the stream.
 */
function isCorrupt(bytes: Uint8Array, { start, level, text, end }: LinePlace): boolean {
  if (level > start) return beginsWith(bytes, text, end, CORRUPT);
  let last = end - 1;
  if (bytes[last] === NEWLINE) last--;
  while (bytes[last]! >= DIGIT_0 && bytes[last]! <= DIGIT_0 + 9) last--;
  const words = last + 1 - CORRUPT_IN_STREAM.length;
  return words >= text && beginsWith(bytes, words, end, CORRUPT_IN_STREAM);
}

function beginsWith(bytes: Uint8Array, at: number, end: number, words: Uint8Array): boolean {
  if (end - at < words.length) return false;
  for (let i = 0; i < words.length; i++) if (bytes[at + i] !== words[i]) return false;
  return true;
}

function indexOf(bytes: Uint8Array, words: Uint8Array, at: number, end: number): number {
  for (let i = at; i <= end - words.length; i++) if (beginsWith(bytes, i, end, words)) return i;
  return -1;
}

/** The whole number behind the words; NaN without one. */
function numberAfter(bytes: Uint8Array, words: Uint8Array, at: number, end: number): number {
  const found = indexOf(bytes, words, at, end);
  if (found === -1) return NaN;
  const first = found + words.length;
  const isNegative = bytes[first] === MINUS;
  let value = NaN;
  for (let i = isNegative ? first + 1 : first; i < end; i++) {
    const digit = bytes[i]! - DIGIT_0;
    if (digit < 0 || digit > 9) break;
    value = (Number.isNaN(value) ? 0 : value * 10) + digit;
  }
  return isNegative ? -value : value;
}
