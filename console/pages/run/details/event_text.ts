/** What an event says, as a sentence. */

import type { JsonObject, TimelineEvent } from "../../../../client/mod.ts";
import { words } from "../../../text/names.ts";
import { durationText, mediaTime } from "../../../text/time.ts";
import { transitionText } from "../../../text/transition.ts";
import { numberAt, textAt } from "../payload.ts";

/** Of markers, by their type; `length` is how long the marker is. */
const OF_MARKERS: Readonly<Record<string, (length: string) => string>> = {
  scene_cut: () => "A new shot begins with this frame.",
  gradual_transition: (length) => `One shot turns into the next within ${length}.`,
  artifact_suspected: (length) => `The picture looks faulty for ${length}.`,
  flash: (length) => `The picture is suddenly bright for ${length}.`,
  freeze: (length) => `The picture stands still for ${length}.`,
  black: (length) => `There is no picture for ${length}.`,
  repeat: (length) => `A stretch plays twice, ${length} in all.`,
  keyframe_keep: (length) => `Frames that differ from what was kept before, over ${length}.`,
  context_observation: (length) => `Nothing new for ${length}.`,
};

/** By `cause` of `clip_stored`. */
const CLIP_CAUSES: Readonly<Record<string, string>> = {
  keyframe: "a keyframe",
  zone: "activity in the zone",
  trigger: "a trigger",
  scene_cut: "a cut",
};

const OF_KINDS: Readonly<Record<string, (payload: JsonObject) => string>> = {
  run_created: () => "The run was created.",
  ingest_received: () => "The source was accepted.",
  frames_decoded: (payload) =>
    `${numberAt(payload, "decoded_frames") ?? 0} frames were decoded and measured.${sourceEndText(payload)}`,
  analysis_generated: analysisText,
  semantic_chunk_generated: (payload) =>
    `The costs of the stretch: ${durationText(numberAt(payload, "process_ms") ?? 0)} for ${
      numberAt(payload, "chunk_frames") ?? 0
    } frames.`,
  semantic_fallback_activated: (payload) =>
    `No model was asked: ${words(textAt(payload, "reason") ?? "the reason is not known")}.`,
  semantic_chunk_inferred: (payload) => {
    const error = textAt(payload, "semantic_error");
    const more = textAt(payload, "semantic_error_text");
    if (error === null) return "A model looked at this stretch.";
    return more === null ? `A model gave no answer: ${words(error)}.` : `A model gave no answer. ${more}.`;
  },
  multimodal_moment: (payload) => `A moment was found: ${words(textAt(payload, "kind") ?? "of any kind")}.`,
  vlm: () => "A model described this frame.",
  vlm_tiered: () => "A second model described this frame.",
  clip_vlm: () => "A model described the clip that ends here.",
  clip_vlm_tiered: () => "A second model described the clip that ends here.",
  state_transition: () => "Two descriptions in a row have little in common.",
  loop_detected: () => "The stream began to repeat itself.",
  clip_stored: (payload) =>
    `A clip was stored, because of ${CLIP_CAUSES[textAt(payload, "cause") ?? ""] ?? "an event"}.`,
  keyframe_stored: (payload) =>
    `A picture was stored: ${words(textAt(payload, "event_type") ?? "keyframe")}.`,
  restricted_zone_activity_entered: (payload) =>
    `Something moves in the zone of ${textAt(payload, "assertion.policy_id") ?? "a policy"}.`,
  event_enriched: (payload) => {
    const reason = textAt(payload, "reason");
    return reason === null
      ? `A model described event ${numberAt(payload, "cause_seq") ?? "?"}.`
      : `Event ${numberAt(payload, "cause_seq") ?? "?"} got no description: ${words(reason)}.`;
  },
  live_source_opened: () => "The run began to watch a live source.",
  publisher_connected: () => "The publisher is connected.",
  source_gap: () => "The source delivers no more frames.",
  source_resumed: () => "The source delivers frames again.",
  source_armed: () => "The camera was armed.",
  source_disarmed: () => "The camera was disarmed.",
  decoder_restarted: (payload) =>
    `The decoder was replaced: it had ${textAt(payload, "reason") ?? "stopped"}.`,
  run_completed: () => "The run was completed.",
  run_failed: (payload) =>
    `The run failed: ${words(textAt(payload, "reason") ?? "the reason is not known")}.`,
  stop_requested: () => "The run was stopped.",
  operator_feedback_submitted: (payload) =>
    `Somebody rated the run ${numberAt(payload, "rating") ?? "?"} of 10: ${
      textAt(payload, "category") ?? ""
    }.`,
};

/** One sentence about the event itself, without what a model said. */
export function eventSentence({ kind, payload }: TimelineEvent): string {
  if (kind === "marker_emitted") return markerText(payload);
  if (kind.startsWith("trigger.")) {
    return `The trigger program ${textAt(payload, "trigger.program_id") ?? "of the session"} fired.`;
  }
  return OF_KINDS[kind]?.(payload) ?? `${sentenceCase(words(kind))}.`;
}

/** What a model, a sidecar or a stream said; null where the event has no words of its own. */
export function eventWords({ kind, payload }: TimelineEvent): string | null {
  const text = textAt(payload, "description") ?? textAt(payload, "summary");
  return kind === "state_transition" && text !== null ? transitionText(text) : text;
}

function markerText(payload: JsonObject): string {
  const type = textAt(payload, "event_type") ?? "marker";
  if (textAt(payload, "origin") !== null) {
    return `A model calls this stretch "${words(type)}"; it was not measured.`;
  }
  const length = (numberAt(payload, "end_pts_ms") ?? 0) -
    (numberAt(payload, "start_pts_ms") ?? 0);
  const text = OF_MARKERS[type]?.(length <= 0 ? "one frame" : durationText(length)) ??
    `${sentenceCase(words(type))}.`;
  const corrected = textAt(payload, "supersedes_marker_id");
  return corrected === null ? text : `${text} It takes the place of ${corrected}.`;
}

function analysisText(payload: JsonObject): string {
  const frames = numberAt(payload, "frames") ?? 0;
  return `${frames} frames were analyzed; ${numberAt(payload, "markers") ?? 0} markers came of it.` +
    sourceEndText(payload);
}

/** What is missing of the source, behind another sentence; empty for nothing. */
export function sourceEndText(payload: JsonObject): string {
  const endedMs = numberAt(payload, "ended_early.ended_at_ms");
  const warning = textAt(payload, "source_warning");
  if (warning !== null) return ` Not all of the source came: ${warning}.`;
  if (endedMs === null) return "";
  const expected = durationText(numberAt(payload, "ended_early.expected_end_ms") ?? endedMs);
  return ` The source ends at ${durationText(endedMs)} of ${expected}: ${
    textAt(payload, "ended_early.reason") ?? "the reason is not known"
  }.`;
}

function sentenceCase(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Where in the media the event is, for its heading: `0:11.875`, or `0:04.0 – 0:06.5`. */
export function placeText(startMs: number, endMs: number): string {
  return endMs > startMs ? `${mediaTime(startMs)} – ${mediaTime(endMs)}` : mediaTime(startMs);
}
