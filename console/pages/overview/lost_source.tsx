/** An always-on camera that has no session, so that no picture of it can be shown: its name, its state, and
 * why.
 */

import type { NamedSource } from "../../../client/mod.ts";
import { ArmedSwitch } from "../../ui/live/armed_switch.tsx";

export function LostSource({ source, onArmed }: { source: NamedSource; onArmed: () => void }) {
  const { name, state, reason } = source;
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
        <ArmedSwitch source={source} onChange={onArmed} />
      </div>
    </li>
  );
}
