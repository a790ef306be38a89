import assert from "node:assert/strict";
import { namedBlobs } from "../../../src/model/events/blob_references.ts";
import {
  event,
  type EventKind,
  EVENTS,
  eventTypeOf,
  findEvent,
  grantedBlobs,
  isBookkeeping,
  type PayloadOf,
} from "../../../src/model/events/event_table.ts";
import { PreparedPayload } from "../../../src/model/runs/run.ts";
import { readVariants } from "../../support/variants.ts";

const RUN_ID = "run-5b0d2f0c9a7e4d31b6f1c2a3d4e5f607";
const IMAGE_SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
const CLIP_SHA256 = "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752";
const JPEG = `keyframes ${IMAGE_SHA256} image/jpeg`;
const CLIP = `media ${CLIP_SHA256} video/mp4`;
const SPOKEN = `media ${IMAGE_SHA256} audio/wav`;

/** The kinds of events, kept by hand. */
const KINDS = `run_created ingest_received frames_decoded marker_emitted analysis_generated
  semantic_chunk_inferred multimodal_moment semantic_chunk_generated semantic_fallback_activated
  inference_completed run_completed run_failed stop_requested keepalive_refreshed run_deleted hold_placed hold_released events_removed
  media_removed operator_feedback_submitted webhook_registered webhook_deleted policy_revision_created
  policy_deployment_requested policy_deployment_acknowledged policy_deployment_rejected
  policy_rollback_requested policy_rollback_acknowledged policy_rollback_rejected policy_replay_evaluated
  vlm vlm_tiered clip_vlm clip_vlm_tiered state_transition loop_detected
  decoder_restarted publisher_connected live_source_opened source_gap source_resumed source_armed source_disarmed keyframe_stored clip_stored
  restricted_zone_activity_entered event_enriched trigger.*`.split(/\s+/);

Deno.test("the table has exactly the expected kinds", () => {
  assert.deepEqual(Object.keys(EVENTS), KINDS);
});

Deno.test("every kind has one sample file and every sample file a kind", () => {
  const files = [...Deno.readDirSync(new URL("../../../fixtures/events/", import.meta.url))].map((file) =>
    file.name
  );
  assert.deepEqual(files.toSorted(), KINDS.map((kind) => `${kind.replace(".*", "")}.json`).toSorted());
});

Deno.test("whoever looks for the blobs of an event finds every hash in the samples, each with its type", () => {
  const hash = /sha256":"([0-9a-f]{64})"/g;
  let hashes = 0;
  for (const kind of KINDS.filter((kind) => EVENTS[kind as keyof typeof EVENTS].blobs.length > 0)) {
    for (const payload of readVariants(`events/${kind.replace(".*", "")}.json`).valid) {
      const named = new Set(Array.from(JSON.stringify(payload).matchAll(hash), ([, sha256]) => sha256));
      const found = namedBlobs(kind.replace("*", "sample"), payload);
      assert.deepEqual(new Set(found.map(({ sha256 }) => sha256)), named, kind);
      hashes += named.size;
    }
  }
  assert.ok(hashes > 6);
});

Deno.test("every summary is one sentence", () => {
  for (const [kind, { summary }] of Object.entries(EVENTS)) assert.match(summary, /^[A-Z][^.]+\.$/, kind);
});

Deno.test("a kind is found by its name, a trigger by its family, anything else not at all", async (t) => {
  const cases: [kind: string, found: boolean][] = [
    ["run_created", true],
    ["webhook_deleted", true],
    ["trigger.dock_entry", true],
    ["trigger.a.b:c-1", true],
    [`trigger.${"a".repeat(128)}`, true],
    [`trigger.${"a".repeat(129)}`, false],
    ["trigger.", false],
    ["trigger.*", false],
    ["trigger.dock entry", false],
    ["trigger.dock\nentry", false],
    ["trigger.dock_entry\n", false],
    ["trigger", false],
    ["Run_created", false],
    ["run_created ", false],
    ["zone_left", false],
    ["", false],
    ["toString", false],
    ["__proto__", false],
  ];
  for (const [kind, found] of cases) {
    await t.step(JSON.stringify(kind), () => assert.equal(findEvent(kind) !== undefined, found));
  }
});

Deno.test("bookkeeping is what starts with webhook_, in the table and beyond it", () => {
  for (const [kind, row] of Object.entries(EVENTS)) assert.equal(row.bookkeeping, isBookkeeping(kind), kind);
  assert.ok(isBookkeeping("webhook_paused"));
  assert.ok(!isBookkeeping("trigger.webhook_registered"));
  assert.ok(!isBookkeeping("webhooks"));
});

Deno.test("the CloudEvents type is the kind behind the service's prefix", () => {
  assert.equal(eventTypeOf("vlm"), "dev.service.timeline.vlm");
  assert.equal(eventTypeOf("trigger.dock_entry"), "dev.service.timeline.trigger.dock_entry");
});

Deno.test("an event makes the blobs readable that its payload refers to, and no others", async (t) => {
  const sample = (kind: string, index = 0) => readVariants(`events/${kind}.json`).valid[index] as object;
  const zone = sample("restricted_zone_activity_entered") as Record<string, object>;
  const trigger = sample("trigger") as Record<string, object>;
  const native = sample("semantic_chunk_inferred", 2) as Record<string, object>;
  const cases: [what: string, kind: string, payload: unknown, granted: string[]][] = [
    ["a stored keyframe", "keyframe_stored", sample("keyframe_stored"), [JPEG]],
    ["an evidence clip", "clip_stored", sample("clip_stored"), [CLIP, JPEG]],
    ["a zone entry", "restricted_zone_activity_entered", zone, [JPEG]],
    ["a trigger", "trigger.dock_entry", trigger, [JPEG]],
    ["a clip and a spoken answer", "semantic_chunk_inferred", native, [CLIP, SPOKEN]],
    ["a chunk of frames", "semantic_chunk_inferred", sample("semantic_chunk_inferred"), []],
    ["a moment with both", "multimodal_moment", sample("multimodal_moment"), [CLIP, SPOKEN]],
    ["a moment with neither", "multimodal_moment", sample("multimodal_moment", 1), []],
    ["a trigger without a generation", "trigger.dock_entry", { ...trigger, provenance: {} }, []],
    ["a trigger of an impossible name", "trigger.", trigger, []],
    ["an image inside another kind", "vlm", sample("keyframe_stored"), []],
    ["a clip inside a keyframe event", "keyframe_stored", native, []],
    ["evidence of a keyframe event", "keyframe_stored", zone, []],
    ["an unknown kind", "frame_stored", sample("keyframe_stored"), []],
    ["a hash in capitals", "keyframe_stored", {
      image_sha256: IMAGE_SHA256.toUpperCase(),
      image_media_type: "image/jpeg",
    }, []],
    [
      "a hash that is a path",
      "keyframe_stored",
      { image_sha256: "../x", image_media_type: "image/jpeg" },
      [],
    ],
    ["a hash without a type", "keyframe_stored", { image_sha256: IMAGE_SHA256 }, []],
    ["evidence null", "multimodal_moment", { evidence: null }, []],
    ["evidence as text", "multimodal_moment", { evidence: CLIP_SHA256 }, []],
    ["a payload that is null", "multimodal_moment", null, []],
    ["a payload that is text", "keyframe_stored", IMAGE_SHA256, []],
    ["a payload that is an array", "keyframe_stored", [IMAGE_SHA256], []],
  ];
  for (const [what, kind, payload, granted] of cases) {
    await t.step(what, () => {
      const blobs = grantedBlobs(kind, payload).map((blob) =>
        `${blob.route} ${blob.sha256} ${blob.mediaType}`
      );
      assert.deepEqual(blobs, granted);
    });
  }
});

Deno.test("an event to commit carries its kind, its run and the payload as given", () => {
  const payload = { request_id: "req-0000000000000001" };
  assert.deepEqual(event("stop_requested", RUN_ID, payload), {
    kind: "stop_requested",
    runId: RUN_ID,
    payload,
  });
  const prepared = new PreparedPayload(new TextEncoder().encode("{}"));
  assert.equal(event("frames_decoded", RUN_ID, prepared).payload, prepared);
});

Deno.test("a 64-bit hash is a bigint when written, and its range is checked without rounding", () => {
  const { signals, ...rest } = readVariants("events/frames_decoded.json").valid[0] as PayloadOf<
    "frames_decoded"
  >;
  const check = (hash: unknown, valid: boolean) => {
    const payload = { ...rest, signals: [{ ...signals[0], perceptual_hash: hash }] };
    assert.equal(EVENTS.frames_decoded.payload.safeParse(payload).success, valid, String(hash));
  };
  check(0n, true);
  check(2n ** 64n - 1n, true);
  check(2n ** 64n, false);
  check(-1n, false);
  check(2 ** 64, true); // What JSON.parse makes of 2^64-1.
  check(2 ** 65, false);
  check(NaN, false);
  check(true, false);
});

Deno.test("what does not fit the table does not compile", () => {
  // Each line is an error that the type checker must find; an unused directive fails the check.
  const never = (_: unknown) => {};
  const requestId = "req-0000000000000001";
  // @ts-expect-error: no such kind
  never(() => event("run_paused", RUN_ID, { request_id: requestId }));
  // @ts-expect-error: a trigger names its event type
  const family: EventKind = "trigger";
  // @ts-expect-error: a field is missing
  never(() => event("stop_requested", RUN_ID, {}));
  // @ts-expect-error: a field is misspelt
  never(() => event("stop_requested", RUN_ID, { request_id: requestId, requestid: requestId }));
  // @ts-expect-error: a live run comes from WHIP
  never(() => event("run_failed", RUN_ID, { source: "rtmp", session_id: "sess-1", reason: "peer_failed" }));
  // @ts-expect-error: a hash is a bigint, a number has too few digits
  const hash: PayloadOf<"frames_decoded">["signals"][number]["perceptual_hash"] = 7;
  never([family, hash]);
  assert.ok(event("run_failed", RUN_ID, { source: "whip", session_id: "sess-1", reason: "peer_failed" }));
});
