/** What ffmpeg and ffprobe open as their input, and which protocols and containers they may use for it. */

import { LIMITS } from "../contract/limits.ts";

export interface MediaInput {
  readonly kind: "file" | "fetched" | "hls" | "rtsp" | "mjpeg";
  /**
   * The local file, whose first bytes are checked before ffmpeg or ffprobe opens it; null for a stream that
   * they fetch.
   */
  readonly path: string | null;
  /** The address of a stream, on loopback; null for a file. */
  readonly url: string | null;
  /**
   * The Unix socket on which the relay or tunnel of a stream listens: the forwarder passes connections to
   * `url` on to it. Null where `url` is an address of the machine, and for a file.
   */
  readonly socket: string | null;
}

/** A file that `resolveLocalSource` allowed. */
export function fileInput(path: string): MediaInput {
  return { kind: "file", path, url: null, socket: null };
}

/** A file that was fetched from a remote server: ffprobe reads a bounded part of it to name its format. */
export function fetchedInput(path: string): MediaInput {
  return { kind: "fetched", path, url: null, socket: null };
}

/** An HLS playlist on loopback. The relay that serves it fetches what the playlist refers to. */
export function hlsInput(url: string, socket: string | null = null): MediaInput {
  return { kind: "hls", path: null, url, socket };
}

/**
 * An RTSP stream on loopback: a tunnel forwards it to the camera. Media comes over the same TCP connection.
 */
export function rtspInput(url: string, socket: string | null = null): MediaInput {
  return { kind: "rtsp", path: null, url, socket };
}

/**
 * An endless series of JPEGs on loopback: a relay reads them from the camera. Their times are those at which
 * they come.
 */
export function mjpegInput(url: string, socket: string | null = null): MediaInput {
  return { kind: "mjpeg", path: null, url, socket };
}

/**
 * Options before `-i` for whatever is decoded. A decoder gives no larger picture than is allowed, also where
 * the size changes on the way. An input has at most one stream more than is allowed, which shows that there
 * are too many.
 */
export const DECODED_MAX: readonly string[] = [
  ...["-max_pixels", String(LIMITS.media.picturePixelsMax)],
  ...["-max_streams", String(LIMITS.media.streamsMax + 1)],
];

/** The argument of `-i`. */
export function inputUrl({ path, url }: MediaInput): string {
  return path === null ? url! : `file:${path}`;
}

/**
 * Options before `-i`: bounds, whitelists, format, timeouts. See docs/security/sources.md. A watched camera
 * that sends JPEGs may be silent for longer, because whoever watches it says when it is over. `ignoresEdits`
 * is for MP4 only: it shows what the edit list hides.
 */
export function inputOptions(input: MediaInput, given: InputGiven = {}): string[] {
  return [...DECODED_MAX, ...kindOptions(input, given)];
}

interface InputGiven {
  readonly isWatched?: boolean;
  readonly ignoresEdits?: boolean | undefined;
}

function kindOptions(
  { kind }: MediaInput,
  { isWatched = false, ignoresEdits = false }: InputGiven,
): string[] {
  switch (kind) {
    case "file":
    case "fetched":
      return [
        ...["-protocol_whitelist", "file,pipe", "-format_whitelist", CONTAINER_FORMATS],
        ...(ignoresEdits ? ["-advanced_editlist", "0"] : []),
      ];
    case "hls":
      return [
        ...["-protocol_whitelist", "hls,http,tcp", "-max_redirects", "0"],
        ...["-f", "hls", "-format_whitelist", HLS_FORMATS],
        ...["-rw_timeout", String(READ_TIMEOUT_US)],
      ];
    case "mjpeg":
      return [
        ...["-protocol_whitelist", "http,tcp", "-max_redirects", "0"],
        ...["-f", "mpjpeg", "-format_whitelist", "mpjpeg", "-use_wallclock_as_timestamps", "1"],
        // The first picture says everything, so nobody waits for more of them.
        ...["-analyzeduration", "0", "-fpsprobesize", "0"],
        ...["-rw_timeout", String(isWatched ? SLOW_PICTURES_TIMEOUT_US : READ_TIMEOUT_US)],
      ];
    case "rtsp":
      return [
        ...["-protocol_whitelist", "tcp", "-f", "rtsp", "-format_whitelist", "rtsp"],
        ...["-rtsp_transport", "tcp", "-timeout", String(READ_TIMEOUT_US)],
      ];
  }
}

/** Further options before `-i`, for ffprobe only. */
export function probeOptions({ kind }: MediaInput): string[] {
  if (kind === "file") return [];
  return [
    ...["-probesize", String(LIMITS.ingest.probeBytes)],
    ...["-analyzeduration", String(LIMITS.ingest.probeAnalyzeMs * 1000)],
  ];
}

/**
 * Options for a source whose streams are known with the first picture; ffmpeg would wait for twenty to tell
 * how many there are in a second.
 */
export const FIRST_PICTURE: readonly string[] = ["-fpsprobesize", "0"];

/** Microseconds after which a server that sends nothing counts as gone. */
const READ_TIMEOUT_US = 10_000_000;
/**
 * READ_TIMEOUT_US for a watched camera that sends JPEGs, as some send one only now and then. Longer than the
 * silence after which a `PulledDecoder` ends.
 */
const SLOW_PICTURES_TIMEOUT_US = 60_000_000;

/**
 * The containers that may be opened. Each contains its media itself. The others refer to more files or hosts
 * (hls, dash, concat, image sequences, sdp), or read any text as an image.
 */
export const CONTAINER_FORMATS = [
  "mov,mp4,matroska,webm,avi,mpegts,mpeg,mpegvideo,flv,ivf,ogg,asf,gif",
  "h264,hevc,m4v,av1,obu,h263,mjpeg,nut,mxf,dv,rm,y4m,yuv4mpegpipe,apng",
  "wav,mp3,aac,flac,w64,aiff,caf,amr,ac3,eac3,wtv,swf,roq,vc1,3gp",
].join(",");

/** What the relay of an HLS source lets through: see model/sources/hls_part.ts. */
const HLS_FORMATS = "hls,webvtt,mpegts,mov,mp4,aac,mp3,ac3,eac3";
