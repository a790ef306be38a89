/** The header `x-attach-config`: the configuration of a live session. See docs/live.md#attach-config. */

import * as z from "zod";
import { shapeMessage } from "../shape_message.ts";
import { utf8Length } from "../../base/bytes.ts";
import type { Config } from "../../contract/config.ts";
import { Refusal, refuse } from "../../contract/refusal.ts";
import { checkZone, type RestrictedZone, ZONE_BODY } from "../policies/zone.ts";
import { cropFault, type NormalizedRegion } from "../frames/coordinates.ts";
import { FieldRules, quoted } from "../field_rules.ts";
import { boundedList } from "../schemas/bounded_list.ts";
import { LIMITS, type Range } from "../../contract/limits.ts";
import {
  AUDIO_PROFILES,
  type AudioProfile,
  SPEECH_ENGINES,
  type SpeechEngine,
} from "../sidecars/local_audio.ts";
import { type Signal, triggerProgram } from "../triggers/program.ts";
import { judgedProgram, type ValidProgram } from "../triggers/validate.ts";
import { type ClipSettings, framesOf } from "./clip.ts";
import { checkNamedCauses } from "./recording/causes.ts";
import { readRecord, RECORD } from "./recording/record_field.ts";
import type { RecordPlan } from "./recording/record_plan.ts";
import { ENRICHED_CAUSES, type EnrichPlan } from "../events/enrichment.ts";
import { named, namedEnum } from "../schemas/named_shapes.ts";
import { liveCrop, textWithin } from "../schemas/described_fields.ts";

export interface AttachContext {
  /** SERVICE_WEBRTC_CROP. */
  readonly crop: NormalizedRegion | null;
  /** The zone of the config file, `[restricted_zone]`. */
  readonly zone: RestrictedZone | null;
  /** SERVICE_WEBRTC_MAX_OUTPUT_TOKENS_PER_SECOND. */
  readonly tokensPerSecond: number;
  /** Whether SERVICE_TRIGGER_LOCAL_OUTPUT_SOCKET is set. */
  readonly hasLocalOutput: boolean;
  /** What the active policy revision of the run sets; absent or null for a run without one. */
  readonly policy?: AttachPolicy | null;
}

/** What the operator's settings say of live sessions. */
export function attachContext(
  { webrtc, triggerLocalOutputSocket }: Pick<Config, "webrtc" | "triggerLocalOutputSocket">,
  zone: RestrictedZone | null,
): AttachContext {
  return {
    crop: webrtc.crop ?? null,
    zone,
    tokensPerSecond: webrtc.maxOutputTokensPerSecond,
    hasLocalOutput: triggerLocalOutputSocket !== undefined,
  };
}

/**
 * What a policy revision sets; it goes before the session's own configuration. Null for a field that it
 * leaves to that.
 */
export interface AttachPolicy {
  readonly prompt: string | null;
  readonly outputSchema: Readonly<Record<string, unknown>> | null;
  readonly zone: RestrictedZone | null;
}

/** The checked configuration. All of it but the prompt is fixed for the generation of the session. */
export interface AttachConfig {
  /** The prompt; null for the built-in one. */
  readonly prompt: string | null;
  /** The cap on output tokens a second; 0 for none. */
  readonly tokensPerSecond: number;
  /** How clips are made; null in keyframe mode. */
  readonly clip: ClipSettings | null;
  /** The analyzed region, which is that of the zone if there is one; null for the whole picture. */
  readonly crop: NormalizedRegion | null;
  readonly zone: RestrictedZone | null;
  readonly trigger: ValidProgram | null;
  readonly localAudio: LiveAudioPlan | null;
  /** How evidence clips are made; null without any. */
  readonly record: RecordPlan | null;
  /** How events are explained by a second one; null where none is. */
  readonly enrich: EnrichPlan | null;
}

export interface LiveAudioPlan {
  readonly profile: AudioProfile;
  readonly engine: SpeechEngine;
  readonly minConfidence: number;
  readonly maxEvents: number;
}

/**
 * The least number of frames of a clip: fewer show no motion, and the default settings give exactly this
 * many.
 */
const CLIP_FRAMES_MIN = 3;

const { minimum: TOKENS_MIN, maximum: TOKENS_MAX } = LIMITS.live.outputTokensPerSecond;
const TOKENS = z.int().min(TOKENS_MIN).max(TOKENS_MAX).nullish();

/** A prompt of a live session; an empty text is none. */
export const livePrompt = textWithin(
  { minimum: 0, maximum: LIMITS.policy.promptBytesMax },
  `At most ${LIMITS.policy.promptBytesMax} bytes`,
);

/** The configuration as JSON. Closed, except that unknown keys of regions are accepted and dropped. */
export const ATTACH = z.strictObject({
  prompt: livePrompt.nullish(),
  max_output_tokens_per_second: TOKENS,
  token_cap: TOKENS,
  "token-cap": TOKENS,
  clip_mode: named(
    "ClipMode",
    z.strictObject({
      target_fps: z.number().nullish(),
      clip_length_seconds: z.number().nullish(),
      delay_seconds: z.number().nullish(),
    }),
  ).nullish(),
  crop: liveCrop.nullish(),
  restricted_zone: ZONE_BODY.nullish(),
  trigger_program: triggerProgram.nullish(),
  local_audio: named(
    "LiveSound",
    z.strictObject({
      profile: namedEnum("AudioProfile", AUDIO_PROFILES).nullish(),
      speech_engine: namedEnum("SpeechEngine", SPEECH_ENGINES).nullish(),
      min_confidence: z.number().nullish(),
      max_events: z.int().nonnegative().nullish(),
      voice_feedback: z.boolean().nullish(),
    }),
  ).nullish(),
  record: RECORD.nullish(),
  enrich: named(
    "Enrich",
    z.strictObject({
      on: boundedList(namedEnum("EnrichedCause", ENRICHED_CAUSES), ENRICHED_CAUSES.length).nullish(),
      deadline_ms: z.int().nullish(),
    }),
  ).nullish(),
});

/** A configuration with known fields of the right types; its values may still break rules. */
export type AttachBody = z.infer<typeof ATTACH>;

/**
 * The first step with the header, before the offer is read: encoding, JSON, fields and types. Errors: 400;
 * the message names the field and the rule, never the prompt.
 */
export function parseAttach(header: string | null): AttachBody {
  if (header === null) return {};
  const maximum = LIMITS.whip.attachHeaderBytesMax;
  if (header.length > maximum) {
    throw refused(`must have at most ${maximum} bytes: got ${header.length}`);
  }
  const parsed = ATTACH.safeParse(jsonOf(textOf(header)), { error: shapeMessage });
  if (parsed.success) return parsed.data;
  throw refused(faultOf(parsed.error.issues[0]!));
}

/** The second step, after the offer: like `checkAttach`, but 400 that names every fault. */
export function checkAttachHeader(body: AttachBody, context: AttachContext): AttachConfig {
  try {
    return checkAttach(body, context);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw refused(error.details.map(({ field, message }) => `${field} ${message}`).join("; "));
  }
}

/** Ranges and combinations. Errors: 422 with every fault. */
export function checkAttach(body: AttachBody, context: AttachContext): AttachConfig {
  const rules = new FieldRules();
  const tokensPerSecond = readTokens(rules, body) ?? context.tokensPerSecond;
  const clip = readClip(rules, body);
  const ownZone = readZone(rules, body);
  const zone = context.policy?.zone ?? ownZone ?? context.zone;
  const crop = readCrop(rules, body) ?? context.crop;
  const trigger = readTrigger(rules, body, context);
  const localAudio = readLocalAudio(rules, body);
  const record = readRecord(rules, body.record, { zone, trigger, clip });
  const enrich = readEnrich(rules, body, { zone, trigger });
  const promptBytes = utf8Length(body.prompt ?? "");
  const { promptBytesMax } = LIMITS.policy;
  if (promptBytes > promptBytesMax) {
    rules.fault("prompt", `must have at most ${promptBytesMax} bytes: got ${promptBytes}`);
  }
  checkCombination(rules, body, { zone, hasPolicyZone: context.policy?.zone != null });
  rules.check();
  return {
    prompt: context.policy?.prompt ?? (body.prompt?.trim() ? body.prompt : null),
    tokensPerSecond,
    clip,
    crop: zone ? zone.region : crop,
    zone,
    trigger,
    localAudio,
    record,
    enrich,
  };
}

function refused(why: string): Refusal {
  return refuse.because("bad_request", `Cannot use x-attach-config: ${why}`);
}

/** The text in a header: base64url without padding, in its canonical form, of UTF-8. */
function textOf(header: string): string {
  const isBase64Url = /^[A-Za-z0-9_-]+$/.test(header) && header.length % 4 !== 1;
  if (!isBase64Url) throw refused("must be base64url without padding");
  const bytes = Uint8Array.from(
    atob(header.replaceAll("-", "+").replaceAll("_", "/")),
    (character) => character.charCodeAt(0),
  );
  if (unusedBits(header) !== 0) throw refused("must be base64url whose unused bits are 0");
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw refused("must be UTF-8 inside its base64url");
  }
}

/** The bits of the last character that belong to no byte: 0, 2 or 4 of them. */
function unusedBits(base64Url: string): number {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const last = alphabet.indexOf(base64Url.at(-1)!);
  const mask = [0, 0, 0b1111, 0b11][base64Url.length % 4]!;
  return last & mask;
}

/** The JSON of a text. The message of the parser is not used, because it may quote the prompt. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw refused("must be JSON inside its base64url");
  }
}

function faultOf({ path, message, ...issue }: z.core.$ZodIssue): string {
  const place = path.map(String).join(".");
  if (issue.code === "unrecognized_keys") {
    const [key] = issue.keys;
    return `${quoted(place ? `${place}.${key}` : key!)} is not a field of it`;
  }
  return place ? `${place}: ${message}` : "must be a JSON object";
}

/** The cap on output tokens, which has two older names. */
function readTokens(rules: FieldRules, body: AttachBody): number | null {
  const given = (["max_output_tokens_per_second", "token_cap", "token-cap"] as const)
    .filter((name) => body[name] != null);
  if (given.length > 1) rules.fault(given[1]!, `must not stand beside ${given[0]}: they are the same field`);
  return given.length === 0 ? null : body[given[0]!]!;
}

function readClip(rules: FieldRules, { clip_mode: asked }: AttachBody): ClipSettings | null {
  if (!asked) return null;
  const ranges = {
    targetFps: LIMITS.liveClip.targetFps,
    clipSeconds: LIMITS.liveClip.clipSeconds,
    delaySeconds: LIMITS.liveClip.delaySeconds,
  };
  const settings = {
    targetFps: asked.target_fps ?? LIMITS.liveClip.targetFpsDefault,
    clipSeconds: asked.clip_length_seconds ?? LIMITS.liveClip.clipSecondsDefault,
    delaySeconds: asked.delay_seconds ?? LIMITS.liveClip.delaySecondsDefault,
  };
  const isInside = (value: number, { minimum, maximum }: Range) => value >= minimum && value <= maximum;
  rules.range("clip_mode.target_fps", settings.targetFps, ranges.targetFps);
  rules.range("clip_mode.clip_length_seconds", settings.clipSeconds, ranges.clipSeconds);
  rules.range("clip_mode.delay_seconds", settings.delaySeconds, ranges.delaySeconds);
  const frames = framesOf(settings.targetFps, settings.clipSeconds);
  if (
    isInside(settings.targetFps, ranges.targetFps) && isInside(settings.clipSeconds, ranges.clipSeconds) &&
    frames < CLIP_FRAMES_MIN
  ) {
    rules.fault(
      "clip_mode",
      `must give at least ${CLIP_FRAMES_MIN} frames, target_fps * clip_length_seconds rounded down: got ${frames}`,
    );
  }
  return settings;
}

function readZone(rules: FieldRules, { restricted_zone: zone }: AttachBody): RestrictedZone | null {
  if (!zone) return null;
  checkZone(rules, "restricted_zone", zone);
  return zone;
}

function readCrop(rules: FieldRules, { crop }: AttachBody): NormalizedRegion | null {
  const fault = crop && cropFault(crop);
  if (fault) rules.fault("crop", fault);
  return crop ?? null;
}

function readTrigger(
  rules: FieldRules,
  { trigger_program: program }: AttachBody,
  context: AttachContext,
): ValidProgram | null {
  if (!program) return null;
  const { instructions } = program;
  const fault = (at: number, message: string) =>
    rules.fault("trigger_program", `instruction ${at} (${instructions[at]!.op}): ${message}`);
  const verdict = judgedProgram(program);
  for (const { at, message } of verdict.valid === null ? verdict.faults : []) {
    if (at === undefined) rules.fault("trigger_program", message);
    else fault(at, message);
  }
  for (const [at, instruction] of instructions.slice(0, LIMITS.trigger.instructions.maximum).entries()) {
    if (instruction.op === "load" && !LIVE_SIGNALS.includes(instruction.signal.kind)) {
      fault(at, `a live session has only ${LIVE_SIGNALS.join(", ")}: got ${instruction.signal.kind}`);
    }
    if (instruction.op === "capture" && instruction.kind === "clip") {
      fault(at, "a live session captures keyframes only");
    }
    if (instruction.op === "notify" && instruction.channel === "local_output" && !context.hasLocalOutput) {
      fault(at, "local_output needs SERVICE_TRIGGER_LOCAL_OUTPUT_SOCKET, which is not set");
    }
  }
  const captures = instructions.filter(({ op }) => op === "capture").length;
  if (captures !== 1) {
    rules.fault("trigger_program", `must capture exactly one keyframe: got ${captures} captures`);
  }
  return verdict.valid;
}

const LIVE_SIGNALS: readonly Signal["kind"][] = ["motion_score", "novelty_score", "confidence"];

/**
 * The plan of local audio. `voice_feedback` is accepted without effect: a live session has no spoken
 * feedback.
 */
function readLocalAudio(rules: FieldRules, { local_audio: asked }: AttachBody): LiveAudioPlan | null {
  if (!asked) return null;
  const plan: LiveAudioPlan = {
    profile: asked.profile ?? "general",
    engine: asked.speech_engine ?? "auto",
    minConfidence: asked.min_confidence ?? LIMITS.localAudio.confidenceDefault,
    maxEvents: asked.max_events ?? LIMITS.localAudio.eventsDefault,
  };
  rules.range("local_audio.min_confidence", plan.minConfidence, LIMITS.localAudio.confidence);
  rules.range("local_audio.max_events", plan.maxEvents, LIMITS.localAudio.events);
  return plan;
}

/** The plan of explanations. Where no causes are named, all are explained that the session can have. */
function readEnrich(
  rules: FieldRules,
  { enrich: asked }: AttachBody,
  beside: { readonly zone: object | null; readonly trigger: object | null },
): EnrichPlan | null {
  if (!asked) return null;
  const deadlineMs = asked.deadline_ms ?? LIMITS.live.enrichDeadlineMsDefault;
  rules.range("enrich.deadline_ms", deadlineMs, LIMITS.live.enrichDeadlineMs);
  const on = asked.on ?? ENRICHED_CAUSES;
  if (on.length === 0) rules.fault("enrich.on", `must name at least one of ${ENRICHED_CAUSES.join(", ")}`);
  checkNamedCauses(rules, "enrich.on", asked.on ?? [], beside);
  return { on: ENRICHED_CAUSES.filter((cause) => on.includes(cause)), deadlineMs };
}

/**
 * Checks the fields that must fit together; `zone` is that of the policy revision, of the session or of the
 * server.
 */
function checkCombination(
  rules: FieldRules,
  body: AttachBody,
  { zone, hasPolicyZone }: { readonly zone: RestrictedZone | null; readonly hasPolicyZone: boolean },
): void {
  const whose = hasPolicyZone
    ? ", and the active policy revision of the run has one"
    : body.restricted_zone
    ? ""
    : ", and the server has one";
  if (body.clip_mode && zone) rules.fault("clip_mode", `cannot run with a restricted zone${whose}`);
  if (body.clip_mode && body.enrich) rules.fault("enrich", "cannot run with clip_mode");
  if (body.clip_mode && body.trigger_program) rules.fault("clip_mode", "cannot run with trigger_program");
  if (body.trigger_program && zone) {
    rules.fault("trigger_program", `cannot run with a restricted zone${whose}`);
  }
  if (body.crop && zone && !isSame(body.crop, zone.region)) {
    rules.fault("crop", `must equal the region of the restricted zone${whose}`);
  }
}

function isSame(one: NormalizedRegion, other: NormalizedRegion): boolean {
  return one.x === other.x && one.y === other.y && one.width === other.width && one.height === other.height;
}
