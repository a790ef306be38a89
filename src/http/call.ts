/** What a route gets to work with: the request, who asks, and the stories it may tell. */

import type { HonoRequest } from "hono";
import type { Metrics } from "../base/metrics.ts";
import type { Analyze } from "../flow/analyze.ts";
import type { BlobReads } from "../flow/files/blobs.ts";
import type { Caller } from "../flow/caller.ts";
import type { Files } from "../flow/files/files.ts";
import type { Follower } from "../flow/events/follower.ts";
import type { Ingest } from "../flow/ingest.ts";
import type { Feedback } from "../flow/feedback.ts";
import type { Infer } from "../flow/infer/infer.ts";
import type { Interactions } from "../flow/reason/interactions.ts";
import type { Live } from "../flow/live/whip.ts";
import type { LiveSources } from "../flow/live/camera.ts";
import type { Policies } from "../flow/policies/policies.ts";
import type { PolicyReplay } from "../flow/policies/replay.ts";
import type { Reads } from "../flow/events/reads.ts";
import type { Reason } from "../flow/reason/reason.ts";
import type { Runs } from "../flow/runs/runs.ts";
import type { Search } from "../flow/search.ts";
import type { Triggers } from "../flow/triggers.ts";
import type { Webhooks } from "../flow/webhooks/webhooks.ts";

/** Every story of the service, as the routes call them. */
export interface Stories {
  readonly runs: Runs;
  readonly ingest: Ingest;
  readonly analyze: Analyze;
  readonly reads: Reads;
  readonly search: Search;
  readonly interactions: Interactions;
  readonly feedback: Feedback;
  readonly files: Files;
  readonly blobs: BlobReads;
  readonly follow: Follower;
  readonly webhooks: Webhooks;
  readonly infer: Infer;
  readonly reason: Reason;
  readonly triggers: Triggers;
  readonly policies: Policies;
  readonly policyReplay: PolicyReplay;
  readonly live: Live;
  readonly liveSources: LiveSources;
  readonly metrics: Metrics;
  /** Published JSON Schemas by file name. */
  readonly schemas: ReadonlyMap<string, object>;
}

export interface Call extends Stories {
  readonly caller: Caller;
  readonly request: HonoRequest;
}

/** One row of the route table. */
export interface Route {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** A path with `:parameters`. */
  readonly path: string;
  readonly handle: (call: Call) => Response | Promise<Response>;
}

/** The path parameter `name`, which the route's path has. */
export function parameter(call: Call, name: string): string {
  return call.request.param(name) ?? "";
}
