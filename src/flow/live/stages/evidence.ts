/** The evidence of a zone or a trigger: stores the picture, then writes the event that names it, then sends
 * the datagram.
 */

import type { LivePicture, TriggerFacts, ZoneFacts } from "../../../live/messages/messages.ts";
import { sessionEvent } from "../../../model/events/event_table.ts";
import {
  localOutputDatagram,
  triggerActions,
  triggerPayload,
} from "../../../model/triggers/trigger_event.ts";
import { zoneEnteredPayload } from "../../../model/policies/zone_event.ts";
import { DEFAULT_STREAM_ID } from "../../../model/identifiers.ts";
import type { TriggerProgram } from "../../../model/triggers/program.ts";
import type { RestrictedZone } from "../../../model/policies/zone.ts";
import type { BlobRef } from "../../../store/media/blobs.ts";
import type { StagedSession } from "./staged_session.ts";

export class EvidenceWriter {
  readonly #session: Pick<StagedSession, "host" | "plan" | "journal" | "enricher">;

  constructor(session: StagedSession) {
    this.#session = session;
  }

  /**
   * A picture that cannot be stored gets no event, as an assertion needs its evidence. The failure is
   * counted.
   */
  async write(picture: LivePicture): Promise<void> {
    const { host: { metrics }, plan: { attach: { zone, trigger } }, journal } = this.#session;
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
    const { host: { metrics }, plan: { identity }, journal, enricher } = this.#session;
    const { score, consecutiveFrames } = facts;
    const payload = {
      ...zoneEnteredPayload({ ...identity, frame, zone, score, consecutiveFrames, image }),
      ...armedField(isArmed),
      ...(isArmed !== false && enricher?.announced("zone")),
    };
    const written = journal.append([sessionEvent("restricted_zone_activity_entered", payload)]);
    metrics.add("service_pipeline_restricted_zone_assertions_total", written.length);
  }

  async #fire(
    program: TriggerProgram,
    { frame, isArmed }: LivePicture,
    { inputs }: TriggerFacts,
    image: BlobRef,
  ): Promise<void> {
    const { host: { metrics, datagrams }, plan: { identity }, journal, enricher } = this.#session;
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
    const fired = sessionEvent(`trigger.${eventType}`, {
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
