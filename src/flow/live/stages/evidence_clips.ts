/** The evidence clips of a session: stores each with its picture, then writes the event that names them. */

import type { Metrics } from "../../../contract/metrics.ts";
import type { RecordedClip, ReportOf } from "../../../live/messages/messages.ts";
import { sessionEvent } from "../../../model/events/event_table.ts";
import { LIMITS } from "../../../contract/limits.ts";
import { storedImageFields } from "../../../model/frames/live_frame.ts";
import type { BlobRef } from "../../../store/media/blobs.ts";
import type { LiveJournal, SessionIdentity } from "../journal/journal.ts";
import { Stage } from "./stage.ts";
import type { StagedSession } from "./staged_session.ts";
import type { CauseEvents, EventPlace } from "../journal/cause_events.ts";

/** Never aborted: the last clip comes when the session ends, and is stored as long as the run is open. */
export function evidenceClipStage(
  { host, plan: { identity, attach }, journal, causes, acknowledge }: StagedSession,
) {
  const { metrics } = host;
  const clips = attach.record && new EvidenceClips({ identity, journal, causes, metrics });
  return new Stage<ReportOf<"recorded">>(acknowledge, {
    name: "event_writer",
    bound: LIMITS.evidence.clipsHeld,
    credit: "recordings",
    isNeverAborted: true,
    work: async ({ clip }) => {
      if (journal.isOpen) await clips?.store(clip);
    },
    onLost: () => metrics.add("service_pipeline_recordings_lost_total"),
    finish: async () => await clips?.finish(),
  });
}

interface EvidenceClipsOptions {
  readonly identity: SessionIdentity;
  readonly journal: LiveJournal;
  readonly causes: CauseEvents;
  readonly metrics: Metrics;
}

class EvidenceClips {
  readonly #options: EvidenceClipsOptions;
  /** Clips that are stored and wait for the event of their cause. */
  readonly #awaiting = new Set<Promise<void>>();

  constructor(options: EvidenceClipsOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the clip is on disk; its event may follow later. A clip that cannot be stored gets none and
   * is counted.
   */
  async store(clip: RecordedClip): Promise<void> {
    const { journal, metrics } = this.#options;
    const media = await journal.storeClip(clip.mp4);
    const still = media && await journal.store(clip.jpeg);
    if (!media || !still) return metrics.add("service_pipeline_recordings_lost_total");
    const written = this.#write(clip, { media, still });
    this.#awaiting.add(written);
    void written.finally(() => this.#awaiting.delete(written));
    if (this.#awaiting.size >= LIMITS.evidence.clipsAwaited) await written;
  }

  /** Resolves when the event of each stored clip is written. */
  async finish(): Promise<void> {
    await Promise.all(this.#awaiting);
  }

  async #write(
    clip: RecordedClip,
    { media, still }: { readonly media: BlobRef; readonly still: BlobRef },
  ): Promise<void> {
    const { identity, journal, causes, metrics } = this.#options;
    const cause = await causes.of(clip.frameIndex, clip.cause);
    const payload = {
      session_id: identity.sessionId,
      sha256: media.sha256,
      bytes: media.sizeBytes,
      start_pts_ms: clip.startPtsMs,
      end_pts_ms: clip.endPtsMs,
      cause: clip.cause,
      cause_seq: this.#seqHere(cause),
      cause_pts_ms: clip.causePtsMs,
      codec: clip.codec,
      sound: clip.sound,
      still: storedImageFields(still),
    } as const;
    const written = journal.append([sessionEvent("clip_stored", payload)]);
    metrics.add(
      written.length > 0
        ? "service_pipeline_recordings_stored_total"
        : "service_pipeline_recordings_lost_total",
    );
  }

  /** A seq counts in its run, and the run of the cause may have been completed by a roll-over. */
  #seqHere(cause: EventPlace | null): number | null {
    return cause?.runId === this.#options.journal.runId ? cause.seq : null;
  }
}
