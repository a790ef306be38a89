/** The marks of a film as a timeline and a contact sheet show them: what they are called, and how their times
 * are written.
 */

/** A marker of the service, as its API gives it. */
export interface Marker {
  readonly event_type: string;
  readonly status: string;
  readonly start_frame: number;
  readonly end_frame: number;
  readonly start_pts_ms: number;
  readonly end_pts_ms: number;
  readonly confidence: number;
  /** `model` where a model says so; absent where it was measured. */
  readonly origin?: string;
}

/** The types that say what happens; the others say what was kept. In the order in which they are listed. */
export const MARK_TYPES = [
  "scene_cut",
  "gradual_transition",
  "flash",
  "freeze",
  "black",
  "repeat",
  "artifact_suspected",
] as const;

export type MarkType = typeof MARK_TYPES[number];

export interface Mark extends Marker {
  readonly event_type: MarkType;
  /** What the row of its first frame says, of an artifact its kind. */
  readonly note: string | null;
}

/** The type, behind the origin of what was not measured: `model:scene_cut`. */
export function laneOf({ event_type, origin }: Pick<Marker, "event_type" | "origin">): string {
  return origin === undefined ? event_type : `${origin}:${event_type}`;
}

/** The markers that say what happens, in the order of the film. */
export function marksOf(markers: readonly Marker[], noteOf: (frame: number) => string): readonly Mark[] {
  return markers.flatMap((marker) => {
    const type = MARK_TYPES.find((known) => known === marker.event_type);
    if (!type) return [];
    return [{
      ...marker,
      event_type: type,
      note: type === "artifact_suspected" && marker.origin === undefined ? noteOf(marker.start_frame) : null,
    }];
  }).toSorted((one, other) => one.start_frame - other.start_frame || one.end_frame - other.end_frame);
}

/** `59.94` for 60000/1001: frames a second. */
export function rateText(fps: number): string {
  return String(Math.round(fps * 1000) / 1000);
}

/** `0:07.250` for 7250. */
export function clock(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  return `${minutes}:${((ms % 60_000) / 1000).toFixed(3).padStart(6, "0")}`;
}
