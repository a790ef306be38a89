/** What a live trigger program leaves behind when it fires: its event, and a datagram for a local listener. Contract 9.5. */

import type { PayloadOf } from "../events/event_table.ts";
import type { TriggerProgram } from "./program.ts";
import {
  frameFields,
  type LiveFrame,
  type StoredImage,
  storedImageFields,
  unitScore,
} from "../live/live_frame.ts";

/** What the program was given; NaN is a score that the frame did not have. */
export interface TriggerInputs {
  readonly motionScore: number;
  readonly noveltyScore: number;
  readonly confidence: number;
}

export interface TriggerFiring {
  readonly sessionId: string;
  readonly generation: number;
  readonly frame: LiveFrame;
  readonly program: TriggerProgram;
  readonly inputs: TriggerInputs;
  readonly image: StoredImage;
}

/** What a firing does beside its event. */
export interface TriggerActions {
  readonly eventType: string;
  readonly webhook: boolean;
  readonly localOutput: boolean;
}

/** Of a program that passed the rules for live sessions: it emits exactly once. */
export function triggerActions({ instructions }: TriggerProgram): TriggerActions {
  const emit = instructions.find((instruction) => instruction.op === "emit");
  if (!emit) throw new Error("A live trigger program has an emit");
  const notifies = (channel: "webhook" | "local_output") =>
    instructions.some((instruction) => instruction.op === "notify" && instruction.channel === channel);
  return {
    eventType: emit.event_type,
    webhook: notifies("webhook"),
    localOutput: notifies("local_output"),
  };
}

export function triggerPayload(firing: TriggerFiring): PayloadOf<`trigger.${string}`> {
  const { program, inputs } = firing;
  const { eventType, webhook, localOutput } = triggerActions(program);
  return {
    session_id: firing.sessionId,
    ...frameFields(firing.frame),
    confidence: Number.isNaN(inputs.confidence) ? 0 : unitScore(inputs.confidence),
    event_type: eventType,
    trigger: {
      program_id: program.program_id,
      program_version: program.version,
      isa_version: program.isa_version,
      inputs: {
        motion_score: present(inputs.motionScore),
        novelty_score: present(inputs.noveltyScore),
        confidence: present(inputs.confidence),
      },
      actions: { event: true, webhook, local_output: localOutput, capture: "keyframe" },
    },
    provenance: { pipeline_generation: firing.generation },
    evidence: storedImageFields(firing.image),
  };
}

function present(score: number): number | null {
  return Number.isNaN(score) ? null : score;
}

/** The event as it was committed: its place in the log, not its payload. */
export interface CommittedTrigger {
  readonly runId: string;
  readonly streamId: string;
  readonly seq: number;
  /** Of the envelope, epoch milliseconds. */
  readonly ptsMs: number;
  readonly kind: string;
}

/** One line of JSON that leads to the event; neither picture nor words are in it. */
export function localOutputDatagram(event: CommittedTrigger, generation: number): string {
  return JSON.stringify({
    event_id: `${event.runId}:${event.seq}`,
    run_id: event.runId,
    stream_id: event.streamId,
    seq: event.seq,
    pts_ms: event.ptsMs,
    kind: event.kind,
    pipeline_generation: generation,
  });
}
