/** The results of a live trigger that fires: its event, and a datagram for a local program. See
 * docs/triggers-policies.md#live-triggers.
 */

import type { PayloadOf } from "../events/event_table.ts";
import type { TriggerProgram } from "./program.ts";
import {
  frameFields,
  type LiveFrame,
  type StoredImage,
  storedImageFields,
  unitScore,
} from "../frames/live_frame.ts";

/** The inputs of the program; NaN for a score that the frame does not have. */
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

/** The actions of a firing besides its event. */
export interface TriggerActions {
  readonly eventType: string;
  readonly webhook: boolean;
  readonly localOutput: boolean;
}

/** The actions of a program that keeps the rules of live sessions: it has exactly one emit. */
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

/** The committed event: its place in the log without its payload. */
export interface CommittedTrigger {
  readonly runId: string;
  readonly streamId: string;
  readonly seq: number;
  /** The time of the event's envelope, epoch milliseconds. */
  readonly ptsMs: number;
  readonly kind: string;
}

/**
 * The datagram of an event: one line of JSON that identifies it, without picture and text. See
 * docs/protocols.md#trigger-datagrams.
 */
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
