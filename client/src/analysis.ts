/** A recording analyzed in one call: upload where needed, run, ingest, analyze. */

import type { RequestOptions } from "./http/connection.ts";
import type {
  AnalyzeRequest,
  AnalyzeResponse,
  CreatedRun,
  CreateRunRequest,
  IngestRequest,
  Marker,
  TimelineEvent,
  UploadResponse,
} from "./types.ts";
import type { FileStream, UploadProgress } from "./upload.ts";

export interface AnalyzeOptions extends RequestOptions {
  mode?: string;
  /** Labels the rows; no model is asked. */
  model?: string;
  samplingPolicy?: string;
  fixedFps?: number;
  maxFrames?: number;
  windowSize?: number;
  segmentMs?: number;
  onProgress?: UploadProgress;
}

export interface Analysis {
  runId: string;
  analyzeResponse: AnalyzeResponse;
  /** All events of the run. */
  events(options?: RequestOptions): Promise<TimelineEvent[]>;
  /** All markers of the run. */
  markers(options?: RequestOptions): Promise<Marker[]>;
}

/** The methods of the client that an analysis is made of. */
interface Steps {
  uploadFile(
    file: Blob | FileStream,
    onProgress?: UploadProgress,
    options?: RequestOptions,
  ): Promise<UploadResponse>;
  createRun(request: CreateRunRequest, options: RequestOptions): Promise<CreatedRun>;
  ingestRun(runId: string, request: IngestRequest, options: RequestOptions): Promise<unknown>;
  analyzeRun(runId: string, request: AnalyzeRequest, options: RequestOptions): Promise<AnalyzeResponse>;
  getEvents(runId: string, index?: string, options?: RequestOptions): Promise<TimelineEvent[]>;
  getMarkers(runId: string, filter?: undefined, options?: RequestOptions): Promise<Marker[]>;
  deleteRun(runId: string, options: RequestOptions): Promise<void>;
}

const CLEANUP_MS = 2000;
/** The rows must name a model; it says nothing where none was asked. */
const MODEL = "Qwen/Qwen3-VL-4B-Instruct";

/** `source` is a `source_uri` or a file. A run whose ingest or analysis fails is deleted. */
export async function analyzeSource(
  client: Steps,
  source: string | Blob | FileStream,
  options: AnalyzeOptions = {},
): Promise<Analysis> {
  const { mode, model = MODEL, onProgress, signal, timeoutMs } = options;
  const request = { ...(signal && { signal }), ...(timeoutMs !== undefined && { timeoutMs }) };
  const source_uri = typeof source === "string"
    ? source
    : (await client.uploadFile(source, onProgress, request)).file_path;
  const { run_id: runId } = await client.createRun({ mode, model: options.model }, request);
  try {
    await client.ingestRun(runId, {
      source_uri,
      sampling_policy: options.samplingPolicy,
      fixed_fps: options.fixedFps,
      max_frames: options.maxFrames,
    }, request);
    const analyzeResponse = await client.analyzeRun(runId, {
      model,
      mode,
      window_size: options.windowSize,
      segment_ms: options.segmentMs,
    }, request);
    return {
      runId,
      analyzeResponse,
      events: (options) => client.getEvents(runId, undefined, options),
      markers: (options) => client.getMarkers(runId, undefined, options),
    };
  } catch (error) {
    // The failure is what the caller needs to know, and soon; a run that is left expires by itself.
    await client.deleteRun(runId, { timeoutMs: CLEANUP_MS, maxRetries: 0 }).catch(() => {});
    throw error;
  }
}
