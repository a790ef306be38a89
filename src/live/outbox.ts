/** What a session reports, and its credits: what the other side has not acknowledged yet is bounded. Contract 11.4. */

import { LIMITS } from "../model/limits.ts";
import type { SessionReport, WithoutSessionId } from "./messages.ts";

export type PostReport = (report: SessionReport, moved: readonly ArrayBuffer[]) => void;

/** How many of each may be on their way, or in work on the other side. */
export interface Credits {
  /** Keyframes, or clips. */
  readonly pictures: number;
  /** Pictures of a zone or of a trigger. */
  readonly evidence: number;
  readonly audioWindows: number;
}

/**
 * ```
 *   keyframe ─[32]─┐                                     ┌─ acknowledge { pictures, evidence, audioWindows }
 *   clip ─────[1]──┤                                     ▼
 *   zone ─────[8]──┼──▶ report ──▶ the other side works on it ──▶
 *   trigger ──[8]──┤    no credit: it is not even made, and counted as dropped
 *   audio ────[2]──┘
 * ```
 * A clip finds its way only when the one before it is done: there is no queue of clips, the next one is simply later.
 */
export class Outbox {
  readonly #sessionId: string;
  readonly #post: PostReport;
  readonly #bounds: Credits;
  readonly #left: { -readonly [Kind in keyof Credits]: number };

  constructor(sessionId: string, post: PostReport, { hasClips }: { readonly hasClips: boolean }) {
    this.#sessionId = sessionId;
    this.#post = post;
    this.#bounds = {
      pictures: hasClips ? CLIPS : LIMITS.live.decodedFramesQueuedKeyframe,
      evidence: LIMITS.live.evidenceQueued,
      audioWindows: LIMITS.live.audioWindowsQueued,
    };
    this.#left = { ...this.#bounds };
  }

  /** Takes one credit; false when there is none. */
  take(kind: keyof Credits): boolean {
    if (this.#left[kind] === 0) return false;
    this.#left[kind]--;
    return true;
  }

  hasCredit(kind: keyof Credits): boolean {
    return this.#left[kind] > 0;
  }

  /** Gives credits back. More than were taken is a mistake of whoever gives, and changes nothing. */
  giveBack(given: Partial<Credits>): void {
    for (const kind of ["pictures", "evidence", "audioWindows"] as const) {
      const amount = Math.max(0, given[kind] ?? 0);
      this.#left[kind] = Math.min(this.#bounds[kind], this.#left[kind] + amount);
    }
  }

  /** Sends a report, whose credit was taken before; buffers in `moved` are gone afterwards. */
  send(report: WithoutSessionId<SessionReport>, moved: readonly ArrayBuffer[] = []): void {
    this.#post({ ...report, sessionId: this.#sessionId } as SessionReport, moved);
  }
}

const CLIPS = 1;
