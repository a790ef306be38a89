/** What a model is told about a live keyframe or clip. Contract 11.4. */

import type { PreviousState } from "./description.ts";

/** Why a frame was chosen and what the filter measured of it. */
export interface GateFacts {
  /** The gate's reason, `restricted_zone_activity`, or the event type of a trigger program. */
  readonly trigger: string;
  /** All three in [0,1]. */
  readonly confidence: number;
  readonly novelty: number;
  readonly motion: number;
  /** Media time. */
  readonly ptsMs: number;
}

export interface KeyframePrompt {
  /** The session's prompt; blank or null for the built-in one. */
  readonly prompt: string | null;
  readonly previous: PreviousState | null;
  readonly gate: GateFacts;
}

export interface ClipPrompt {
  readonly prompt: string | null;
  readonly frames: number;
  /** Media time of the first and of the last frame. */
  readonly startPtsMs: number;
  readonly endPtsMs: number;
}

/** The description of a frame that nobody could be asked about; it takes the way of every other one. */
export const NO_PROVIDER_DESCRIPTION = "no inference provider is configured";

/** The prompt, what was said last, and why this frame. */
export function keyframePrompt({ prompt, previous, gate }: KeyframePrompt): string {
  return [
    asked(prompt, KEYFRAME_PROMPT),
    ...(previous ? [`[previous_state (${previous.ptsMs}ms): ${onOneLine(previous.text)}]`] : []),
    gateLine(gate),
  ].join("\n");
}

/** The prompt, and how many frames of which time follow. */
export function clipPrompt({ prompt, frames, startPtsMs, endPtsMs }: ClipPrompt): string {
  return [
    asked(prompt, CLIP_PROMPT),
    `[clip: frames=${frames}, pts_start_ms=${startPtsMs}, pts_end_ms=${endPtsMs}]`,
  ].join("\n");
}

/** Interface 4.11 and contract 11.1: an empty prompt brings the built-in one back. */
function asked(prompt: string | null, builtIn: string): string {
  return prompt === null || prompt.trim() === "" ? builtIn : prompt;
}

const KEYFRAME_PROMPT = `\
The image is one frame of a live video.
Describe in one or two short sentences what is visible: who or what, where, and what is happening.
Name what changed if a previous state is given below. Do not guess names, causes or anything outside the picture.
Answer with the description alone.`;

const CLIP_PROMPT = `\
The images are frames of a few moments of a live video, in the order in which they were taken.
Describe in one or two short sentences what happens from the first image to the last.
Do not guess names, causes or anything outside the pictures. Answer with the description alone.`;

function gateLine({ trigger, confidence, novelty, motion, ptsMs }: GateFacts): string {
  const measured = Object.entries({ confidence, novelty, motion })
    .map(([name, value]) => `${name}=${value.toFixed(3)}`)
    .join(", ");
  return `[gate: trigger=${trigger}, ${measured}, pts_ms=${ptsMs}]`;
}

/** What a model said must not look like lines of the prompt. */
function onOneLine(text: string): string {
  return text.replace(/\s+/gu, " ").trim();
}
