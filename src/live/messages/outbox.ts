/** Sends the reports of a session; credits bound how many are not yet acknowledged. See
 * docs/live.md#stages-and-queues.
 */

import { type Credit, CREDITS, type SessionReport, type WithoutSessionId } from "./messages.ts";

export type PostReport = (report: SessionReport, moved: readonly ArrayBuffer[]) => void;

/**
 * ```
 *   keyframe ──────[32 credits]─┐
 *   clip ──────────[1]──────────┤
 *   zone, trigger ─[8 together]─┼──▶ report ──▶ the session on the HTTP thread
 *   audio window ──[2]──────────┤                   │
 *   evidence clip ─[2]──────────┤                   │
 *   segment ───────[2]──────────┤                   │
 *   fragment ──────[16]─────────┘                   │
 *        ▲                                          │
 *        └───── acknowledgement gives credits back ◀┘
 * ```
 * Without a credit no report is made, and it is counted as dropped. A session has keyframes or clips, never
 * both. A clip is sent only when the one before it is acknowledged: clips are not queued, the next one is
 * made later.
 */
export class Outbox {
  readonly #sessionId: string;
  readonly #post: PostReport;
  readonly #bounds: Readonly<Record<Credit, number>>;
  readonly #left: Record<Credit, number>;

  constructor(sessionId: string, post: PostReport, { hasClips }: { readonly hasClips: boolean }) {
    this.#sessionId = sessionId;
    this.#post = post;
    this.#bounds = { ...CREDITS, ...(hasClips && { pictures: CLIPS }) };
    this.#left = { ...this.#bounds };
  }

  /** Takes one credit; false when there is none. */
  take(kind: Credit): boolean {
    if (this.#left[kind] === 0) return false;
    this.#left[kind]--;
    return true;
  }

  hasCredit(kind: Credit): boolean {
    return this.#left[kind] > 0;
  }

  /**
   * Gives credits back. More than were taken, or a negative number, is a mistake of the caller and is
   * ignored.
   */
  giveBack(credit: Credit, count = 1): void {
    this.#left[credit] = Math.min(this.#bounds[credit], this.#left[credit] + Math.max(0, count));
  }

  /**
   * Sends a report, whose credit was taken before. The buffers in `moved` are transferred and no longer
   * usable here.
   */
  send(report: WithoutSessionId<SessionReport>, moved: readonly ArrayBuffer[] = []): void {
    this.#post({ ...report, sessionId: this.#sessionId } as SessionReport, moved);
  }
}

const CLIPS = 1;
