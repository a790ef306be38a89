/** The clips of a session in clip mode: the model describes one after the other. */

import type { ReportOf } from "../../../live/messages/messages.ts";
import { Stage } from "./stage.ts";
import type { StagedSession } from "./staged_session.ts";

/** Clips that wait while the model describes another one. */
const CLIPS_QUEUED = 1;

export function clipStage({ describer, journal, isEnding, acknowledge }: StagedSession) {
  return new Stage<ReportOf<"clip">>(acknowledge, {
    name: "vlm",
    bound: CLIPS_QUEUED,
    credit: "pictures",
    awaitsModel: true,
    work: (clip, signal) => describer.clip(clip, signal),
    onLost: () => journal.dropped(isEnding() ? "session_ended" : "queue_full"),
  });
}
