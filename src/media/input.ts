/** What ffmpeg and ffprobe are told to open, and what they may open on the way. Contract 2.3. */

import { LIMITS } from "../model/limits.ts";

export interface MediaInput {
  /** What stands after `-i`. */
  readonly url: string;
  /** The local file whose first bytes are looked at before a program sees it; null where the programs fetch it. */
  readonly path: string | null;
  /** Whitelists and options, before `-i`. */
  readonly args: readonly string[];
  /** Further options of a probe. */
  readonly probeArgs: readonly string[];
}

/** A file that `resolveLocalSource` gave. */
export function fileInput(path: string): MediaInput {
  const args = ["-protocol_whitelist", "file,pipe", "-format_whitelist", CONTAINER_FORMATS];
  return { url: `file:${path}`, path, args, probeArgs: [] };
}

/** A file that came from elsewhere: so much of it and no more is looked at before it says what it is. Contract 2.2. */
export function fetchedInput(path: string): MediaInput {
  return { ...fileInput(path), probeArgs: PROBE_BOUNDS };
}

const PROBE_BOUNDS = [
  ...["-probesize", String(LIMITS.ingest.probeBytes)],
  ...["-analyzeduration", String(LIMITS.ingest.probeAnalyzeMs * 1000)],
];

/** A remote that says nothing for so long has ended; microseconds. */
const SILENCE_US = 10_000_000;

/** An HLS playlist on loopback, from a relay that answers for what it names. */
export function hlsInput(url: string): MediaInput {
  return {
    url,
    path: null,
    args: [
      ...["-protocol_whitelist", "hls,http,tcp", "-max_redirects", "0"],
      ...["-f", "hls", "-format_whitelist", `hls,webvtt,${CONTAINER_FORMATS}`],
      ...["-rw_timeout", String(SILENCE_US)],
    ],
    probeArgs: PROBE_BOUNDS,
  };
}

/** An RTSP stream on loopback, from a tunnel to its server; media comes in the same connection. */
export function rtspInput(url: string): MediaInput {
  return {
    url,
    path: null,
    args: [
      ...["-protocol_whitelist", "rtsp,rtp,udp,tcp", "-f", "rtsp"],
      ...["-rtsp_transport", "tcp", "-timeout", String(SILENCE_US)],
    ],
    probeArgs: PROBE_BOUNDS,
  };
}

/**
 * The containers that may be opened: each holds its media itself. The others refer to further files or hosts (hls, dash,
 * concat, image sequences, sdp), or read any text as a picture.
 */
export const CONTAINER_FORMATS = [
  ...[
    "mov",
    "mp4",
    "matroska",
    "webm",
    "avi",
    "mpegts",
    "mpeg",
    "mpegvideo",
    "flv",
    "ivf",
    "ogg",
    "asf",
    "gif",
  ],
  ...[
    "h264",
    "hevc",
    "m4v",
    "av1",
    "obu",
    "h263",
    "mjpeg",
    "nut",
    "mxf",
    "dv",
    "rm",
    "y4m",
    "yuv4mpegpipe",
    "apng",
  ],
  ...[
    "wav",
    "mp3",
    "aac",
    "flac",
    "w64",
    "aiff",
    "caf",
    "amr",
    "ac3",
    "eac3",
    "wtv",
    "swf",
    "roq",
    "vc1",
    "3gp",
  ],
].join(",");
