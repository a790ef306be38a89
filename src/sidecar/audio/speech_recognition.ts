/** Speech to text by the configured engine: an OpenAI-compatible endpoint, or whisper.cpp. */

import { truncatedUtf8 } from "../../base/bytes.ts";
import type { World } from "../../base/world.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { AudioObservation, SpeechEngine } from "../../model/sidecars/local_audio.ts";
import { wavOf } from "../../model/sidecars/wav.ts";
import { SAMPLE_RATE_HZ } from "./features.ts";
import { outputOf, ProgramFailed } from "../program.ts";
import { SidecarFault } from "../sidecar_fault.ts";

/** One recognized text of one part of the audio. */
export interface Utterance {
  /** Milliseconds from the start of the part; null when the engine reports none. */
  readonly startMs: number | null;
  readonly endMs: number | null;
  readonly text: string;
  readonly language: string | null;
  /** In [0,1]; null when the engine reports none. */
  readonly confidence: number | null;
}

export interface Recognizer {
  readonly engine: Exclude<SpeechEngine, "none" | "auto">;
  /** The name of the model in the observations. */
  readonly model: string;
  /** Rejects with a `SidecarFault` or the reason of `signal`. */
  recognize(wav: Uint8Array, signal: AbortSignal): Promise<Utterance[]>;
}

/** Transcribes the segments that contain a voice. Segments close together are transcribed as one part. */
export async function transcribe(
  recognizer: Recognizer,
  samples: Int16Array,
  voice: readonly AudioObservation[],
  signal: AbortSignal,
): Promise<AudioObservation[]> {
  const observations: AudioObservation[] = [];
  const durationMs = Math.floor(samples.length / SAMPLE_RATE_HZ * 1000);
  for (const part of speechParts(voice, durationMs)) {
    const spoken = samples.subarray(part.startMs * SAMPLES_PER_MS, part.endMs * SAMPLES_PER_MS);
    const utterances = await recognizer.recognize(wavOf(spoken, SAMPLE_RATE_HZ), signal);
    for (const { text, language, confidence, startMs, endMs } of utterances) {
      const start = part.startMs + Math.max(0, Math.round(startMs ?? PAD_MS));
      const end = Math.min(part.endMs, part.startMs + Math.round(endMs ?? part.endMs));
      const transcript = truncatedUtf8(text.trim(), LIMITS.sidecar.transcriptBytesMax);
      if (!/[\p{L}\p{N}]/u.test(transcript.replaceAll(/\[[^\]]*\]|\([^)]*\)/g, "")) || end <= start) continue;
      observations.push({
        start_offset_ms: start,
        end_offset_ms: end,
        kind: "speech",
        label: "speech",
        confidence: confidence ?? part.confidence,
        model: recognizer.model,
        transcript,
        ...(language && { language: truncatedUtf8(language, LIMITS.sidecar.languageBytesMax) }),
      });
    }
  }
  return observations;
}

interface SpeechPart {
  readonly startMs: number;
  readonly endMs: number;
  readonly confidence: number;
}

const SAMPLES_PER_MS = SAMPLE_RATE_HZ / 1000;
/**
 * Segments with a shorter pause between them are transcribed together: a recognizer works better on whole
 * sentences.
 */
const JOIN_MS = 700;
const PART_MS_MAX = 30_000;
/** Added before and after each part, so that its first and last sounds are not cut off. */
const PAD_MS = 150;

function speechParts(voice: readonly AudioObservation[], durationMs: number): SpeechPart[] {
  const joined: SpeechPart[] = [];
  for (const { start_offset_ms: startMs, end_offset_ms: endMs, confidence } of voice) {
    const last = joined.at(-1);
    if (last && startMs - last.endMs <= JOIN_MS && endMs - last.startMs <= PART_MS_MAX) {
      joined[joined.length - 1] = { ...last, endMs, confidence: Math.max(last.confidence, confidence) };
    } else joined.push({ startMs, endMs, confidence });
  }
  return joined.map(({ startMs, endMs, confidence }) => ({
    startMs: Math.max(0, startMs - PAD_MS),
    endMs: Math.min(durationMs, endMs + PAD_MS),
    confidence,
  }));
}

export interface EndpointOptions {
  /** The whole URL, such as `http://127.0.0.1:8000/v1/audio/transcriptions`. */
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly model: string;
  readonly engine: Recognizer["engine"];
}

const ANSWER_BYTES_MAX = 2 ** 20;

/**
 * Sends a multipart form as OpenAI's API defines it. Asks for segments and accepts an answer without them.
 */
export class EndpointRecognizer implements Recognizer {
  readonly engine;
  readonly model;
  readonly #options: EndpointOptions;

  constructor(options: EndpointOptions) {
    this.engine = options.engine;
    this.model = options.model;
    this.#options = options;
  }

  async recognize(wav: Uint8Array<ArrayBuffer>, signal: AbortSignal): Promise<Utterance[]> {
    const { url, apiKey, model } = this.#options;
    const form = new FormData();
    form.set("file", new File([wav], "speech.wav", { type: "audio/wav" }));
    form.set("model", model);
    form.set("response_format", "verbose_json");
    let text;
    try {
      const headers: Record<string, string> = apiKey ? { authorization: `Bearer ${apiKey}` } : {};
      const response = await fetch(url, { method: "POST", body: form, headers, redirect: "error", signal });
      text = await boundedText(response);
      if (!response.ok) {
        throw new SidecarFault("inference", `the transcription endpoint answered ${response.status}`);
      }
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof SidecarFault) throw error;
      throw new SidecarFault("inference", "the transcription endpoint cannot be reached");
    }
    return utterancesOf(text);
  }
}

async function boundedText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const part of response.body ?? []) {
    text += decoder.decode(part, { stream: true });
    if (text.length > ANSWER_BYTES_MAX) {
      throw new SidecarFault(
        "inference",
        `the transcription endpoint answered more than ${ANSWER_BYTES_MAX} bytes`,
      );
    }
  }
  return text + decoder.decode();
}

function utterancesOf(text: string): Utterance[] {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    throw new SidecarFault("malformed_response", "the transcription endpoint did not answer JSON");
  }
  const { text: whole, language, segments } = record(answer);
  const spoken = typeof language === "string" && language !== "" ? language : null;
  if (Array.isArray(segments) && segments.length > 0) {
    return segments.map(record).filter(({ no_speech_prob }) => !(Number(no_speech_prob) > 0.8)).map((
      segment,
    ) => ({
      startMs: milliseconds(segment.start),
      endMs: milliseconds(segment.end),
      text: typeof segment.text === "string" ? segment.text : "",
      language: spoken,
      confidence: typeof segment.avg_logprob === "number"
        ? Math.min(1, Math.max(0, Math.exp(segment.avg_logprob)))
        : null,
    }));
  }
  if (typeof whole !== "string") {
    throw new SidecarFault("malformed_response", "the transcription endpoint answered without a text");
  }
  return [{ startMs: null, endMs: null, text: whole, language: spoken, confidence: null }];
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? value as Record<string, unknown> : {};
}

function milliseconds(seconds: unknown): number | null {
  return typeof seconds === "number" && Number.isFinite(seconds) ? seconds * 1000 : null;
}

export interface WhisperOptions {
  readonly world: World;
  /** Path of whisper.cpp's `whisper-cli`. */
  readonly program: string;
  /** Path of its model file. */
  readonly modelPath: string;
  readonly deadlineMs: number;
}

const TRANSCRIPT_BYTES_MAX = 256 * 2 ** 10;

/** Passes the audio to whisper.cpp through stdin and reads the plain text that it prints. */
export class WhisperRecognizer implements Recognizer {
  readonly engine = "whisper";
  readonly model;
  readonly #options: WhisperOptions;

  constructor(options: WhisperOptions) {
    const file = options.modelPath.split("/").at(-1)!;
    this.model = truncatedUtf8(`whisper.cpp/${file}`, LIMITS.sidecar.modelBytesMax);
    this.#options = options;
  }

  async recognize(wav: Uint8Array, signal: AbortSignal): Promise<Utterance[]> {
    const { program, modelPath, ...limits } = this.#options;
    const args = ["-m", modelPath, "-f", "-", "-l", "auto", "--no-timestamps", "--no-prints"];
    try {
      const output = await outputOf(program, args, {
        ...limits,
        input: wav,
        maxOutputBytes: TRANSCRIPT_BYTES_MAX,
        signal,
      });
      const text = new TextDecoder().decode(output).replaceAll(/\s+/g, " ");
      return [{ startMs: null, endMs: null, text, language: null, confidence: null }];
    } catch (error) {
      if (!(error instanceof ProgramFailed)) throw error;
      const reason = { missing: "model_load", late: "timeout", failed: "inference" } as const;
      throw new SidecarFault(reason[error.kind], `whisper.cpp cannot transcribe: ${error.message}`);
    }
  }
}
