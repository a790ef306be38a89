/** Sends the reports of a session; credits bound how many are not yet acknowledged. See docs/live.md#stages-and-queues. */

import { LIMITS } from "../contract/limits.ts";
import type { SessionReport, WithoutSessionId } from "./messages.ts";

export type PostReport = (report: SessionReport, moved: readonly ArrayBuffer[]) => void;

/** How many reports of each kind may be unacknowledged: on their way, or being processed on the other side. */
export interface Credits {
  /** Keyframes, or clips. */
  readonly pictures: number;
  /** Pictures for a zone or a trigger. */
  readonly evidence: number;
  readonly audioWindows: number;
  /** Evidence clips. */
  readonly recordings: number;
  /** Of the live view. */
  readonly fragments: number;
  /** Segments of the continuous recording. */
  readonly segments: number;
}

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
 * Without a credit no report is made, and it is counted as dropped. A session has keyframes or clips, never both. A clip is sent only when the one before it is acknowledged: clips are not queued, the next one is made later.
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
      recordings: LIMITS.evidence.clipsHeld,
      fragments: LIMITS.view.fragmentsQueued,
      segments: LIMITS.recording.segmentsHeld,
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

  /** Gives credits back. More than were taken, or a negative number, is a mistake of the caller and is ignored. */
  giveBack(given: Partial<Credits>): void {
    for (
      const kind of ["pictures", "evidence", "audioWindows", "recordings", "fragments", "segments"] as const
    ) {
      const amount = Math.max(0, given[kind] ?? 0);
      this.#left[kind] = Math.min(this.#bounds[kind], this.#left[kind] + amount);
    }
  }

  /** Sends a report, whose credit was taken before. The buffers in `moved` are transferred and no longer usable here. */
  send(report: WithoutSessionId<SessionReport>, moved: readonly ArrayBuffer[] = []): void {
    this.#post({ ...report, sessionId: this.#sessionId } as SessionReport, moved);
  }
}

const CLIPS = 1;
