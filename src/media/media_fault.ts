/** Turns error messages of ffmpeg and ffprobe into a reason that a caller understands and that names no path.
 */

import type { Extent } from "../model/frames/coordinates.ts";
import { LIMITS } from "../contract/limits.ts";
import { type Refusal, RefusalForNow, refuse } from "../contract/refusal.ts";

/** Any fault of the medium is 422 on `source_uri`. See docs/api/ingest.md#sources. */
export function mediaFault(reason: string): Refusal {
  return refuse.invalid("source_uri", reason);
}

/**
 * The refusal of a program that met a limit of time. It is a fault of the medium where the limit is that of
 * processor time, or where the program waits for a stream; otherwise the machine is busy, which is nobody's
 * fault. `work` and `late` are such as "decoding it" and "decoding it took longer than 60 s".
 */
export function timeFault(
  end: "out_of_time" | "out_of_cpu",
  { isStream, work, late }: { readonly isStream: boolean; readonly work: string; readonly late: string },
): Refusal {
  if (end === "out_of_cpu") return mediaFault(`${work} takes more processor time than is allowed`);
  if (isStream) return mediaFault(late);
  return new RefusalForNow(
    BUSY_SECONDS,
    "provider_saturated",
    `The machine is too busy: ${late}. The same request can succeed later`,
  );
}

/** Seconds after which a caller may ask a busy machine again. */
const BUSY_SECONDS = 30;

/**
 * What ffmpeg or ffprobe said when it failed: a fault of the medium, or of itself, which is 503
 * `decoder_unusable`.
 */
export function faultIn(stderr: string, head?: Uint8Array): Refusal {
  if (NOT_STARTED.test(stderr)) return decoderUnusable("it cannot be started");
  const own = OWN_FAULT.exec(stderr)?.[1];
  return own === undefined
    ? mediaFault(reasonIn(stderr, head))
    : decoderUnusable(own.slice(0, OWN_FAULT_MAX));
}

/**
 * The refusal where ffmpeg itself cannot be used: `what` completes "The service's ffmpeg cannot be used: …".
 */
export function decoderUnusable(what: string): Refusal {
  return refuse.because(
    "decoder_unusable",
    `The service's ffmpeg cannot be used: ${what}. Whoever runs the service has to install another one`,
  );
}

/**
 * What the programs that start ffmpeg say where it was removed, or is no program, after it had worked:
 * bubblewrap, prlimit and their like, and a shell.
 */
const NOT_STARTED =
  /^(?:bwrap: execvp |bwrap: Can't find source path \S*\/ff(?:mpeg|probe)\b|(?:prlimit|setpriv|unshare): failed to execute |nice: .*ff(?:mpeg|probe)|\S*\bff(?:mpeg|probe): \d+: |sh: (?:\d+: )?exec: )/m;

/**
 * Messages about options, formats and filters. These are all the service's own, so no medium makes ffmpeg say
 * this.
 */
const OWN_FAULT =
  /^(?:\[[^\]\n]*\] )*((?:unknown (?:input format|encoder)|requested output format|no such filter|unrecognized option|option \S+ not found|error splitting the argument list|.*error while loading shared libraries).*)$/im;
const OWN_FAULT_MAX = 200;

/**
 * The reason for the text that a tool wrote to stderr. `head` is the start of the file. It is needed because
 * ffmpeg reports a missing index also for a file that is not an MP4 and is only named like one.
 */
export function reasonIn(stderr: string, head?: Uint8Array): string {
  if (/moov atom not found/.test(stderr) && head && !isIsoMedia(head)) return NOT_MEDIA;
  return REASONS.find(([pattern]) => pattern.test(stderr))?.[1] ?? "it cannot be decoded";
}

/** The reason for a medium whose pictures are too large; `size` is null where it is not known. */
export function largerThanAllowed(size: Extent | null): string {
  const own = size ? `its pictures of ${size.width}x${size.height}` : "its pictures";
  return `${own} have more than the ${LIMITS.media.picturePixelsMax} pixels that are allowed`;
}

export function moreStreamsThanAllowed(): string {
  return `it has more than the ${LIMITS.media.streamsMax} streams that are allowed, covers and subtitles included`;
}

/**
 * The size of a picture that the decoder of `codec` refused as too large, from what ffmpeg or ffprobe said;
 * null for none. A cover has a decoder for pictures, and nothing of it is said to the caller.
 */
export function tooLargeSize(stderr: string, codec: string): Extent | null {
  for (const [, decoder, width, height] of stderr.matchAll(TOO_LARGE)) {
    if (decoder === codec || !COVER_CODECS.has(decoder!)) {
      return { width: Number(width), height: Number(height) };
    }
  }
  return null;
}

const TOO_LARGE = /\[(\w+) @ [^\]]*\].*Picture size (\d+)x(\d+) exceeds specified max/g;
const COVER_CODECS = new Set(["png", "mjpeg", "gif", "bmp", "webp", "tiff"]);

const NOT_FETCHED = "it cannot be fetched from its server";
const NOT_MEDIA = "it is not a media file, or it is damaged beyond reading";

/**
 * Patterns of error messages and the reasons to give. The first one that matches is used, so specific
 * patterns come before general ones.
 */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/protocol '.*' not on whitelist/i, "it refers to something that may not be fetched"],
  [/certificate/i, "the certificate of its server is not trusted"],
  [/method \w+ failed: 401/i, "its server asks for a user name and a password"],
  [/server returned|method \w+ failed/i, "its server does not give it out"],
  [
    /input\/output error|connection refused|timed out|unreachable|failed to resolve/i,
    NOT_FETCHED,
  ],
  [/end of file/i, "it ends before it can be read"],
  [/exceeds specified max pixel count/i, largerThanAllowed(null)],
  [/exceeds max_streams/i, moreStreamsThanAllowed()],
  [/partial file|ended prematurely/i, "it is cut off: the file ends before its container does"],
  [/cannot allocate memory/i, "decoding it needs more memory than is allowed"],
  [/not on whitelist/i, "its container format is not supported"],
  [/moov atom not found/i, "it is cut off: the index of the file (moov) is missing"],
  [
    /decoder .*not found|unknown decoder|no decoder|not currently supported/i,
    "its video codec is not supported",
  ],
  [/permission denied|no such file/i, "it cannot be read"],
  [/invalid data found/i, NOT_MEDIA],
];

/**
 * Whether a file is of the MP4 family: it starts with a box, which is its size in four bytes and then its
 * type.
 */
function isIsoMedia(head: Uint8Array): boolean {
  const type = new TextDecoder("latin1").decode(head.subarray(4, 8));
  return ["ftyp", "styp", "moov", "mdat", "free", "skip", "wide", "pnot"].includes(type);
}
