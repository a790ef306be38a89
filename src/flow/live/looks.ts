/** What callers read of their open live sessions: state, frames, the last picture, what is asked of the
 * model. See docs/live.md#state-of-a-session.
 */

import { isSameExtent } from "../../model/frames/coordinates.ts";
import { refuse } from "../../contract/refusal.ts";
import type { LiveSessionLook, LiveSignals, WatchedSession } from "../../model/api/live.ts";
import type { Snapshot } from "../../live/messages/messages.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { Caller } from "../caller.ts";
import { ownedRun } from "../runs/ownership.ts";
import type { LiveRegistry } from "./registry.ts";
import type { LiveSession } from "./session.ts";

export class LiveLooks {
  readonly #timeline: Timeline;
  readonly #registry: LiveRegistry;

  constructor(timeline: Timeline, registry: LiveRegistry) {
    this.#timeline = timeline;
    this.#registry = registry;
  }

  /** The open sessions of the caller, the oldest first. */
  list({ principalKey }: Caller): LiveSessionLook[] {
    return this.#registry.ofPrincipal(principalKey).map((session) => this.#look(session));
  }

  /**
   * The open session of a run, with its signals of the last minute behind a media time. Errors: 422 and 404
   * on the run, 404 where it has no open session.
   */
  ofRun(caller: Caller, runId: string, afterMs: number): WatchedSession {
    ownedRun(this.#timeline.view, caller, runId);
    const session = this.#registry.ofRun(runId);
    if (!session) throw refuse.notFound("Live session", "run_id");
    return { ...this.#look(session), signals: signalsOf(session, afterMs) };
  }

  /**
   * What the open session of a run sees: a frame that came less than a second ago. Errors: 422 and 404 on the
   * run, 404 where it has no open session, or one that gives no frames.
   */
  async snapshot(caller: Caller, runId: string): Promise<Snapshot> {
    ownedRun(this.#timeline.view, caller, runId);
    const session = this.#registry.ofRun(runId);
    if (!session) throw refuse.notFound("Live session", "run_id");
    const snapshot = await session.snapshots.newest(caller.signal);
    if (!snapshot) throw refuse.notFound("Frame of the live session", "run_id");
    return snapshot;
  }

  #look(session: LiveSession): LiveSessionLook {
    const { runId, identity: { sessionId, generation, source, sourceUri }, activity, gap } = session;
    const run = this.#timeline.view.run(runId)!;
    return {
      run_id: runId,
      session_id: sessionId,
      generation,
      source,
      source_uri: sourceUri,
      state: stateOf(session),
      opened_at_ms: session.openedMs,
      connected_at_ms: session.connectedMs,
      last_frame_at_ms: activity.lastFrameMs,
      gap: gap && { since_ms: gap.sinceMs, attempts: gap.attempts, next_attempt_at_ms: gap.nextAttemptMs },
      picture_size: pictureSizeOf(session),
      frames: activity.frames,
      prompt: session.prompt,
      restricted_zone: session.zone,
      last_seq: run.lastSeq,
      picture: activity.picture,
    };
  }
}

function stateOf(session: LiveSession): LiveSessionLook["state"] {
  if (session.ending.hasBegun) return "ending";
  if (session.connectedMs === null) return "connecting";
  return session.gap ? "interrupted" : "live";
}

function pictureSizeOf({ pictureSize }: LiveSession): LiveSessionLook["picture_size"] {
  if (!pictureSize) return null;
  const { frame, source } = pictureSize;
  return { ...frame, scaled_from: isSameExtent(frame, source) ? null : source };
}

function signalsOf({ activity }: LiveSession, afterMs: number): LiveSignals {
  const samples = activity.samplesAfter(afterMs);
  return {
    pts_ms: samples.map(({ ptsMs }) => ptsMs),
    motion: samples.map(({ motion }) => motion),
    novelty: samples.map(({ novelty }) => novelty),
  };
}
