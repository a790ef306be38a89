import assert from "node:assert/strict";
import {
  type AttachConfig,
  type AttachContext,
  checkAttachHeader,
  parseAttach,
} from "../../../src/model/live/attach.ts";
import { Refusal } from "../../../src/contract/refusal.ts";
import { compileTrigger } from "../../../src/model/triggers/compile.ts";
import { DOCK_ZONE } from "../../support/policy_fixtures.ts";

const CONTEXT: AttachContext = { crop: null, zone: null, tokensPerSecond: 128, hasLocalOutput: false };

const NOTHING: AttachConfig = {
  prompt: null,
  tokensPerSecond: 128,
  clip: null,
  crop: null,
  zone: null,
  trigger: null,
  localAudio: null,
  record: null,
  enrich: null,
};

const PROGRAM = compileTrigger(
  "trigger dock-entry version 3\nwhen motion_score >= 0.5 for 2 frames\nedge rising\nemit dock_entry\n" +
    "capture keyframe\nnotify webhook\nend",
);

/** A program with the given lines in the place of the conditions and actions. */
function program(...lines: string[]) {
  return compileTrigger(["trigger t version 1", ...lines, "end"].join("\n"));
}

function encoded(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return new TextEncoder().encode(text).toBase64({ alphabet: "base64url", omitPadding: true });
}

/** Reads the configuration of an attachment in both steps. */
function readAttachConfig(header: string | null, context: AttachContext): AttachConfig {
  return checkAttachHeader(parseAttach(header), context);
}

function accepts(body: unknown, changed: Partial<AttachConfig>, context: Partial<AttachContext> = {}): void {
  assert.deepEqual(
    readAttachConfig(encoded(body), { ...CONTEXT, ...context }),
    { ...NOTHING, ...changed },
    JSON.stringify(body),
  );
}

/** Refused in the second step, that is after the offer was read. */
function refuses(body: unknown, message: RegExp, context: Partial<AttachContext> = {}): void {
  const parsed = parseAttach(encoded(body));
  assert.throws(
    () => checkAttachHeader(parsed, { ...CONTEXT, ...context }),
    faultLike(message),
    JSON.stringify(body),
  );
}

/** Refused in the first step. */
function refusesSyntax(header: string, message: RegExp): void {
  assert.throws(() => parseAttach(header), faultLike(message), header);
}

function faultLike(message: RegExp) {
  return (error: unknown) => {
    assert.ok(error instanceof Refusal && error.status === 400, String(error));
    assert.match(error.message, message);
    return true;
  };
}

Deno.test("without the header, and with nothing in it, the server's defaults hold", () => {
  assert.deepEqual(readAttachConfig(null, CONTEXT), NOTHING);
  accepts({}, {});
  accepts(
    Object.fromEntries([
      "prompt",
      "max_output_tokens_per_second",
      "clip_mode",
      "crop",
      "restricted_zone",
      "trigger_program",
      "local_audio",
      "record",
    ].map((field) => [field, null])),
    {},
  );
  const crop = { x: 0, y: 0, width: 0.5, height: 0.5 };
  accepts({}, { crop, tokensPerSecond: 0 }, { crop, tokensPerSecond: 0 });
  accepts({}, { zone: DOCK_ZONE, crop: DOCK_ZONE.region }, { crop, zone: DOCK_ZONE });
});

Deno.test("every field arrives", () => {
  accepts({ prompt: "Is the dock empty?" }, { prompt: "Is the dock empty?" });
  accepts({ prompt: " ünï 😀\n" }, { prompt: " ünï 😀\n" });
  accepts({ prompt: " \n" }, {});
  accepts({ max_output_tokens_per_second: 7 }, { tokensPerSecond: 7 });
  accepts({ token_cap: 0 }, { tokensPerSecond: 0 });
  accepts({ "token-cap": 2 ** 32 - 1 }, { tokensPerSecond: 2 ** 32 - 1 });
  accepts({ token_cap: 5, max_output_tokens_per_second: null }, { tokensPerSecond: 5 });
  accepts({ clip_mode: {} }, { clip: { targetFps: 6, clipSeconds: 0.5, delaySeconds: 0.5 } });
  accepts(
    { clip_mode: { target_fps: 30, clip_length_seconds: 0.1, delay_seconds: 0 } },
    { clip: { targetFps: 30, clipSeconds: 0.1, delaySeconds: 0 } },
  );
  accepts(
    { clip_mode: { target_fps: 1, clip_length_seconds: 60, delay_seconds: 60 } },
    { clip: { targetFps: 1, clipSeconds: 60, delaySeconds: 60 } },
  );
  const crop = { x: 0.25, y: 0.25, width: 0.75, height: 0.5 };
  accepts({ crop }, { crop }, { crop: DOCK_ZONE.region });
  accepts({ crop: { ...crop, unit: "fraction" } }, { crop });
  accepts({ restricted_zone: DOCK_ZONE }, { zone: DOCK_ZONE, crop: DOCK_ZONE.region }, { crop });
  accepts({ restricted_zone: DOCK_ZONE, crop: DOCK_ZONE.region }, {
    zone: DOCK_ZONE,
    crop: DOCK_ZONE.region,
  });
  accepts({ trigger_program: PROGRAM, crop }, { trigger: PROGRAM, crop });
  accepts({ local_audio: {} }, {
    localAudio: { profile: "general", engine: "auto", minConfidence: 0.35, maxEvents: 32 },
  });
  accepts(
    {
      local_audio: {
        profile: "gameplay",
        speech_engine: "lfm2_5_audio",
        min_confidence: 0,
        max_events: 64,
        voice_feedback: true,
      },
      clip_mode: { target_fps: 3, clip_length_seconds: 1 },
    },
    {
      localAudio: { profile: "gameplay", engine: "lfm2_5_audio", minConfidence: 0, maxEvents: 64 },
      clip: { targetFps: 3, clipSeconds: 1, delaySeconds: 0.5 },
    },
  );
});

Deno.test("a policy of the session takes the place of the server's", () => {
  const other = { ...DOCK_ZONE, policy_id: "gate", region: { x: 0, y: 0, width: 1, height: 1 } };
  accepts({ restricted_zone: other }, { zone: other, crop: other.region }, { zone: DOCK_ZONE });
});

Deno.test("what is no unpadded base64url of a JSON object is refused before the offer is read", () => {
  refusesSyntax("", /base64url without padding/);
  refusesSyntax("e30=", /base64url without padding/);
  refusesSyntax("e3 0", /base64url without padding/);
  refusesSyntax("e30, e30", /base64url without padding/);
  refusesSyntax("Pz8/", /base64url without padding/);
  refusesSyntax("Pj4+", /base64url without padding/);
  refusesSyntax("e30é", /base64url without padding/);
  refusesSyntax("e30e3", /base64url without padding/);
  refusesSyntax("e31", /unused bits/);
  refusesSyntax("_w", /UTF-8/);
  refusesSyntax(encoded("\ufeff{}"), /must be JSON/);
  refusesSyntax(encoded("{"), /must be JSON/);
  refusesSyntax(encoded(""), /base64url/);
  refusesSyntax(encoded("{} {}"), /must be JSON/);
  for (const value of ["null", "[]", "1", '"text"', "true"]) refusesSyntax(encoded(value), /a JSON object/);
  assert.deepEqual(parseAttach("e30"), {});
});

Deno.test("8192 bytes of header are read and one more is not", () => {
  const ofLength = (length: number) => encoded({ prompt: "x".repeat(length * 3 / 4 - 13) });
  assert.equal(ofLength(8_192).length, 8_192);
  assert.equal(readAttachConfig(ofLength(8_192), CONTEXT).prompt!.length, 6_131);
  refusesSyntax("e".repeat(8_193), /at most 8192 bytes: got 8193/);
});

Deno.test("fields that are unknown or of the wrong type are refused by name before the offer is read", () => {
  const check = (body: unknown, message: RegExp) => refusesSyntax(encoded(body), message);
  check({ promt: "x" }, /"promt" is not a field/);
  check({ clip_mode: { fps: 3 } }, /"clip_mode\.fps" is not a field/);
  check({ local_audio: { window_ms: 4_000 } }, /"local_audio\.window_ms" is not a field/);
  check({ restricted_zone: { ...DOCK_ZONE, note: "x" } }, /"restricted_zone\.note" is not a field/);
  check({ trigger_program: { ...PROGRAM, note: "x" } }, /"trigger_program\.note" is not a field/);
  check({ prompt: 1 }, /prompt: /);
  check({ token_cap: -1 }, /token_cap: /);
  check({ token_cap: 1.5 }, /token_cap: /);
  check({ token_cap: 2 ** 32 }, /token_cap: /);
  check({ "token-cap": "7" }, /token-cap: /);
  check({ clip_mode: 3 }, /clip_mode: /);
  check({ clip_mode: { target_fps: "6" } }, /clip_mode\.target_fps: /);
  check({ crop: [0, 0, 1, 1] }, /crop/);
  check({ crop: { x: 0, y: 0, width: 1 } }, /crop\.height: /);
  check({ restricted_zone: { ...DOCK_ZONE, policy_version: -1 } }, /restricted_zone\.policy_version: /);
  check(
    { restricted_zone: { ...DOCK_ZONE, enter_after_frames: 1.5 } },
    /restricted_zone\.enter_after_frames: /,
  );
  check({ trigger_program: "trigger t version 1" }, /trigger_program: /);
  check({ local_audio: true }, /local_audio: /);
  check({ local_audio: { profile: "music" } }, /local_audio\.profile: /);
  check({ local_audio: { speech_engine: "sense_voice" } }, /local_audio\.speech_engine: /);
});

Deno.test("no refusal repeats the prompt", () => {
  const secret = "open sesame";
  for (const header of [encoded(`{"prompt":"${secret}"`), encoded({ prompt: secret, other: 1 })]) {
    assert.throws(() => parseAttach(header), (error: Error) => !error.message.includes(secret));
  }
});

Deno.test("values outside their range are refused after the offer was read, all of them at once", () => {
  refuses(
    { token_cap: 1, max_output_tokens_per_second: 1 },
    /token_cap must not stand beside max_output_tok/,
  );
  refuses({ token_cap: 1, "token-cap": 1 }, /token-cap must not stand beside token_cap/);
  const clip = (clip_mode: object, message: RegExp) => refuses({ clip_mode }, message);
  clip({ target_fps: 0.5, clip_length_seconds: 60 }, /clip_mode\.target_fps must be from 1 to 30: got 0\.5$/);
  clip({ target_fps: 31 }, /clip_mode\.target_fps/);
  clip(
    { clip_length_seconds: 0.09, target_fps: 30 },
    /clip_mode\.clip_length_seconds must be from 0\.1 to 60/,
  );
  clip({ clip_length_seconds: 60.5 }, /clip_mode\.clip_length_seconds/);
  clip({ delay_seconds: -0.1 }, /clip_mode\.delay_seconds must be from 0 to 60/);
  clip({ delay_seconds: 61 }, /clip_mode\.delay_seconds/);
  clip({ target_fps: 5.9 }, /clip_mode must give at least 3 frames.*got 2/);
  clip({ clip_length_seconds: 0.4 }, /clip_mode must give at least 3 frames.*got 2/);
  refuses({ crop: { x: 0, y: 0, width: 0, height: 1 } }, /crop width and height must be above 0/);
  refuses({ crop: { x: 0.5, y: 0, width: 0.6, height: 1 } }, /crop x \+ width must not pass 1/);
  refuses({ crop: { x: -0.1, y: 0, width: 0.6, height: 1 } }, /crop x and y must lie/);
  const zone = (change: object, message: RegExp) =>
    refuses({ restricted_zone: { ...DOCK_ZONE, ...change } }, message);
  zone({ policy_version: 0 }, /restricted_zone\.policy_version must be at least 1/);
  zone({ policy_id: "" }, /restricted_zone\.policy_id must have 1 to 128 bytes/);
  zone({ device_id: "x".repeat(129) }, /restricted_zone\.device_id/);
  zone({ device_id: "cam\n1" }, /restricted_zone\.device_id must not have control characters/);
  zone({ exit_motion_score: 0.6 }, /restricted_zone\.enter_motion_score must be above exit/);
  zone({ enter_motion_score: 1.1 }, /restricted_zone\.enter_motion_score must be from 0 to 1/);
  zone({ enter_after_frames: 0 }, /restricted_zone\.enter_after_frames must be from 1 to 300/);
  zone({ exit_after_frames: 301 }, /restricted_zone\.exit_after_frames/);
  zone({ region: { x: 0.9, y: 0, width: 0.2, height: 1 } }, /restricted_zone\.region/);
  refuses({ local_audio: { min_confidence: 1.1 } }, /local_audio\.min_confidence must be from 0 to 1/);
  refuses({ local_audio: { max_events: 0 } }, /local_audio\.max_events must be from 1 to 64/);
  refuses({ local_audio: { max_events: 65 } }, /local_audio\.max_events/);
  refuses(
    { clip_mode: { delay_seconds: 99 }, local_audio: { max_events: 0 } },
    /clip_mode\.delay_seconds .*; local_audio\.max_events /,
  );
});

Deno.test("a trigger program must be valid, and be one that a live session can run", () => {
  const check = (trigger_program: unknown, message: RegExp, context: Partial<AttachContext> = {}) =>
    refuses({ trigger_program }, message, context);
  const when = "when motion_score > 0.5";
  check({ ...PROGRAM, version: 0 }, /trigger_program version must be at least 1/);
  check({ ...PROGRAM, instructions: [] }, /trigger_program a program has 1 to 64 instructions/);
  check({ ...PROGRAM, instructions: PROGRAM.instructions.slice(1) }, /trigger_program instruction \d/);
  for (
    const signal of ["model_uncertainty", "object_count:person@bay", "audio_event:siren", "dwell_ms:a@b"]
  ) {
    check(
      program(`when ${signal} > 1`, "emit e", "capture keyframe"),
      /trigger_program instruction 0 \(load\): a live session has only motion_score, novelty_score, confidence/,
    );
  }
  check(program(when, "emit e"), /exactly one keyframe: got 0/);
  check(program(when, "emit e", "capture keyframe", "capture keyframe"), /exactly one keyframe: got 2/);
  check(program(when, "emit e", "capture clip 100 100"), /captures keyframes only/);
  const local = program(when, "emit e", "capture keyframe", "notify local_output");
  check(local, /local_output needs SERVICE_TRIGGER_LOCAL_OUTPUT_SOCKET/);
  accepts({ trigger_program: local }, { trigger: local }, { hasLocalOutput: true });
  const all = program(when, "and novelty_score >= 0.1", "and confidence < 1", "emit e", "capture keyframe");
  accepts({ trigger_program: all }, { trigger: all });
});

Deno.test("zones, triggers and clips exclude each other, and a crop must be the zone's own", () => {
  const clip_mode = {};
  refuses({ clip_mode, restricted_zone: DOCK_ZONE }, /clip_mode cannot run with a restricted zone$/);
  refuses({ clip_mode, trigger_program: PROGRAM }, /clip_mode cannot run with trigger_program/);
  refuses(
    { restricted_zone: DOCK_ZONE, trigger_program: PROGRAM },
    /trigger_program cannot run with a restricted/,
  );
  refuses({ clip_mode }, /clip_mode cannot run with .* the server has one/, { zone: DOCK_ZONE });
  refuses({ trigger_program: PROGRAM }, /trigger_program cannot run with .* the server has one/, {
    zone: DOCK_ZONE,
  });
  const crop = { ...DOCK_ZONE.region, x: 0.1000001 };
  refuses({ crop, restricted_zone: DOCK_ZONE }, /crop must equal the region of the restricted zone$/);
  refuses({ crop }, /crop must equal .* the server has one/, { zone: DOCK_ZONE });
  accepts({ crop: DOCK_ZONE.region }, { zone: DOCK_ZONE, crop: DOCK_ZONE.region }, { zone: DOCK_ZONE });
});

Deno.test("evidence clips: what is recorded, and around which causes", () => {
  const record = { preRollMs: 5_000, postRollMs: 5_000, on: ["zone", "trigger", "scene_cut"] } as const;
  accepts({ record: {} }, { record });
  accepts({ record: { pre_roll_ms: 0, post_roll_ms: 60_000, on: ["keyframe"] } }, {
    record: { preRollMs: 0, postRollMs: 60_000, on: ["keyframe"] },
  });
  accepts(
    { record: { on: ["zone"] } },
    { record: { ...record, on: ["zone"] }, zone: DOCK_ZONE, crop: DOCK_ZONE.region },
    { zone: DOCK_ZONE },
  );
  refuses({ record: { pre_roll_ms: -1 } }, /record\.pre_roll_ms must be from 0 to 30000/);
  refuses({ record: { post_roll_ms: 60_001 } }, /record\.post_roll_ms must be from 0 to 60000/);
  refuses({ record: { on: ["zone"] } }, /record\.on cannot have "zone" without a restricted zone/);
  refuses({ record: { on: ["trigger"] } }, /record\.on cannot have "trigger" without trigger_program/);
  refuses({ record: {}, clip_mode: {} }, /record cannot run with clip_mode/);
  refusesSyntax(encoded({ record: { on: [] } }), /record/);
  refusesSyntax(encoded({ record: { on: ["noise"] } }), /record/);
  refusesSyntax(encoded({ record: { seconds: 5 } }), /"record\.seconds" is not a field/);
});

Deno.test("what is explained by a second event is chosen, within its range, and not beside clips", () => {
  const all = ["zone", "trigger", "scene_cut"] as const;
  accepts({ enrich: {} }, { enrich: { on: all, deadlineMs: 30_000 } });
  accepts(
    { enrich: { on: ["scene_cut", "zone"], deadline_ms: 1_000 } },
    { enrich: { on: ["zone", "scene_cut"], deadlineMs: 1_000 }, zone: DOCK_ZONE, crop: DOCK_ZONE.region },
    { zone: DOCK_ZONE },
  );
  refuses({ enrich: { on: ["zone"] } }, /enrich\.on cannot have "zone" without a restricted zone/);
  refuses({ enrich: { on: ["trigger"] } }, /enrich\.on cannot have "trigger" without trigger_program/);
  refuses({ enrich: { deadline_ms: 999 } }, /enrich\.deadline_ms must be from 1000 to 120000: got 999/);
  refuses({ enrich: { on: [] } }, /enrich\.on must name at least one of zone, trigger, scene_cut/);
  refuses({ enrich: {}, clip_mode: {} }, /enrich cannot run with clip_mode/);
});
