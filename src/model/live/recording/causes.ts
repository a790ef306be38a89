/** What causes an evidence clip of a live session. See docs/live.md#evidence-clips. */

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
