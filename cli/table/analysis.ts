/** Commands that bring media to the server: analyze, upload, live. */

import {
  AUDIO_PROFILES,
  MEDIA_MODES,
  MEDIA_RESOLUTIONS,
  MODES,
  SAMPLING_POLICIES,
  SPEECH_ENGINES,
} from "./choices.ts";
import { type CommandRow, crop, number, type OptionRow, whole } from "./row.ts";

/** Flags that ask for a model, for sound, or for what only they have. Any of them makes `analyze` reason. */
export const REASON_OPTIONS: readonly OptionRow[] = [
  { flags: "--prompt <text>", summary: "what a model is asked of each chunk" },
  { flags: "--chunk-size <n>", summary: "frames of a chunk (25)", read: whole(5, 500) },
  {
    flags: "--frames-per-chunk <n>",
    summary: "pictures of a chunk that the model is shown (4)",
    read: whole(1, 4),
  },
  {
    flags: "--semantic-timeout-ms <ms>",
    summary: "time for one answer of a model (30000)",
    read: whole(100, 120_000),
  },
  { flags: "--index-name <name>", summary: "stands in all events of the analysis" },
  { flags: "--crop <x,y,w,h>", summary: "the part of the picture to look at, as fractions", read: crop },
  { flags: "--media <mode>", summary: "what a model is sent (frames)", choices: MEDIA_MODES },
  { flags: "--media-window-ms <ms>", summary: "length of a clip", read: whole(100, 60_000) },
  {
    flags: "--media-resolution <resolution>",
    summary: "resolution of clips (low)",
    choices: MEDIA_RESOLUTIONS,
  },
  { flags: "--no-persist-evidence", summary: "do not keep the clips that a model was sent" },
  { flags: "--local-audio", summary: "have the audio sidecar listen; needs --media audio-video" },
  {
    flags: "--audio-profile <profile>",
    summary: "what kind of sound to expect (general)",
    choices: AUDIO_PROFILES,
  },
  { flags: "--speech-engine <engine>", summary: "what writes speech down (auto)", choices: SPEECH_ENGINES },
  { flags: "--audio-min-confidence <n>", summary: "sounds below are left out (0.35)", read: number(0, 1) },
  { flags: "--audio-max-events <n>", summary: "sounds of a window at most (32)", read: whole(1, 64) },
  { flags: "--voice-feedback", summary: "have the sidecar speak what it found" },
  { flags: "--no-vlm", summary: "ask no model" },
  { flags: "--include-frame-metadata", summary: "rows of all frames in the answer" },
];

export const ANALYSIS_COMMANDS: readonly CommandRow[] = [
  {
    path: "analyze",
    summary: "Analyze a file or a source and print its timeline; with a prompt, ask a model about it",
    args: [{ name: "[file]", summary: "a video on this machine, which is uploaded", isPath: true }],
    options: [
      { flags: "--source-uri <uri>", summary: "a source that the server reads itself, in place of a file" },
      { flags: "--model <id>", summary: "id of `models`; without a prompt it only labels rows" },
      { flags: "--mode <mode>", summary: "kept with the run and its rows", choices: MODES },
      {
        flags: "--sampling-policy <policy>",
        summary: "which frames are looked at (all of them; with a prompt, fixed)",
        choices: SAMPLING_POLICIES,
      },
      { flags: "--fixed-fps <n>", summary: "frames a second under fixed (1.0)", read: number(0.2, 120) },
      { flags: "--max-frames <n>", summary: "frames at most (500000)", read: whole(1, 500_000) },
      {
        flags: "--video-stream <index>",
        summary: "which video stream of a file with several (the default or the largest one)",
        read: whole(0, 10_000),
      },
      {
        flags: "--sheet <file>",
        summary: "write a contact sheet in HTML with the frames of every mark",
        isPath: true,
      },
      { flags: "--with-ingest", summary: "ingest as well before a model is asked" },
      ...REASON_OPTIONS,
    ],
    examples: [
      "analyze clip.mp4 --sheet clip.html",
      "analyze clip.mp4 --prompt 'Is there a person at the door?' --fixed-fps 2",
      "analyze --source-uri https://video.example.org/a.mp4 --media audio-video --prompt 'What is said?'",
    ],
    load: async () => (await import("../commands/analyze/analyze.ts")).analyze,
  },
  {
    path: "upload",
    summary: "Upload a file, and print the source_uri under which the server has it",
    args: [{ name: "<file>", summary: "a video of at most 200 MiB", isPath: true }],
    examples: ["upload clip.mp4", "analyze --source-uri $(service-cli --quiet upload clip.mp4)"],
    load: async () => (await import("../commands/upload.ts")).upload,
  },
  {
    path: "files rm",
    summary: "Delete an upload; events keep its name",
    args: [{ name: "<file>", summary: "its source_uri, or the last part of it" }],
    examples: ["files rm $(service-cli --quiet upload clip.mp4)"],
    load: async () => (await import("../commands/upload.ts")).removeUpload,
  },
  {
    path: "live",
    summary: "Publish a file over WebRTC as a camera would, or have the server watch a camera",
    args: [{
      name: "<source>",
      summary: "a video on this machine, or an rtsp, rtsps or HLS address",
      isPath: true,
    }],
    options: [
      { flags: "--prompt <text>", summary: "what a model is asked of each picture" },
      { flags: "--crop <x,y,w,h>", summary: "the part of the picture to look at, as fractions", read: crop },
      { flags: "--trigger <file>", summary: "a compiled trigger program", isPath: true },
      { flags: "--loop", summary: "publish the file again and again, until Ctrl-C" },
    ],
    examples: [
      "live clip.mp4 --prompt 'Describe the picture.'",
      "live rtsps://camera.example.org/1 --json",
    ],
    load: async () => (await import("../commands/live/live.ts")).live,
  },
];
