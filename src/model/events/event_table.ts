/** TABLE of event kinds: the payload of each, the blobs that it makes readable for the owner of the run, when
 * it is written.
 */

import type { z } from "zod";
import type { NewEvent, PreparedPayload } from "../runs/run.ts";
import { IDENTIFIER } from "../trigger_identifier.ts";
import * as analysis from "./analysis_payloads.ts";
import * as live from "./live_payloads.ts";
import * as policy from "./policy_payloads.ts";
import * as run from "./run_payloads.ts";

/**
 * The place of a blob reference in a payload. The owner of the run may fetch that blob. See
 * docs/api/files.md#blobs.
 */
export interface BlobGrant {
  /** The route that serves the blob. */
  readonly route: "keyframes" | "media";
  /** The path of keys to the object with the reference; empty for the payload itself. */
  readonly at: readonly string[];
  /**
   * Set where the reference is valid only when `provenance.pipeline_generation` names the generation that
   * wrote it.
   */
  readonly needsGeneration?: true;
  /** The media type of the blob, where the object names it by `sha256` alone. */
  readonly mediaType?: "video/mp4";
}

/** One kind of event. */
export interface EventRow {
  /** When the event is written, in one sentence. */
  readonly summary: string;
  /** The shape of the payload: tolerant when read, exact when written. See `open` in payload_shapes.ts. */
  readonly payload: z.ZodType;
  /**
   * Whether these are records about webhooks, never delivered to one: exactly the kinds that start with
   * `webhook_`.
   */
  readonly bookkeeping: boolean;
  readonly blobs: readonly BlobGrant[];
}

const KEYFRAME: BlobGrant = { route: "keyframes", at: [] };
const ZONE_EVIDENCE: BlobGrant = { route: "keyframes", at: ["evidence"] };
const TRIGGER_EVIDENCE: BlobGrant = { route: "keyframes", at: ["evidence"], needsGeneration: true };
const CLIP: BlobGrant = { route: "media", at: ["evidence"] };
const EVIDENCE_CLIP: BlobGrant = { route: "media", at: [], mediaType: "video/mp4" };
const STILL: BlobGrant = { route: "keyframes", at: ["still"] };
const SPOKEN_FEEDBACK: BlobGrant = { route: "media", at: ["feedback_audio"] };

/** The row that stands for every `trigger.<event_type>`. */
const TRIGGER_FAMILY = "trigger.*";

/** Every kind of event. See docs/reference/events.md#kinds. */
export const EVENTS = {
  run_created: row("A run was created by a request or by a WHIP offer.", run.runCreated),
  ingest_received: row("A source was accepted by ingest or by reason.", run.ingestReceived),
  frames_decoded: row("A decode pass ended; the payload has the signals of its frames.", run.framesDecoded),
  marker_emitted: row("Analysis derived a marker, or a live session found a range.", analysis.markerEmitted),
  analysis_generated: row("A deterministic pass ended.", analysis.analysisGenerated),
  semantic_chunk_inferred: row(
    "A chunk of frames, a native clip or a window of live audio was interpreted.",
    analysis.semanticChunkInferred,
    [CLIP, SPOKEN_FEEDBACK],
  ),
  multimodal_moment: row(
    "A moment that can be heard, seen or both was found in a window, with its times.",
    analysis.multimodalMoment,
    [CLIP, SPOKEN_FEEDBACK],
  ),
  semantic_chunk_generated: row("A chunk's costs and lag were recorded.", analysis.semanticChunkGenerated),
  semantic_fallback_activated: row(
    "Deterministic output replaced semantic inference, for the reason in the payload.",
    analysis.semanticFallbackActivated,
  ),
  inference_completed: row("A direct inference on the run was answered.", run.inferenceCompleted),
  run_completed: row(
    "The run ended normally: reason or a last analyze finished, or a live session was ended.",
    run.runCompleted,
  ),
  run_failed: row("A live session ended unexpectedly.", run.sessionEnded),
  stop_requested: row("The caller stopped the run.", run.requested),
  keepalive_refreshed: row("The caller refreshed the run's idle time.", run.requested),
  run_deleted: row("The run was deleted; nothing follows it.", run.runDeleted),
  hold_placed: row("Nothing of the run is deleted from here on, until `hold_released`.", run.requested),
  hold_released: row("The run may be deleted again.", run.requested),
  events_removed: row(
    "Retention removed every earlier event of the run, and what only they named.",
    run.eventsRemoved,
  ),
  media_removed: row(
    "Retention removed pictures, clips or sounds that earlier events of the run name; the events stay.",
    run.mediaRemoved,
  ),
  operator_feedback_submitted: row("An operator's rating was committed.", run.operatorFeedbackSubmitted),
  webhook_registered: bookkeeping("A webhook was added to the run.", run.webhookRegistered),
  webhook_deleted: bookkeeping("A webhook was removed from the run.", run.webhookDeleted),
  policy_revision_created: row(
    "A policy revision was drafted; its number is this event's seq.",
    policy.policyRevisionCreated,
  ),
  policy_deployment_requested: row(
    "A revision was asked to move to shadow, canary or active.",
    policy.policyDeploymentRequested,
  ),
  policy_deployment_acknowledged: row(
    "The requested stage was applied; the payload says how the live session applied it.",
    policy.policyDeploymentAcknowledged,
  ),
  policy_deployment_rejected: row(
    "The requested stage failed: the live generation was another one, or the session did not apply it.",
    policy.policyDeploymentRejected,
  ),
  policy_rollback_requested: row(
    "An older revision was asked to be active again.",
    policy.policyRollbackRequested,
  ),
  policy_rollback_acknowledged: row("The older revision is active again.", policy.policyRollbackAcknowledged),
  policy_rollback_rejected: row(
    "The rollback failed: the live generation was another one, or the session did not apply it.",
    policy.policyRollbackRejected,
  ),
  policy_replay_evaluated: row(
    "Stored zone events were compared with a revision's threshold.",
    policy.policyReplayEvaluated,
  ),
  vlm: row("The first model pass described a keyframe.", live.observation),
  vlm_tiered: row("The second model pass described a keyframe.", live.observation),
  clip_vlm: row("The first model pass described a clip.", live.observation),
  clip_vlm_tiered: row("The second model pass described a clip.", live.observation),
  state_transition: row("Consecutive descriptions had too few words in common.", live.observation),
  loop_detected: row(
    "The stream began to repeat itself; written once on entering the loop.",
    live.observation,
  ),
  decoder_restarted: row("The decoder of a live session was replaced.", live.decoderRestarted),
  publisher_connected: row(
    "The publisher of a live session connected; media may come.",
    live.publisherConnected,
  ),
  live_source_opened: row("A run began to watch a live source.", run.liveSourceOpened),
  source_gap: row("A pulled live source delivered no more frames.", live.sourceGap),
  source_resumed: row("A pulled live source delivers frames again.", live.sourceResumed),
  source_armed: row("An always-on camera was armed.", live.sourceArmed),
  source_disarmed: row("An always-on camera was disarmed.", live.sourceArmed),
  keyframe_stored: row("A keyframe's JPEG was stored.", live.keyframeStored, [KEYFRAME]),
  clip_stored: row("The stream around a cause was stored as an MP4.", live.clipStored, [
    EVIDENCE_CLIP,
    STILL,
  ]),
  restricted_zone_activity_entered: row(
    "Motion persisted inside the zone for as many frames as the policy requires.",
    live.restrictedZoneActivityEntered,
    [ZONE_EVIDENCE],
  ),
  event_enriched: row(
    "A model has described the picture of an event that announced it, or its deadline passed.",
    live.eventEnriched,
  ),
  [TRIGGER_FAMILY]: row("A trigger program fired and its JPEG was stored.", live.triggerFired, [
    TRIGGER_EVIDENCE,
  ]),
} as const;

type TableKind = keyof typeof EVENTS;

/** The kinds that may be written. */
export type EventKind = Exclude<TableKind, typeof TRIGGER_FAMILY> | `trigger.${string}`;

type TableKindOf<Kind extends EventKind> = Kind extends TableKind ? Kind : typeof TRIGGER_FAMILY;

/** The payload of an event of this kind. 64-bit hashes are bigint. */
export type PayloadOf<Kind extends EventKind> = Immutable<
  z.input<typeof EVENTS[TableKindOf<Kind>]["payload"]>
>;

type Immutable<T> = T extends readonly (infer Item)[] ? readonly Immutable<Item>[]
  : T extends object ? { readonly [Key in keyof T]: Immutable<T[Key]> }
  : T;

/**
 * An event to commit. Only its type is checked, as the values in it were validated when the request came in.
 */
export function event<Kind extends EventKind>(
  kind: Kind,
  runId: string,
  payload: PayloadOf<Kind> | PreparedPayload,
): NewEvent {
  return { kind, runId, payload };
}

/** An event of a live session, which belongs to the run that the session has when it is written. */
export type SessionEvent = Omit<NewEvent, "runId">;

/** A typed `SessionEvent`. */
export function sessionEvent<Kind extends EventKind>(
  kind: Kind,
  payload: PayloadOf<Kind> | PreparedPayload,
): SessionEvent {
  return { kind, payload };
}

/** The row of `kind`, or undefined for a kind that this version does not know. */
export function findEvent(kind: string): EventRow | undefined {
  if (kind.startsWith("trigger.")) {
    return IDENTIFIER.test(kind.slice("trigger.".length)) ? EVENTS[TRIGGER_FAMILY] : undefined;
  }
  return Object.hasOwn(EVENTS, kind) ? EVENTS[kind as TableKind] : undefined;
}

/** The CloudEvents `type` of a kind, known or not. */
export function eventTypeOf(kind: string): string {
  return `dev.service.timeline.${kind}`;
}

/** Whether events of the kind, known or not, are never delivered to a webhook. */
export function isBookkeeping(kind: string): boolean {
  return kind.startsWith("webhook_");
}

export interface NamedBlob {
  /** The hash of the blob: 64 lower-case hexadecimal digits. */
  readonly sha256: string;
  readonly mediaType: string;
}

/** A blob that the owner of an event's run may fetch. */
export interface GrantedBlob extends NamedBlob {
  readonly route: "keyframes" | "media";
}

/** The fields by which payloads name a blob: its hash and its media type. */
export const BLOB_KEYS = {
  keyframes: ["image_sha256", "image_media_type"],
  media: ["media_sha256", "media_type"],
} as const;

/**
 * The blobs that an event makes readable for the owner of its run; none for an unknown kind or a malformed
 * reference.
 * `payload` is parsed JSON of any shape.
 */
export function grantedBlobs(kind: string, payload: unknown): GrantedBlob[] {
  return (findEvent(kind)?.blobs ?? []).flatMap(({ route, at, needsGeneration, mediaType: known }) => {
    if (needsGeneration && !Number.isInteger(fieldAt(payload, ["provenance", "pipeline_generation"]))) {
      return [];
    }
    const reference = fieldAt(payload, at);
    const [shaKey, typeKey] = BLOB_KEYS[route];
    const blob = known
      ? blobOf(fieldAt(reference, ["sha256"]), known)
      : blobOf(fieldAt(reference, [shaKey]), fieldAt(reference, [typeKey]));
    return blob ? [{ route, ...blob }] : [];
  });
}

/** The blob that two values of a payload name; null where they name none. */
export function blobOf(sha256: unknown, mediaType: unknown): NamedBlob | null {
  const isNamed = typeof sha256 === "string" && /^[0-9a-f]{64}$/.test(sha256) &&
    typeof mediaType === "string";
  return isNamed ? { sha256, mediaType } : null;
}

function fieldAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (inner, key) =>
      typeof inner === "object" && inner !== null && Object.hasOwn(inner, key)
        ? (inner as Record<string, unknown>)[key]
        : undefined,
    value,
  );
}

function row<Payload extends z.ZodType>(summary: string, payload: Payload, blobs: readonly BlobGrant[] = []) {
  return { summary, payload, bookkeeping: false, blobs };
}

function bookkeeping<Payload extends z.ZodType>(summary: string, payload: Payload) {
  return { summary, payload, bookkeeping: true, blobs: [] as readonly BlobGrant[] };
}
