/** The settings of the reference sidecar: a table of variables, read all at once, every fault named. */

import { type Address, address, httpUrl, integer, oneOf, type Parser } from "../../base/setting_parsers.ts";
import type { Recognizer } from "./speech_recognition.ts";

export interface SidecarSettings {
  readonly bindAddr: Address;
  readonly inFlight: number;
  readonly queue: number;
  readonly timeoutMs: number;
  readonly espeakProgram: string;
  readonly asrUrl: string | undefined;
  readonly asrApiKey: string | undefined;
  readonly asrModel: string;
  readonly asrEngine: Recognizer["engine"];
  readonly whisperProgram: string | undefined;
  readonly whisperModel: string | undefined;
}

/** Throws an Error with one line for each variable that is wrong. */
export function readSidecarSettings(env: Readonly<Record<string, string | undefined>>): SidecarSettings {
  const faults: string[] = [];
  const optional = <T>(name: string, parser: Parser<T>): T | undefined => {
    const text = env[name];
    if (text === undefined || text === "") return undefined;
    const value = parser.read(text);
    if (value === undefined) faults.push(`${name} must be ${parser.rule}`);
    return value;
  };
  const settings = {
    bindAddr: optional("AUDIO_SIDECAR_BIND_ADDR", address) ?? { hostname: "127.0.0.1", port: 7790 },
    inFlight: optional("AUDIO_SIDECAR_IN_FLIGHT", integer(1, 64)) ?? 1,
    queue: optional("AUDIO_SIDECAR_QUEUE", integer(0, 1024)) ?? 8,
    timeoutMs: optional("AUDIO_SIDECAR_TIMEOUT_MS", integer(100, 3_600_000)) ?? 120_000,
    espeakProgram: optional("AUDIO_SIDECAR_ESPEAK_PROGRAM", word) ?? "espeak-ng",
    asrUrl: optional("AUDIO_SIDECAR_ASR_URL", httpUrl),
    asrApiKey: optional("AUDIO_SIDECAR_ASR_API_KEY", word),
    asrModel: optional("AUDIO_SIDECAR_ASR_MODEL", word) ?? "whisper-1",
    asrEngine: optional("AUDIO_SIDECAR_ASR_ENGINE", engine) ?? "whisper",
    whisperProgram: optional("AUDIO_SIDECAR_WHISPER_PROGRAM", word),
    whisperModel: optional("AUDIO_SIDECAR_WHISPER_MODEL", word),
  } as const;
  if ((settings.whisperProgram === undefined) !== (settings.whisperModel === undefined)) {
    faults.push("AUDIO_SIDECAR_WHISPER_PROGRAM and AUDIO_SIDECAR_WHISPER_MODEL must be set together");
  }
  if (settings.asrUrl && settings.whisperProgram) {
    faults.push("AUDIO_SIDECAR_ASR_URL and AUDIO_SIDECAR_WHISPER_PROGRAM must not both be set");
  }
  if (faults.length > 0) throw new Error(faults.join("\n"));
  return settings;
}

const word: Parser<string> = {
  rule: "a text without line breaks",
  read: (text) => /^[^\r\n]+$/.test(text) ? text : undefined,
};

const engine = oneOf({
  whisper: "whisper",
  sensevoice: "sensevoice",
  moonshine: "moonshine",
  qwen3_asr: "qwen3_asr",
  lfm2_5_audio: "lfm2_5_audio",
});
