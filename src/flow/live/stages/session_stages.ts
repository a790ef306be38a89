/** TABLE of the stages of a live session: what takes the reports of a kind. Starts and ends all of them. */

import { TaskGroup } from "../../../base/tasks.ts";
import { hasEndedWithin } from "../../../base/wait.ts";
import type { ReportOf, SessionReport } from "../../../live/messages/messages.ts";
import { audioStage } from "./audio.ts";
import { clipStage } from "./clips.ts";
import { evidenceClipStage } from "./evidence_clips.ts";
import { PictureStages } from "./pictures.ts";
import { segmentStage } from "./segments.ts";
import type { AnyStage, ReportTaker } from "./stage.ts";
import type { StagedSession } from "./staged_session.ts";

type ReportKind = SessionReport["kind"];

const STAGES = {
  picture: (session) => new PictureStages(session),
  clip: clipStage,
  audio_window: audioStage,
  recorded: evidenceClipStage,
  segment: segmentStage,
} satisfies { readonly [Kind in ReportKind]?: (session: StagedSession) => ReportTaker<ReportOf<Kind>> };

/** How long the stages may go on with what was reported before the end. */
const DRAIN_MS = 5_000;

export class SessionStages {
  readonly #session: StagedSession;
  readonly #takers: Partial<Record<ReportKind, ReportTaker<SessionReport>>> = {};
  readonly #stages: readonly AnyStage[];
  readonly #running = new TaskGroup();
  readonly #aborting: AbortController;
  readonly #onBug: (stage: AnyStage["name"], error: unknown) => void;

  /** `aborting` aborts the work under way; ending a stage instead lets it finish. */
  constructor(
    session: StagedSession,
    { aborting, onBug }: {
      readonly aborting: AbortController;
      readonly onBug: (stage: AnyStage["name"], error: unknown) => void;
    },
  ) {
    this.#session = session;
    this.#aborting = aborting;
    this.#onBug = onBug;
    for (const kind of Object.keys(STAGES) as (keyof typeof STAGES)[]) {
      this.#takers[kind] = STAGES[kind](session);
    }
    this.#stages = Object.values(this.#takers).flatMap(({ stages }) => stages);
  }

  /** False for a report that none of them takes. */
  offer(report: SessionReport): boolean {
    const taker = this.#takers[report.kind];
    taker?.offer(report);
    return taker !== undefined;
  }

  start(): void {
    for (const stage of this.#stages) this.run(stage.name, () => stage.run(this.#aborting.signal));
  }

  /** Runs work beside the stages, which ends with them. */
  run(name: AnyStage["name"], work: () => Promise<void>): void {
    this.#running.start(async () => {
      try {
        // The request that starts the session has its span, and the stages outlive it.
        await this.#session.host.world.tracing.within(null, work);
      } catch (error) {
        this.#onBug(name, error);
        throw error;
      }
    });
  }

  rolledOver(runId: string): void {
    for (const stage of this.#stages) stage.rolledOver(runId);
  }

  /** Nothing waits for a model any more, so that ending a session does not wait for it. */
  drop(): void {
    for (const stage of this.#stages) stage.drop();
  }

  /** Lets them work off what was reported; what takes too long is aborted. */
  async finish(): Promise<void> {
    this.drop();
    for (const stage of this.#stages) stage.end();
    const finished = this.#running.join().catch(() => {/* `onBug` has told it */});
    await hasEndedWithin(this.#session.host.world, DRAIN_MS, finished, this.#aborting.signal);
    this.#aborting.abort();
    await finished;
  }
}
