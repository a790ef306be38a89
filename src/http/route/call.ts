/** What a route works with: the request, its caller, and the use cases of the service. */

import type { HonoRequest } from "hono";
import type { Metrics } from "../../contract/metrics.ts";
import type { Analyze } from "../../flow/analysis/analyze.ts";
import type { Caller } from "../../flow/caller.ts";
import type { SignalReads } from "../../flow/analysis/decoded_signals.ts";
import type { Follower } from "../../flow/events/follower.ts";
import type { EventReads } from "../../flow/events/reads.ts";
import type { Feedback } from "../../flow/analysis/feedback.ts";
import type { BlobReads } from "../../flow/files/blobs.ts";
import type { Files } from "../../flow/files/files.ts";
import type { Pages } from "../../flow/files/pages.ts";
import type { HealthView } from "../../flow/system/health.ts";
import type { Idempotency } from "../../flow/idempotency.ts";
import type { Infer } from "../../flow/infer/infer.ts";
import type { Ingest } from "../../flow/analysis/ingest.ts";
import type { LargeReads } from "../../flow/large_reads.ts";
import type { LiveSources } from "../../flow/live/camera.ts";
import type { LiveViews } from "../../flow/live/live_views.ts";
import type { LiveLooks } from "../../flow/live/looks.ts";
import type { Whip } from "../../flow/live/whip.ts";
import type { Policies } from "../../flow/policies/policies.ts";
import type { PolicyReplay } from "../../flow/policies/replay.ts";
import type { Interactions } from "../../flow/reason/interactions.ts";
import type { Reason } from "../../flow/reason/reason.ts";
import type { RecordedTriggers } from "../../flow/analysis/recorded_triggers.ts";
import type { RecordingReads } from "../../flow/recordings/recording_reads.ts";
import type { Retention } from "../../flow/retention/retention.ts";
import type { Runs } from "../../flow/runs/runs.ts";
import type { Search } from "../../flow/events/search.ts";
import type { ArmedSources } from "../../flow/sources/armed_sources.ts";
import type { SourceLooks } from "../../flow/cameras/source_looks.ts";
import type { System } from "../../flow/system/system.ts";
import type { Triggers } from "../../flow/analysis/triggers.ts";
import type { Webhooks } from "../../flow/webhooks/webhooks.ts";
import { Rejection } from "../answers/reply.ts";
import type { UntakenAnswers } from "../answers/untaken_answers.ts";
import type { ReceivedBodies } from "../requests/received_body.ts";

/** Everything that the service can do. */
export interface UseCases {
  readonly runs: Runs;
  readonly ingest: Ingest;
  readonly analyze: Analyze;
  readonly reads: EventReads;
  readonly signals: SignalReads;
  readonly largeReads: LargeReads;
  readonly search: Search;
  readonly interactions: Interactions;
  readonly feedback: Feedback;
  readonly files: Files;
  readonly blobs: BlobReads;
  readonly pages: Pages;
  readonly follower: Follower;
  readonly webhooks: Webhooks;
  readonly infer: Infer;
  readonly reason: Reason;
  readonly triggers: Triggers;
  readonly recordedTriggers: RecordedTriggers;
  readonly policies: Policies;
  readonly policyReplay: PolicyReplay;
  readonly whip: Whip;
  readonly liveSources: LiveSources;
  readonly liveLooks: LiveLooks;
  readonly liveViews: LiveViews;
  readonly sourceLooks: SourceLooks;
  readonly armedSources: ArmedSources;
  readonly recordings: RecordingReads;
  readonly idempotency: Idempotency;
  readonly system: System;
  readonly retention: Retention;
  readonly healthView: HealthView;
  readonly metrics: Metrics;
  /** Published JSON Schemas by file name. */
  readonly schemas: () => ReadonlyMap<string, object>;
}

export interface HttpCaller extends Caller {
  /** The other end of its TCP connection, `address port`; undefined where there is none. */
  readonly client: string | undefined;
}

/** What routes use: the use cases, what receives bodies, and what counts answers that nobody takes. */
export interface RouteUses extends UseCases {
  readonly bodies: ReceivedBodies;
  readonly untaken: UntakenAnswers;
}

/** One request to one route. */
export interface RouteCall {
  readonly caller: HttpCaller;
  readonly request: HonoRequest;
  readonly use: RouteUses;
  /** Called with the body of a request with an idempotency key, before the work begins. */
  readonly begin?: (text: string, body: unknown) => Promise<void>;
}

/** The path parameter `name`, which the route's path has. */
export function parameter(call: RouteCall, name: string): string {
  return call.request.param(name) ?? "";
}

/** A query value. 400 as plain text for a value that does not parse. See docs/api.md#plain-rejections. */
export function wholeNumber(call: RouteCall, name: string): number | undefined {
  const text = call.request.query(name);
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new Rejection(400, `${name} must be a whole number from 0`);
  return Number(text);
}
