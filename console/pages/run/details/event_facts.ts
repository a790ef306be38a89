/** What an event carries besides its sentence: numbers that explain it, pictures, clips, places in the
 * picture, costs of a model.
 */

import type { JsonObject, TimelineEvent } from "../../../../client/mod.ts";
import { bytesText, countText, scoreText } from "../../../text/numbers.ts";
import { words } from "../../../text/names.ts";
import { durationText } from "../../../text/time.ts";
import { numberAt, textAt, valueAt } from "../payload.ts";

/** A line of the list of reasons: `change 0.93`. */
export interface EventFact {
  readonly name: string;
  readonly value: string;
}

/** A stored JPEG of the run. */
export interface Picture {
  readonly sha256: string;
  readonly about: string;
}

/** A stored clip or sound of the run. */
export interface Clip {
  readonly sha256: string;
  readonly isSound: boolean;
  readonly about: string;
}

/** A part of the picture, in fractions of its width and height. */
export interface Region {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly name: string;
}

/** What the answer of a model cost; null for events in which no model spoke. */
export interface ModelCosts {
  readonly provider: string | null;
  readonly isFallback: boolean;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly latencyMs: number;
  readonly finishReason: string | null;
}

/** Why the event was written, as far as its payload tells. */
export function factsOf({ kind, payload }: TimelineEvent): EventFact[] {
  if (kind.startsWith("trigger.")) return triggerFacts(payload);
  if (kind === "restricted_zone_activity_entered") return zoneFacts(payload);
  return [
    score("change", numberAt(payload, "cut_score")),
    score("artifact", numberAt(payload, "artifact_score")),
    fact("kind of artifact", textAt(payload, "artifact_kind")),
    fact(
      "kept because of",
      kind === "keyframe_stored" ? textAt(payload, "event_type") : null,
    ),
    fact("seen or heard", listText(payload.modalities)),
    fact("intent", textAt(payload, "intent")),
    fact("sound and picture", textAt(payload, "audio_visual_relation")),
    fact("object", textAt(payload, "object_label")),
    fact("restarts of the decoder", numberText(payload, "restarts")),
    fact(
      "stream",
      kind === "marker_emitted" ? textAt(payload, "stream_id") : null,
    ),
    fact("index", textAt(payload, "index_name")),
  ].filter((line) => line !== null);
}

function triggerFacts(payload: JsonObject): EventFact[] {
  const orders = ["webhook", "local_output"].filter((name) =>
    valueAt(payload, `trigger.actions.${name}`) === true
  );
  return [
    fact("emits", textAt(payload, "event_type")),
    score("motion", numberAt(payload, "trigger.inputs.motion_score")),
    score("novelty", numberAt(payload, "trigger.inputs.novelty_score")),
    score(
      "confidence of the model",
      numberAt(payload, "trigger.inputs.confidence"),
    ),
    fact("program version", numberText(payload, "trigger.program_version")),
    fact("orders", orders.length === 0 ? null : orders.map(words).join(", ")),
    fact("generation", numberText(payload, "provenance.pipeline_generation")),
  ].filter((line) => line !== null);
}

function zoneFacts(payload: JsonObject): EventFact[] {
  const score = numberAt(payload, "assertion.trigger.score");
  const threshold = numberAt(payload, "assertion.trigger.threshold");
  return [
    score === null || threshold === null ? null : {
      name: "motion",
      value: `${scoreText(score)}, at least ${scoreText(threshold)} was asked for`,
    },
    fact(
      "frames in a row",
      numberText(payload, "assertion.trigger.consecutive_frames"),
    ),
    fact("policy", textAt(payload, "assertion.policy_id")),
    fact("device", textAt(payload, "provenance.device_id")),
    fact("measured by", textAt(payload, "provenance.model_id")),
    fact("generation", numberText(payload, "provenance.pipeline_generation")),
  ].filter((line) => line !== null);
}

/** The picture that the event stored, or was decided on. */
export function pictureOf({ payload }: TimelineEvent): Picture | null {
  const sha256 = textAt(payload, "evidence.image_sha256") ??
    textAt(payload, "image_sha256") ?? textAt(payload, "still.image_sha256");
  return sha256 === null ? null : { sha256, about: textAt(payload, "description") ?? "The stored frame" };
}

export function clipsOf({ kind, payload }: TimelineEvent): Clip[] {
  const stored = kind === "clip_stored" ? textAt(payload, "sha256") : null;
  if (stored !== null) {
    const about = `Clip, ${bytesText(numberAt(payload, "bytes") ?? 0)}`;
    return [{ sha256: stored, isSound: false, about }];
  }
  return (["evidence", "feedback_audio"] as const).flatMap((name) => {
    const sha256 = textAt(payload, `${name}.media_sha256`);
    if (sha256 === null) return [];
    const type = textAt(payload, `${name}.media_type`) ?? "";
    const size = bytesText(numberAt(payload, `${name}.media_bytes`) ?? 0);
    const isSound = type.startsWith("audio/");
    return [{
      sha256,
      isSound,
      about: `${isSound ? "Sound" : "Clip"}, ${size}`,
    }];
  });
}

/** The part that was looked at, unless that is the whole picture, and the zone of a policy. */
export function regionsOf({ payload }: TimelineEvent): Region[] {
  const crop = regionAt(payload, "coordinates.requested_region", "looked at");
  const zone = regionAt(
    payload,
    "assertion.zone",
    textAt(payload, "assertion.policy_id") ?? "zone",
  );
  const isWhole = crop !== null && crop.width >= 1 && crop.height >= 1;
  return [isWhole ? null : crop, zone].filter((region) => region !== null);
}

function regionAt(
  payload: JsonObject,
  path: string,
  name: string,
): Region | null {
  const [x, y, width, height] = ["x", "y", "width", "height"].map((side) =>
    numberAt(payload, `${path}.${side}`)
  );
  if (x == null || y == null || width == null || height == null) return null;
  return { x, y, width, height, name };
}

export function modelCostsOf(
  { kind, payload }: TimelineEvent,
): ModelCosts | null {
  if (
    kind !== "semantic_chunk_inferred" ||
    numberAt(payload, "total_tokens") === null
  ) return null;
  return {
    provider: textAt(payload, "provider"),
    isFallback: payload.provider_fallback_used === true,
    promptTokens: numberAt(payload, "prompt_tokens") ?? 0,
    completionTokens: (numberAt(payload, "completion_tokens") ?? 0) +
      (numberAt(payload, "thinking_tokens") ?? 0),
    latencyMs: numberAt(payload, "inference_latency_ms") ?? 0,
    finishReason: textAt(payload, "finish_reason"),
  };
}

/** `93 tokens in, 21 out, 42 ms`. */
export function costsText(
  { promptTokens, completionTokens, latencyMs }: ModelCosts,
): string {
  const tokens = `${countText(promptTokens)} tokens in, ${countText(completionTokens)} out`;
  return `${tokens}, ${durationText(latencyMs)}`;
}

function fact(name: string, value: string | null): EventFact | null {
  return value === null ? null : { name, value };
}

function score(name: string, value: number | null): EventFact | null {
  return value === null ? null : { name, value: scoreText(value) };
}

function numberText(payload: JsonObject, path: string): string | null {
  const value = numberAt(payload, path);
  return value === null ? null : countText(value);
}

function listText(value: unknown): string | null {
  return Array.isArray(value) && value.length > 0 ? value.map(String).join(" and ") : null;
}
