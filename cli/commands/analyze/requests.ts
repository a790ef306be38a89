/** What `analyze` asks of the server, made of its flags. */

import { MAX_FRAMES, USUAL_QUESTION } from "../../../client/mod.ts";
import { CliError } from "../../failure.ts";
import type { Flags } from "../../session.ts";

/** Flags that only `reason` knows. */
const REASON_FLAGS = [
  ...[
    "prompt",
    "chunkSize",
    "framesPerChunk",
    "semanticTimeoutMs",
    "indexName",
    "crop",
    "media",
    "mediaWindowMs",
    "mediaResolution",
  ],
  ...["localAudio", "audioProfile", "speechEngine", "audioMinConfidence", "audioMaxEvents", "voiceFeedback"],
  ...["includeFrameMetadata", "withIngest"],
];
const AUDIO_FLAGS = ["audioProfile", "speechEngine", "audioMinConfidence", "audioMaxEvents", "voiceFeedback"];

/** Whether the flags ask for more than rows and markers. */
export function wantsReason(flags: Flags): boolean {
  return flags.vlm === false || flags.persistEvidence === false ||
    REASON_FLAGS.some((name) => flags[name] !== undefined);
}

export function ingestRequest(
  source_uri: string,
  { samplingPolicy, fixedFps, maxFrames = MAX_FRAMES, videoStream }: Flags,
) {
  const policy = samplingPolicy ?? (fixedFps === undefined ? undefined : "fixed");
  return {
    source_uri,
    max_frames: maxFrames,
    ...(videoStream !== undefined && { video_stream: videoStream }),
    ...(policy !== undefined && { sampling_policy: policy }),
    ...(policy === "fixed" && { fixed_fps: fixedFps ?? USUAL_QUESTION.fixed_fps }),
  };
}

export function truncatedText(frames: number): string {
  return `only the first ${frames} frames: --max-frames ended it before the source did`;
}

export function reasonRequest(source_uri: string, model: string, flags: Flags) {
  const policy = flags.samplingPolicy ?? "fixed";
  const isNative = flags.media !== undefined && flags.media !== "frames";
  if (isNative && flags.chunkSize !== undefined) {
    throw new CliError("usage", "--chunk-size goes with --media frames only; clips have --media-window-ms");
  }
  return {
    source_uri,
    model,
    ...(flags.mode !== undefined && { mode: flags.mode }),
    sampling_policy: policy,
    ...(policy === "fixed" && { fixed_fps: flags.fixedFps ?? USUAL_QUESTION.fixed_fps }),
    max_frames: flags.maxFrames ?? MAX_FRAMES,
    ...(flags.videoStream !== undefined && { video_stream: flags.videoStream }),
    ...(!isNative && { chunk_size: flags.chunkSize ?? USUAL_QUESTION.chunk_size }),
    ...(!isNative && {
      semantic_frames_per_chunk: flags.framesPerChunk ?? USUAL_QUESTION.semantic_frames_per_chunk,
    }),
    semantic_timeout_ms: flags.semanticTimeoutMs,
    ...(flags.prompt !== undefined && { semantic_prompt: flags.prompt }),
    ...(flags.indexName !== undefined && { index_name: flags.indexName }),
    ...(flags.crop !== undefined && { crop: flags.crop }),
    ...(flags.vlm === false && { semantic_inference: false }),
    include_frame_metadata: flags.includeFrameMetadata === true,
    ...mediaOf(flags),
    ...audioOf(flags),
  };
}

function mediaOf({ media, mediaWindowMs, mediaResolution, persistEvidence }: Flags) {
  if (media === undefined) {
    const flag = mediaWindowMs !== undefined
      ? "--media-window-ms"
      : mediaResolution !== undefined
      ? "--media-resolution"
      : persistEvidence === false
      ? "--no-persist-evidence"
      : undefined;
    if (flag) throw new CliError("usage", `${flag} goes with --media video or audio-video`);
    return {};
  }
  const isNative = media !== "frames";
  return {
    media: {
      mode: media.replace("-", "_"),
      ...(mediaWindowMs !== undefined && { window_ms: mediaWindowMs }),
      ...(isNative && { resolution: mediaResolution ?? "low" }),
      ...(persistEvidence === false && { persist_evidence: false }),
    },
  };
}

function audioOf(flags: Flags) {
  if (!flags.localAudio) {
    const given = AUDIO_FLAGS.find((name) => flags[name] !== undefined);
    if (given) {
      const flag = given.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      throw new CliError("usage", `--${flag} goes with --local-audio`);
    }
    return {};
  }
  return {
    local_audio: {
      profile: flags.audioProfile ?? "general",
      speech_engine: flags.speechEngine ?? "auto",
      min_confidence: flags.audioMinConfidence ?? 0.35,
      max_events: flags.audioMaxEvents ?? 32,
      ...(flags.voiceFeedback && { voice_feedback: true }),
    },
  };
}
