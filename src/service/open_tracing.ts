/** Opens the traces: the spans that are sent to a collector. Loaded only where there is one. */

import type { Metrics } from "../contract/metrics.ts";
import type { Tracing } from "../base/tracing.ts";
import type { World } from "../base/world.ts";
import { OtlpTracing } from "../remote/otlp_tracing.ts";

export interface OpenTracingOptions {
  /** SERVICE_TRACES_ENDPOINT. */
  readonly endpoint: string;
  /** SERVICE_TRACES_SAMPLE_RATIO. */
  readonly sampleRatio: number;
  readonly roots: readonly string[];
  readonly version: string;
  readonly world: World;
  readonly metrics: Metrics;
}

export function openTracing(opening: AsyncDisposableStack, options: OpenTracingOptions): Tracing {
  return opening.use(new OtlpTracing(options));
}
