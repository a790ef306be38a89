/** An always-on camera that has no session, so that no picture of it can be shown: its name, its state, and why. */

import type { NamedSource } from "../../../client/mod.ts";

export function LostSource({ source: { name, state, reason } }: { source: NamedSource }) {
  return (
    <li class="tile">
      <div class="tile-picture">
        <span>No picture yet.</span>
      </div>
      <div class="tile-text">
        <p class="row">
          <strong>{name}</strong>
          <span class={`status is-${state === "failed" ? "bad" : "busy"}`}>{state}</span>
        </p>
        {reason !== null && <p>It cannot be watched: {reason}.</p>}
      </div>
    </li>
  );
}
