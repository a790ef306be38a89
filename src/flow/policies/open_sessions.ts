/** What the policies of a run need of its live session. */

import { type Refusal, refuse } from "../../contract/refusal.ts";
import type { RestrictedZone } from "../../model/policies/zone.ts";

export interface PromptChange {
  /** Null goes back to the built-in prompt; absent keeps the present one. */
  readonly prompt?: string | null;
  readonly outputSchema: Readonly<Record<string, unknown>> | null;
}

export interface PromptableSession {
  readonly sessionId: string;
  /** Process-wide, from 1. */
  readonly generation: number;
  /** The zone that the session keeps for its life. */
  readonly zone: RestrictedZone | null;
  /** Whether that zone came with a policy revision. */
  readonly hasPolicyZone: boolean;
  /**
   * Resolves when the session's describer uses the change. Rejects with `promptTimedOut` within `timeoutMs`,
   * and with `sessionIsEnding`; the change is then never applied.
   */
  updatePrompt(change: PromptChange, timeoutMs: number): Promise<void>;
}

export interface OpenSessions {
  /** The open session of the run, or null. */
  find(runId: string): PromptableSession | null;
}

export function promptTimedOut(): Refusal {
  return refuse.because(
    "policy_acknowledgement_timeout",
    "the session did not acknowledge the prompt in time",
  );
}

export function sessionIsEnding(): Refusal {
  return refuse.because("conflict", "the session is ending");
}
