/** What a live session is to the stories about its run: something that takes a new prompt, or that has just closed. */

export interface PromptChange {
  /** Null goes back to the built-in prompt. */
  readonly prompt: string | null;
  readonly outputSchema: Readonly<Record<string, unknown>> | null;
}

export interface PromptableSession {
  readonly sessionId: string;
  /** Process-wide, from 1. */
  readonly generation: number;
  /**
   * Resolves when the generation's inference has taken the change over; one that comes too late is not applied. Rejects
   * with `NotAcknowledged`, within `timeoutMs` at the latest.
   */
  updatePrompt(change: PromptChange, timeoutMs: number): Promise<void>;
}

/** Why a generation did not take a change. */
export class NotAcknowledged extends Error {
  override readonly name = "NotAcknowledged";

  constructor(readonly why: "timeout" | "closed") {
    super(`The generation did not acknowledge the change: ${why}`);
  }
}

export interface OpenSessions {
  /** The session that is open for the run, or null. */
  find(runId: string): PromptableSession | null;
}
