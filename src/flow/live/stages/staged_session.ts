/** What a live session is made of: its plan, what all sessions of the process share, and what its stages
 * share.
 */

import type { Metrics } from "../../../contract/metrics.ts";
import type { World } from "../../../base/world.ts";
import type { FrameFacts } from "../../../live/messages/messages.ts";
import type { Opening } from "../../../live/worker_pool.ts";
import type { ToolRunner } from "../../../media/jobs/runner.ts";
import type { AttachConfig, AttachPolicy } from "../../../model/live/attach.ts";
import type { RecordingPlan } from "../../../model/sources/recording_plan.ts";
import type { AudioSidecar } from "../../../remote/sidecars/audio_sidecar.ts";
import type { TriggerDatagramSender } from "../../../remote/trigger_datagram_sender.ts";
import type { Recordings } from "../../../store/recordings/recordings.ts";
import type { Describer } from "../describing/describer.ts";
import type { Enricher } from "../describing/enricher.ts";
import type { CauseEvents } from "../journal/cause_events.ts";
import type { LiveJournal, SessionIdentity } from "../journal/journal.ts";
import type { Acknowledge } from "./stage.ts";

/** What differs from session to session. */
export interface LiveSessionPlan {
  readonly identity: SessionIdentity;
  /** The first run of the session. */
  readonly runId: string;
  /** Its prompt and zone are those of `policy`, where that sets them. */
  readonly attach: AttachConfig;
  /** What the active policy revision of the run sets; null where there is none. */
  readonly policy: AttachPolicy | null;
  readonly opening: Opening;
  /** A camera that is always watched may be silent for as long as it likes. */
  readonly isAlwaysOn?: true;
  /** Set for a source that is recorded all day. */
  readonly recording?: RecordedSource | null;
}

/** What is recorded, and how long it is kept. */
export interface RecordedSource {
  readonly source: string;
  readonly plan: RecordingPlan;
}

/** What the stages of all sessions share. */
export interface StageHost {
  readonly metrics: Metrics;
  readonly world: World;
  readonly recordings: Recordings;
  /** Null where no socket is configured; `checkAttach` then refuses programs with a local output. */
  readonly datagrams: Pick<TriggerDatagramSender, "send"> | null;
  /** Null where no audio sidecar is configured. */
  readonly audio: {
    readonly sidecar: AudioSidecar;
    readonly runner: ToolRunner;
    readonly timeoutMs: number;
  } | null;
}

/** What the stages of one session share. */
export interface StagedSession {
  readonly host: StageHost;
  readonly plan: LiveSessionPlan;
  readonly journal: LiveJournal;
  readonly causes: CauseEvents;
  readonly describer: Describer;
  /** Null where no event of the session is explained by a second one. */
  readonly enricher: Enricher | null;
  readonly acknowledge: Acknowledge;
  readonly isEnding: () => boolean;
  /** Called for a keyframe of a cut. */
  readonly onCut: (frame: FrameFacts) => void;
}
