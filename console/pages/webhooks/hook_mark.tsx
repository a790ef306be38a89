/** The state of a webhook with a shape of its own. */

import type { WebhookOfRun } from "../../../client/mod.ts";
import { hookState } from "./hook_state.ts";

export function HookMark({ of }: { of: WebhookOfRun }) {
  const { word, mark, tone } = hookState(of);
  return (
    <span class={`status is-${tone}`}>
      <span aria-hidden="true">{mark}</span> {word}
    </span>
  );
}
