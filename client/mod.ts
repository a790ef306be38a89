/** A client of the video analysis service, for browsers, Node.js 18 and newer, Deno and Bun. */

export {
  Client,
  type EventFilter,
  type EventFormat,
  type MarkerFilter,
  type MarkerFormat,
  type PageWish,
  type RecordingFilter,
  type RunPageWish,
  type SignalsRange,
} from "./src/client.ts";
export {
  type Analysis,
  type AnalyzeOptions,
  DEFAULT_MODEL,
  MAX_FRAMES,
  MAX_ROWS,
  USUAL_QUESTION,
} from "./src/analysis.ts";
export {
  type EventKind,
  type EventOf,
  type EventPayloads,
  isEvent,
  type RunEvent,
} from "./src/events/event_types.ts";
export type { SubscribeOptions } from "./src/events/subscription.ts";
export type { ClientOptions, KeyedOptions, RequestOptions } from "./src/http/connection.ts";
export {
  type ApiError,
  type ErrorDetail,
  HttpError,
  isHttpError,
  isNetworkError,
  isServiceError,
  NetworkError,
  ParseError,
  RetryExhaustedError,
  ServiceError,
  UploadError,
} from "./src/http/errors.ts";
export type { InferResult } from "./src/inference.ts";
export type { LiveVideo } from "./src/live_video.ts";
export type * from "./src/types.ts";
export type { FileStream, UploadProgress } from "./src/upload.ts";
export { type VerifyOptions, verifyWebhook, type WebhookHeaders } from "./src/webhook.ts";
export type { IceServer } from "./src/whip/ice_servers.ts";
export type { IceAnswer, IceOptions, WhipAnswer } from "./src/whip/session_requests.ts";
export { type PublishOptions, PublishSession, type PublishState } from "./src/whip/publish.ts";
export type { Codec, Media, MediaTrack, PeerConnection } from "./src/whip/rtc.ts";
