/** How the service is, in the bar above every page: in a word, with the reason; leads to the overview. */

import { serviceHealth, useServiceHealth } from "../service/health.ts";
import { awaySinceMs } from "../service/session.ts";
import { counted } from "../text/numbers.ts";
import { hrefOf, place } from "./place.ts";

const LOOKS = {
  faulted: { shape: "✕", tone: "bad" },
  saturated: { shape: "◭", tone: "bad" },
  healthy: { shape: "●", tone: "good" },
  idle: { shape: "○", tone: "calm" },
} as const;

/** Live sessions and model calls are well, and something else is not. */
const ATTENTION = { word: "attention", shape: "◭", tone: "bad" } as const;

export function HealthPill() {
  useServiceHealth(place.value.path.join("/"));
  const health = serviceHealth.value;
  if (health === null || awaySinceMs.value !== null) return null; // what was known may be wrong by now
  const { result, reason, notes } = health;
  const isCalm = notes.length === 0;
  const { word, shape, tone } = isCalm || result === "faulted" || result === "saturated"
    ? { word: result, ...LOOKS[result] }
    : ATTENTION;
  const more = notes[0]?.text ?? reason;
  return (
    <a
      class={`health-pill status is-${tone}`}
      href={hrefOf([])}
      title={more}
    >
      <span aria-hidden="true">{shape}</span> {word}
      <span class="health-more">
        {notes.length > 1 ? `${counted(notes.length, "thing")} to look at: ` : ""}
        {more}
      </span>
    </a>
  );
}
