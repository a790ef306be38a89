/** Entry of the process of the reference audio sidecar. */

import type { World } from "../../base/world.ts";
import { type RunningSidecar, runSidecar } from "../sidecar_process.ts";
import type { SidecarEnvironment } from "../sidecar_settings.ts";
import { AudioServer } from "./audio_server.ts";
import { AUDIO_VARIABLES, type AudioSettings, readAudioSettings } from "./audio_settings.ts";
import { AudioWork } from "./audio_work.ts";
import { EndpointRecognizer, type Recognizer, WhisperRecognizer } from "./speech_recognition.ts";

function start(env: SidecarEnvironment, world: World): RunningSidecar {
  const settings = readAudioSettings(env);
  const recognizer = recognizerOf(settings, world);
  const work = new AudioWork({ world, recognizer, ...settings });
  const server = AudioServer.listen({ world, work, ...settings });
  const speech = recognizer
    ? `transcribes speech with ${recognizer.model}`
    : "does not transcribe speech, as no recognizer is set";
  return {
    bindAddr: settings.bindAddr,
    port: server.port,
    summary: `finds voices and sounds, ${speech}`,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

function recognizerOf(settings: AudioSettings, world: World): Recognizer | null {
  const { asrUrl, asrApiKey, asrModel, asrEngine, whisperProgram, whisperModel, timeoutMs } = settings;
  if (asrUrl) {
    return new EndpointRecognizer({ url: asrUrl, apiKey: asrApiKey, model: asrModel, engine: asrEngine });
  }
  if (!whisperProgram || !whisperModel) return null;
  return new WhisperRecognizer({
    world,
    program: whisperProgram,
    modelPath: whisperModel,
    deadlineMs: timeoutMs,
  });
}

if (import.meta.main) {
  Deno.exit(await runSidecar({ name: "audio_sidecar", variables: AUDIO_VARIABLES, start }));
}
