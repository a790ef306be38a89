import assert from "node:assert/strict";
import { findEvent, grantedBlobs } from "../../../src/model/events/event_table.ts";
import { fullFrame } from "../../../src/model/frames/coordinates.ts";
import type { StoredImage } from "../../../src/model/frames/live_frame.ts";
import {
  keyframeEventType,
  keyframeStoredPayload,
  observationPayload,
} from "../../../src/model/live/observation_event.ts";
import {
  localOutputDatagram,
  triggerActions,
  triggerPayload,
} from "../../../src/model/triggers/trigger_event.ts";
import { zoneEnteredPayload } from "../../../src/model/policies/zone_event.ts";
import { compileTrigger } from "../../../src/model/triggers/compile.ts";

const FRAME = { frameIndex: 90, ptsMs: 47_721_858, coordinates: fullFrame(1280, 720) };
const SHA = "9f".repeat(32);
const IMAGE: StoredImage = { ref: `keyframes/blobs/9f/${SHA}.jpg`, sizeBytes: 48_213, sha256: SHA };
const SHARED = {
  session_id: "sess-00c0ffee00c0ffee",
  frame_index: 90,
  pts_ms: 47_721_858,
  coordinate_schema: "service.image.v1",
  coordinates: FRAME.coordinates,
};
const STORED = {
  image_ref: IMAGE.ref,
  image_media_type: "image/jpeg",
  image_bytes: 48_213,
  image_sha256: SHA,
};
const SESSION = { sessionId: SHARED.session_id, frame: FRAME };

/**
 * The payload is exactly this, matches the schema of its kind, and makes its picture readable for the owner.
 */
function check(kind: string, payload: unknown, expected: unknown, hasImage: boolean): void {
  assert.deepEqual(payload, expected, kind);
  const parsed = findEvent(kind)!.payload.safeParse(JSON.parse(JSON.stringify(payload)));
  assert.ok(parsed.success, `${kind}: ${parsed.error?.message}`);
  const granted = grantedBlobs(kind, payload).map(({ sha256 }) => sha256);
  assert.deepEqual(granted, hasImage ? [SHA] : [], kind);
}

Deno.test("an observation has its frame, confidence and description", () => {
  const payload = observationPayload({ ...SESSION, confidence: 0.5, description: "a dock" });
  for (
    const kind of ["vlm", "vlm_tiered", "clip_vlm", "clip_vlm_tiered", "state_transition", "loop_detected"]
  ) {
    check(kind, payload, { ...SHARED, confidence: 0.5, description: "a dock" }, false);
  }
  const clamped = (confidence: number) =>
    observationPayload({ ...SESSION, confidence, description: "" }).confidence;
  assert.deepEqual([clamped(1.0000001), clamped(-1e-9)], [1, 0]);
});

Deno.test("a stored keyframe names its picture and what made it a keyframe", () => {
  const observation = { ...SESSION, confidence: 0.58, description: "a dock" };
  check(
    "keyframe_stored",
    keyframeStoredPayload(observation, "scene_cut", IMAGE),
    { ...SHARED, confidence: 0.58, description: "a dock", event_type: "scene_cut", ...STORED },
    true,
  );
  assert.equal(keyframeEventType("scene_cut"), "scene_cut");
  assert.equal(keyframeEventType("initial_frame"), "periodic_keepalive");
  assert.equal(keyframeEventType("periodic_keepalive"), "periodic_keepalive");
});

Deno.test("activity in a zone names the policy, the measurement and the picture, and no subject", () => {
  const zone = {
    policy_id: "dock",
    policy_version: 4,
    device_id: "cam-1",
    region: { x: 0.1, y: 0.2, width: 0.3, height: 0.4 },
    enter_motion_score: 0.6,
    exit_motion_score: 0.2,
    enter_after_frames: 2,
    exit_after_frames: 3,
  };
  const entry = { ...SESSION, generation: 3, zone, score: 0.75, consecutiveFrames: 2, image: IMAGE };
  check("restricted_zone_activity_entered", zoneEnteredPayload(entry), {
    ...SHARED,
    confidence: 0.75,
    assertion: {
      policy_id: "dock",
      policy_version: 4,
      status: "active",
      coordinate_space: "normalized_image",
      zone: { x: 0.1, y: 0.2, width: 0.3, height: 0.4 },
      trigger: { kind: "perceptual_hash_motion", score: 0.75, threshold: 0.6, consecutive_frames: 2 },
      subject: null,
    },
    provenance: { device_id: "cam-1", model_id: "service.motion-phash.v1", pipeline_generation: 3 },
    evidence: STORED,
  }, true);
});

Deno.test("a trigger names its program, its inputs, its actions and the picture", () => {
  const program = (...actions: string[]) =>
    compileTrigger(
      ["trigger dock-entry version 3", "when motion_score >= 0.5", ...actions, "end"].join("\n"),
    );
  const quiet = program("emit dock_entry", "capture keyframe");
  const loud = program("notify local_output", "emit dock_entry", "capture keyframe", "notify webhook");
  assert.deepEqual(triggerActions(quiet), { eventType: "dock_entry", webhook: false, localOutput: false });
  assert.deepEqual(triggerActions(loud), { eventType: "dock_entry", webhook: true, localOutput: true });
  const payload = {
    ...SHARED,
    confidence: 0.5,
    event_type: "dock_entry",
    trigger: {
      program_id: "dock-entry",
      program_version: 3,
      isa_version: 1,
      inputs: { motion_score: 0.75, novelty_score: 0.25, confidence: 0.5 },
      actions: { event: true, webhook: false, local_output: false, capture: "keyframe" },
    },
    provenance: { pipeline_generation: 3 },
    evidence: STORED,
  };
  const inputs = { motionScore: 0.75, noveltyScore: 0.25, confidence: 0.5 };
  const firing = { ...SESSION, generation: 3, image: IMAGE };
  check("trigger.dock_entry", triggerPayload({ ...firing, program: quiet, inputs }), payload, true);
  const missing = { motionScore: 0.75, noveltyScore: NaN, confidence: NaN };
  check("trigger.dock_entry", triggerPayload({ ...firing, program: loud, inputs: missing }), {
    ...payload,
    confidence: 0,
    trigger: {
      ...payload.trigger,
      inputs: { motion_score: 0.75, novelty_score: null, confidence: null },
      actions: { event: true, webhook: true, local_output: true, capture: "keyframe" },
    },
  }, true);
});

Deno.test("the datagram of a trigger identifies its event and has nothing of its content", () => {
  const event = {
    runId: "run-0123456789abcdef0123456789abcdef",
    streamId: "stream-0",
    seq: 42,
    ptsMs: 1_764_316_800_123,
    kind: "trigger.dock_entry",
  };
  assert.equal(
    localOutputDatagram(event, 3),
    '{"event_id":"run-0123456789abcdef0123456789abcdef:42","run_id":"run-0123456789abcdef0123456789abcdef",' +
      '"stream_id":"stream-0","seq":42,"pts_ms":1764316800123,"kind":"trigger.dock_entry",' +
      '"pipeline_generation":3}',
  );
});
