/** What the service takes and gives, under the names of its OpenAPI description. */

import type { components } from "./api_types.ts";

/** The component schemas of the description, by name. */
export type Schemas = components["schemas"];

/** A JSON object of any content. */
export type JsonObject = { [name: string]: unknown };

/** `completed`, `failed`, `cancelled` and `expired` are terminal. */
export type RunState = Schemas["RunState"];
export type WorkProgress = Schemas["WorkProgress"];
export type RunStatus = Run["status"];
export type CreateRunRequest = Schemas["CreateRunRequest"];
/** A list of which there is more unless `next_cursor` is null. */
type Page<List> = List & { next_cursor: string | null };

export type RunPage = Schemas["RunPage"];
export type EventPage = Page<Schemas["EventsResponse"]>;
export type MarkerPage = Page<Schemas["MarkersResponse"]>;
export type FeedbackPage = Page<Schemas["FeedbackList"]>;
export type WebhookPage = Page<Schemas["WebhookList"]>;
export type WebhookOfRunPage = Page<Schemas["AllWebhooks"]>;

export type CreatedRun = Schemas["CreatedRun"];
export type Run = Schemas["Run"];
export type IngestRequest = Schemas["IngestRequest"];
export type IngestResponse = Schemas["IngestResponse"];
export type AnalyzeRequest = Schemas["AnalyzeRequest"];
export type AnalyzeResponse = Schemas["AnalyzeResponse"];
export type ReasonRequest = Schemas["ReasonRequest"];
export type ReasonResponse = Schemas["ReasonResponse"];

/** A marker as the lists have it. */
export type Marker = Schemas["StoredMarker"];
/** A row of a frame. */
export type FrameMetadata = Schemas["FrameMetadata"];
/** What was measured of a frame. */
export type FrameSignals = Schemas["EventPayloads"]["frames_decoded"]["signals"][number];
/** An event of any kind; `RunEvent` has the payloads of those that are known. */
export type TimelineEvent = Schemas["TimelineEvent"];
/** What a model said about a chunk, with whatever fields it chose. */
export type Interaction = Schemas["Interaction"] & JsonObject;
/** Signals in bins; all arrays are of one length. */
export type Signals = Schemas["SignalsResponse"];
export type QueryRequest = Schemas["QueryRequest"];
export type QueryResponse = Schemas["QueryResponse"];
export type SearchHit = Schemas["SearchHit"];
export type SearchResponse = Schemas["SearchResponse"];

export type FeedbackRequest = Schemas["FeedbackRequest"];
export type FeedbackResponse = Schemas["FeedbackResponse"];
export type Feedback = Schemas["Feedback"];
/** `file_path` is a `source_uri`. */
export type UploadResponse = Schemas["UploadResponse"];

export type WebhookRequest = Schemas["WebhookRequest"];
export type CreatedWebhook = Schemas["CreatedWebhook"];
export type Webhook = Schemas["Webhook"];
export type WebhookOfRun = Schemas["WebhookOfRun"];
/** What became of an event for a webhook. */
export type Delivery = Schemas["Delivery"];
export type SentDelivery = Schemas["SentDelivery"];
export type RedeliverRequest = Schemas["RedeliverRequest"];
export type RedeliverResponse = Schemas["RedeliverResponse"];

export type InferRequest = Schemas["InferRequest"];
export type InferResponse = Schemas["InferResponse"];
export type InferBatchResponse = Schemas["InferBatchResponse"];
export type Tokens = InferResponse["tokens"];
export type Model = Schemas["Model"];

export type TriggerProgram = Schemas["TriggerProgram"];
export type TriggerSample = Schemas["TriggerSample"];
export type CompileTriggerResponse = Schemas["CompileTriggerResponse"];
export type ValidateTriggerResponse = Schemas["ValidateTriggerResponse"];
export type EvaluateTriggerResponse = Schemas["EvaluateTriggerResponse"];
export type EvaluateTriggerOnRunRequest = Schemas["EvaluateTriggerOnRunRequest"];
export type EvaluateTriggerOnRunResponse = Schemas["EvaluateTriggerOnRunResponse"];

export type PolicyRequest = Schemas["PolicyRequest"];
export type Policy = Schemas["Policy"];
export type PolicyResponse = Schemas["PolicyResponse"];
export type PolicyList = Schemas["PolicyList"];
export type ActivatePolicyRequest = Schemas["ActivatePolicyRequest"];
export type RollbackPolicyRequest = Schemas["RollbackPolicyRequest"];
export type ApplicationResponse = Schemas["ApplicationResponse"];
export type ReplayPolicyRequest = Schemas["ReplayPolicyRequest"];
export type ReplayPolicyResponse = Schemas["ReplayPolicyResponse"];

/** How a live session is watched. */
export type AttachConfig = Schemas["AttachConfig"];
export type LiveSourceRequest = Schemas["LiveSourceRequest"];
export type LiveSource = Schemas["LiveSource"];
export type ClosedLiveSource = Schemas["ClosedLiveSource"];
/** An open live session. */
export type LiveSession = Schemas["LiveSession"];
export type ArmRequest = Schemas["ArmRequest"];
export type ArmedSource = Schemas["ArmedSource"];
export type NamedSource = Schemas["NamedSource"];
export type RecordedSegment = Schemas["RecordedSegment"];
export type RecordedSegmentList = Schemas["RecordedSegmentList"];
/** The same with its signals. */
export type WatchedSession = Schemas["WatchedSession"];
export type PromptRequest = Schemas["PromptRequest"];
export type Health = Schemas["Health"];
export type System = Schemas["System"];
export type SystemHealth = Schemas["SystemHealth"];
export type RetentionReport = Schemas["RetentionReport"];
export type SystemBackend = Schemas["SystemBackend"];
export type SystemSetting = Schemas["SystemSetting"];
