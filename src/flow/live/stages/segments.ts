/** The segments of a source that is recorded all day: each goes to its recording, and causes no event. */

import type { ReportOf } from "../../../live/messages/messages.ts";
import { LIMITS } from "../../../contract/limits.ts";
import { SegmentRecorder } from "../../recordings/segment_recorder.ts";
import { Stage } from "./stage.ts";
import type { StagedSession } from "./staged_session.ts";

/** Neither aborted nor bound to the run: a recording belongs to the source. */
export function segmentStage({ host, plan: { recording, runId }, acknowledge }: StagedSession) {
  const { recordings, metrics, world } = host;
  const recorder = recording
    ? new SegmentRecorder({ ...recording, runId, recordings, metrics, world })
    : null;
  return new Stage<ReportOf<"segment">>(acknowledge, {
    name: "event_writer",
    bound: LIMITS.recording.segmentsHeld,
    credit: "segments",
    isNeverAborted: true,
    work: async ({ segment }) => await recorder?.store(segment),
    onLost: () => recorder?.lost(),
    rolledOver: (run) => recorder?.rolledOver(run),
  });
}
