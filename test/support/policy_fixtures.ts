/** One restricted zone and one trigger for all tests, and the id of a run that does not exist. */

import type { RestrictedZone } from "../../src/model/policies/zone.ts";
import type { TriggerProgram } from "../../src/model/triggers/program.ts";

export const UNKNOWN_RUN = `run-${"0".repeat(32)}`;

export const DOCK_ZONE: RestrictedZone = {
  policy_id: "dock",
  policy_version: 1,
  device_id: "cam-1",
  region: { x: 0.1, y: 0.2, width: 0.3, height: 0.4 },
  enter_motion_score: 0.6,
  exit_motion_score: 0.2,
  enter_after_frames: 2,
  exit_after_frames: 3,
};

/** The zone in the upper left quarter of the picture, where the pictures of the fake live Workers move. */
export const QUARTER_ZONE: RestrictedZone = { ...DOCK_ZONE, region: { x: 0, y: 0, width: 0.5, height: 0.5 } };

export const DOCK_SOURCE = `trigger dock-entry version 3
when motion_score >= 0.5 for 2 frames
edge rising
cooldown 4000ms
emit dock_entry
capture keyframe
notify webhook
end`;

/** Fires on each frame with motion, keeps its keyframe and notifies these channels. */
export function dockProgram(...channels: ("webhook" | "local_output")[]): TriggerProgram {
  return {
    isa_version: 1,
    program_id: "dock-entry",
    version: 3,
    instructions: [
      { op: "load", signal: { kind: "motion_score" } },
      { op: "constant", value: 0.5 },
      { op: "greater_or_equal" },
      { op: "jump_if_false", target: 6 + channels.length },
      { op: "emit", event_type: "dock_entry" },
      { op: "capture", kind: "keyframe", before_ms: 0, after_ms: 0 },
      ...channels.map((channel) => ({ op: "notify", channel }) as const),
      { op: "halt" },
    ],
  };
}
