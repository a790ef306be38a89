/** The pictures of a session: the event of a zone or a trigger, then the model, or why it was not asked. */

import type { LivePicture, ReportOf } from "../../../live/messages/messages.ts";
import { LIMITS } from "../../../contract/limits.ts";
import { keyframeEventType } from "../../../model/live/observation_event.ts";
import { triggerActions } from "../../../model/triggers/trigger_event.ts";
import type { TriggerProgram } from "../../../model/triggers/program.ts";
import type { DescribedPicture } from "../describing/describer.ts";
import { EvidenceWriter } from "./evidence.ts";
import { orAborted, type ReportTaker, Stage } from "./stage.ts";
import type { StagedSession } from "./staged_session.ts";

/** Keyframes that wait while the model describes another one: the newest. */
const KEYFRAMES_WAITING = 1;

type QueuedKeyframe = DescribedPicture & {
  /** Whether it took a credit of the Worker, which an acknowledgement gives back. */
  readonly isCredited: boolean;
};

type PassedOver = QueuedKeyframe & { readonly why: keyof typeof WHY_PASSED_OVER };

const WHY_PASSED_OVER = {
  queue_full: "No model was asked: it was busy, and a newer picture took the place of this one.",
  session_ended: "No model was asked: the session ended first.",
} as const;

/**
 * ```
 *   picture ─┬─ zone, trigger ─▶ evidence ─▶ its event ─┐
 *            └──────────────────────────────────────────┴─▶ keyframes ─▶ Describer, Enricher
 *                                                              └─ older ─▶ passed over ─▶ keyframe_stored
 * ```
 */
export class PictureStages implements ReportTaker<ReportOf<"picture">> {
  readonly stages;
  readonly #session: StagedSession;
  readonly #evidence: Stage<LivePicture>;
  readonly #keyframes: Stage<QueuedKeyframe>;
  /** Pictures that no model is asked about. */
  readonly #passedOver: Stage<PassedOver>;

  constructor(session: StagedSession) {
    const { describer, acknowledge } = session;
    this.#session = session;
    const writer = new EvidenceWriter(session);
    this.#evidence = new Stage(acknowledge, {
      name: "event_writer",
      bound: LIMITS.live.evidenceQueued,
      credit: "evidence",
      work: async (picture) => {
        await writer.write(picture);
        this.#offerEvidence(picture);
      },
      onLost: (picture) => this.#onEvidenceLost(picture),
    });
    this.#keyframes = new Stage(acknowledge, {
      name: "vlm",
      bound: KEYFRAMES_WAITING,
      credit: null,
      keepsNewest: true,
      awaitsModel: true,
      work: (picture, signal) => this.#describe(picture, signal),
      onLost: (picture) => this.#passOver(picture),
    });
    this.#passedOver = new Stage(acknowledge, {
      name: "event_writer",
      bound: LIMITS.live.decodedFramesQueuedKeyframe,
      credit: null,
      isNeverAborted: true,
      work: async (picture) => {
        await describer.keep(picture, WHY_PASSED_OVER[picture.why]);
        this.#isDealtWith(picture);
      },
      onLost: (picture) => this.#isDealtWith(picture),
    });
    this.stages = [this.#evidence, this.#keyframes, this.#passedOver];
  }

  offer({ picture }: ReportOf<"picture">): void {
    const { causes, plan: { attach }, onCut } = this.#session;
    if (attach.record) causes.expect(picture.frame.frameIndex);
    if (picture.isKeyframe && picture.frame.gateReason === "scene_cut") onCut(picture.frame);
    if (picture.zone || picture.trigger) this.#evidence.offer(picture);
    else this.#offerKeyframe(picture);
  }

  #onEvidenceLost(picture: LivePicture): void {
    const { metrics } = this.#session.host;
    if (picture.zone) metrics.add("service_pipeline_restricted_zone_queue_dropped_total");
    if (picture.trigger) metrics.add("service_pipeline_trigger_queue_dropped_total");
    this.#offerWithoutEvidence(picture);
  }

  /** What is found while the camera is disarmed is not described for that. */
  #offerEvidence(picture: LivePicture): void {
    if (picture.isArmed === false) this.#offerWithoutEvidence(picture);
    else this.#offerKeyframe(picture);
  }

  #offerWithoutEvidence(picture: LivePicture): void {
    if (picture.isKeyframe) this.#offerKeyframe({ ...picture, zone: null, trigger: null });
    else this.#session.causes.settle(picture.frame.frameIndex);
  }

  /** {@link Describer.keyframe} lists every reason why a frame gets no `vlm` event. */
  #offerKeyframe(picture: LivePicture): void {
    const { isEnding, plan: { attach } } = this.#session;
    const { frame, jpeg, isKeyframe } = picture;
    const keyframe = { frame, jpeg, ...reasonOf(picture, attach.trigger), isCredited: isKeyframe };
    if (isEnding()) this.#passOver(keyframe);
    else this.#keyframes.offer(keyframe);
  }

  async #describe(picture: QueuedKeyframe, signal: AbortSignal): Promise<void> {
    const { describer, enricher } = this.#session;
    const explain = describer.keyframe(picture, signal).then((enrichment) =>
      enricher?.settle(picture.frame.frameIndex, enrichment)
    );
    await orAborted(explain, signal);
    this.#isDealtWith(picture);
  }

  /** No model is asked about the picture, which is kept all the same. */
  #passOver(picture: QueuedKeyframe): void {
    const { journal, enricher, isEnding } = this.#session;
    const why = isEnding() ? "session_ended" : "queue_full";
    journal.dropped(why);
    enricher?.settle(picture.frame.frameIndex, { reason: isEnding() ? "session_ended" : "overloaded" });
    this.#passedOver.offer({ ...picture, why });
  }

  #isDealtWith({ frame, isCredited }: QueuedKeyframe): void {
    const { causes, acknowledge } = this.#session;
    causes.settle(frame.frameIndex);
    if (isCredited) acknowledge("pictures");
  }
}

const ZONE_ACTIVITY = "restricted_zone_activity";

function reasonOf(
  { zone, trigger, frame }: LivePicture,
  program: TriggerProgram | null,
): Pick<DescribedPicture, "eventType" | "trigger"> {
  if (zone) return { eventType: ZONE_ACTIVITY, trigger: ZONE_ACTIVITY };
  if (trigger && program) {
    const { eventType } = triggerActions(program);
    return { eventType: `trigger.${eventType}`, trigger: eventType };
  }
  return { eventType: keyframeEventType(frame.gateReason), trigger: frame.gateReason };
}
