/** The process of the reference audio sidecar: environment in, signals in, exit code out. */

import { openLog } from "../../base/log.ts";
import { realWorld, type World } from "../../base/world.ts";
import { SidecarServer } from "./audio_server.ts";
import { readSidecarSettings, type SidecarSettings } from "./audio_settings.ts";
import { SidecarWork } from "./audio_work.ts";
import { EndpointRecognizer, type Recognizer, WhisperRecognizer } from "./speech_recognition.ts";

/** Names are listed one by one, as the process may read no others. */
const VARIABLES = [
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

async function main(): Promise<number> {
  const world = realWorld(openLog("info"));
  const log = world.log.child("audio_sidecar");
  const ended = Promise.withResolvers<void>();
  Deno.addSignalListener("SIGINT", ended.resolve);
  Deno.addSignalListener("SIGTERM", ended.resolve);
  try {
    const settings = readSidecarSettings(
      Object.fromEntries(VARIABLES.map((name) => [name, Deno.env.get(name)])),
    );
    const recognizer = recognizerOf(settings, world);
    const work = new SidecarWork({ world, recognizer, ...settings });
    await using server = new SidecarServer({ world, work, ...settings });
    const hears = recognizer ? `speech through ${recognizer.model}` : "no words, as no recognizer is set";
    const { hostname } = settings.bindAddr;
    log.info(`hears voices and sounds, ${hears}`);
    log.info(`listening on tcp://${hostname.includes(":") ? `[${hostname}]` : hostname}:${server.port}`);
    await ended.promise;
  } catch (error) {
    log.error(error instanceof Error ? error.message : String(error));
    return 1;
  }
  return 0;
}

function recognizerOf(settings: SidecarSettings, world: World): Recognizer | null {
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

if (import.meta.main) Deno.exit(await main());
