/** Routes of trigger programs. */

import type { RecordedEvaluation } from "../../flow/analysis/recorded_triggers.ts";
import type { TriggerEvaluation } from "../../flow/analysis/triggers.ts";
import {
  COMPILE_BODY,
  COMPILED_TRIGGER,
  EVALUATE_BODY,
  EVALUATE_ON_RUN_BODY,
  EVALUATED_ON_RUN,
  EVALUATED_TRIGGER,
  VALID_TRIGGER,
} from "../../model/api/triggers.ts";
import { triggerProgram } from "../../model/triggers/program.ts";
import { FIRED, MISSING_SIGNAL } from "../../model/triggers/program_table.ts";
import { json, jsonStream } from "../answers/reply.ts";
import { readJson } from "../requests/body.ts";
import { parameter } from "../route/call.ts";
import { answersJson, jsonContent, type Route } from "../route/route.ts";

export const TRIGGER_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/triggers/compile",
    id: "compileTrigger",
    tag: "triggers",
    summary: "Compiles the source of a trigger program.",
    body: jsonContent(COMPILE_BODY),
    answers: answersJson(COMPILED_TRIGGER, "The compiled program"),
    failures: [422],
    handle: async (call) => {
      const body = await readJson(call, COMPILE_BODY);
      const { program, instructionCount, stateSlots } = call.use.triggers.compile(body);
      return json({
        request_id: call.caller.requestId,
        program,
        instruction_count: instructionCount,
        state_slots: stateSlots,
      });
    },
  },
  {
    method: "POST",
    path: "/v1/triggers/validate",
    id: "validateTrigger",
    tag: "triggers",
    summary: "Checks a compiled trigger program.",
    body: jsonContent(triggerProgram),
    answers: answersJson(VALID_TRIGGER, "The program is valid"),
    failures: [422],
    handle: async (call) => {
      const body = await readJson(call, triggerProgram, THRESHOLDS);
      const { program, instructionCount, stateSlots } = call.use.triggers.validate(body);
      return json({
        request_id: call.caller.requestId,
        valid: true,
        isa_version: program.isa_version,
        program_id: program.program_id,
        program_version: program.version,
        instruction_count: instructionCount,
        state_slots: stateSlots,
      });
    },
  },
  {
    method: "POST",
    path: "/v1/triggers/evaluate",
    id: "evaluateTrigger",
    tag: "triggers",
    summary: "Runs a trigger program over samples.",
    body: jsonContent(EVALUATE_BODY),
    answers: answersJson(EVALUATED_TRIGGER, "A result for each sample"),
    failures: [422],
    handle: async (call) => {
      const body = await readJson(call, EVALUATE_BODY, THRESHOLDS);
      return jsonStream(evaluationJson(call.caller.requestId, call.use.triggers.evaluate(body)));
    },
  },
  {
    method: "POST",
    path: "/v1/runs/:id/triggers/evaluate",
    id: "evaluateTriggerOnRun",
    tag: "triggers",
    summary: "Runs a trigger program over what a run's decode has measured.",
    body: jsonContent(EVALUATE_ON_RUN_BODY),
    answers: answersJson(EVALUATED_ON_RUN, "Where the program fires"),
    failures: [404, 422, 500],
    handle: async (call) => {
      const body = await readJson(call, EVALUATE_ON_RUN_BODY, THRESHOLDS);
      const runId = parameter(call, "id");
      const evaluation = await call.use.recordedTriggers.evaluate(call.caller, runId, body);
      return json({ request_id: call.caller.requestId, run_id: runId, ...recordedJson(evaluation) });
    },
  },
];

function recordedJson(
  { program, sourceSeq, frames, missingFrames, firedTotal, fired, actions }: RecordedEvaluation,
) {
  return {
    program_id: program.program_id,
    program_version: program.version,
    source_seq: sourceSeq,
    frames,
    missing_signal_frames: missingFrames,
    fired_total: firedTotal,
    fired: fired.map(({ frameIndex, ptsMs, motionScore, noveltyScore, confidence }) => ({
      frame_index: frameIndex,
      pts_ms: ptsMs,
      motion_score: rounded(motionScore),
      novelty_score: rounded(noveltyScore),
      confidence: rounded(confidence),
    })),
    actions,
  };
}

/** Seven decimals hold a 32-bit score. */
function rounded(score: number): number {
  return Math.round(score * 1e7) / 1e7;
}

/**
 * Thresholds become 32-bit floats, so no digit needs to be exact; the compiler writes values such as 1e20 in
 * full.
 */
const THRESHOLDS = { isExact: false };

/** Results in one chunk of the response. */
const RESULTS_PER_CHUNK = 512;

function* evaluationJson(requestId: string, evaluation: TriggerEvaluation): Iterable<string> {
  const { program, ptsMs, flags, actions } = evaluation;
  const { program_id, version } = program;
  const endings = endingsOf(JSON.stringify(actions));
  yield `{"request_id":"${requestId}","program_id":"${program_id}","program_version":${version},"results":[`;
  for (let start = 0; start < flags.length; start += RESULTS_PER_CHUNK) {
    let chunk = "";
    const end = Math.min(flags.length, start + RESULTS_PER_CHUNK);
    for (let index = start; index < end; index++) {
      chunk += `${index > 0 ? "," : ""}{"pts_ms":${ptsMs[index]}${endings[flags[index]!]}`;
    }
    yield chunk;
  }
  yield "]}";
}

/** The text after the time of a result, by its flags. */
function endingsOf(actions: string): string[] {
  return [0, FIRED, MISSING_SIGNAL, FIRED | MISSING_SIGNAL].map((flags) => {
    const fired = (flags & FIRED) !== 0;
    const missing = (flags & MISSING_SIGNAL) !== 0;
    return `,"fired":${fired},"missing_signal":${missing},"actions":${fired ? actions : "[]"}}`;
  });
}
