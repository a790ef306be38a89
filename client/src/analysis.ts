/** A recording analyzed in one call: upload where needed, run, ingest, analyze. */

import type { RequestOptions } from "./http/connection.ts";
import type {
  AnalyzeRequest,
  AnalyzeResponse,
  CreatedRun,
  CreateRunRequest,
  IngestRequest,
  IngestResponse,
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
  /** Frames that are decoded at most; 500,000, the service's own limit, unless given. */
  maxFrames?: number;
  /** Whether the answer has a row for each frame; unless given, up to 120,000 frames. */
  includeFrameMetadata?: boolean;
  windowSize?: number;
  segmentMs?: number;
  onProgress?: UploadProgress;
}

export interface Analysis {
  runId: string;
  /** Whether `maxFrames` ended the decode before the source did: what comes later was not looked at. */
  truncated: boolean;
  ingestResponse: IngestResponse;
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
  ingestRun(runId: string, request: IngestRequest, options: RequestOptions): Promise<IngestResponse>;
  analyzeRun(runId: string, request: AnalyzeRequest, options: RequestOptions): Promise<AnalyzeResponse>;
  getEvents(runId: string, index?: string, options?: RequestOptions): Promise<TimelineEvent[]>;
  getMarkers(runId: string, filter?: undefined, options?: RequestOptions): Promise<Marker[]>;
  deleteRun(runId: string, options: RequestOptions): Promise<void>;
}

/** The most frames that one decode of the service may have. */
export const MAX_FRAMES = 500_000;
/** The most frames whose rows are asked for: more make an answer that is too long for one text. */
export const MAX_ROWS = 120_000;
/**
 * What the command line and the console ask of a model unless a person chooses otherwise: 4 pictures of each
 * 25 seconds.
 */
export const USUAL_QUESTION = { fixed_fps: 1, chunk_size: 25, semantic_frames_per_chunk: 4 } as const;
const CLEANUP_MS = 2000;
/** Names the rows where no model is asked, as they must name one; the first choice where one is. */
export const DEFAULT_MODEL = "Qwen/Qwen3-VL-4B-Instruct";

/**
 * `source` is a `source_uri` or a file. The run is complete when this resolves. A run whose ingest or
 * analysis fails is deleted.
 */
export async function analyzeSource(
  client: Steps,
  source: string | Blob | FileStream,
  options: AnalyzeOptions = {},
): Promise<Analysis> {
  const { mode, model = DEFAULT_MODEL, onProgress, signal, timeoutMs } = options;
  const request = { ...(signal && { signal }), ...(timeoutMs !== undefined && { timeoutMs }) };
  const source_uri = typeof source === "string"
    ? source
    : (await client.uploadFile(source, onProgress, request)).file_path;
  const { run_id: runId } = await client.createRun({ mode, model: options.model }, request);
  try {
    const ingestResponse = await client.ingestRun(runId, {
      source_uri,
      sampling_policy: options.samplingPolicy,
      fixed_fps: options.fixedFps,
      max_frames: options.maxFrames ?? MAX_FRAMES,
    }, request);
    const analyzeResponse = await client.analyzeRun(runId, {
      model,
      mode,
      window_size: options.windowSize,
      segment_ms: options.segmentMs,
      include_frame_metadata: options.includeFrameMetadata ?? ingestResponse.decoded_frames <= MAX_ROWS,
      complete: true,
    }, request);
    return {
      runId,
      truncated: ingestResponse.truncated,
      ingestResponse,
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
