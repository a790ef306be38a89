/** The evidence of a zone or a trigger: stores the picture, then writes the event that names it, then sends the datagram. */

import type { Metrics } from "../../../contract/metrics.ts";
import type { LivePicture, TriggerFacts, ZoneFacts } from "../../../live/messages.ts";
import { event } from "../../../model/events/event_table.ts";
import {
  localOutputDatagram,
  triggerActions,
  triggerPayload,
} from "../../../model/triggers/trigger_event.ts";
import { zoneEnteredPayload } from "../../../model/policies/zone_event.ts";
import { DEFAULT_STREAM_ID } from "../../../model/identifiers.ts";
import type { NewEvent } from "../../../model/runs/run.ts";
import type { TriggerProgram } from "../../../model/triggers/program.ts";
import type { RestrictedZone } from "../../../model/policies/zone.ts";
import type { TriggerDatagramSender } from "../../../remote/trigger_datagram_sender.ts";
import type { BlobRef } from "../../../store/media/blobs.ts";
import type { Enricher } from "../describing/enricher.ts";
import type { LiveJournal, SessionIdentity } from "../journal.ts";

export interface EvidenceOptions {
  readonly identity: SessionIdentity;
  readonly journal: LiveJournal;
  readonly zone: RestrictedZone | null;
  readonly trigger: TriggerProgram | null;
  /** Null where no socket is configured; `checkAttach` then refuses programs with a local output. */
  readonly datagrams: Pick<TriggerDatagramSender, "send"> | null;
  readonly metrics: Metrics;
  /** Null where no event of the session is explained. */
  readonly enricher: Pick<Enricher, "announced"> | null;
}

export class EvidenceWriter {
  readonly #options: EvidenceOptions;

  constructor(options: EvidenceOptions) {
    this.#options = options;
  }

  /** A picture that cannot be stored gets no event, as an assertion needs its evidence. The failure is counted. */
  async write(picture: LivePicture): Promise<void> {
    const { zone, trigger, journal, metrics } = this.#options;
    const ref = await journal.store(picture.jpeg);
    if (zone && picture.zone) {
      if (ref) this.#assertZone(zone, picture, picture.zone, ref);
      else metrics.add("service_pipeline_restricted_zone_evidence_failures_total");
    }
    if (trigger && picture.trigger) {
      if (ref) await this.#fire(trigger, picture, picture.trigger, ref);
      else metrics.add("service_pipeline_trigger_binary_write_failures_total");
    }
  }

  #assertZone(zone: RestrictedZone, { frame, isArmed }: LivePicture, facts: ZoneFacts, image: BlobRef): void {
    const { identity, journal, metrics, enricher } = this.#options;
    const { score, consecutiveFrames } = facts;
    const payload = {
      ...zoneEnteredPayload({ ...identity, frame, zone, score, consecutiveFrames, image }),
      ...armedField(isArmed),
      ...(isArmed !== false && enricher?.announced("zone")),
    };
    const written = journal.append([event("restricted_zone_activity_entered", identity.runId, payload)]);
    metrics.add("service_pipeline_restricted_zone_assertions_total", written.length);
  }

  async #fire(
    program: TriggerProgram,
    { frame, isArmed }: LivePicture,
    { inputs }: TriggerFacts,
    image: BlobRef,
  ): Promise<void> {
    const { identity, journal, metrics, datagrams, enricher } = this.#options;
    const { eventType, localOutput } = triggerActions(program);
    const payload = triggerPayload({
      ...identity,
      frame,
      program,
      inputs: {
        motionScore: inputs.motion_score ?? NaN,
        noveltyScore: inputs.novelty_score ?? NaN,
        confidence: inputs.confidence ?? NaN,
      },
      image,
    });
    const fired: NewEvent = event(`trigger.${eventType}`, identity.runId, {
      ...payload,
      ...armedField(isArmed),
      ...(isArmed !== false && enricher?.announced("trigger")),
    });
    const [committed] = journal.append([fired]);
    if (!committed) return;
    metrics.add("service_pipeline_trigger_assertions_total");
    if (!localOutput || !datagrams || isArmed === false) return;
    const where = { ...committed, streamId: DEFAULT_STREAM_ID };
    const isSent = await datagrams.send(localOutputDatagram(where, identity.generation));
    metrics.add(
      isSent
        ? "service_pipeline_trigger_local_outputs_total"
        : "service_pipeline_trigger_local_output_failures_total",
    );
  }
}

/** Null for a session that is no always-on camera: its events do not say it. */
function armedField(isArmed: boolean | null): { readonly armed?: boolean } {
  return isArmed === null ? {} : { armed: isArmed };
}
