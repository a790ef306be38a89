/** The expected tables, kept by hand in fixtures/contract/*.json, typed. */

export interface RouteRow {
  readonly method: string;
  readonly path: string;
  readonly success: number;
  readonly auth: "key" | "none" | "metrics";
  readonly body: "none" | "json" | "multipart" | "sdp" | "text";
  readonly reply: string;
  /** Further statuses of success: parts of a file, nothing new for a condition, an answer of another kind. */
  readonly also?: readonly number[];
  /** Statuses that the handler itself may answer besides 401 and 429. */
  readonly failures: readonly number[];
}

export interface EventRow {
  readonly kind: string;
  readonly bookkeeping: boolean;
  /** Field lists of the payload, one for each way in which the kind is written. */
  readonly forms: readonly (readonly string[])[];
}

export interface ConfigRow {
  readonly name: string;
  readonly default: string | null;
  readonly range?: readonly [number, number];
  readonly outside?: "fault" | "clamp";
}

export interface MetricRow {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly labels: Readonly<Record<string, readonly string[]>>;
  readonly buckets?: readonly number[];
}

export interface LimitRow {
  readonly subject: string;
  readonly limit: number | string | readonly [number, number];
  /** A path into LIMITS, or the SERVICE_* variable whose default it is. */
  readonly at: string;
}

export const CONTRACT = {
  routes: rows<RouteRow>("routes"),
  events: rows<EventRow>("events"),
  config: rows<ConfigRow>("config"),
  metrics: rows<MetricRow>("metrics"),
  limits: rows<LimitRow>("limits"),
};

function rows<T>(name: string): readonly T[] {
  return (read(name) as { rows: T[] }).rows;
}

function read(name: string): unknown {
  return JSON.parse(Deno.readTextFileSync(new URL(`../../fixtures/contract/${name}.json`, import.meta.url)));
}
