/** The settings of the reference audio sidecar: its variables, their defaults and the rules between them. */

import { type Address, address, httpUrl, integer, oneOf } from "../../contract/setting_parsers.ts";
import { readSettings, type SidecarEnvironment, singleLine } from "../sidecar_settings.ts";
import type { Recognizer } from "./speech_recognition.ts";

export interface AudioSettings {
  readonly bindAddr: Address;
  /** Requests that are worked on at once. */
  readonly inFlight: number;
  /** Requests that may wait. */
  readonly queue: number;
  /** Deadline of one request, its wait included. */
  readonly timeoutMs: number;
  readonly espeakProgram: string;
  readonly asrUrl: string | undefined;
  readonly asrApiKey: string | undefined;
  readonly asrModel: string;
  readonly asrEngine: Recognizer["engine"];
  readonly whisperProgram: string | undefined;
  readonly whisperModel: string | undefined;
}

/** Listed one by one, as the process has permission to read only these. */
export const AUDIO_VARIABLES = [
  "AUDIO_SIDECAR_BIND_ADDR",
  "AUDIO_SIDECAR_IN_FLIGHT",
  "AUDIO_SIDECAR_QUEUE",
  "AUDIO_SIDECAR_TIMEOUT_MS",
  "AUDIO_SIDECAR_ESPEAK_PROGRAM",
  "AUDIO_SIDECAR_ASR_URL",
  "AUDIO_SIDECAR_ASR_API_KEY",
  "AUDIO_SIDECAR_ASR_MODEL",
  "AUDIO_SIDECAR_ASR_ENGINE",
  "AUDIO_SIDECAR_WHISPER_PROGRAM",
  "AUDIO_SIDECAR_WHISPER_MODEL",
] as const;

/** Throws an Error with one line for each variable that is wrong. */
export function readAudioSettings(env: SidecarEnvironment): AudioSettings {
  return readSettings<typeof AUDIO_VARIABLES[number], AudioSettings>(env, (setting, faults) => {
    const settings: AudioSettings = {
      bindAddr: setting("AUDIO_SIDECAR_BIND_ADDR", address) ?? { hostname: "127.0.0.1", port: 7790 },
      inFlight: setting("AUDIO_SIDECAR_IN_FLIGHT", integer(1, 64)) ?? 1,
      queue: setting("AUDIO_SIDECAR_QUEUE", integer(0, 1024)) ?? 8,
      timeoutMs: setting("AUDIO_SIDECAR_TIMEOUT_MS", integer(100, 3_600_000)) ?? 120_000,
      espeakProgram: setting("AUDIO_SIDECAR_ESPEAK_PROGRAM", singleLine) ?? "espeak-ng",
      asrUrl: setting("AUDIO_SIDECAR_ASR_URL", httpUrl),
      asrApiKey: setting("AUDIO_SIDECAR_ASR_API_KEY", singleLine),
      asrModel: setting("AUDIO_SIDECAR_ASR_MODEL", singleLine) ?? "whisper-1",
      asrEngine: setting("AUDIO_SIDECAR_ASR_ENGINE", engine) ?? "whisper",
      whisperProgram: setting("AUDIO_SIDECAR_WHISPER_PROGRAM", singleLine),
      whisperModel: setting("AUDIO_SIDECAR_WHISPER_MODEL", singleLine),
    };
    if ((settings.whisperProgram === undefined) !== (settings.whisperModel === undefined)) {
      faults.push("AUDIO_SIDECAR_WHISPER_PROGRAM and AUDIO_SIDECAR_WHISPER_MODEL must be set together");
    }
    if (settings.asrUrl && settings.whisperProgram) {
      faults.push("AUDIO_SIDECAR_ASR_URL and AUDIO_SIDECAR_WHISPER_PROGRAM must not both be set");
    }
    return settings;
  });
}

const engine = oneOf({
  whisper: "whisper",
  sensevoice: "sensevoice",
  moonshine: "moonshine",
  qwen3_asr: "qwen3_asr",
  lfm2_5_audio: "lfm2_5_audio",
});
