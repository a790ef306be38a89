/** Builds the use cases that the HTTP routes call. */

import type { Config } from "../contract/config.ts";
import type { Metrics } from "../contract/metrics.ts";
import type { World } from "../base/world.ts";
import { Analyze } from "../flow/analysis/analyze.ts";
import { SignalReads } from "../flow/analysis/decoded_signals.ts";
import { EventReads } from "../flow/events/reads.ts";
import type { Follower } from "../flow/events/follower.ts";
import type { Feedback } from "../flow/analysis/feedback.ts";
import type { Mirror } from "../flow/system/mirror.ts";
import { BlobReads } from "../flow/files/blobs.ts";
import { Files } from "../flow/files/files.ts";
import { HealthView } from "../flow/system/health.ts";
import { Idempotency } from "../flow/idempotency.ts";
import { Pages } from "../flow/files/pages.ts";
import { Infer } from "../flow/infer/infer.ts";
import { LiveLooks } from "../flow/live/looks.ts";
import { LiveViews } from "../flow/live/live_views.ts";
import { Ingest } from "../flow/analysis/ingest.ts";
import { Policies } from "../flow/policies/policies.ts";
import { PolicyReplay } from "../flow/policies/replay.ts";
import { LargeReads } from "../flow/large_reads.ts";
import { Interactions } from "../flow/reason/interactions.ts";
import { OutputSchemas } from "../flow/reason/output_schemas.ts";
import { Reason } from "../flow/reason/reason.ts";
import { Runs } from "../flow/runs/runs.ts";
import type { RunWork } from "../flow/runs/run_work.ts";
import { RecordedTriggers } from "../flow/analysis/recorded_triggers.ts";
import { Search } from "../flow/events/search.ts";
import { SourceLooks } from "../flow/cameras/source_looks.ts";
import type { Sources } from "../flow/sources/sources.ts";
import { System } from "../flow/system/system.ts";
import { Triggers } from "../flow/analysis/triggers.ts";
import type { Webhooks } from "../flow/webhooks/webhooks.ts";
import { RecordingReads } from "../flow/recordings/recording_reads.ts";
import type { UseCases } from "../http/route/call.ts";
import { VERSION } from "../http/description/version.ts";
import { TriggerKernel } from "../media/kernels/trigger_kernel.ts";
import type { SourcePolicy } from "../media/files/source.ts";
import type { LabelMaps } from "../model/frames/label_map.ts";
import { publishedSchemas } from "../model/published/published.ts";
import type { Retention } from "../flow/retention/retention.ts";
import type { Live } from "./open_live.ts";
import type { Media } from "./open_media.ts";
import type { Models } from "./open_models.ts";
import type { Store } from "./open_store.ts";

export interface UseCaseOptions {
  readonly config: Config;
  readonly labelMaps: LabelMaps | null;
  /** Where local source files may lie. */
  readonly local: Omit<SourcePolicy, "principalKey">;
  readonly dataDir: string;
  /** Where the built web pages lie. */
  readonly pagesDir: string;
  readonly feedback: Feedback;
  /** The mirror of events; null where there is no mirror database. */
  readonly mirror: Mirror | null;
  readonly follower: Follower;
  readonly webhooks: Webhooks;
  readonly retention: Retention;
  readonly store: Store;
  readonly media: Media;
  readonly models: Models;
  readonly live: Live;
  readonly sources: Sources;
  readonly work: RunWork;
  /** Whether the service has several principals. */
  readonly isShared: boolean;
  readonly world: World;
  readonly metrics: Metrics;
}

export async function openUseCases(
  opening: AsyncDisposableStack,
  options: UseCaseOptions,
): Promise<UseCases> {
  const { config, local, feedback, mirror, follower, webhooks, store, media, live, metrics } = options;
  const { models: { inference }, work, isShared, world } = options;
  const { timeline, searchIndex, uploads, answers, held } = store;
  const { activeStreamLimit, streamTtlMs, inference: { perPrincipalLimit } } = config;
  const largeReads = opening.use(new LargeReads({ world, isShared }));
  const thresholds = config.gateThresholds;
  const signals = new SignalReads({ timeline, gate: media.gate, thresholds, reads: largeReads });
  return {
    runs: new Runs({ timeline, world, metrics, work, held, inference, activeStreamLimit, streamTtlMs }),
    infer: new Infer({ timeline, world, work, inference, streamTtlMs, perPrincipalLimit }),
    ...analysisUseCases(opening, options, largeReads),
    triggers: new Triggers(await TriggerKernel.load()),
    recordedTriggers: new RecordedTriggers(signals),
    reads: new EventReads(timeline),
    signals,
    largeReads,
    search: new Search(timeline, searchIndex),
    interactions: new Interactions(timeline),
    feedback,
    files: opening.use(new Files({ world, uploads, decoder: media.decoder, sources: local, isShared })),
    blobs: new BlobReads(timeline, store.blobs, media.pictures),
    pages: new Pages(options.pagesDir),
    follower,
    webhooks,
    whip: live.whip,
    liveSources: live.liveSources,
    liveLooks: new LiveLooks(timeline, live.registry),
    liveViews: new LiveViews({ timeline, registry: live.registry, named: live.named }),
    sourceLooks: new SourceLooks({
      named: live.named,
      alwaysOn: live.alwaysOn,
      armed: live.armed,
      registry: live.registry,
      recordings: store.recordings,
      world,
    }),
    armedSources: live.armed,
    recordings: new RecordingReads({ named: live.named, recordings: store.recordings, timeline }),
    idempotency: new Idempotency({ timeline, answers, world, metrics }),
    healthView: new HealthView({
      ...{
        metrics,
        registry: live.registry,
        alwaysOn: live.alwaysOn,
        inference,
        trials: media.trials,
        world,
      },
      liveModels: live.models,
    }),
    system: opening.use(
      new System({
        config,
        dataDir: options.dataDir,
        uploadRoot: local.uploadRoot,
        inference,
        liveModels: live.models,
        mirror,
        ffmpeg: media.ffmpeg,
        hardware: media.hardware,
        trials: media.trials,
        version: VERSION,
        isShared,
        world,
      }),
    ),
    retention: options.retention,
    metrics,
    schemas: schemasOnce(),
  };
}

/** The use cases that decode and analyze recorded media, and the policies, which one of them replays. */
function analysisUseCases(
  opening: AsyncDisposableStack,
  { config, labelMaps, store, media, models, live, sources, work, isShared, world, metrics }: UseCaseOptions,
  reads: LargeReads,
): Pick<UseCases, "ingest" | "analyze" | "reason" | "policies" | "policyReplay"> {
  const { timeline, blobs } = store;
  const { decoder, extractor, gate } = media;
  const { inference, audioSidecar } = models;
  const { streamTtlMs, gateThresholds: thresholds, inference: { perPrincipalLimit } } = config;
  const { revisions } = live;
  return {
    ingest: new Ingest({ timeline, world, metrics, work, decoder, sources, streamTtlMs }),
    analyze: new Analyze({
      ...{ timeline, world, metrics, work, gate, inference, thresholds, streamTtlMs, labelMaps, reads },
    }),
    reason: new Reason({
      timeline,
      world,
      metrics,
      work,
      decoder,
      extractor,
      trials: media.trials,
      sources,
      blobs,
      inference,
      audioSidecar,
      perPrincipalLimit,
      thresholds,
      streamTtlMs,
      labelMaps,
      outputSchemas: opening.use(new OutputSchemas({ world, isShared })),
    }),
    policies: new Policies({ timeline, revisions, sessions: live.registry }),
    policyReplay: new PolicyReplay({ timeline, revisions, work, decoder, sources, gate, thresholds }),
  };
}

/** The published schemas, made when they are first asked for. */
function schemasOnce(): () => ReadonlyMap<string, object> {
  let made: ReadonlyMap<string, object> | null = null;
  return () => made ??= publishedSchemas();
}
