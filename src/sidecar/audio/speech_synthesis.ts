/** Text to speech, by espeak-ng. */

import { joinedBytes } from "../../base/bytes.ts";
import type { World } from "../../base/world.ts";
import { LIMITS } from "../../contract/limits.ts";
import { readWav, wavOf, wavSamples } from "../../model/sidecars/wav.ts";
import { outputOf, ProgramFailed } from "../program.ts";
import { SidecarFault } from "../sidecar_fault.ts";

export const SYNTHESIS_MODEL = "espeak-ng";

export interface SynthesisOptions {
  readonly world: World;
  /** Name or path of espeak-ng. */
  readonly program: string;
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
}

/**
 * The text as a mono WAV. The header is written anew, as espeak-ng writes its header before it knows the
 * length. The text goes through stdin and is read as plain text, without markup and phonemes.
 */
export async function synthesize(
  text: string,
  { program, ...options }: SynthesisOptions,
): Promise<{ readonly wav: Uint8Array; readonly sampleRateHz: number }> {
  const input = joinedBytes(new TextEncoder().encode(plainText(text)), new Uint8Array([0x0a]));
  let output;
  try {
    output = await outputOf(program, ["--stdout", "--stdin", "-b", "1", "-v", "en-us"], {
      ...options,
      input,
      maxOutputBytes: LIMITS.sidecar.audioBytesMax,
    });
  } catch (error) {
    if (!(error instanceof ProgramFailed)) throw error;
    const reason = { missing: "model_load", late: "timeout", failed: "inference" } as const;
    const why = error.kind === "missing" ? "it is not installed" : error.message;
    throw new SidecarFault(reason[error.kind], `espeak-ng cannot speak: ${why}`);
  }
  const shape = readWav(output);
  if (typeof shape === "string" || shape.channels !== 1 || shape.dataBytes === 0) {
    throw new SidecarFault("inference", "espeak-ng wrote no speech");
  }
  return { wav: wavOf(wavSamples(output, shape), shape.sampleRateHz), sampleRateHz: shape.sampleRateHz };
}

/** Removes control characters, and separates `[[`, which would start a list of phonemes. */
function plainText(text: string): string {
  return text.replaceAll(/\p{Cc}+/gu, " ").replaceAll("[[", "[ [");
}
