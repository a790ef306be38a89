/** What causes an evidence clip or a second event of a live session. See docs/live.md#evidence-clips. */

import type { FieldRules } from "../../field_rules.ts";

export const CLIP_CAUSES = ["keyframe", "zone", "trigger", "scene_cut"] as const;
export type ClipCause = typeof CLIP_CAUSES[number];

/** What a picture of a session is reported for. */
export interface PictureReasons {
  readonly zone: object | null;
  readonly trigger: object | null;
  readonly isKeyframe: boolean;
  readonly isCut: boolean;
  /** What zone and trigger find while it is false causes no clip; null for a session that is neither armed nor disarmed. */
  readonly isArmed: boolean | null;
}

/** Why a picture is a cause; null where it is none that is wanted. Of several the first counts. */
export function causeOf(reasons: PictureReasons, on: readonly ClipCause[]): ClipCause | null {
  const { zone, trigger, isKeyframe, isCut } = reasons;
  const isAlarm = reasons.isArmed !== false;
  const causes: readonly (readonly [ClipCause, boolean])[] = [
    ["zone", zone !== null && isAlarm],
    ["trigger", trigger !== null && isAlarm],
    ["scene_cut", isKeyframe && isCut],
    ["keyframe", isKeyframe],
  ];
  return causes.find(([cause, isSo]) => isSo && on.includes(cause))?.[0] ?? null;
}

/** A cause that is named must be possible, so that nobody waits for what never comes. */
export function checkNamedCauses(
  rules: FieldRules,
  field: string,
  named: readonly string[],
  { zone, trigger }: Pick<PictureReasons, "zone" | "trigger">,
): void {
  if (named.includes("zone") && !zone) rules.fault(field, 'cannot have "zone" without a restricted zone');
  if (named.includes("trigger") && !trigger) {
    rules.fault(field, 'cannot have "trigger" without trigger_program');
  }
}
