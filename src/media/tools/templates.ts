/** TABLE of the programs that run: for each kind of job the program, its arguments and its limits. */

import { dirname } from "node:path";
import type { DecodeDevices, Tools } from "../../base/program_paths.ts";
import type { Extent } from "../../model/frames/coordinates.ts";
import { LIMITS } from "../../contract/limits.ts";
import { SIDECAR_SAMPLE_RATE_HZ } from "../../model/sidecars/wav.ts";
import { COPY_OFFSET_MS, VIDEO_CLOCK_HZ, VIDEO_TIME_BASE } from "../formats/clock.ts";
import { DECODED_MAX, inputOptions, inputUrl, type MediaInput, probeOptions } from "../input.ts";
import { type MediaSize, mediaSizeOf } from "../media_memory.ts";
import { DecoderLog, REPORTING, REPORTING_TO_FILE, reportsTo } from "../reports/decoder_log.ts";
import { ReportWriter } from "../reports/frame_reports.ts";
import type { ResourceLimits } from "../process.ts";
import {
  type FrameSelection,
  inputArgs,
  jpegOutput,
  ownTimes,
  planeOutput,
} from "../recorded/decode_args.ts";
import { deviceArgs } from "../recorded/hardware_args.ts";
import { quantizerOf, selectText } from "../recorded/frame_choice.ts";
import { processors, SESSION_CPU_SECONDS, toolLimits, type ToolWork } from "../tool_limits.ts";
import {
  audioGraph,
  CONTAINER_TIMES,
  readFrom,
  seconds,
  seekArgs,
  videoGraph,
} from "../windows/window_filters.ts";
import type { ChosenFrames, JobOf, RunJob, StreamJob, ToolJob } from "./job.ts";

/**
 * One program to start. Everything that the program needs of the machine is here: what starts it can take the
 * rest away.
 */
export interface Invocation {
  readonly program: string;
  readonly args: readonly string[];
  readonly limits: ResourceLimits;
  readonly touches: Touches;
  readonly hasStdin: boolean;
  readonly hasStdout: boolean;
  /** Variables of its environment, besides what every program gets. */
  readonly environment?: Readonly<Record<string, string>>;
  /** What reads its error output; absent where that has errors only. */
  readonly log?: DecoderLog;
}

/** Where a decode tells of its frames. */
export interface Reporting {
  readonly reports: SharedArrayBuffer;
  /** A pipe that takes the log, which is read there; null where its error output is read. */
  readonly logPipe: string | null;
}

/** What a program opens, besides itself, its libraries and its standard streams. All paths are real paths. */
export interface Touches {
  /** The files that it reads. */
  readonly reads: readonly string[];
  /**
   * The files, pipes and sockets into which it writes; a socket is read from as well. Each exists before the
   * start.
   */
  readonly writes: readonly string[];
  /** The device files that it uses. */
  readonly devices: readonly string[];
  /** Whether the program is caged; false for one that reads nothing that comes from others. */
  readonly isCaged: boolean;
  /** The folder in which it makes a new pipe; null for all programs but mkfifo. */
  readonly makesIn: string | null;
  /** Whether it connects to a relay on 127.0.0.1. */
  readonly usesLoopback: boolean;
}

/** Where ffmpeg reads the input of a job and writes its output, as it names it. */
export interface Ends {
  readonly input: string;
  readonly output: string;
}

/** The standard streams. */
export const STANDARD_ENDS: Ends = { input: "pipe:0", output: "pipe:1" };

/** Whether a job has an input and an output besides the files and pipes that it names. */
export function endsOf(job: RunJob | StreamJob): { hasInput: boolean; hasOutput: boolean } {
  switch (job.kind) {
    case "make_pipe":
    case "encode_clip":
      return { hasInput: false, hasOutput: false };
    case "live_decode":
    case "encode_jpegs":
    case "scale_picture":
    case "opus_samples":
      return { hasInput: true, hasOutput: true };
    case "decode":
      return { hasInput: false, hasOutput: job.jpegs !== null };
    default:
      return { hasInput: false, hasOutput: true };
  }
}

/**
 * What is started for a job. Every argument is a constant of this project, a number, or a path or address of
 * the job.
 */
export function invocationOf(
  job: ToolJob,
  tools: Tools,
  { ends = STANDARD_ENDS, reporting = null }: {
    readonly ends?: Ends;
    /** Where the job tells of its frames, for jobs that `saysOfFrames`; ignored for others. */
    readonly reporting?: Reporting | null;
  } = {},
): Invocation {
  const told = saysOfFrames(job) ? reporting : null;
  const { hasInput, hasOutput } = endsOf(job);
  const bounds = boundsOf(job);
  return {
    program: programOf(job, tools),
    args: argsOf(job, ends, logWords(told), tools.devices ?? {}),
    limits: toolLimits(bounds.work, { ...bounds, prlimit: tools.prlimit }),
    touches: touchesOf(job, ends, told, tools),
    hasStdin: hasInput && ends === STANDARD_ENDS,
    hasStdout: hasOutput && ends === STANDARD_ENDS,
    ...(told?.logPipe && { environment: reportsTo(told.logPipe) }),
    ...(told && { log: logOf(job, told) }),
  };
}

function programOf({ kind }: ToolJob, { mkfifo, nvidiaSmi, ffmpeg, ffprobe }: Tools): string {
  switch (kind) {
    case "make_pipe":
      return mkfifo;
    case "list_gpus":
      // By its name, which is not found, it fails with a reason.
      return nvidiaSmi ?? "nvidia-smi";
    case "probe":
      return ffprobe;
    default:
      return ffmpeg;
  }
}

/** Whether a job's decoder can tell something of each frame. */
function saysOfFrames({ kind }: ToolJob): boolean {
  return kind === "decode" || kind === "live_decode" || kind === "live_pull";
}

/** What ffmpeg logs; null for no reports. */
function logWords(told: Reporting | null): readonly string[] | null {
  return told && (told.logPipe === null ? REPORTING : REPORTING_TO_FILE);
}

function logOf({ kind }: ToolJob, { reports, logPipe }: Reporting): DecoderLog {
  return new DecoderLog(logPipe === null ? new ReportWriter(reports) : null, {
    keepsInfo: kind !== "decode",
  });
}

const SOCKET = "unix:";

/** The ends of a job whose input and output are sockets. */
export function socketEnds(input: string | null, output: string | null): Ends {
  return { input: `${SOCKET}${input}`, output: `${SOCKET}${output}` };
}

function touchesOf(job: ToolJob, ends: Ends, told: Reporting | null, { devices }: Tools): Touches {
  const { hasInput, hasOutput } = endsOf(job);
  const used = [...(hasInput ? [ends.input] : []), ...(hasOutput ? [ends.output] : [])];
  const sockets = used.filter((end) => end.startsWith(SOCKET)).map((end) => end.slice(SOCKET.length));
  const input = inputOf(job);
  return {
    reads: input?.path ? [input.path] : [],
    writes: [...sockets, ...filesOf(job), ...(told?.logPipe ? [told.logPipe] : [])],
    devices: ("hardware" in job && job.hardware !== null && devices?.[job.hardware]) || [],
    isCaged: job.kind !== "make_pipe" && job.kind !== "list_gpus",
    makesIn: job.kind === "make_pipe" ? dirname(job.path) : null,
    usesLoopback: input !== null && input.path === null,
  };
}

/** What a job reads; null for one that names no input. */
export function inputOf(job: RunJob | StreamJob): MediaInput | null {
  if (job.kind === "decode") return job.subject.input;
  return "input" in job ? job.input : null;
}

/** The pipes and files that a job writes into. */
function filesOf(job: ToolJob): string[] {
  switch (job.kind) {
    case "decode":
      return [job.planes.pipe];
    case "live_pull":
      return [job.soundSocket, job.copy?.socket].filter((socket) => typeof socket === "string");
    case "encode_clip":
    case "copy_clip":
      return [job.file];
    default:
      return [];
  }
}

interface Bounds {
  readonly work: ToolWork;
  readonly cpuSeconds: number;
  readonly fileBytes?: number;
  /** Size of the pictures that the program decodes; absent where that is not known. */
  readonly size?: MediaSize | null;
}

/**
 * Seconds of processor time of a probe: twice LIMITS.ingest.probeTimeoutMs, as ffprobe decodes the first
 * frames on all processors.
 */
const PROBE_CPU_SECONDS = 20;
const QUERY_CPU_SECONDS = 5;
const OPUS_CPU_SECONDS = 10;
const PICTURE_CPU_SECONDS = 5;
/**
 * Bytes by which the kernel's limit of a file is above ffmpeg's: ffmpeg writes a whole packet before it
 * checks the length.
 */
const FILE_SLACK_BYTES = 64 << 10;

function boundsOf(job: ToolJob): Bounds {
  const window = ({ deadlineMs }: { readonly deadlineMs: number }, size: MediaSize | null) => ({
    ...{ work: "window" as const, size },
    cpuSeconds: deadlineMs / 1000 * processors(),
  });
  switch (job.kind) {
    case "make_pipe":
    case "list_decoders":
    case "list_gpus":
      return { work: "small", cpuSeconds: QUERY_CPU_SECONDS };
    case "open_device":
      return { work: "hardware", cpuSeconds: QUERY_CPU_SECONDS };
    case "probe":
      return {
        work: job.input.path === null ? "stream_probe" : "probe",
        cpuSeconds: PROBE_CPU_SECONDS,
        size: { width: 0, height: 0, pixelFormat: "", sizeBytes: job.sizeBytes ?? 0 },
      };
    case "decode":
      return {
        work: job.hardware === null ? "decode" : "hardware",
        cpuSeconds: job.cpuSeconds,
        size: mediaSizeOf(job.subject.info),
      };
    case "first_frame":
    case "list_packets":
      return window(job, job.size ?? null);
    case "wav":
      return window(job, mediaSizeOf(job.info));
    case "encode_clip":
    case "copy_clip":
      return { ...window(job, mediaSizeOf(job.info)), fileBytes: job.clipBytesMax + 2 * FILE_SLACK_BYTES };
    case "opus_samples":
      return { work: "small", cpuSeconds: OPUS_CPU_SECONDS };
    case "live_decode":
    case "live_pull":
      return { work: "live", cpuSeconds: SESSION_CPU_SECONDS };
    case "scale_picture":
      return { work: "jpeg", cpuSeconds: PICTURE_CPU_SECONDS };
    case "encode_jpegs": {
      const { width, height } = job;
      const size = { width, height, pixelFormat: "yuv420p", sizeBytes: 0 };
      return { work: "jpeg", cpuSeconds: SESSION_CPU_SECONDS, size };
    }
  }
}

function argsOf(
  job: ToolJob,
  ends: Ends,
  log: readonly string[] | null,
  devices: DecodeDevices,
): string[] {
  switch (job.kind) {
    case "make_pipe":
      return ["-m", "600", "--", job.path];
    case "probe":
      return probeArgs(job);
    case "list_decoders":
      // Without `-v error` it tells its version.
      return ["-nostdin", "-decoders"];
    case "list_gpus":
      return ["--list-gpus"];
    case "open_device":
      return openDeviceArgs(job, ends, devices);
    case "decode":
      return decodeArgs(job, ends, log, devices);
    case "first_frame":
      return firstFrameArgs(job, ends);
    case "wav":
      return wavArgs(job, ends);
    case "encode_clip":
      return encodeClipArgs(job);
    case "list_packets":
      return listPacketsArgs(job, ends);
    case "copy_clip":
      return copyClipArgs(job, ends);
    case "scale_picture":
      return pictureArgs(job, ends);
    case "opus_samples":
      return opusArgs(ends);
    case "live_decode":
      return liveDecodeArgs(job, ends, log);
    case "live_pull":
      return livePullArgs(job, ends, log);
    case "encode_jpegs":
      return jpegArgs(job, ends);
  }
}

/**
 * Packets of a file, of all its streams, that are read to tell its rate: some seconds, enough to tell 23.976
 * from 24 frames a second. Of a stream, one second is read.
 */
const PACKETS_READ = 200;

/**
 * Options for a source whose streams are known with the first picture; ffmpeg would wait for twenty to tell
 * how many there are in a second.
 */
const FIRST_PICTURE = ["-fpsprobesize", "0"];

function probeArgs({ input, isWatched, ignoresEdits }: JobOf<"probe">): string[] {
  const streamFields =
    "index,codec_type,codec_name,pix_fmt,width,height,field_order,avg_frame_rate,time_base,start_time,duration,channels";
  return [
    ...["-v", "error"],
    "-show_entries",
    `format=format_name,start_time,duration,size:stream=${streamFields}` +
    ":stream_tags=DURATION:stream_disposition=default,attached_pic:stream_side_data=rotation" +
    (isWatched ? "" : ":packet=stream_index,pts_time,dts_time"),
    // Packets are read and not decoded: 200 of them take a few milliseconds.
    ...(isWatched ? [] : ["-read_intervals", input.path === null ? "%+1" : `%+#${PACKETS_READ}`]),
    ...(isWatched ? FIRST_PICTURE : []),
    ...[
      "-of",
      "json=compact=1",
      ...probeOptions(input),
      ...inputOptions(input, { ignoresEdits }),
      "-i",
      inputUrl(input),
    ],
  ];
}

/** Arguments that decode one frame of no picture at all, as ffmpeg opens a device only for some work. */
function openDeviceArgs(
  { hardware }: JobOf<"open_device">,
  { output }: Ends,
  devices: DecodeDevices,
): string[] {
  return [
    ...["-nostdin", "-v", "error", ...deviceArgs(hardware, devices)],
    ...["-f", "lavfi", "-i", "color=size=64x64:rate=1", "-frames:v", "1", "-f", "framecrc", "-y", output],
  ];
}

function decodeArgs(
  job: JobOf<"decode">,
  { output }: Ends,
  log: readonly string[] | null,
  devices: DecodeDevices,
): string[] {
  const { subject, seekS, planes, jpegs, hardware, byOneThread } = job;
  return [
    ...inputArgs(subject, {
      seekS,
      byOneThread,
      ...(log && { log }),
      ...(hardware && { hardware, devices }),
    }),
    ...(jpegs ? jpegOutput(subject, { ...jpegs, ...selectionOf(jpegs.select), output }) : []),
    ...planeOutput(subject, {
      fifoPath: planes.pipe,
      maxFrames: planes.maxFrames,
      selection: planes.select && selectionOf(planes.select),
      isOnDevice: hardware !== null,
    }),
  ];
}

function selectionOf(select: ChosenFrames): FrameSelection {
  return { select: selectText(select), isSampled: select.by === "chunks" };
}

/** Arguments that decode as for signals, so that the same frame is the first one. */
function firstFrameArgs(job: JobOf<"first_frame">, { output }: Ends): string[] {
  const { input, streamIndex, timeBase } = job;
  return [
    ...["-nostdin", "-v", "error", ...inputOptions(input, job), ...CONTAINER_TIMES, "-i", inputUrl(input)],
    ...["-map", `0:${streamIndex}`, "-frames:v", "1"],
    ...[...ownTimes(timeBase), "-f", "framecrc", "-y", output],
  ];
}

function windowInput({ input, info, seek }: Pick<JobOf<"wav">, "input" | "info" | "seek">): string[] {
  return [
    ...[
      "-nostdin",
      "-v",
      "error",
      ...inputOptions(input, info),
      ...seekArgs(seek, info),
      "-i",
      inputUrl(input),
    ],
    ...["-filter_complex_threads", "1"],
  ];
}

function wavArgs(job: JobOf<"wav">, { output }: Ends): string[] {
  const graph = audioGraph(job.info, job.seek, job.durationMs, SIDECAR_SAMPLE_RATE_HZ);
  return [
    ...windowInput(job),
    ...["-filter_complex", graph, "-map", "[a]", "-c:a", "pcm_s16le", "-f", "s16le", "-y", output],
  ];
}

const AUDIO_BITS_PER_SECOND = 96_000;

/** Arguments that encode a clip: H.264 with the fastest preset of x264, because a clip is used once. */
function encodeClipArgs(job: JobOf<"encode_clip">): string[] {
  const { info, seek, durationMs, coordinates, withAudio } = job;
  const graphs = [videoGraph(info, seek, durationMs, coordinates)];
  if (withAudio) graphs.push(audioGraph(info, seek, durationMs, LIMITS.mediaWindow.audioSampleRateHz));
  return [
    ...windowInput(job),
    ...["-filter_complex", graphs.join(";"), "-map", "[v]", ...(withAudio ? ["-map", "[a]"] : [])],
    ...["-c:v", "libx264", "-preset", "ultrafast", "-bf", "0"],
    // Frames keep their own times, also at an unsteady rate.
    ...["-fps_mode", "vfr", "-enc_time_base", VIDEO_TIME_BASE],
    ...["-video_track_timescale", String(VIDEO_CLOCK_HZ)],
    // Matters for the last frame only, which is shown to the end of the window.
    ...["-bsf:v", `setts=duration=${Math.max(1, Math.round(durationMs * VIDEO_CLOCK_HZ / 1000))}-PTS`],
    ...(withAudio ? ["-c:a", "aac", "-b:a", String(AUDIO_BITS_PER_SECOND)] : []),
    ...clipFile(job),
  ];
}

/** Arguments that list packets: from the key frame before the part to its end, in the order of decoding. */
function listPacketsArgs(job: JobOf<"list_packets">, { output }: Ends): string[] {
  const { input, streamIndex, part } = job;
  return [
    ...[
      "-nostdin",
      "-v",
      "error",
      ...inputOptions(input, job),
      ...readFrom(part.fromMs),
      "-i",
      inputUrl(input),
    ],
    ...["-map", `0:${streamIndex}`, "-c", "copy", "-to", seconds(part.toMs), "-f", "framecrc", "-y", output],
  ];
}

/** Arguments that copy the packets of a range into the file, and list them for `isRange`. */
function copyClipArgs(job: JobOf<"copy_clip">, { output }: Ends): string[] {
  const { input, info, range: { seekMs, packets } } = job;
  const copy = ["-map", `0:${info.video!.streamIndex}`, "-c", "copy", "-frames:v", String(packets)];
  return [
    ...["-nostdin", "-v", "error", ...inputOptions(input, info)],
    ...[...readFrom((info.startMs ?? 0) + seekMs), "-i", inputUrl(input)],
    ...[...copy, "-bsf:v", "setts=pts=PTS-STARTPTS:dts=DTS-STARTPTS", ...clipFile(job)],
    ...[...copy, "-f", "framecrc", "-y", output],
  ];
}

/** Options of an MP4 file. `-fs` limits its length where there is no `prlimit`. */
function clipFile({ file, clipBytesMax }: Pick<JobOf<"copy_clip">, "file" | "clipBytesMax">): string[] {
  return [
    ...["-map_metadata", "-1", "-map_chapters", "-1", "-movflags", "+faststart"],
    ...["-fs", String(clipBytesMax + FILE_SLACK_BYTES), "-f", "mp4", "-y", `file:${file}`],
  ];
}

/** Arguments that scale a picture. The height follows, even. A picture is never made wider. */
function pictureArgs({ width }: JobOf<"scale_picture">, { input, output }: Ends): string[] {
  return [
    ...["-nostdin", "-v", "error", "-threads", "1", ...DECODED_MAX, "-f", "jpeg_pipe", "-i", input],
    ...["-map", "0:v:0", "-frames:v", "1", "-threads", "1", "-filter_threads", "1"],
    ...["-vf", `scale=w='min(iw,${width})':h=-2:flags=area`, "-c:v", "mjpeg"],
    ...[
      "-q:v",
      String(quantizerOf(LIMITS.live.jpegQuality)),
      "-flags:v",
      "+bitexact",
      "-f",
      "mjpeg",
      "-y",
      output,
    ],
  ];
}

function opusArgs({ input, output }: Ends): string[] {
  return [
    ...["-nostdin", "-v", "error", "-threads", "1", "-f", "ogg", "-i", input],
    ...["-map", "0:a:0", "-ac", "1", "-ar", String(SIDECAR_SAMPLE_RATE_HZ), "-f", "s16le", "-y", output],
  ];
}

function liveDecodeArgs(
  { codec, maxFrame }: JobOf<"live_decode">,
  { input, output }: Ends,
  log: readonly string[] | null,
): string[] {
  // Not every version of ffmpeg recognises H.265 in IVF.
  const decoder = codec === "h265" ? ["-c:v", "hevc"] : [];
  return liveArgs({
    // Must not contain `-fflags nobuffer`: with IVF every frame would be invalid.
    input: [...DECODED_MAX, "-probesize", "32", ...decoder, "-f", "ivf", "-i", input],
    stream: "0:v:0",
    setpts: null,
    maxFrame,
    output,
    log,
  });
}

function livePullArgs(job: JobOf<"live_pull">, { output }: Ends, log: readonly string[] | null): string[] {
  const { input, streamIndex, isPaced, maxFrame, soundSocket, copy } = job;
  const stream = streamIndex === null ? "0:v:0" : `0:${streamIndex}`;
  const args = liveArgs({
    input: [
      ...inputOptions(input, { isWatched: true }),
      ...(input.kind === "rtsp" ? FIRST_PICTURE : []),
      ...(isPaced ? ["-re"] : []),
      ...["-i", inputUrl(input)],
    ],
    stream,
    setpts: withoutJumps(input.kind === "mjpeg" ? JPEG_JUMP_S : JUMP_S),
    maxFrame,
    output,
    log,
  });
  return [
    ...args,
    ...(soundSocket === null ? [] : soundArgs(soundSocket)),
    ...(copy ? copyArgs(copy, stream) : []),
  ];
}

/** How long a packet of one stream waits for the next one of the other, microseconds. */
const INTERLEAVE_US = 200_000;

/**
 * Expression for times without the jumps of a camera's clock: it takes away all that the clock has jumped by.
 * A jump is more than 10 s from one picture or sound to the next. With the jumps, times would stand still
 * after a jump back until the clock has come where it was, and hours of silence would fill a jump forward.
 */
function withoutJumps(forwardS = JUMP_S): string {
  const step = "T-PREV_INT";
  const jumped = `st(0,ld(0)+if(gt(${step},${forwardS})+lt(${step},-${JUMP_S}),${step}-0.04,0))`;
  return `'${jumped};PTS-ld(0)/TB'`;
}

const JUMP_S = 10;
/**
 * Least jump forward, in seconds, where times are those at which JPEGs come: a shorter one is a camera that
 * sends a picture now and then.
 */
const JPEG_JUMP_S = 60;

/**
 * Filter that takes the jumps of a camera's clock out of the times of packets, whose time of decoding always
 * grows. Behind a jump the next packet comes `step` after the one before, in its own ticks. ffmpeg knows no
 * time of the first picture of a stream whose pictures are reordered, and a packet without one would end NUT.
 * Behind a jump such a picture is shown after all pictures before the jump.
 */
function packetTimes(step: string): string {
  const jumped = `st(0,ld(0)+if(gt(N,0)*gt(abs(DTS-PREV_INDTS)*TB,10),DTS-PREV_INDTS-${step},0))`;
  const guessed = `max(DTS-ld(0),if(gt(N,0),ld(1)+${step},DTS-ld(0)))`;
  const shown = `st(2,if(eq(PTS,NOPTS),${guessed},PTS-ld(0)))`;
  return `setts=pts='${jumped};${shown};st(1,if(gt(N,0),max(ld(1),ld(2)),ld(2)));ld(2)':dts='${jumped};DTS-ld(0)'`;
}
const PICTURE_TIMES = packetTimes("0.04/TB");
const SOUND_TIMES = packetTimes("if(gt(PREV_INDURATION,0),PREV_INDURATION,0.02/TB)");

/**
 * Arguments that copy the packets of the video from the first keyframe on, and all of the first sound stream,
 * as ffmpeg 7.1 calls no AAC of RTSP a keyframe. See `readPackets`.
 */
function copyArgs({ socket, withSound }: { socket: string; withSound: boolean }, stream: string): string[] {
  const sound = withSound ? ["-map", "0:a:0", "-bsf:a", SOUND_TIMES, "-copyinkf:a"] : ["-an"];
  return [
    ...["-map", stream, ...sound, "-sn", "-dn"],
    ...["-map_metadata", "-1", "-map_chapters", "-1", "-c", "copy", "-bsf:v", PICTURE_TIMES],
    ...["-output_ts_offset", String(COPY_OFFSET_MS / 1000), "-avoid_negative_ts", "disabled"],
    ...["-max_interleave_delta", String(INTERLEAVE_US), "-flush_packets", "1"],
    ...["-f", "nut", "-write_index", "0", "-y", `${SOCKET}${socket}`],
  ];
}

/** Arguments for the first sound stream, from time 0 of the source on; silence fills gaps. */
function soundArgs(socket: string): string[] {
  return [
    ...["-map", "0:a:0", "-vn", "-sn", "-dn", "-map_metadata", "-1", "-map_chapters", "-1"],
    ...[
      "-af",
      `asetpts=${withoutJumps()},aresample=${SIDECAR_SAMPLE_RATE_HZ}:async=1:first_pts=0`,
      "-ac",
      "1",
    ],
    ...["-c:a", "pcm_s16le", "-flush_packets", "1", "-f", "s16le", "-y", `${SOCKET}${socket}`],
  ];
}

/** Arguments of a live decode: one frame out for each unit in, without delay, see `LiveFfmpeg`. */
function liveArgs({ input, stream, setpts, maxFrame, output, log }: {
  readonly input: readonly string[];
  /** ffmpeg's name of the stream that is decoded, such as `0:v:0`. */
  readonly stream: string;
  /** What is made of the times of the input, which begin at 0 then; null keeps them. */
  readonly setpts: string | null;
  readonly maxFrame: Extent;
  readonly output: string;
  readonly log: readonly string[] | null;
}): string[] {
  return [
    ...["-nostdin", "-hide_banner", "-nostats", ...(log ?? ["-v", "info"])],
    ...["-threads", "1", ...input],
    ...["-map", stream, "-an", "-sn", "-dn", "-map_metadata", "-1", "-map_chapters", "-1"],
    ...["-threads", "1", "-filter_threads", "1", ...(setpts === null ? ["-copyts"] : [])],
    "-noautoscale",
    ...ownTimes(VIDEO_TIME_BASE),
    ...["-vf", `${setpts === null ? "" : `setpts=${setpts},`}${liveScale(maxFrame)}`],
    ...["-c:v", "rawvideo", "-flush_packets", "1", "-f", "nut", "-write_index", "0", "-y", output],
  ];
}

/** Longest edge of a live frame in pixels, the limit of `PlaneReducer`: longer ones are scaled down. */
const EDGE_MAX = 8192;

/**
 * Filter that passes frames of up to `width * height` pixels unchanged, whatever their shape, and scales
 * larger ones down. Both ranges are declared as full, so that the scaler does not stretch samples. See
 * docs/frames.md#signals. Where the size changes within one stream, so do the frames, because of
 * `-noautoscale`, and the scaler says it in the log: see `PictureSizes`.
 */
function liveScale({ width, height }: Extent): string {
  const share = `min(1,min(sqrt(${width * height}/(iw*ih)),${EDGE_MAX}/max(iw,ih)))`;
  const edge = (name: string) => `if(lt(${share},1),max(2,2*trunc(${name}*${share}/2)),${name})`;
  const size = `w='${edge("iw")}':h='${edge("ih")}'`;
  return `scale=${size}:flags=area:in_range=full:out_range=full,format=yuv420p`;
}

/**
 * Arguments that encode JPEGs. JPEG is full range, most video is not. The size does not change, so the
 * fastest method of the scaler is exact.
 */
function jpegArgs({ width, height, isFullRange }: JobOf<"encode_jpegs">, { input, output }: Ends): string[] {
  const range = `scale=in_range=${isFullRange ? "full" : "limited"}:out_range=full:flags=neighbor`;
  return [
    ...["-nostdin", "-v", "error", "-threads", "1", "-probesize", "32"],
    ...["-f", "rawvideo", "-pixel_format", "yuv420p", "-video_size", `${width}x${height}`, "-i", input],
    ...["-map", "0:v:0", "-threads", "1", "-filter_threads", "1", "-fps_mode", "passthrough"],
    ...["-vf", `${range},format=yuvj420p,setsar=1`, "-c:v", "mjpeg"],
    ...["-q:v", String(quantizerOf(LIMITS.live.jpegQuality)), "-huffman", "default", "-flags:v", "+bitexact"],
    ...["-flush_packets", "1", "-f", "nut", "-write_index", "0", "-y", output],
  ];
}
