/** The prompts for live keyframes and clips. See docs/live/events.md#descriptions. */

import { quoted } from "../field_rules.ts";
import type { PreviousState } from "./description.ts";

/** Why a frame was chosen, and its measurements. */
export interface GateFacts {
  /** The gate's reason, `restricted_zone_activity`, or the event type of a trigger program. */
  readonly trigger: string;
  /** How certain the reason is; this and the two scores below are in [0,1]. */
  readonly confidence: number;
  readonly novelty: number;
  readonly motion: number;
  /** The media time of the frame. */
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
  /** The media time of the first frame; below, that of the last one. */
  readonly startPtsMs: number;
  readonly endPtsMs: number;
}

/** The description of every frame that no model can be asked about; it is written like any other. */
export function noProviderDescription(model: string, { hasBackends }: { hasBackends: boolean }): string {
  return hasBackends
    ? `no inference provider serves the model of live sessions, ${quoted(model)}`
    : "no inference provider is configured";
}

/**
 * The prompt for a keyframe: that of the session as it is. To the built-in one come the last description and
 * why this frame was chosen.
 */
export function keyframePrompt({ prompt, previous, gate }: KeyframePrompt): string {
  if (isOwn(prompt)) return prompt;
  return [
    KEYFRAME_PROMPT,
    ...(previous ? [`[previous_state (${previous.ptsMs}ms): ${onOneLine(previous.text)}]`] : []),
    gateLine(gate),
  ].join("\n");
}

/**
 * The prompt for a clip: that of the session as it is. To the built-in one come the number of frames and
 * their times.
 */
export function clipPrompt({ prompt, frames, startPtsMs, endPtsMs }: ClipPrompt): string {
  if (isOwn(prompt)) return prompt;
  return `${CLIP_PROMPT}\n[clip: frames=${frames}, pts_start_ms=${startPtsMs}, pts_end_ms=${endPtsMs}]`;
}

/** Whether the session has a prompt of its own; a blank one means the built-in one. */
function isOwn(prompt: string | null): prompt is string {
  return prompt !== null && prompt.trim() !== "";
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

/** A description in one line: that of a model must not look like lines of the prompt. */
function onOneLine(text: string): string {
  return text.replace(/\s+/gu, " ").trim();
}
