/** The client: one method for each thing that the service does. */

import { type Analysis, type AnalyzeOptions, analyzeSource } from "./analysis.ts";
import type { RunEvent } from "./events/event_types.ts";
import type { SubscribeOptions } from "./events/subscription.ts";
import { subscribedEvents, watchedEvents } from "./events/watch.ts";
import {
  type Call,
  type ClientOptions,
  Connection,
  type KeyedOptions,
  type RequestOptions,
} from "./http/connection.ts";
import { path, query } from "./http/paths.ts";
import { Deadline, pause } from "./http/waiting.ts";
import { batchResults, type InferResult, inferResult } from "./inference.ts";
import { type LiveVideo, openLiveVideo } from "./live_video.ts";
import type * as api from "./types.ts";
import { type FileStream, upload, type UploadProgress } from "./upload.ts";
import { publishMedia, type PublishOptions, type PublishSession } from "./whip/publish.ts";
import type { Media } from "./whip/rtc.ts";
import {
  type IceAnswer,
  type IceOptions,
  sendIce,
  sendOffer,
  sessionPath,
  type WhipAnswer,
} from "./whip/session_requests.ts";

/** Which markers are wanted; all unless given. */
export interface MarkerFilter {
  status?: string;
  event_type?: string;
  /** Markers that end at this frame or after it. */
  from_frame?: number;
  /** Markers that begin at this frame or before it. */
  to_frame?: number;
}

/** Which frames of a decode are wanted, and in how many bins; all frames in 512 unless given. */
export interface SignalsRange {
  /** Media times, milliseconds, both included. */
  from_ms?: number;
  to_ms?: number;
  /** 1 to 4096. */
  points?: number;
  /** The `seq` of a `frames_decoded` event; the latest unless given. */
  source_seq?: number;
}

/** Which page of a list: the first one of 100 entries unless given. */
export interface PageWish {
  /** 1 to 1000. */
  limit?: number;
  /** `next_cursor` of the page before. */
  cursor?: string;
}

/** A page of runs, the oldest first unless given. */
export interface RunPageWish extends PageWish {
  order?: "oldest" | "newest";
}

/** Which segments of a recording: those that have something of the range. */
export interface RecordingFilter extends PageWish {
  /** A time (RFC 3339), or epoch milliseconds. */
  from?: string | number;
  to?: string | number;
}

/** Which events are wanted; all unless given. */
export interface EventFilter {
  /** Only events whose payload has this `index_name`. */
  index?: string;
  /** Included. */
  from_seq?: number;
  /** A kind that is left out, such as `frames_decoded`, whose signals are most of a run. */
  without_kind?: string;
}

/** `json` is the answer as it was sent, with all digits of its integers. */
export type EventFormat = "json" | "csv" | "ndjson";
export type MarkerFormat = EventFormat | "vtt" | "edl";

/** Of a page, unless given. */
const PAGE_ENTRIES = 100;

const MEDIA_TYPES: Readonly<Record<MarkerFormat, string>> = {
  json: "application/json",
  csv: "text/csv",
  ndjson: "application/x-ndjson",
  vtt: "text/vtt",
  edl: "text/x-edl",
};

/**
 * One service and one caller. Every method takes an AbortSignal in its last argument. GET and DELETE are sent
 * again when they fail in passing, and so are the methods that take an `idempotencyKey`, with the same key.
 */
export class Client {
  readonly #connection: Connection;

  /** `baseUrl` is the address of the service without `/v1`; one slash at its end is removed. */
  constructor(baseUrl: string, options: ClientOptions = {}) {
    this.#connection = new Connection(baseUrl, options);
  }

  /** The address of the service. */
  get baseUrl(): string {
    return this.#connection.baseUrl;
  }

  // Runs.

  /** Uploads a file where `source` is one, creates a run, ingests and analyzes. */
  analyze(source: string | Blob | FileStream, options?: AnalyzeOptions): Promise<Analysis> {
    return analyzeSource(this, source, options);
  }

  createRun(request: api.CreateRunRequest = {}, options?: KeyedOptions): Promise<api.CreatedRun> {
    return this.#post("/v1/runs", request, options, { ...KEYED, has: "run_id" });
  }

  /** Oldest first, without deleted ones. */
  listRuns(options?: RequestOptions): Promise<api.Run[]> {
    return this.#get("/v1/runs", options, { has: "" });
  }

  /** A page of them. With `next_cursor` as `cursor` each page reads on, until that is null. */
  listRunsPage(page: RunPageWish = {}, options?: RequestOptions): Promise<api.RunPage> {
    return this.#page("/v1/runs", page, "runs", options);
  }

  getRun(runId: string, options?: RequestOptions): Promise<api.Run> {
    return this.#get(path`/v1/runs/${runId}`, options);
  }

  async deleteRun(runId: string, options?: RequestOptions): Promise<void> {
    await this.#delete(path`/v1/runs/${runId}`, options);
  }

  /** Cancels what is under way for the run, too. */
  async stopRun(runId: string, options?: RequestOptions): Promise<void> {
    await this.#post(path`/v1/runs/${runId}/stop`, undefined, options);
  }

  /** Refreshes the time after which the run expires. */
  async keepaliveRun(runId: string, options?: RequestOptions): Promise<void> {
    await this.#post(path`/v1/runs/${runId}/keepalive`, undefined, options);
  }

  /** Nothing of the run is deleted from then on, whether it has ended or not. */
  async holdRun(runId: string, options?: RequestOptions): Promise<void> {
    await this.#post(path`/v1/runs/${runId}/hold`, undefined, options);
  }

  /** Ends the hold. */
  async releaseRun(runId: string, options?: RequestOptions): Promise<void> {
    await this.#delete(path`/v1/runs/${runId}/hold`, options);
  }

  async getRunState(runId: string, options?: RequestOptions): Promise<api.RunStatus> {
    return (await this.#get<{ state: api.RunStatus }>(path`/v1/runs/${runId}/state`, options, {
      has: "state",
    })).state;
  }

  /** How far an ingest or a `reason` of the run is; null where none is under way. */
  async getRunProgress(runId: string, options?: RequestOptions): Promise<api.WorkProgress | null> {
    return (await this.#get<api.RunState>(path`/v1/runs/${runId}/state`, options, { has: "state" })).progress;
  }

  /** Decodes a source into measured frames. Answers when the source is decoded. */
  ingestRun(runId: string, request: api.IngestRequest, options?: KeyedOptions): Promise<api.IngestResponse> {
    return this.#post(path`/v1/runs/${runId}/ingest`, request, options, KEYED_AND_LONG);
  }

  /** Derives rows and markers from the run's latest decode, or from the frames of the request. */
  analyzeRun(
    runId: string,
    request: api.AnalyzeRequest,
    options?: KeyedOptions,
  ): Promise<api.AnalyzeResponse> {
    return this.#post(path`/v1/runs/${runId}/analyze`, request, options, KEYED_AND_LONG);
  }

  /** Analyzes a source chunk by chunk with a model. Answers at the end; the events of a chunk come before. */
  reason(runId: string, request: api.ReasonRequest, options?: KeyedOptions): Promise<api.ReasonResponse> {
    return this.#post(path`/v1/runs/${runId}/reason`, request, options, KEYED_AND_LONG);
  }

  // What is known of a run.

  /** All events, or those whose payload has this `index_name`. */
  async getEvents(runId: string, index?: string, options?: RequestOptions): Promise<api.TimelineEvent[]> {
    const answer = await this.#get<{ events: api.TimelineEvent[] }>(eventsPath(runId, index), options, {
      ...LONG,
      has: "events",
    });
    return answer.events;
  }

  getEventsPage(
    runId: string,
    filter: EventFilter & PageWish = {},
    options?: RequestOptions,
  ): Promise<api.EventPage> {
    return this.#page(path`/v1/runs/${runId}/events`, filter, "events", options);
  }

  /** The events as JSON, CSV or JSON lines. */
  getEventsText(
    runId: string,
    format: EventFormat,
    index?: string,
    options?: RequestOptions,
  ): Promise<string> {
    return this.#text(eventsPath(runId, index), format, options);
  }

  async getMarkers(runId: string, filter?: MarkerFilter, options?: RequestOptions): Promise<api.Marker[]> {
    const answer = await this.#get<{ markers: api.Marker[] }>(markersPath(runId, filter), options, {
      ...LONG,
      has: "markers",
    });
    return answer.markers;
  }

  getMarkersPage(
    runId: string,
    filter: MarkerFilter & PageWish = {},
    options?: RequestOptions,
  ): Promise<api.MarkerPage> {
    return this.#page(path`/v1/runs/${runId}/markers`, filter, "markers", options);
  }

  /** The markers as JSON, CSV, JSON lines, WebVTT or EDL. */
  getMarkersText(
    runId: string,
    format: MarkerFormat,
    filter?: MarkerFilter,
    options?: RequestOptions,
  ): Promise<string> {
    return this.#text(markersPath(runId, filter), format, options);
  }

  /** The signals of a decode in bins, for a plot. */
  getSignals(runId: string, range: SignalsRange = {}, options?: RequestOptions): Promise<api.Signals> {
    return this.#get(path`/v1/runs/${runId}/signals` + query({ ...range }), options);
  }

  /** What models said about the run, chunk by chunk. */
  async getInteractions(runId: string, index?: string, options?: RequestOptions): Promise<api.Interaction[]> {
    const place = path`/v1/runs/${runId}/interactions` + query({ index });
    return (await this.#get<{ interactions: api.Interaction[] }>(place, options, {
      ...LONG,
      has: "interactions",
    })).interactions;
  }

  /**
   * A stored JPEG that an event of the run names; of at most `width` pixels across (32 to 1280) where that is
   * given.
   */
  getKeyframe(
    runId: string,
    sha256: string,
    options: RequestOptions & { width?: number } = {},
  ): Promise<Blob> {
    const { width } = options;
    return this.#blob(path`/v1/runs/${runId}/keyframes/${sha256}` + query({ width }), options);
  }

  /** A stored MP4 or WAV that an event of the run names. */
  getMedia(runId: string, sha256: string, options?: RequestOptions): Promise<Blob> {
    return this.#blob(path`/v1/runs/${runId}/media/${sha256}`, options);
  }

  /**
   * One event after the other of those that are there now, while they are read: memory holds a piece of the
   * answer.
   */
  streamEvents(
    runId: string,
    filter: string | EventFilter = {},
    options?: RequestOptions,
  ): AsyncGenerator<api.TimelineEvent, void> {
    const wishes = typeof filter === "string" ? { index: filter } : filter;
    const call = {
      method: "GET",
      path: path`/v1/runs/${runId}/events` + query({ ...wishes }),
      headers: { accept: MEDIA_TYPES.ndjson! },
      ...LONG,
    } as const;
    return this.#connection.jsonLines(call, options);
  }

  /** One marker after the other of those that are there now. */
  async *streamMarkers(
    runId: string,
    filter?: MarkerFilter,
    options?: RequestOptions,
  ): AsyncGenerator<api.Marker, void> {
    yield* await this.getMarkers(runId, filter, options);
  }

  /**
   * The events of the run as they are written, each once. Survives broken connections and restarts of the
   * service; ends when the run is deleted or the loop is left. Throws HttpError where the service refuses.
   */
  subscribeEvents(runId: string, options: SubscribeOptions = {}): AsyncGenerator<api.TimelineEvent, void> {
    return subscribedEvents(this.#connection, runId, options);
  }

  /** All events of the run, past and to come, until it is terminal. */
  watch(
    runId: string,
    options: Omit<SubscribeOptions, "kind" | "reconnect"> = {},
  ): AsyncGenerator<RunEvent, void> {
    return watchedEvents(this.#connection, runId, options);
  }

  /** Events by kind and from a sequence number on. */
  query(request: api.QueryRequest, options?: RequestOptions): Promise<api.QueryResponse> {
    return this.#post("/v1/query", request, options, LONG);
  }

  /** Events whose description has the text. */
  search(
    text: string,
    wishes: { run_id?: string; limit?: number } = {},
    options?: RequestOptions,
  ): Promise<api.SearchResponse> {
    return this.#post("/v1/search", { query: text, ...wishes }, options);
  }

  // Files.

  /** Stores a video file; its `file_path` is a `source_uri`. Sent once. */
  uploadFile(
    file: Blob | FileStream,
    onProgress?: UploadProgress,
    options?: RequestOptions,
  ): Promise<api.UploadResponse> {
    return upload(this.#connection, file, onProgress, options);
  }

  /** An upload of the caller, or a file of an ingest root, by its bare name. */
  getFile(filename: string, options?: RequestOptions): Promise<Blob> {
    return this.#blob(path`/v1/files/${filename}`, options);
  }

  /**
   * Deletes an upload of the caller, by its bare name: the last part of its `file_path`. Events keep the
   * name.
   */
  async deleteFile(filename: string, options?: RequestOptions): Promise<void> {
    await this.#delete(path`/v1/files/${filename}`, options);
  }

  // Webhooks.

  /** The answer has the `signing_secret`, which is given this once. */
  createWebhook(
    runId: string,
    request: api.WebhookRequest,
    options?: KeyedOptions,
  ): Promise<api.CreatedWebhook> {
    return this.#post(path`/v1/runs/${runId}/webhooks`, request, options, KEYED);
  }

  async listWebhooks(runId: string, options?: RequestOptions): Promise<api.Webhook[]> {
    return (await this.#get<{ webhooks: api.Webhook[] }>(path`/v1/runs/${runId}/webhooks`, options, {
      has: "webhooks",
    })).webhooks;
  }

  listWebhooksPage(runId: string, page: PageWish = {}, options?: RequestOptions): Promise<api.WebhookPage> {
    return this.#page(path`/v1/runs/${runId}/webhooks`, page, "webhooks", options);
  }

  /** Those of all runs of the caller, the newest first. */
  async listAllWebhooks(options?: RequestOptions): Promise<api.WebhookOfRun[]> {
    return (await this.#get<{ webhooks: api.WebhookOfRun[] }>("/v1/webhooks", options, { has: "webhooks" }))
      .webhooks;
  }

  listAllWebhooksPage(page: PageWish = {}, options?: RequestOptions): Promise<api.WebhookOfRunPage> {
    return this.#page("/v1/webhooks", page, "webhooks", options);
  }

  async deleteWebhook(runId: string, webhookId: string, options?: RequestOptions): Promise<void> {
    await this.#delete(path`/v1/runs/${runId}/webhooks/${webhookId}`, options);
  }

  /** Sends events again that the webhook is past. */
  redeliverWebhook(
    runId: string,
    webhookId: string,
    request: api.RedeliverRequest = {},
    options?: KeyedOptions,
  ): Promise<api.RedeliverResponse> {
    return this.#post(path`/v1/runs/${runId}/webhooks/${webhookId}/redeliver`, request, options, KEYED);
  }

  /** The last deliveries of a webhook with their attempts, the newest first. */
  async listDeliveries(
    runId: string,
    webhookId: string,
    options?: RequestOptions,
  ): Promise<api.Delivery[]> {
    const place = path`/v1/runs/${runId}/webhooks/${webhookId}/deliveries`;
    return (await this.#get<{ deliveries: api.Delivery[] }>(place, options, { has: "deliveries" }))
      .deliveries;
  }

  /** What was sent for an event, byte by byte, with the headers of the last attempt. */
  getDelivery(
    runId: string,
    webhookId: string,
    seq: number,
    options?: RequestOptions,
  ): Promise<api.SentDelivery> {
    return this.#get(path`/v1/runs/${runId}/webhooks/${webhookId}/deliveries/${seq}`, options);
  }

  // Models.

  async infer(request: api.InferRequest, options?: KeyedOptions): Promise<InferResult> {
    const start = performance.now();
    const result = await this.#post<api.InferResponse>("/v1/infer", request, options, KEYED_AND_LONG);
    return inferResult(request, { id: result.request_id, latencyMs: since(start), result });
  }

  /** In the order of the requests; an entry that failed has `ok: false` and its `error`. */
  async inferBatch(
    requests: readonly api.InferRequest[],
    wishes: { max_parallel?: number } = {},
    options?: KeyedOptions,
  ): Promise<InferResult[]> {
    const start = performance.now();
    const answer = await this.#post<api.InferBatchResponse>(
      "/v1/infer/batch",
      { requests, ...wishes },
      options,
      KEYED_AND_LONG,
    );
    return batchResults(requests, answer, since(start));
  }

  async listModels(options?: RequestOptions): Promise<api.Model[]> {
    return (await this.#get<{ models: api.Model[] }>("/v1/models", options, { has: "models" })).models;
  }

  // Feedback.

  submitFeedback(
    runId: string,
    request: api.FeedbackRequest,
    options?: KeyedOptions,
  ): Promise<api.FeedbackResponse> {
    return this.#post(path`/v1/runs/${runId}/feedback`, request, options, KEYED);
  }

  /** The feedback on all runs of the caller. */
  async listFeedback(options?: RequestOptions): Promise<api.Feedback[]> {
    return (await this.#get<{ feedback: api.Feedback[] }>("/v1/feedback", options, { has: "feedback" }))
      .feedback;
  }

  listFeedbackPage(page: PageWish = {}, options?: RequestOptions): Promise<api.FeedbackPage> {
    return this.#page("/v1/feedback", page, "feedback", options);
  }

  // Policies.

  createPolicy(
    runId: string,
    request: api.PolicyRequest,
    options?: KeyedOptions,
  ): Promise<api.PolicyResponse> {
    return this.#post(path`/v1/runs/${runId}/policies`, request, options, KEYED);
  }

  listPolicies(runId: string, options?: RequestOptions): Promise<api.PolicyList> {
    return this.#get(path`/v1/runs/${runId}/policies`, options);
  }

  getPolicy(runId: string, revision: number, options?: RequestOptions): Promise<api.PolicyResponse> {
    return this.#get(path`/v1/runs/${runId}/policies/${revision}`, options);
  }

  /** Moves a revision to its next stage. */
  activatePolicy(
    runId: string,
    revision: number,
    request: api.ActivatePolicyRequest,
    options?: KeyedOptions,
  ): Promise<api.ApplicationResponse> {
    return this.#post(path`/v1/runs/${runId}/policies/${revision}/activate`, request, options, KEYED);
  }

  /** Makes a revision active that was active before. */
  rollbackPolicy(
    runId: string,
    revision: number,
    request: api.RollbackPolicyRequest = {},
    options?: KeyedOptions,
  ): Promise<api.ApplicationResponse> {
    return this.#post(path`/v1/runs/${runId}/policies/${revision}/rollback`, request, options, KEYED);
  }

  /** Evaluates a revision against stored events or media. */
  replayPolicy(
    runId: string,
    revision: number,
    request: api.ReplayPolicyRequest = {},
    options?: KeyedOptions,
  ): Promise<api.ReplayPolicyResponse> {
    return this.#post(path`/v1/runs/${runId}/policies/${revision}/replay`, request, options, KEYED_AND_LONG);
  }

  // Triggers.

  compileTrigger(source: string, options?: RequestOptions): Promise<api.CompileTriggerResponse> {
    return this.#post("/v1/triggers/compile", { source }, options);
  }

  validateTrigger(
    program: api.TriggerProgram,
    options?: RequestOptions,
  ): Promise<api.ValidateTriggerResponse> {
    return this.#post("/v1/triggers/validate", program, options);
  }

  /** Runs a program over samples, from a fresh state. */
  evaluateTrigger(
    program: api.TriggerProgram,
    samples: readonly api.TriggerSample[],
    options?: RequestOptions,
  ): Promise<api.EvaluateTriggerResponse> {
    return this.#post("/v1/triggers/evaluate", { program, samples }, options);
  }

  /** Runs a program over what the run's decode has measured, from a fresh state. */
  evaluateTriggerOnRun(
    runId: string,
    request: api.EvaluateTriggerOnRunRequest,
    options?: RequestOptions,
  ): Promise<api.EvaluateTriggerOnRunResponse> {
    return this.#post(path`/v1/runs/${runId}/triggers/evaluate`, request, options, LONG);
  }

  // Live sessions.

  /** Makes a run watch an RTSP or HLS source. */
  openLiveSource(
    runId: string,
    request: api.LiveSourceRequest,
    options?: RequestOptions,
  ): Promise<api.LiveSource> {
    return this.#post(path`/v1/runs/${runId}/live`, request, options);
  }

  closeLiveSource(runId: string, options?: RequestOptions): Promise<api.ClosedLiveSource> {
    return this.#delete(path`/v1/runs/${runId}/live`, options);
  }

  /** The named sources that the caller may use, in the order of the operator's file. */
  async listSources(options?: RequestOptions): Promise<api.NamedSource[]> {
    return (await this.#get<{ sources: api.NamedSource[] }>("/v1/sources", options, { has: "sources" }))
      .sources;
  }

  /** Arms an always-on camera until its schedule changes next, or for so many seconds. */
  armSource(name: string, request: api.ArmRequest = {}, options?: RequestOptions): Promise<api.ArmedSource> {
    return this.#post(path`/v1/sources/${name}/arm`, request, options);
  }

  /** Disarms it in the same way. */
  disarmSource(
    name: string,
    request: api.ArmRequest = {},
    options?: RequestOptions,
  ): Promise<api.ArmedSource> {
    return this.#post(path`/v1/sources/${name}/disarm`, request, options);
  }

  /** Segments of a source's recording, the oldest first; with `next_cursor` as `cursor` it reads on. */
  listRecordings(
    source: string,
    filter: RecordingFilter = {},
    options?: RequestOptions,
  ): Promise<api.RecordedSegmentList> {
    const place = path`/v1/sources/${source}/recordings` + query({ ...filter });
    return this.#get(place, options, { has: "segments" });
  }

  /** One segment of a source's recording, an MP4. */
  getRecording(source: string, segmentId: string, options?: RequestOptions): Promise<Blob> {
    return this.#blob(path`/v1/sources/${source}/recordings/${segmentId}`, options);
  }

  /** The recording of a range as one MP4, which is held in memory. */
  exportRecording(
    source: string,
    range: { from: string | number; to: string | number },
    options?: RequestOptions,
  ): Promise<Blob> {
    return this.#blob(path`/v1/sources/${source}/recordings/export` + query({ ...range }), options);
  }

  /** The caller's open live sessions, the oldest first. */
  async listLiveSessions(options?: RequestOptions): Promise<api.LiveSession[]> {
    return (await this.#get<{ sessions: api.LiveSession[] }>("/v1/live", options, { has: "sessions" }))
      .sessions;
  }

  /** The open live session of a run, with its signals behind a media time. */
  getLiveSession(
    runId: string,
    range: { after_ms?: number } = {},
    options?: RequestOptions,
  ): Promise<api.WatchedSession> {
    return this.#get(path`/v1/runs/${runId}/live` + query(range), options);
  }

  /**
   * What the open live session of a run sees now, a JPEG. Throws HttpError with 404 where no frame comes
   * within two seconds.
   */
  getSnapshot(runId: string, options?: RequestOptions): Promise<Blob> {
    return this.#blob(path`/v1/runs/${runId}/snapshot.jpg`, options);
  }

  /**
   * The video of the open live session of a run. Throws HttpError: 404 where no key frame comes, 422 where
   * the codec is none for browsers, 503 where too many watch. `timeoutMs` is for the beginning; `signal` also
   * ends the stream.
   */
  watchLiveVideo(runId: string, options?: RequestOptions): Promise<LiveVideo> {
    return openLiveVideo(this.#connection, path`/v1/runs/${runId}/live.mp4`, options);
  }

  /** The same of a named source, through all the runs of the session that watches it. */
  watchSourceVideo(name: string, options?: RequestOptions): Promise<LiveVideo> {
    return openLiveVideo(this.#connection, path`/v1/sources/${name}/live.mp4`, options);
  }

  /** Publishes the tracks of a MediaStream from a browser. Resolves when the service has answered. */
  publish(media: Media, attach?: api.AttachConfig, options?: PublishOptions): Promise<PublishSession> {
    return publishMedia(this.#connection, media, attach, options);
  }

  /** Opens a live session from a WebRTC offer. */
  whipOffer(sdp: string, attach?: api.AttachConfig, options?: RequestOptions): Promise<WhipAnswer> {
    return sendOffer(this.#connection, sdp, attach, options);
  }

  /** Sends a candidate line or an RFC 8840 fragment; the answer of an ICE restart, else undefined. */
  whipIce(sessionId: string, candidate: string, options?: IceOptions): Promise<IceAnswer | undefined> {
    return sendIce(this.#connection, sessionId, candidate, options);
  }

  /** Takes effect between two pictures. An empty or null prompt is the built-in one. */
  async whipUpdatePrompt(
    sessionId: string,
    prompt: api.PromptRequest,
    options?: RequestOptions,
  ): Promise<void> {
    await this.#connection.json(
      { method: "PATCH", path: `${sessionPath(sessionId)}/prompt`, json: prompt },
      options,
    );
  }

  /** Ends a live session and completes its run. */
  async whipTerminate(sessionId: string, options?: RequestOptions): Promise<void> {
    await this.#delete(sessionPath(sessionId), options);
  }

  // The service.

  health(options?: RequestOptions): Promise<api.Health> {
    return this.#get("/v1/health", options, { has: "status" });
  }

  /** Asks until the service answers; false when it has not after `totalTimeoutMs`. Only an abort rejects. */
  async waitUntilHealthy(
    pollIntervalMs = 1000,
    totalTimeoutMs = 60_000,
    { signal }: RequestOptions = {},
  ): Promise<boolean> {
    signal?.throwIfAborted();
    const deadline = new Deadline(totalTimeoutMs, signal);
    try {
      for (;;) {
        try {
          await this.#connection.once({ method: "GET", path: "/v1/health" }, { signal: deadline.signal });
          return true;
        } catch {
          await pause(pollIntervalMs, deadline.signal);
        }
      }
    } catch {
      signal?.throwIfAborted();
      return false;
    } finally {
      deadline.end();
    }
  }

  /** Versions, the disk, and the settings without their secrets. */
  getSystem(options?: RequestOptions): Promise<api.System> {
    return this.#get("/v1/system", options);
  }

  /** Whether live sessions and model calls are well, and why. */
  getSystemHealth(options?: RequestOptions): Promise<api.SystemHealth> {
    return this.#get("/v1/system/health", options);
  }

  /** Which of your runs retention removes next, and why the others stay; nothing is removed by asking. */
  getRetention(options?: RequestOptions): Promise<api.RetentionReport> {
    return this.#get("/v1/system/retention", options);
  }

  /** Prometheus text. */
  metrics(options?: RequestOptions): Promise<string> {
    return this.#connection.text(
      { method: "GET", path: "/v1/metrics", headers: { accept: "text/plain" } },
      options,
    );
  }

  /** The description of the whole API, OpenAPI 3.1. */
  openapi(options?: RequestOptions): Promise<api.JsonObject> {
    return this.#get("/openapi.json", options);
  }

  /** A published JSON Schema by its name, such as `event_envelope.schema.json`. */
  getSchema(name: string, options?: RequestOptions): Promise<api.JsonObject> {
    return this.#get(path`/schemas/${name}`, options);
  }

  /** A wish that names neither gets the first page all the same. */
  #page<T>(place: string, wish: PageWish, has: string, options: RequestOptions | undefined): Promise<T> {
    return this.#get(place + query({ ...wish, limit: wish.limit ?? PAGE_ENTRIES }), options, {
      ...LONG,
      has,
    });
  }

  #get<T>(place: string, options?: RequestOptions, wishes: CallWishes = {}): Promise<T> {
    return this.#connection.json({ method: "GET", path: place, ...wishes }, options);
  }

  #post<T>(place: string, json: unknown, options?: KeyedOptions, wishes: CallWishes = {}): Promise<T> {
    return this.#connection.json({ method: "POST", path: place, json, ...wishes }, options);
  }

  #delete<T>(place: string, options?: RequestOptions): Promise<T> {
    return this.#connection.json({ method: "DELETE", path: place }, options);
  }

  #text(place: string, format: MarkerFormat, options?: RequestOptions): Promise<string> {
    const accept = MEDIA_TYPES[format];
    if (!accept) {
      throw new TypeError(`format must be one of ${Object.keys(MEDIA_TYPES).join(", ")}, got ${format}`);
    }
    return this.#connection.text({ method: "GET", path: place, headers: { accept }, ...LONG }, options);
  }

  #blob(place: string, options?: RequestOptions): Promise<Blob> {
    return this.#connection.blob(
      { method: "GET", path: place, headers: { accept: "*/*" }, ...LONG },
      options,
    );
  }
}

type CallWishes = Pick<Call, "isKeyed" | "isLong" | "has">;
const KEYED: CallWishes = { isKeyed: true };
const LONG: CallWishes = { isLong: true };
const KEYED_AND_LONG: CallWishes = { isKeyed: true, isLong: true };

function eventsPath(runId: string, index: string | undefined): string {
  return path`/v1/runs/${runId}/events` + query({ index });
}

function markersPath(runId: string, filter: MarkerFilter = {}): string {
  return path`/v1/runs/${runId}/markers` + query({ ...filter });
}

function since(startMs: number): number {
  return Math.round(performance.now() - startMs);
}
