/** TABLE of the metrics that are plotted. */

import type { Metrics } from "./prometheus.ts";

export interface Series {
  readonly title: string;
  readonly value: (metrics: Metrics) => number;
  /** A counter, of which the change in a second is shown. */
  readonly isRate: boolean;
}

function gauge(title: string, ...names: readonly string[]): Series {
  return { title, value: sumOf(names), isRate: false };
}

function rate(title: string, ...names: readonly string[]): Series {
  return { title, value: sumOf(names), isRate: true };
}

function sumOf(names: readonly string[]): (metrics: Metrics) => number {
  return (metrics) => names.reduce((sum, name) => sum + metrics.sum(name), 0);
}

export const SERIES: readonly Series[] = [
  rate("Events a second", "service_timeline_events_total"),
  rate("Frames decoded a second", "service_pipeline_frames_decoded_total"),
  gauge("Live sessions", "service_pipeline_generations_active"),
  rate("Model calls a second", "service_infer_requests_total"),
  gauge("Model calls under way", "service_infer_admission_active"),
  gauge("Model calls waiting", "service_infer_admission_waiting"),
  rate("Tokens a second", "service_infer_tokens_total"),
  rate("Frames dropped a second", "service_pipeline_frames_dropped_total"),
  gauge("Event streams", "service_sse_subscribers_active"),
  rate("Webhook attempts a second", "service_webhook_attempts_total"),
  rate("Webhook events given up a second", "service_webhook_dead_letters_total"),
  gauge("HTTP connections", "service_http_connections"),
];
