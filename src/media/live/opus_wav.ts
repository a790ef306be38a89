/** Decodes a window of live Opus packets into a WAV for the sidecar. See docs/live/events.md#live-audio. */

import type { World } from "../../base/world.ts";
import { LIMITS } from "../../contract/limits.ts";
import { SAMPLE_BYTES, SIDECAR_SAMPLE_RATE_HZ, WAV_HEADER_BYTES, wavOf } from "../../model/sidecars/wav.ts";
import type { ToolRunner } from "../jobs/runner.ts";
import { oggOpus } from "../containers/ogg_opus.ts";

export interface OpusWavOptions {
  readonly runner: ToolRunner;
  readonly world: World;
  readonly signal: AbortSignal;
}

export interface OpusWav {
  /** Mono, 16 kHz, 16 bits. */
  readonly wav: Uint8Array<ArrayBuffer>;
  readonly durationMs: number;
  /** How long decoding took. */
  readonly decodeMs: number;
  /** Units that were left out, as they are no Opus packets. */
  readonly unitsDropped: number;
}

/** Says that nothing in the window can be decoded. */
export class OpusWavFailed extends Error {
  override readonly name = "OpusWavFailed";
}

/** Most bytes of the WAV: enough for two minutes of sound; a live window has four seconds. */
const WAV_BYTES_MAX = LIMITS.localAudio.wavBytesMax;
const DEADLINE_MS = 60_000;
const ERROR_BYTES = 4 << 10;

/** Decodes consecutive packets of one stream. Rejects with OpusWavFailed, or with the reason of `signal`. */
export async function opusWav(
  units: readonly Uint8Array[],
  { runner, world, signal }: OpusWavOptions,
): Promise<OpusWav> {
  const ogg = oggOpus(units);
  if (!ogg) throw new OpusWavFailed("no unit is an Opus packet");
  const startedMs = world.monotonicMs();
  const { end, code, stdout } = await runner.run({ kind: "opus_samples" }, {
    world,
    signal,
    deadlineMs: DEADLINE_MS,
    maxStdoutBytes: WAV_BYTES_MAX - WAV_HEADER_BYTES,
    maxStderrBytes: ERROR_BYTES,
    input: ogg.bytes,
  });
  if (end === "out_of_time" || end === "out_of_cpu") throw new OpusWavFailed("decoding took too long");
  if (end === "out_of_space") throw new OpusWavFailed(`the WAV would have more than ${WAV_BYTES_MAX} bytes`);
  if (end !== "exited" || code !== 0 || stdout.length < SAMPLE_BYTES) {
    throw new OpusWavFailed("the units cannot be decoded");
  }
  const samples = new Int16Array(stdout.slice(0, stdout.length - stdout.length % SAMPLE_BYTES).buffer);
  return {
    wav: wavOf(samples, SIDECAR_SAMPLE_RATE_HZ),
    durationMs: samples.length * 1000 / SIDECAR_SAMPLE_RATE_HZ,
    decodeMs: world.monotonicMs() - startedMs,
    unitsDropped: ogg.dropped,
  };
}
