/** The audio sidecar as seen from the service: windows of audio in, what is heard in them out, and texts into speech. */

import { Gate } from "../../base/gate.ts";
import type { Log } from "../../base/log.ts";
import type { Metrics } from "../../base/metrics.ts";
import { Refusal } from "../../base/refusal.ts";
import type { Address } from "../../base/setting_parsers.ts";
import { utf8Length } from "../../base/bytes.ts";
import type { World } from "../../base/world.ts";
import {
  type AnalyzeRequest,
  decodeAnalysis,
  decodeFailure,
  decodeSpeech,
  encodeAnalyze,
  encodeSynthesize,
  ProtocolFault,
} from "../../model/sidecars/audio_protocol.ts";
import { LIMITS } from "../../model/limits.ts";
import {
  type AudioProfile,
  type LocalAudio,
  type SidecarCapacity,
  SidecarFailed,
  type SpeechEngine,
} from "../../model/sidecars/local_audio.ts";
import { readWav } from "../../model/sidecars/wav.ts";
import { AudioLine, type AudioResponse, LineCut } from "./audio_connection.ts";
import { BackOff } from "./back_off.ts";
import { Deadline, OutOfTime } from "../../base/wait.ts";

export interface AudioSidecarOptions {
  /** SERVICE_AUDIO_SIDECAR_ADDR. */
  readonly address: Address;
  readonly world: World;
  readonly metrics: Metrics;
}

export interface AnalyzeCall {
  /** Mono 16-bit PCM of at most 4 MiB. */
  readonly wav: Uint8Array;
  readonly profile: AudioProfile;
  readonly engine: SpeechEngine;
  readonly maxEvents: number;
  readonly minConfidence: number;
  /** Where the window begins in its source. */
  readonly sourceStartMs: number;
  /** Of the whole call: waiting for a connection, connecting, sending and receiving. */
  readonly timeoutMs: number;
  /** What getting the WAV took; given, the time from extraction to result is measured. */
  readonly extractionMs?: number;
  readonly signal: AbortSignal;
}

export interface SynthesizeCall {
  /** At most 16 KiB of UTF-8. */
  readonly text: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface Speech {
  /** A mono or stereo 16-bit PCM file. */
  readonly wav: Uint8Array;
  readonly model: string;
  readonly sampleRateHz: number;
  readonly processingMs: number;
}

/** Requests under way at once, each over a connection of its own; a sidecar takes fewer anyway. */
const CONNECTIONS_MAX = 8;
/** Callers that wait for a connection; one more is refused as `overloaded`. */
const WAITERS_MAX = 64;

/**
 * Keeps connections open between calls and has one request at a time on each. Whatever contradicts the protocol ends
 * the connection. A sidecar that cannot be reached, cuts connections or answers nonsense is left alone for 100 ms,
 * then twice as long each time, at most 5 s; calls fail at once meanwhile, with reason `reconnect`. A call that ran
 * out of its own time says nothing about the sidecar, so it costs its connection but no other caller waits for it.
 *
 * All calls reject with `SidecarFailed`, or with the reason of their signal; both end the connection under way.
 */
export class AudioSidecar implements Disposable {
  readonly #address: Address;
  readonly #world: World;
  readonly #metrics: Metrics;
  readonly #log: Log;
  readonly #gate = new Gate({
    limit: CONNECTIONS_MAX,
    waiterLimit: WAITERS_MAX,
    what: "calls to the audio sidecar",
    refusal: "audio_sidecar_unavailable",
  });
  /** Every open connection, and those of them that nobody uses, the most recently used last. */
  readonly #lines = new Set<AudioLine>();
  readonly #idle: AudioLine[] = [];
  readonly #backOff = new BackOff();
  #isClosed = false;

  constructor({ address, world, metrics }: AudioSidecarOptions) {
    this.#address = address;
    this.#world = world;
    this.#metrics = metrics;
    this.#log = world.log.child("audio_sidecar");
  }

  /** What is heard in a window. Sent a second time if the connection turns out to have been closed meanwhile. */
  async analyze(call: AnalyzeCall): Promise<{ readonly result: LocalAudio; readonly roundTripMs: number }> {
    const metrics = this.#metrics;
    metrics.add("service_pipeline_local_audio_windows_total");
    try {
      checkWindow(call.wav);
      const request: Omit<AnalyzeRequest, "operation"> = call;
      const startedMs = this.#world.monotonicMs();
      const result = await this.#call(encodeAnalyze(request, call.wav), call, ({ metadata, audio }) => {
        if (audio.length > 0) throw new ProtocolFault("Cannot take an analysis that comes with audio");
        return decodeAnalysis(metadata);
      });
      const roundTripMs = this.#world.monotonicMs() - startedMs;
      this.#measure(result, roundTripMs, call.extractionMs);
      return { result, roundTripMs };
    } catch (error) {
      if (error instanceof SidecarFailed) {
        metrics.add("service_pipeline_local_audio_analysis_failures_total");
        metrics.add("service_pipeline_local_audio_failures_total", { reason: error.reason });
      }
      throw error;
    }
  }

  /** A text as speech. */
  async synthesize({ text, ...call }: SynthesizeCall): Promise<Speech> {
    const metrics = this.#metrics;
    metrics.add("service_pipeline_local_audio_tts_attempts_total");
    try {
      checkText(text);
      const speech = await this.#call(encodeSynthesize(text), call, speechOf);
      this.#show(speech.capacity);
      metrics.add("service_pipeline_local_audio_tts_successes_total");
      metrics.add("service_pipeline_local_audio_tts_bytes_total", speech.wav.length);
      metrics.observe("service_pipeline_local_audio_tts_latency_ms", speech.processingMs);
      const { wav, model, sampleRateHz, processingMs } = speech;
      return { wav, model, sampleRateHz, processingMs };
    } catch (error) {
      metrics.add("service_pipeline_local_audio_tts_failures_total");
      if (error instanceof SidecarFailed) {
        metrics.add("service_pipeline_local_audio_failures_total", { reason: error.reason });
      }
      throw error;
    }
  }

  /** Ends every connection; calls under way and later ones fail. */
  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#gate.close();
    for (const line of [...this.#lines]) this.#drop(line);
  }

  /** One request and its answer, read by `read`, within the time of the call. */
  async #call<T>(
    request: readonly Uint8Array[],
    { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
    read: (response: AudioResponse) => T,
  ): Promise<T> {
    signal.throwIfAborted();
    using deadline = new Deadline(this.#world, timeoutMs, signal);
    try {
      using _permit = await this.#gate.acquire({ signal: deadline.signal });
      this.#refuseWhileLeftAlone();
      return await this.#exchange(request, read, deadline.signal);
    } catch (error) {
      signal.throwIfAborted();
      if (deadline.signal.reason instanceof OutOfTime) {
        throw new SidecarFailed("timeout", `The audio sidecar did not answer within ${timeoutMs} ms`);
      }
      throw this.#failureOf(error);
    }
  }

  /** Over a kept connection if there is one. It may have been closed long ago, which only shows when it is used. */
  async #exchange<T>(
    request: readonly Uint8Array[],
    read: (response: AudioResponse) => T,
    signal: AbortSignal,
  ): Promise<T> {
    const kept = this.#idle.pop();
    if (kept) {
      try {
        return await this.#exchangeOver(kept, request, read, signal);
      } catch (error) {
        if (!(error instanceof LineCut) || error.hasAnswered || signal.aborted || this.#isClosed) throw error;
        for (const line of this.#idle.splice(0)) this.#drop(line); // they are as old
      }
    }
    return await this.#exchangeOver(await this.#connect(signal), request, read, signal);
  }

  async #exchangeOver<T>(
    line: AudioLine,
    request: readonly Uint8Array[],
    read: (response: AudioResponse) => T,
    signal: AbortSignal,
  ): Promise<T> {
    try {
      const response = await line.exchange(request, signal);
      const answer = response.status === "ok" ? read(response) : this.#refused(response);
      this.#backOff.succeeded();
      if (line.isReusable && !this.#isClosed) this.#idle.push(line);
      else this.#drop(line);
      if (answer instanceof SidecarFailed) throw answer;
      return answer;
    } catch (error) {
      if (!(error instanceof SidecarFailed)) this.#drop(line);
      throw error;
    }
  }

  async #connect(signal: AbortSignal): Promise<AudioLine> {
    const line = await AudioLine.connect(this.#address, signal);
    this.#lines.add(line);
    if (this.#isClosed) this.#drop(line);
    return line;
  }

  #drop(line: AudioLine): void {
    this.#lines.delete(line);
    const index = this.#idle.indexOf(line);
    if (index >= 0) this.#idle.splice(index, 1);
    line[Symbol.dispose]();
  }

  /** A well-formed no. */
  #refused(response: AudioResponse): SidecarFailed {
    if (response.audio.length > 0) throw new ProtocolFault("Cannot take a failure that comes with audio");
    const { reason, message, capacity } = decodeFailure(response.metadata);
    if (capacity) this.#show(capacity);
    return new SidecarFailed(
      reason,
      `The audio sidecar refused: ${message.slice(0, MESSAGE_CHARACTERS_MAX)}`,
    );
  }

  #refuseWhileLeftAlone(): void {
    const remainingMs = this.#backOff.remainingMs(this.#world.monotonicMs());
    if (remainingMs <= 0) return;
    const ms = Math.ceil(remainingMs);
    throw new SidecarFailed("reconnect", `The audio sidecar failed and is left alone for another ${ms} ms`);
  }

  /** What a call rejects with; what says something about the sidecar starts a back-off. */
  #failureOf(error: unknown): unknown {
    if (error instanceof SidecarFailed) return error;
    if (error instanceof Refusal) return new SidecarFailed("overloaded", error.message);
    if (error instanceof ProtocolFault) {
      this.#leaveAlone(error.message);
      return new SidecarFailed("malformed_response", error.message);
    }
    if (error instanceof LineCut) {
      this.#leaveAlone(error.message);
      return new SidecarFailed("reconnect", error.message);
    }
    return error;
  }

  #leaveAlone(why: string): void {
    const pauseMs = this.#isClosed ? 0 : this.#backOff.failed(this.#world.monotonicMs());
    if (pauseMs > 0) this.#log.warn(`left alone for ${pauseMs} ms: ${why}`);
  }

  #measure(result: LocalAudio, roundTripMs: number, extractionMs: number | undefined): void {
    const metrics = this.#metrics;
    const { stages, audio_duration_ms: audioMs, processing_ms: processingMs } = result;
    this.#show(result.capacity);
    metrics.add("service_pipeline_local_audio_observations_total", result.observations.length);
    metrics.add("service_pipeline_local_audio_duration_ms_total", audioMs);
    metrics.observe("service_pipeline_local_audio_round_trip_latency_ms", roundTripMs);
    if (extractionMs !== undefined) {
      metrics.observe("service_pipeline_local_audio_processing_latency_ms", extractionMs + roundTripMs);
    }
    metrics.observe("service_pipeline_local_audio_decode_latency_ms", stages.decode_ms);
    metrics.observe("service_pipeline_local_audio_vad_latency_ms", stages.vad_ms);
    metrics.observe("service_pipeline_local_audio_classifier_latency_ms", stages.classifier_ms);
    metrics.observe("service_pipeline_local_audio_asr_latency_ms", stages.asr_ms);
    if (audioMs > 0) {
      metrics.observe("service_pipeline_local_audio_real_time_factor_milli", processingMs / audioMs * 1000);
    }
  }

  /** The latest word of the sidecar about itself. */
  #show({ active, queued, limit }: SidecarCapacity): void {
    this.#metrics.set("service_pipeline_local_audio_sidecar_active", active);
    this.#metrics.set("service_pipeline_local_audio_sidecar_queue_depth", queued);
    this.#metrics.set("service_pipeline_local_audio_sidecar_capacity", limit);
  }
}

const MESSAGE_CHARACTERS_MAX = 512;

/** The sidecar would refuse it too, after megabytes. */
function checkWindow(wav: Uint8Array): void {
  const maximum = LIMITS.localAudio.wavBytesMax;
  if (wav.length > maximum) {
    throw new SidecarFailed("decode", `Cannot analyze more than ${maximum} bytes of WAV: got ${wav.length}`);
  }
  const shape = readWav(wav);
  if (typeof shape === "string") {
    throw new SidecarFailed("decode", `Cannot analyze a window of audio as ${shape}`);
  }
  if (shape.channels !== 1) {
    throw new SidecarFailed(
      "decode",
      `Cannot analyze a window of audio unless it is mono: got ${shape.channels} channels`,
    );
  }
}

function checkText(text: string): void {
  const maximum = LIMITS.sidecar.speechTextBytesMax;
  const length = utf8Length(text);
  if (length >= 1 && length <= maximum) return;
  throw new SidecarFailed("decode", `Cannot speak a text unless it has 1 to ${maximum} bytes: got ${length}`);
}

function speechOf({ metadata, audio }: AudioResponse): Speech & { readonly capacity: SidecarCapacity } {
  const { model, sample_rate_hz: sampleRateHz, processing_ms: processingMs, capacity } = decodeSpeech(
    metadata,
  );
  const shape = readWav(audio);
  if (typeof shape === "string") throw new ProtocolFault(`Cannot take the speech as ${shape}`);
  if (shape.sampleRateHz !== sampleRateHz) {
    throw new ProtocolFault(
      `Cannot take speech that is said to have ${sampleRateHz} samples a second: it has ${shape.sampleRateHz}`,
    );
  }
  return { wav: audio, model, sampleRateHz, processingMs, capacity };
}
