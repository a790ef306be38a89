/** How each kind of mark looks, the same everywhere: a colour, and a shape so that nobody needs the colour.
 */

export interface MarkLook {
  readonly name: string;
  readonly shape: string;
  /** Light and dark pages have the same. */
  readonly colour: string;
}

const GREY = "#7A7F87";

/** All looks, by the type of the event. */
export const MARK_LOOKS: Readonly<Record<string, MarkLook>> = {
  scene_cut: { name: "cut", shape: "┃", colour: "#0072B2" },
  gradual_transition: {
    name: "gradual transition",
    shape: "◢",
    colour: "#56B4E9",
  },
  artifact_suspected: { name: "artifact", shape: "✕", colour: "#D55E00" },
  flash: { name: "flash", shape: "✦", colour: "#F0E442" },
  freeze: { name: "freeze", shape: "▮", colour: "#7F7FFF" },
  black: { name: "black", shape: "■", colour: GREY },
  repeat: { name: "repeat", shape: "↻", colour: "#999933" },
  zone: { name: "zone", shape: "▲", colour: "#E69F00" },
  trigger: { name: "trigger", shape: "◆", colour: "#CC79A7" },
  clip: { name: "clip", shape: "▶", colour: "#009E73" },
  change: { name: "change of scene", shape: "⇄", colour: "#009E73" },
  kept: { name: "kept frames", shape: "╷", colour: GREY },
  context: { name: "nothing new", shape: "○", colour: GREY },
  description: { name: "description", shape: "●", colour: "#009E73" },
  moment: { name: "moment", shape: "◐", colour: "#44AA99" },
  keyframe: { name: "keyframe", shape: "╷", colour: GREY },
  gap: { name: "gap", shape: "▨", colour: GREY },
  other: { name: "other", shape: "○", colour: GREY },
  model_scene_cut: { name: "cut (model)", shape: "┊", colour: "#009E73" },
  model_artifact_suspected: { name: "artifact (model)", shape: "✕", colour: "#009E73" },
  model_other: { name: "other (model)", shape: "○", colour: "#009E73" },
  model_kept: { name: "kept frames (model)", shape: "╷", colour: "#009E73" },
  model_context: { name: "nothing new (model)", shape: "○", colour: "#009E73" },
};

/** Lanes that say nothing of what happens in the picture: hidden unless the reader asks for them. */
export const QUIET_LANES: ReadonlySet<string> = new Set(["kept", "context", "model_kept", "model_context"]);

/** By the kind of the event: those that have a media time of their own. */
const BY_KIND: Readonly<Record<string, string>> = {
  restricted_zone_activity_entered: "zone",
  semantic_chunk_inferred: "description",
  vlm: "description",
  vlm_tiered: "description",
  clip_vlm: "description",
  clip_vlm_tiered: "description",
  state_transition: "change",
  multimodal_moment: "moment",
  keyframe_stored: "keyframe",
  clip_stored: "clip",
  event_enriched: "description",
  source_gap: "gap",
};

/** The lane of a marker on a timeline, a key of `MARK_LOOKS`. What was measured has no origin. */
export function laneOfMarker(eventType: string, origin: string | null): string {
  if (origin !== null) {
    const lane = `model_${laneOfMarker(eventType, null)}`;
    return lane in MARK_LOOKS ? lane : "model_other";
  }
  if (eventType === "keyframe_keep") return "kept";
  if (eventType === "context_observation") return "context";
  return eventType in MARK_LOOKS ? eventType : "other";
}

/** The lane of an event of this kind that is no marker; null for one without a media time of its own. */
export function laneOfEvent(kind: string): string | null {
  return kind.startsWith("trigger.") ? "trigger" : BY_KIND[kind] ?? null;
}

/** The look of a marker; an operator's own labels look like `other`, under their name. */
export function lookOfMarker(eventType: string, origin: string | null): MarkLook {
  const lane = laneOfMarker(eventType, origin);
  const look = MARK_LOOKS[lane]!;
  const name = eventType.replaceAll("_", " ");
  if (lane === "other") return { ...look, name };
  return lane === "model_other" ? { ...look, name: `${name} (model)` } : look;
}

/** The look of an event of this kind that is no marker. */
export function lookOfEvent(kind: string): MarkLook {
  if (kind.startsWith("trigger.")) return MARK_LOOKS.trigger!;
  const look = MARK_LOOKS[BY_KIND[kind] ?? ""];
  return look ?? { ...MARK_LOOKS.other!, name: kind.replaceAll("_", " ") };
}
