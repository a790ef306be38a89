/** Moments of a clip: those that a model reports, and their comparison with local audio. See
 * docs/reason.md#local-audio.
 */

import type { z } from "zod";
import { chunkMoment } from "../events/analysis_payloads.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { AudioObservation, LocalAudio } from "../sidecars/local_audio.ts";
import { type Answered, answerIn, type ChunkOverlay, cutText } from "./answer.ts";
import { isObject, numberOf, offsetMsOf, unitOf, withNames } from "./mended_answer.ts";

/** One of `moments[]` of events; offsets are milliseconds from the start of the clip. */
export type ChunkMoment = Readonly<z.infer<typeof chunkMoment>>;
export type MomentKind = ChunkMoment["kind"];
type Modality = ChunkMoment["modalities"][number];

/** The kinds that events allow. */
export const MOMENT_KINDS: readonly MomentKind[] = chunkMoment.shape.kind.options;

/** Moments in order of time, and the overlay for every frame of the chunk. */
export interface Moments {
  readonly moments: readonly ChunkMoment[];
  readonly overlay: ChunkOverlay;
}

/**
 * Reads the answer of a model about a clip of `clipMs` milliseconds. Moments are cut to the clip; those
 * outside are dropped.
 */
export function parseMomentsAnswer(text: string, clipMs: number): Answered<Moments> {
  return answerIn(text, (value) => {
    const said = isObject(value) ? withNames(value, ["moments"]).moments : value;
    const claimed = isObject(said) ? [said] : said;
    if (!Array.isArray(claimed) || (Array.isArray(value) && claimed.length === 0)) return null;
    const read = claimed.slice(0, LIMITS.mediaWindow.momentsMax).map((claim) => momentOf(claim, clipMs));
    const fitting = read.filter((moment) => moment !== null);
    if (fitting.length < read.length) return null;
    const moments = fitting.filter(lasts).toSorted(byTime);
    return { rawOutput: value, moments, overlay: momentOverlay(moments[0]) };
  });
}

/** The result of the local analysis of a window. */
export interface LocalEvidence {
  /** The local analysis; null when there was none, or when it failed. */
  readonly local: LocalAudio | null;
  readonly localFailed: boolean;
  readonly clipMs: number;
}

/**
 * Compares the moments of a model with local sound. A moment with sound that the model reports is kept only
 * when the local analysis found a matching sound; it then gets the words of the local analysis. All sounds of
 * the local analysis are included. When no local analysis was requested, the moments are those of the model;
 * when it failed, those of the model without sound.
 */
export function fuseMoments(claimed: readonly ChunkMoment[], evidence: LocalEvidence): Moments {
  const { local, localFailed, clipMs } = evidence;
  const isFused = local !== null || localFailed;
  if (!isFused) return { moments: claimed, overlay: momentOverlay(claimed[0]) };
  const observed = (local?.observations ?? []).filter(({ kind }) => kind !== "voice_activity");
  const supported = claimed.flatMap((moment) => {
    if (!claimsSound(moment)) return [moment];
    const support = observed.filter((observation) => supports(observation, moment));
    return support.length === 0 ? [] : [inLocalWords(moment, support, clipMs)];
  });
  const localMoments = observed.map((observation) => observedMoment(observation, clipMs));
  const all = [
    ...supported.map((moment) => ({ moment, isLocal: false })),
    ...localMoments.map((moment) => ({ moment, isLocal: true })),
  ];
  const moments = withoutRepeats(all.filter(({ moment }) => lasts(moment)));
  const surest = moments.reduce<ChunkMoment | undefined>(
    (best, moment) => best && best.confidence >= moment.confidence ? best : moment,
    undefined,
  );
  return { moments, overlay: momentOverlay(surest) };
}

/** The labels of a chunk with sound: those of one moment, or a text that there is none. */
function momentOverlay(lead: ChunkMoment | undefined): ChunkOverlay {
  return {
    eventType: "context_observation",
    objectLabel: lead?.kind ?? "multimodal_activity",
    summary: lead?.description ?? NOTHING_FOUND,
    description: lead?.description ?? NOTHING_FOUND,
    confidence: lead?.confidence ?? 0,
  };
}

const NOTHING_FOUND = "Nothing stood out in this window.";

/** The longest text of a moment in characters; longer ones are cut. */
const TEXT_MAX = 1024;

/** A moment that a model claims; null when the claim does not have the requested shape. */
function momentOf(said: unknown, clipMs: number): ChunkMoment | null {
  if (!isObject(said)) return null;
  const claim = withNames(said, Object.keys(chunkMoment.shape));
  const { kind, description } = claim;
  const modalities = typeof claim.modalities === "string" ? [claim.modalities] : claim.modalities;
  const [startMs, endMs] = [offsetMsOf(claim.start_offset_ms), offsetMsOf(claim.end_offset_ms)];
  const confidence = unitOf(claim.confidence) ?? numberOf(claim.confidence);
  if (startMs === null || endMs === null || confidence === null) return null;
  if (typeof kind !== "string" || typeof description !== "string" || !Array.isArray(modalities)) return null;
  if (description.trim() === "") return null;
  const intent = optionalText(claim.intent);
  const relation = optionalText(claim.audio_visual_relation);
  if (intent === undefined || relation === undefined) return null;
  const known = momentKind(kind);
  const senses = modalitiesOf(modalities);
  if (senses.length === 0 && !isAudioLike(known)) return null;
  return {
    start_offset_ms: withinClip(startMs, clipMs),
    end_offset_ms: withinClip(endMs, clipMs),
    modalities: senses.length > 0 ? senses : ["audio"],
    kind: known,
    description: cutText(description.trim(), TEXT_MAX),
    intent,
    audio_visual_relation: relation,
    confidence: Math.min(1, Math.max(0, confidence)),
  };
}

/** A text that may be missing: null for none, undefined for a value of another type. */
function optionalText(value: unknown): string | null | undefined {
  if (value === undefined || value === null) return null;
  if (typeof value !== "string") return undefined;
  return cutText(value.trim(), TEXT_MAX) || null;
}

function modalitiesOf(names: readonly unknown[]): Modality[] {
  const plain = names.filter((name) => typeof name === "string").map((name) => name.trim().toLowerCase());
  const isAudio = plain.some((name) => name === "audio" || /speech|sound|voice|music/.test(name));
  const isVideo = plain.some((name) => name === "video" || name === "visual" || name.includes("picture"));
  return [...(isAudio ? ["audio" as const] : []), ...(isVideo ? ["video" as const] : [])];
}

/** Words by which a kind is recognized; the first match decides, so "background music" is music. */
const KIND_WORDS: readonly (readonly [RegExp, MomentKind])[] = [
  [/speech|dialog|voice|spoken/, "speech"],
  [/music/, "music"],
  [/sound_effect|effect|beep|tone|impact/, "sound_effect"],
  [/ambient|background/, "ambient"],
  [/mechanical|machine/, "mechanical"],
  [/interact/, "interaction"],
];

function momentKind(text: string): MomentKind {
  const name = text.trim().toLowerCase().replaceAll(/[\s-]+/g, "_");
  const exact = MOMENT_KINDS.find((kind) => kind === name);
  return exact ?? KIND_WORDS.find(([words]) => words.test(name))?.[1] ?? "other";
}

/** Whether a kind can only be heard. */
function isAudioLike(kind: MomentKind): boolean {
  return kind === "speech" || kind === "sound_effect" || kind === "music" || kind === "ambient";
}

function withinClip(offsetMs: number, clipMs: number): number {
  return Math.min(Math.floor(clipMs), Math.max(0, Math.round(offsetMs)));
}

function lasts(moment: ChunkMoment): boolean {
  return moment.end_offset_ms > moment.start_offset_ms;
}

function byTime(left: ChunkMoment, right: ChunkMoment): number {
  return left.start_offset_ms - right.start_offset_ms || left.end_offset_ms - right.end_offset_ms;
}

// From here on: the comparison with local audio.

/** The largest gap between a moment and the local sound that supports it. */
const SUPPORT_TOLERANCE_MS = 500;
/** The largest gap between two moments that count as the same one. */
const REPEAT_TOLERANCE_MS = 250;

function claimsSound({ modalities, kind }: ChunkMoment): boolean {
  return modalities.includes("audio") || isAudioLike(kind);
}

function supports(observation: AudioObservation, moment: ChunkMoment): boolean {
  const isCompatible = moment.kind === "speech"
    ? observation.kind === "speech" && transcriptOf(observation) !== null
    : observation.kind === "audio_event";
  return isCompatible && overlapMs(observation, moment) >= -SUPPORT_TOLERANCE_MS;
}

/** How long two moments overlap; below 0 when there is a gap between the two. */
function overlapMs(
  left: { start_offset_ms: number; end_offset_ms: number },
  right: { start_offset_ms: number; end_offset_ms: number },
): number {
  return Math.min(left.end_offset_ms, right.end_offset_ms) -
    Math.max(left.start_offset_ms, right.start_offset_ms);
}

/** A moment in the words of the local analysis; `support` is not empty. */
function inLocalWords(
  moment: ChunkMoment,
  support: readonly AudioObservation[],
  clipMs: number,
): ChunkMoment {
  const modalities: Modality[] = moment.modalities.includes("video") ? ["audio", "video"] : ["audio"];
  if (moment.kind === "speech") {
    const closest = support.reduce((best, observation) =>
      overlapMs(observation, moment) > overlapMs(best, moment) ? observation : best
    );
    const { start_offset_ms, end_offset_ms, description, intent } = observedMoment(closest, clipMs);
    return { ...moment, modalities, start_offset_ms, end_offset_ms, description, intent };
  }
  const labels = [...new Set(support.map(({ label }) => label))].join(", ");
  return {
    ...moment,
    modalities,
    description: cutText(`Heard locally: ${labels}`, TEXT_MAX),
    intent: null,
    audio_visual_relation: null,
  };
}

function observedMoment(observation: AudioObservation, clipMs: number): ChunkMoment {
  const transcript = transcriptOf(observation);
  return {
    start_offset_ms: withinClip(observation.start_offset_ms, clipMs),
    end_offset_ms: withinClip(observation.end_offset_ms, clipMs),
    modalities: ["audio"],
    kind: observation.kind === "speech" ? "speech" : kindOfLabel(observation.label),
    description: cutText(transcript === null ? observation.label : `Speaker: ${transcript}`, TEXT_MAX),
    intent: transcript === null ? null : cutText(transcript, TEXT_MAX),
    audio_visual_relation: null,
    confidence: observation.confidence,
  };
}

/** The transcript of speech; a sound has none, even if the sidecar sends one. */
function transcriptOf({ kind, transcript }: AudioObservation): string | null {
  return kind === "speech" ? transcript?.trim() || null : null;
}

const AMBIENT_LABELS = new Set([
  "silence",
  "inside_small_room",
  "outside_urban_or_manmade",
  "outside_rural_or_natural",
]);
const MECHANICAL_LABELS = new Set([
  "engine",
  "engine_starting",
  "idling",
  "mechanisms",
  "tools",
  "vehicle",
]);

/** The kind of a moment for a local sound, for recordings and for live audio. */
export function kindOfLabel(label: string): MomentKind {
  if (label === "music") return "music";
  if (AMBIENT_LABELS.has(label)) return "ambient";
  return MECHANICAL_LABELS.has(label) ? "mechanical" : "sound_effect";
}

interface SourcedMoment {
  readonly moment: ChunkMoment;
  readonly isLocal: boolean;
}

/**
 * The moments without repeats: of two that are the same, the one with more modalities stays, or else the
 * earlier one.
 */
function withoutRepeats(all: readonly SourcedMoment[]): ChunkMoment[] {
  const kept: SourcedMoment[] = [];
  for (const next of all.toSorted((left, right) => byTime(left.moment, right.moment))) {
    const twin = kept.findIndex((earlier) => isRepeat(earlier, next));
    if (twin < 0) kept.push(next);
    else if (next.moment.modalities.length > kept[twin]!.moment.modalities.length) kept[twin] = next;
  }
  return kept.map(({ moment }) => moment).toSorted(byTime);
}

/** Whether two moments are the same. Two utterances that the local analysis separated never are. */
function isRepeat(left: SourcedMoment, right: SourcedMoment): boolean {
  const isSpeech = left.moment.kind === "speech" && !(left.isLocal && right.isLocal);
  return left.moment.kind === right.moment.kind &&
    overlapMs(left.moment, right.moment) >= -REPEAT_TOLERANCE_MS &&
    (isSpeech || left.moment.description === right.moment.description);
}
