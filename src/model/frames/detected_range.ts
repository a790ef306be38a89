/** What the detectors of decoded frames find: ranges of frames with a type, and kinds of faults of single
 * frames.
 */

import { type FieldRules, quoted } from "../field_rules.ts";

/** Detectors of ranges; each gives ranges of the type of its own name. */
export const DETECTORS = ["gradual_transition", "flash", "freeze", "black", "repeat"] as const;

export type Detector = typeof DETECTORS[number];

/** The detectors that a request names; all when it names none. */
export function chosenDetectors(
  names: readonly string[] | null | undefined,
  rules: FieldRules,
): ReadonlySet<Detector> {
  if (names == null) return new Set(DETECTORS);
  const rule = `must be a list of ${DETECTORS.join(", ")}, each at most once`;
  const chosen = new Set<Detector>();
  for (const name of names) {
    const detector = DETECTORS.find((known) => known === name);
    if (detector === undefined || chosen.has(detector)) {
      rules.fault("detectors", `${rule}: got ${quoted(name)}${detector === undefined ? "" : " twice"}`);
      break;
    }
    chosen.add(detector);
  }
  return chosen;
}

/** A stretch of frames that a detector found. Frames count all decoded frames from 0. */
export interface DetectedRange {
  readonly type: Detector;
  /** The first frame, inside the range, as the last one is. */
  readonly startFrame: number;
  readonly endFrame: number;
  /** The media time of the first frame, milliseconds from the first decoded frame. */
  readonly startPtsMs: number;
  readonly endPtsMs: number;
  /** How certain the range is: [0,1], at least .5. */
  readonly confidence: number;
}

/**
 * Faults of a frame that a viewer would call one; `foreign_frame` is also a frame of this shot in the wrong
 * place.
 */
export const ARTIFACT_KINDS = [
  "decode_damage",
  "flicker",
  "foreign_frame",
  "combing",
  "chroma_fault",
  "noise_burst",
] as const;

export type ArtifactKind = typeof ARTIFACT_KINDS[number];

/** The code of a kind in columns: 0 for none, else 1 + its index in ARTIFACT_KINDS. */
export function artifactCode(kind: ArtifactKind | undefined): number {
  return kind === undefined ? 0 : 1 + ARTIFACT_KINDS.indexOf(kind);
}

export function artifactKindOf(code: number | undefined): ArtifactKind | undefined {
  return ARTIFACT_KINDS[(code ?? 0) - 1];
}
