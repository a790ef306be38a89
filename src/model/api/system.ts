/** Answers about the service itself and of uploads, and the error envelope: shapes. */

import * as z from "zod";
import { DECODE_BACKENDS } from "../../base/program_paths.ts";
import { LIMITS } from "../../contract/limits.ts";
import { REFUSALS } from "../../contract/refusal.ts";
import { count, open, positive, text } from "../events/payload_shapes.ts";
import { MEDIA_REMOVAL_REASONS } from "../events/run_payloads.ts";
import { MEDIA_KINDS } from "../files/media_kind.ts";
import { PROVIDER_KINDS } from "../infer/inference.ts";
import { REMOVAL_REASONS, STAY_REASONS } from "../runs/removal.ts";
import { namedEnum } from "../schemas/named_shapes.ts";
import { answer, requestIdField, runIdField } from "./answer_fields.ts";

export const HEALTH = answer("Health", () => ({ status: z.literal("ok") }));

export const SYSTEM_SETTING = answer("SystemSetting", () => ({
  name: text.describe("The variable, see docs/reference/settings.md"),
  meaning: text,
  default: z.string().nullable().describe("What holds where the variable is not set; null for nothing"),
  no_effect: z.string().nullable().describe(
    "What the service does instead, for a setting that is checked and changes nothing yet",
  ),
  is_set: z.boolean().describe("Whether it differs from its default"),
  is_secret: z.boolean(),
  value: z.string().nullable().describe(
    "Null for a secret, for one that is unset, and where the service has several principals",
  ),
}));

export const SYSTEM_BACKEND = answer("SystemBackend", () => ({
  name: text.nullable().describe("Null where the service has several principals, like `model`"),
  provider: namedEnum("ProviderKind", PROVIDER_KINDS),
  model: text.nullable().describe("The one model that it serves; null for every model"),
  circuit: z.enum(["closed", "open", "half_open"]).describe(
    "`closed` while it works, `open` while it is skipped, `half_open` when the next call decides",
  ),
  probe_at_ms: count.nullable().describe(
    "When an open circuit lets a call through again, epoch milliseconds",
  ),
  is_slow: z.boolean().optional().describe("Whether too many of the last calls of its provider took long"),
  fault: text.nullable().optional().describe(
    "Why it could not be asked for its models when it was asked last; null where it could, like `models`",
  ),
  models: z.array(text).nullable().optional().describe(
    "What its server has, as it said last; null where it does not say, and where the service has several principals",
  ),
}));

export const SYSTEM = answer("System", () => ({
  request_id: requestIdField,
  version: text,
  deno: text.describe("Version of the runtime"),
  ffmpeg: open({
    version: z.string().nullable(),
    codecs: z.array(text).describe("Of the usual ones, those that it decodes on the processor"),
  }).nullable().describe("The server's ffmpeg; null where it does not answer"),
  decoder_faults: z.array(open({
    cannot: text.describe("What ffmpeg or ffprobe was tried for, such as `make a clip of a film`"),
    reason: text.describe("What the program said last"),
  })).optional().describe(
    "What the server's ffmpeg cannot do; requests that need it get 503 `decoder_unusable`",
  ),
  decode_backend: namedEnum("DecodeBackend", DECODE_BACKENDS).nullable().describe(
    "What decodes recorded video that suits it; null while that is being found",
  ),
  started_at_ms: count.describe("Epoch milliseconds"),
  disk: open({
    free_bytes: count.describe("What the file system of the data directory has for more"),
    total_bytes: count,
    used: open({
      timeline_bytes: count.describe("Log of events"),
      keyframe_bytes: count.describe("Stored pictures"),
      media_bytes: count.describe("Stored clips and sound"),
      recording_bytes: count.describe("Recordings of named sources"),
      upload_bytes: count,
      other_bytes: count.describe("Search index, delivery log, kept answers and temporary files"),
      counted_at_ms: count.describe("Epoch milliseconds"),
      is_complete: z.boolean().describe("False where there are so many files that not all were counted"),
    }).nullable().describe("Of all principals together; null until the first count has ended"),
  }).nullable().describe("Null where the system does not tell"),
  backends: z.array(SYSTEM_BACKEND()).describe("Model backends, in the order of the configuration"),
  live_model: open({
    id: text.describe("What live sessions ask"),
    is_known: z.boolean().nullable().describe(
      "Whether its server has it; null where the server does not say",
    ),
  }).nullable().optional().describe("Null where no backend serves it"),
  mirror: open({
    state: z.enum(["connecting", "up", "down"]),
    since_ms: count.describe("Since when it is in this state, epoch milliseconds"),
    mirrored_seq: z.int().min(0).describe("Every event up to here is in the database, or was refused by it"),
    lag_ms: count.describe("How long the oldest event that is missing there has waited; 0 when none is"),
  }).nullable().describe("The mirror database; null where none is configured"),
  settings: z.array(SYSTEM_SETTING()),
}));

function reportedRuns(reason: z.ZodType) {
  return open({
    count,
    bytes: count.describe("What their removal gives back"),
    runs: z.array(open({
      run_id: runIdField,
      reason,
      ended_at_ms: count.describe("Of its last activity, epoch milliseconds"),
      bytes: count,
    })).max(LIMITS.retention.reportedRuns).describe("The oldest first"),
  });
}

export const RETENTION_REPORT = answer("RetentionReport", () => ({
  request_id: requestIdField,
  is_on: z.boolean().describe("Whether any limit is set"),
  last_pass_at_ms: count.nullable().describe("Epoch milliseconds; null before the first pass"),
  goes: reportedRuns(namedEnum("RemovalReason", REMOVAL_REASONS)).describe(
    "Your runs whose events the next pass removes",
  ),
  stays: reportedRuns(z.enum(STAY_REASONS)).describe("Your other runs"),
  media: open({
    count: count.describe("How many pictures, clips and sounds"),
    bytes: count.describe(
      "Their size; one that several runs name is counted for each, and stays for those on hold",
    ),
    runs: z.array(open({
      run_id: text,
      media: namedEnum("MediaKind", MEDIA_KINDS),
      reason: namedEnum("MediaRemovalReason", MEDIA_REMOVAL_REASONS),
      through_seq: count.describe("What events of the run up to this one name"),
      blobs: count,
      bytes: count,
    })).max(LIMITS.retention.reportedRuns),
  }).describe("What of your runs goes before the events that name it"),
}));

export const SYSTEM_HEALTH = answer("SystemHealth", () => ({
  request_id: requestIdField,
  result: z.enum(["faulted", "saturated", "healthy", "idle"]),
  reasons: z.array(open({
    code: z.enum([
      "sources_file_faulty",
      "camera_down",
      "decoder_unusable",
      "worker_fault",
      "detached_worker",
      "model_unknown",
      "inference_waiting",
      "capacity_full",
      "admission_rejected",
      "sessions_running",
      "no_session",
    ]),
    text: text.describe("For people; programs go by `code`"),
    at_ms: count.nullable().describe("When it happened, epoch milliseconds; null for what lasts"),
  })).min(1),
}));

export const UPLOADED = answer("UploadResponse", () => ({
  file_path: text.describe("A `source_uri`"),
  name: text.describe("The name that the file had; runs of it show it"),
}));

export const DELETED_FILE = answer(
  "DeletedFile",
  () => ({ request_id: requestIdField, filename: text, deleted: z.literal(true) }),
);

/** The body of every refusal. See docs/api.md#errors. */
export const ERROR_ENVELOPE = answer("ErrorEnvelope", () => ({
  error: open({
    code: z.enum([...new Set(Object.values(REFUSALS).map(({ code }) => code))]),
    message: text.describe("For people; it may change"),
    request_id: requestIdField,
    details: z.array(open({ field: z.string(), message: text })).describe(
      "The fields that break a rule; at most 64",
    ),
    first_seq: positive.optional().describe("With `cursor_expired`: the first event that is left of the run"),
  }),
}));
