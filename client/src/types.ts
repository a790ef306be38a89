/** What the service takes and gives, as its routes say it. */

import type { components } from "./api_types.ts";

/** The schemas that the service publishes, by name. */
export type Schemas = components["schemas"];

/** `completed`, `failed`, `cancelled` and `expired` are terminal. */
export type RunStatus = "pending" | "processing" | "completed" | "failed" | "cancelled" | "expired";
export type Mode = "balanced" | "detailed" | "efficiency" | "custom";
export type JsonObject = { [name: string]: unknown };

export interface CreateRunRequest {
  mode?: Mode | null;
  model?: string | null;
}

export interface CreatedRun {
  run_id: string;
  request_id: string;
  status: RunStatus;
  mode: Mode;
  model: string | null;
}

export interface Run {
  run_id: string;
  status: RunStatus;
  mode: string;
  model: string;
  source_uri: string;
  created_at: string;
  updated_at: string;
}

export interface IngestRequest {
  source_uri: string;
  sampling_policy?: string | null;
  fixed_fps?: number | null;
  sample_fps?: number | null;
  max_frames?: number | null;
  stream_id?: string | null;
}

export interface IngestResponse {
  request_id: string;
  run_id: string;
  status: RunStatus;
  decoded_frames: number;
  truncated: boolean;
  source_uri: string;
  sampling_policy: string;
  source_fps: number | null;
  sample_fps: number;
}

export interface AnalyzeRequest {
  model: string;
  mode?: Mode | null;
  stream_id?: string | null;
  trace_id?: string | null;
  frames?: FrameSignals[] | null;
  sampling_policy?: string | null;
  fixed_fps?: number | null;
  window_size?: number | null;
  segment_ms?: number | null;
  detectors?: string[] | null;
}

export interface AnalyzeResponse {
  request_id: string;
  run_id: string;
  generated: number;
  metadata: FrameMetadata[];
  markers: Marker[];
}

export interface ReasonRequest {
  source_uri: string;
  model: string;
  [name: string]: unknown;
}

export interface ReasonResponse {
  request_id: string;
  run_id: string;
  generated: number;
  markers_emitted: number;
  decoded_frames: number;
  truncated: boolean;
  sample_fps: number;
  lag_p95_ms: number;
  lag_p99_ms: number;
  tokens: Tokens & { inference_latency_ms: number; chunks_analyzed: number };
  frame_metadata_included: boolean;
  metadata: FrameMetadata[];
  markers: Marker[];
}

export type Marker = Schemas["marker_emitted"];
/** A row of a frame. */
export type FrameMetadata = Schemas["frame_metadata"];
/** What was measured of a frame. */
export type FrameSignals = Schemas["frames_decoded"]["signals"][number];

export interface TimelineEvent {
  seq: number;
  pts_ms: number;
  kind: string;
  payload: JsonObject;
}

export interface Interaction {
  chunk_index: number;
  pts_start_ms: number;
  pts_end_ms: number;
  [name: string]: unknown;
}

export interface QueryRequest {
  run_id: string;
  kind?: string | null;
  from_seq?: number | null;
}

export interface QueryResponse {
  request_id: string;
  query: { run_id: string; kind: string | null; from_seq: number | null };
  matches: TimelineEvent[];
}

export interface SearchHit {
  seq: number;
  run_id: string;
  pts_ms: number;
  kind: string;
  description: string;
  index_name: string | null;
}

export interface SearchResponse {
  request_id: string;
  scanned: number;
  total_hits: number;
  hits: SearchHit[];
}

export interface FeedbackRequest {
  rating: number;
  category: string;
  feedback?: string | null;
}

export interface FeedbackResponse {
  request_id: string;
  run_id: string;
  feedback_id: number;
  status: string;
  storage: string;
  mirrored_to_database: boolean;
}

export interface Feedback {
  id: number;
  run_id: string;
  session_id: string;
  rating: number;
  category: string;
  feedback: string;
  timestamp_micros: number;
  storage: string;
}

export interface UploadResponse {
  /** A `source_uri`. */
  file_path: string;
}

export interface WebhookRequest {
  url: string;
  event_kinds?: string[] | null;
}

export interface CreatedWebhook {
  request_id: string;
  run_id: string;
  webhook_id: string;
  url: string;
  event_kinds: string[];
  registered_seq: number;
  signing_secret: string;
}

export interface Webhook {
  webhook_id: string;
  url: string;
  event_kinds: string[];
  registered_seq: number;
  last_terminal_seq: number;
  delivered: number;
  dead_letters: number;
  last_error: string | null;
  state: string;
  recent_dead_letters: { seq: number; error: string; attempts: number[] }[];
  redelivery: { from_seq: number; to_seq: number } | null;
}

export interface RedeliverRequest {
  from_seq?: number | null;
  to_seq?: number | null;
}

export interface RedeliverResponse {
  request_id: string;
  run_id: string;
  webhook_id: string;
  from_seq: number;
  to_seq: number;
  scheduled: number;
}

export interface Tokens {
  prompt_tokens: number;
  completion_tokens: number;
  thinking_tokens: number;
  total_tokens: number;
}

export interface InferRequest {
  prompt: string;
  model?: string | null;
  run_id?: string | null;
  max_tokens?: number | null;
  temperature?: number | null;
  timeout_ms?: number | null;
  allow_fallback?: boolean | null;
  primary_provider?: string | null;
  output_schema?: JsonObject | null;
}

export interface InferResponse {
  request_id: string;
  run_id: string | null;
  provider: string;
  model: string;
  fallback_used: boolean;
  output_text: string;
  finish_reason: string | null;
  inference_latency_ms: number;
  tokens: Tokens;
}

export interface InferBatchResponse {
  request_id: string;
  processed: number;
  succeeded: number;
  failed: number;
  results: {
    index: number;
    ok: boolean;
    result: InferResponse | null;
    error: { code: string; message: string } | null;
  }[];
}

export interface Model {
  id: string;
  tier: string;
  availability: string;
  providers_available: string[];
  fallback_candidates: string[];
}

export type TriggerProgram = Schemas["trigger_program"];
export type TriggerSample = JsonObject;

export interface CompileTriggerResponse {
  request_id: string;
  program: TriggerProgram;
  instruction_count: number;
  state_slots: number;
}

export interface ValidateTriggerResponse {
  request_id: string;
  valid: boolean;
  isa_version: number;
  program_id: string;
  program_version: number;
  instruction_count: number;
  state_slots: number;
}

export interface EvaluateTriggerResponse {
  request_id: string;
  program_id: string;
  program_version: number;
  results: { pts_ms: number; fired: boolean; missing_signal: boolean; actions: JsonObject[] }[];
}

export interface PolicyRequest {
  parent_revision?: number | null;
  prompt?: string | null;
  output_schema?: JsonObject | null;
  parameters?: JsonObject | null;
}

export interface Policy {
  revision: number;
  parent_revision: number | null;
  status: string;
  prompt: string | null;
  output_schema: JsonObject | null;
  parameters: JsonObject;
  created_at_ms: number;
  updated_at_ms: number;
  effective_generation: number | null;
  effective_on_current_generation: boolean;
  deferred_fields: string[];
}

export interface PolicyResponse {
  request_id: string;
  run_id: string;
  policy: Policy;
}

export interface PoliciesResponse {
  request_id: string;
  run_id: string;
  policies: Policy[];
}

export interface ActivatePolicyRequest {
  stage: "shadow" | "canary" | "active";
  expected_generation?: number | null;
}

export interface RollbackPolicyRequest {
  expected_generation?: number | null;
}

export interface ApplicationResponse extends PolicyResponse {
  application: JsonObject;
}

export interface ReplayPolicyRequest {
  from_seq?: number | null;
  to_seq?: number | null;
  source?: JsonObject | null;
}

export interface ReplayPolicyResponse {
  request_id: string;
  run_id: string;
  evaluation_id: number;
  evaluation: JsonObject;
}

/** How a live session is watched. */
export type AttachConfig = JsonObject;

export interface LiveSourceRequest extends AttachConfig {
  source_uri: string;
}

export interface LiveSource {
  request_id: string;
  run_id: string;
  session_id: string;
  generation: number;
  source_uri: string;
  status: RunStatus;
}

export interface ClosedLiveSource {
  request_id: string;
  run_id: string;
  session_id: string;
  status: RunStatus;
}

export interface Prompt {
  prompt: string | null;
  output_schema?: JsonObject | null;
}
