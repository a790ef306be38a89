/** How a named source is, in words. */

import type { NamedSource } from "../../client/mod.ts";
import type { LiveStateText } from "./live_state.ts";
import { durationText } from "./time.ts";

export function sourceStateText(
  { live, state, reason, last_frame_age_ms, run_id }: NamedSource,
): LiveStateText {
  const why = reason === null ? "" : `: ${reason}`;
  const silent = last_frame_age_ms === null ? "" : ` for ${durationText(last_frame_age_ms)}`;
  switch (state) {
    case "connecting":
      return { word: "connecting", tone: "busy", sentence: "It is being connected to." };
    case "live":
      return { word: "live", tone: "good", sentence: "Frames come in." };
    case "gap":
      return { word: "gap", tone: "bad", sentence: `It has sent nothing${silent}${why}. It is asked again.` };
    case "failed":
      return { word: "failed", tone: "bad", sentence: `It cannot be watched${why}. It is asked again.` };
    default:
      return {
        ...{ word: "not watched", tone: "calm" },
        sentence: live || run_id !== null
          ? `It is not watched${why}.`
          : "It is watched when somebody asks for it.",
      };
  }
}
