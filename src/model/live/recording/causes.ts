/** Causes of an evidence clip or a second event of a live session. See docs/live/clips.md#evidence-clips. */

import type { FieldRules } from "../../field_rules.ts";

export const CLIP_CAUSES = ["keyframe", "zone", "trigger", "scene_cut"] as const;
export type ClipCause = typeof CLIP_CAUSES[number];

/** What a picture of a session is reported for. */
export interface PictureReasons {
  readonly zone: object | null;
  readonly trigger: object | null;
  readonly isKeyframe: boolean;
  readonly isCut: boolean;
  /**
   * Whether the camera is armed; null for a session that is neither armed nor disarmed. What zone and trigger
   * find while it is false causes no clip.
   */
  readonly isArmed: boolean | null;
}

/** Why a picture is a cause; null where it is none that is wanted. Of several causes the first counts. */
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

/** Adds a fault for a named cause that is not possible, so that nobody waits for what never comes. */
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
