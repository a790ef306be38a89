/** Calls of the audio sidecar: it analyzes a window of audio, or turns a text into speech. */

import { PermitQueue } from "../../sharing/permit_queue.ts";
import type { Log } from "../../base/log.ts";
import type { Metrics } from "../../contract/metrics.ts";
import { Refusal } from "../../contract/refusal.ts";
import type { Address } from "../../contract/setting_parsers.ts";
import { utf8Length } from "../../base/bytes.ts";
import { inSpan } from "../../base/tracing.ts";
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
import { LIMITS } from "../../contract/limits.ts";
import {
  type AudioProfile,
  type LocalAudio,
  type SidecarCapacity,
  SidecarFailed,
  type SpeechEngine,
} from "../../model/sidecars/local_audio.ts";
import { readWav } from "../../model/sidecars/wav.ts";
import { AudioConnection, AudioConnectionLost, type AudioResponse } from "./audio_connection.ts";
import { BackOff } from "./back_off.ts";
import { Deadline, OutOfTime } from "../../base/wait.ts";

export interface AudioSidecarOptions {
  /** Whether the service has several principals; false unless given. */
  readonly isShared?: boolean;
  /** SERVICE_AUDIO_SIDECAR_ADDR. */
  readonly address: Address;
  readonly world: World;
  readonly metrics: Metrics;
}

export interface AnalyzeCall {
  /** The principal for whom the call is; see `PermitQueue`. */
  readonly principalKey?: string | undefined;
  /** The window: mono 16-bit PCM of at most 4 MiB. */
  readonly wav: Uint8Array;
  readonly profile: AudioProfile;
  readonly engine: SpeechEngine;
  readonly maxEvents: number;
  readonly minConfidence: number;
  /** Where the window starts in its source. */
  readonly sourceStartMs: number;
  /** Time for the whole call: waiting for a connection, connecting, sending and receiving. */
  readonly timeoutMs: number;
  /** How long the extraction of the WAV took; if given, a metric gets the time from extraction to result. */
  readonly extractionMs?: number;
  readonly signal: AbortSignal;
}

export interface SynthesizeCall {
  /** The principal for whom the call is; see `PermitQueue`. */
  readonly principalKey?: string | undefined;
  /** The text to speak: at most 16 KiB of UTF-8. */
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

/** Requests under way at once, each on a connection of its own; a sidecar accepts fewer anyway. */
const CONNECTIONS_MAX = 8;
/** Callers that wait for a connection; the next one is refused as `overloaded`. */
const AUDIO_WAITERS_MAX = 64;

/**
 * Refusals that depend on the request: audio that cannot be read, an engine or a voice that is not installed.
 * The sidecar itself works, and other callers must not wait for it.
 */
const OF_THE_REQUEST: ReadonlySet<string> = new Set(["decode", "model_load"]);

/**
 * Keeps connections open between calls, with one request at a time on each. An answer that breaks the
 * protocol closes its connection, and so does a call that times out. A sidecar that cannot be reached, closes
 * connections, breaks the protocol, does not answer in a second or more, or answers with a failure is not
 * called for 100 ms, then twice as long each time, at most 5 s; during this back-off calls fail at once, with
 * reason `reconnect`. The answer that a window cannot be decoded starts none: that is a fault of the window,
 * and other callers need not wait for it.
 *
 * All calls reject with `SidecarFailed`, or with the reason of their signal. Both close the connection of the
 * call. See docs/protocols.md#audio-sidecar.
 */
export class AudioSidecar implements Disposable {
  readonly #address: Address;
  readonly #world: World;
  readonly #metrics: Metrics;
  readonly #log: Log;
  readonly #permits: PermitQueue;
  /** Every open connection. */
  readonly #connections = new Set<AudioConnection>();
  /** The unused connections, the most recently used last. */
  readonly #idle: AudioConnection[] = [];
  readonly #backOff = new BackOff();
  #isClosed = false;

  constructor({ address, world, metrics, isShared = false }: AudioSidecarOptions) {
    this.#permits = new PermitQueue({
      limit: CONNECTIONS_MAX,
      waiterLimit: AUDIO_WAITERS_MAX,
      what: "calls to the audio sidecar",
      refusal: "audio_sidecar_unavailable",
      isShared,
    });
    this.#address = address;
    this.#world = world;
    this.#metrics = metrics;
    this.#log = world.log.child("audio_sidecar");
  }

  /**
   * Analyzes a window of audio. The request is sent again, once, when a kept connection is found to be
   * closed.
   */
  async analyze(call: AnalyzeCall): Promise<{ readonly result: LocalAudio; readonly roundTripMs: number }> {
    const metrics = this.#metrics;
    metrics.add("service_pipeline_local_audio_windows_total");
    try {
      checkWindow(call.wav);
      const request: Omit<AnalyzeRequest, "operation"> = call;
      const startedMs = this.#world.monotonicMs();
      const result = await inSpan(
        this.#world.tracing,
        "audio analysis",
        { kind: "client" },
        () =>
          this.#call(encodeAnalyze(request, call.wav), call, ({ metadata, audio }) => {
            if (audio.length > 0) throw new ProtocolFault("Cannot take an analysis that comes with audio");
            return decodeAnalysis(metadata);
          }),
      );
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

  /** Turns a text into speech. */
  async synthesize({ text, ...call }: SynthesizeCall): Promise<Speech> {
    const metrics = this.#metrics;
    metrics.add("service_pipeline_local_audio_tts_attempts_total");
    try {
      checkText(text);
      const speech = await inSpan(
        this.#world.tracing,
        "speech synthesis",
        { kind: "client" },
        () => this.#call(encodeSynthesize(text), call, speechOf),
      );
      this.#showCapacity(speech.capacity);
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

  /** Closes every connection; calls under way and later ones fail. */
  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#permits.close();
    for (const connection of [...this.#connections]) this.#drop(connection);
  }

  /** One request and its answer, decoded by `read`, within the timeout of the call. */
  async #call<T>(
    request: readonly Uint8Array[],
    { principalKey, timeoutMs, signal }: Pick<SynthesizeCall, "principalKey" | "timeoutMs" | "signal">,
    read: (response: AudioResponse) => T,
  ): Promise<T> {
    signal.throwIfAborted();
    using deadline = new Deadline(this.#world, timeoutMs, signal);
    let askedMs = Infinity;
    try {
      using _permit = await this.#permits.acquire({ principalKey, signal: deadline.signal });
      this.#refuseDuringBackOff();
      askedMs = this.#world.monotonicMs();
      return await this.#exchange(request, read, deadline.signal);
    } catch (error) {
      signal.throwIfAborted();
      if (deadline.signal.reason instanceof OutOfTime) {
        const message = `The audio sidecar did not answer within ${timeoutMs} ms`;
        if (this.#world.monotonicMs() - askedMs >= FAIR_TIMEOUT_MS) this.#startBackOff(message);
        throw new SidecarFailed("timeout", message);
      }
      throw this.#failureOf(error);
    }
  }

  /**
   * Uses a kept connection if there is one. That the sidecar has closed it is noticed only when it is used.
   */
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
        if (
          !(error instanceof AudioConnectionLost) || error.hasAnswered || signal.aborted || this.#isClosed
        ) throw error;
        // The others were idle for at least as long, so they are closed too.
        for (const connection of this.#idle.splice(0)) this.#drop(connection);
      }
    }
    return await this.#exchangeOver(await this.#connect(signal), request, read, signal);
  }

  async #exchangeOver<T>(
    connection: AudioConnection,
    request: readonly Uint8Array[],
    read: (response: AudioResponse) => T,
    signal: AbortSignal,
  ): Promise<T> {
    try {
      const response = await connection.exchange(request, signal);
      const answer = response.status === "ok" ? read(response) : this.#refused(response);
      if (!(answer instanceof SidecarFailed) || OF_THE_REQUEST.has(answer.reason)) this.#backOff.succeeded();
      else this.#startBackOff(answer.message);
      if (connection.isReusable && !this.#isClosed) this.#idle.push(connection);
      else this.#drop(connection);
      if (answer instanceof SidecarFailed) throw answer;
      return answer;
    } catch (error) {
      if (!(error instanceof SidecarFailed)) this.#drop(connection);
      throw error;
    }
  }

  async #connect(signal: AbortSignal): Promise<AudioConnection> {
    const connection = await AudioConnection.connect(this.#address, signal);
    this.#connections.add(connection);
    if (this.#isClosed) this.#drop(connection);
    return connection;
  }

  #drop(connection: AudioConnection): void {
    this.#connections.delete(connection);
    const index = this.#idle.indexOf(connection);
    if (index >= 0) this.#idle.splice(index, 1);
    connection[Symbol.dispose]();
  }

  /** The failure that a valid answer reports. */
  #refused(response: AudioResponse): SidecarFailed {
    if (response.audio.length > 0) throw new ProtocolFault("Cannot take a failure that comes with audio");
    const { reason, message, capacity } = decodeFailure(response.metadata);
    if (capacity) this.#showCapacity(capacity);
    return new SidecarFailed(
      reason,
      `The audio sidecar refused: ${message.slice(0, MESSAGE_CHARACTERS_MAX)}`,
    );
  }

  #refuseDuringBackOff(): void {
    const remainingMs = this.#backOff.remainingMs(this.#world.monotonicMs());
    if (remainingMs <= 0) return;
    const ms = Math.ceil(remainingMs);
    throw new SidecarFailed("reconnect", `The audio sidecar failed and is not called for another ${ms} ms`);
  }

  /** What a call rejects with. A failure of the sidecar or its connection starts a back-off. */
  #failureOf(error: unknown): unknown {
    if (error instanceof SidecarFailed) return error;
    if (error instanceof Refusal) return new SidecarFailed("overloaded", error.message);
    if (error instanceof ProtocolFault) {
      this.#startBackOff(error.message);
      return new SidecarFailed("malformed_response", error.message);
    }
    if (error instanceof AudioConnectionLost) {
      this.#startBackOff(error.message);
      return new SidecarFailed("reconnect", error.message);
    }
    return error;
  }

  #startBackOff(why: string): void {
    const pauseMs = this.#isClosed ? 0 : this.#backOff.failed(this.#world.monotonicMs());
    if (pauseMs > 0) this.#log.warn(`not called for ${pauseMs} ms: ${why}`);
  }

  #measure(result: LocalAudio, roundTripMs: number, extractionMs: number | undefined): void {
    const metrics = this.#metrics;
    const { stages, audio_duration_ms: audioMs, processing_ms: processingMs } = result;
    this.#showCapacity(result.capacity);
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

  /** Sets the gauges to the capacity that the sidecar reported last. */
  #showCapacity({ active, queued, limit }: SidecarCapacity): void {
    this.#metrics.set("service_pipeline_local_audio_sidecar_active", active);
    this.#metrics.set("service_pipeline_local_audio_sidecar_queue_depth", queued);
    this.#metrics.set("service_pipeline_local_audio_sidecar_capacity", limit);
  }
}

/** The shortest fair timeout: a sidecar that had less is not slow, as callers choose the limit. */
const FAIR_TIMEOUT_MS = 1_000;

const MESSAGE_CHARACTERS_MAX = 512;

/**
 * Refuses a window that is too large. The sidecar would refuse it too, but only after it has received
 * megabytes.
 */
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
