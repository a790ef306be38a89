/** TABLE of the named schemas of the API description. Types that are generated from it have these names. */

import type { ZodType } from "zod";
import { EVENTS } from "../../model/events/event_table.ts";
import { restrictedZone } from "../../model/events/policy_payloads.ts";
import { open } from "../../model/events/payload_shapes.ts";
import { ATTACH } from "../../model/live/attach.ts";
import { cloudEventEnvelope } from "../../model/published/published.ts";
import { frameMetadata } from "../../model/published/frame_metadata.ts";
import { triggerProgram } from "../../model/triggers/program.ts";
import { triggerSample } from "../../model/triggers/samples.ts";
import { shapesByName } from "../../model/schemas/named_shapes.ts";
import * as analysis from "../../model/api/analysis.ts";
import * as infer from "../../model/api/infer.ts";
import * as live from "../../model/api/live.ts";
import { ARM_BODY } from "../../model/api/sources.ts";
import * as policies from "../../model/api/policies.ts";
import * as triggers from "../../model/api/triggers.ts";
import * as webhooks from "../../model/api/webhooks.ts";
import { FEEDBACK_BODY } from "../../model/api/feedback.ts";
import { QUERY_BODY } from "../../model/api/reads.ts";
import { REASON_BODY } from "../../model/api/reason.ts";
import { CREATE_RUN_BODY } from "../../model/api/runs.ts";
import { SEARCH_BODY } from "../../model/api/search.ts";
import * as analyzed from "../../model/api/answers/analysis.ts";
import * as answeredLive from "../../model/api/answers/live.ts";
import * as models from "../../model/api/answers/models.ts";
import * as answeredPolicies from "../../model/api/answers/policies.ts";
import * as reads from "../../model/api/answers/reads.ts";
import * as runs from "../../model/api/answers/runs.ts";
import * as system from "../../model/api/answers/system.ts";
import * as answeredWebhooks from "../../model/api/answers/webhooks.ts";

const REQUESTS: Readonly<Record<string, ZodType>> = {
  CreateRunRequest: CREATE_RUN_BODY,
  IngestRequest: analysis.INGEST_BODY,
  AnalyzeRequest: analysis.ANALYZE_BODY,
  ReasonRequest: REASON_BODY,
  QueryRequest: QUERY_BODY,
  SearchRequest: SEARCH_BODY,
  FeedbackRequest: FEEDBACK_BODY,
  WebhookRequest: webhooks.REGISTER_WEBHOOK_BODY,
  RedeliverRequest: webhooks.REDELIVER_BODY,
  InferRequest: infer.INFER_BODY,
  InferBatchRequest: infer.INFER_BATCH_BODY,
  CompileTriggerRequest: triggers.COMPILE_BODY,
  EvaluateTriggerRequest: triggers.EVALUATE_BODY,
  EvaluateTriggerOnRunRequest: triggers.EVALUATE_ON_RUN_BODY,
  TriggerSample: triggerSample,
  PolicyRequest: policies.CREATE_POLICY_BODY,
  ActivatePolicyRequest: policies.ACTIVATE_POLICY_BODY,
  RollbackPolicyRequest: policies.ROLLBACK_POLICY_BODY,
  ReplayPolicyRequest: policies.REPLAY_POLICY_BODY,
  LiveSourceRequest: live.LIVE_SOURCE_BODY,
  PromptRequest: live.PROMPT_BODY,
  ArmRequest: ARM_BODY,
  AttachConfig: ATTACH,
};

const ANSWERS: Readonly<Record<string, ZodType>> = {
  CreatedRun: runs.CREATED_RUN,
  Run: runs.RUN,
  RunList: runs.RUNS,
  RunPage: runs.RUN_PAGE,
  DeletedRun: runs.DELETED_RUN,
  StoppedRun: runs.STOPPED_RUN,
  KeptAlive: runs.KEPT_ALIVE,
  RunState: runs.RUN_STATE,
  WorkProgress: runs.WORK_PROGRESS,
  IngestResponse: analyzed.INGESTED,
  AnalyzeResponse: analyzed.ANALYZED,
  ReasonResponse: analyzed.REASONED,
  Marker: analyzed.MARKER,
  StoredMarker: analyzed.STORED_MARKER,
  FrameMetadata: frameMetadata,
  TimelineEvent: reads.TIMELINE_EVENT,
  EventsResponse: reads.EVENTS_READ,
  MarkersResponse: reads.MARKERS_READ,
  SignalsResponse: reads.SIGNALS_READ,
  QueryResponse: reads.QUERIED,
  SearchHit: reads.SEARCH_HIT,
  SearchResponse: reads.FOUND,
  Interaction: reads.INTERACTION,
  InteractionsResponse: reads.INTERACTIONS,
  FeedbackResponse: system.FEEDBACK_SUBMITTED,
  Feedback: system.FEEDBACK,
  FeedbackList: system.FEEDBACK_LIST,
  UploadResponse: system.UPLOADED,
  DeletedFile: system.DELETED_FILE,
  Health: system.HEALTH,
  SystemSetting: system.SYSTEM_SETTING,
  SystemBackend: system.SYSTEM_BACKEND,
  System: system.SYSTEM,
  SystemHealth: system.SYSTEM_HEALTH,
  RetentionReport: system.RETENTION_REPORT,
  ErrorEnvelope: system.ERROR_ENVELOPE,
  CreatedWebhook: answeredWebhooks.CREATED_WEBHOOK,
  Webhook: answeredWebhooks.WEBHOOK,
  WebhookList: answeredWebhooks.WEBHOOKS,
  WebhookOfRun: answeredWebhooks.WEBHOOK_OF_RUN,
  AllWebhooks: answeredWebhooks.ALL_WEBHOOKS,
  DeletedWebhook: answeredWebhooks.DELETED_WEBHOOK,
  Delivery: answeredWebhooks.DELIVERY,
  DeliveryList: answeredWebhooks.DELIVERIES,
  SentDelivery: answeredWebhooks.SENT_DELIVERY,
  RedeliverResponse: answeredWebhooks.REDELIVERY,
  InferResponse: models.INFERRED,
  InferBatchItem: models.BATCH_ITEM,
  InferBatchResponse: models.INFERRED_BATCH,
  Model: models.MODEL,
  ModelList: models.MODELS,
  TriggerProgram: triggerProgram,
  CompileTriggerResponse: models.COMPILED_TRIGGER,
  ValidateTriggerResponse: models.VALID_TRIGGER,
  EvaluateTriggerResponse: models.EVALUATED_TRIGGER,
  EvaluateTriggerOnRunResponse: models.EVALUATED_ON_RUN,
  Policy: answeredPolicies.POLICY,
  RestrictedZone: restrictedZone,
  PolicyResponse: answeredPolicies.POLICY_READ,
  PolicyList: answeredPolicies.POLICIES,
  ApplicationResponse: answeredPolicies.APPLIED_POLICY,
  ReplayPolicyResponse: answeredPolicies.REPLAYED_POLICY,
  LiveSource: answeredLive.LIVE_SOURCE,
  ClosedLiveSource: answeredLive.CLOSED_LIVE_SOURCE,
  LiveSession: answeredLive.LIVE_SESSION,
  LiveSessionList: answeredLive.LIVE_SESSIONS,
  WatchedSession: answeredLive.WATCHED_SESSION,
  ArmedSource: answeredLive.ARMED_SOURCE,
  NamedSource: answeredLive.NAMED_SOURCE,
  NamedSourceList: answeredLive.NAMED_SOURCES,
  RecordedSegment: answeredLive.RECORDED_SEGMENT,
  RecordedSegmentList: answeredLive.RECORDED_SEGMENTS,
  Prompt: answeredLive.UPDATED_PROMPT,
  CloudEvent: cloudEventEnvelope,
};

/** The shape of every name. Several kinds of events may have one shape, so `EventPayloads` names them by kind. */
export function namedShapes(): Record<string, ZodType> {
  const payloads = Object.fromEntries(Object.entries(EVENTS).map(([kind, { payload }]) => [kind, payload]));
  return {
    ...shapesByName(),
    ...REQUESTS,
    ...ANSWERS,
    EventPayloads: open(payloads).describe("The payload of each kind of event, by kind"),
  };
}
