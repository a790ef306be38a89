/** How an open live session is, in words. */

import type { LiveSession } from "../../client/mod.ts";
import { PUBLISHED, sourceName } from "./names.ts";
import { durationText } from "./time.ts";

export interface LiveStateText {
  /** One word for a list: `live`, `connecting`. */
  readonly word: string;
  /** A sentence. */
  readonly sentence: string;
  readonly tone: "good" | "busy" | "bad" | "calm";
}

/** Frames are counted once a second, so that less silence says nothing. */
const SILENT_MS = 5_000;

/** The source of a session, for headings. */
export function liveName(
  { source, source_uri }: Pick<LiveSession, "source" | "source_uri">,
): string {
  return source === "whip" ? PUBLISHED : sourceName(source_uri);
}

export function liveStateText(
  session: LiveSession,
  nowMs: number,
): LiveStateText {
  const { state, opened_at_ms, connected_at_ms, last_frame_at_ms, gap } = session;
  if (state === "ending") {
    return { word: "ending", sentence: "The session is ending.", tone: "calm" };
  }
  if (state === "connecting") {
    return {
      word: "connecting",
      sentence: `Waiting for the publisher to connect, for ${secondsText(nowMs - opened_at_ms)} now.`,
      tone: "busy",
    };
  }
  if (gap !== null) {
    const next = gap.next_attempt_at_ms;
    const again = next === null || next <= nowMs
      ? "reconnecting now"
      : `reconnecting, next try in ${secondsText(next - nowMs)}`;
    const since = secondsText(nowMs - gap.since_ms);
    return {
      word: "interrupted",
      sentence: `It has sent nothing for ${since}; ${again}.`,
      tone: "bad",
    };
  }
  const sinceMs = nowMs - (last_frame_at_ms ?? connected_at_ms ?? opened_at_ms);
  if (sinceMs > SILENT_MS) {
    return {
      word: "silent",
      sentence: last_frame_at_ms === null
        ? `No frame has come yet, ${secondsText(sinceMs)} after it was connected.`
        : `No frame has come for ${secondsText(sinceMs)}.`,
      tone: "bad",
    };
  }
  const since = secondsText(nowMs - (connected_at_ms ?? opened_at_ms));
  const sentence = `Frames come in, for ${since} now.${scaledText(session)}`;
  return { word: "live", sentence, tone: "good" };
}

function scaledText({ picture_size }: LiveSession): string {
  if (!picture_size?.scaled_from) return "";
  const { width, height, scaled_from: own } = picture_size;
  return ` Its pictures of ${own.width}x${own.height} are scaled down to ${width}x${height}, as there is no memory for more.`;
}

/** Whole seconds, as all of this is known to the second. */
function secondsText(ms: number): string {
  return ms < 60_000 ? `${Math.max(1, Math.round(ms / 1000))} s` : durationText(ms);
}
