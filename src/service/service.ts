/** Builds every long-lived thing once, in reading order, and closes them in the opposite one. */

import type { Config } from "../base/config.ts";
import { Metrics } from "../base/metrics.ts";
import type { Places, Tools } from "../base/program_paths.ts";
import type { World } from "../base/world.ts";
import { Analyze } from "../flow/analyze.ts";
import { BlobReads } from "../flow/files/blobs.ts";
import { Feedback } from "../flow/feedback.ts";
import { Files } from "../flow/files/files.ts";
import { Follower } from "../flow/events/follower.ts";
import { Infer } from "../flow/infer/infer.ts";
import { Inference } from "../flow/infer/inference.ts";
import { Ingest } from "../flow/ingest.ts";
import { Interactions } from "../flow/reason/interactions.ts";
import { Whip } from "../flow/live/whip.ts";
import { LiveSessionFactory } from "../flow/live/session_factory.ts";
import { SemanticNovelty } from "../flow/live/novelty.ts";
import { failRunsLeftOpen } from "../flow/live/restart.ts";
import { LiveSources } from "../flow/live/camera.ts";
import { LiveRegistry } from "../flow/live/registry.ts";
import { MediaCapacity } from "../flow/live/capacity.ts";
import { Policies } from "../flow/policies/policies.ts";
import { PolicyReplay } from "../flow/policies/replay.ts";
import { EventReads } from "../flow/events/reads.ts";
import { Reason } from "../flow/reason/reason.ts";
import { RunWork } from "../flow/runs/run_work.ts";
import { Runs } from "../flow/runs/runs.ts";
import { Sources } from "../flow/sources.ts";
import { Triggers } from "../flow/triggers.ts";
import { Webhooks, type WebhookSending } from "../flow/webhooks/webhooks.ts";
import { Search } from "../flow/search.ts";
import { createApp, openEdgeChecks } from "../http/app.ts";
import type { IceSettings } from "../live/messages.ts";
import { LiveWorkerPool, type LiveWorkers } from "../live/worker_pool.ts";
import { SSE_WIRE } from "../http/sse.ts";
import { Decoder } from "../media/recorded/decoder.ts";
import { Extractor } from "../media/windows/extractor.ts";
import { GateKernel } from "../media/kernels/gate_kernel.ts";
import { liveCodecs } from "../media/live/live_codecs.ts";
import { TriggerKernel } from "../media/kernels/trigger_kernel.ts";
import type { BackendSettings } from "../model/infer/backend_file.ts";
import type { LabelMaps } from "../model/frames/label_map.ts";
import { publishedSchemas } from "../model/schemas/published.ts";
import type { RestrictedZone } from "../model/policies/zone.ts";
import { AudioSidecar } from "../remote/sidecars/audio_sidecar.ts";
import { TriggerDatagramSender } from "../remote/trigger_datagram_sender.ts";
import { EmbeddingSidecar } from "../remote/sidecars/embedding_sidecar.ts";
import type { Outbound } from "../remote/guard/outbound.ts";
import { PinnedAgent } from "../remote/guard/pinned_agent.ts";
import { Providers } from "../remote/models/providers.ts";
import { trustedRoots } from "../remote/guard/trusted_roots.ts";
import { Blobs } from "../store/blobs.ts";
import { SearchIndex } from "../store/search/search_index.ts";
import { emptyTempFolder } from "../store/temp_folder.ts";
import { Timeline } from "../store/log/timeline.ts";
import { Uploads } from "../store/uploads.ts";

export interface ServiceOptions {
  readonly config: Config;
  readonly tools: Tools;
  readonly places: Places;
  /** How labels are renamed; absent or null for not at all. */
  readonly labelMaps?: LabelMaps | null;
  /** The model backends, by priority; none when absent. */
  readonly backends?: readonly BackendSettings[];
  /** The zone that live sessions watch unless they bring their own; none when absent. */
  readonly restrictedZone?: RestrictedZone | null;
  readonly world: World;
  /** For tests: where live sessions run; Workers of this process when absent. */
  readonly liveWorkers?: LiveWorkers;
  /** For tests: how outbound connections find and trust their peers. */
  readonly outbound?: Outbound;
}

/** A running service. Disposing it answers what is under way, then lets go of everything. */
export interface Service extends AsyncDisposable {
  readonly hostname: string;
  readonly port: number;
  readonly timeline: Timeline;
  /** Answers a request without a socket. */
  respond(request: Request): Response | Promise<Response>;
}

/** Errors: the data directory is owned by another process, the address is taken, a kernel does not load. */
export async function openService(
  {
    config,
    tools,
    places,
    labelMaps = null,
    backends = [],
    restrictedZone = null,
    world,
    liveWorkers,
    outbound = {},
  }: ServiceOptions,
): Promise<Service> {
  await using opening = new AsyncDisposableStack();
  const metrics = new Metrics();
  // Read once: hundreds of certificates, for media sources and webhooks alike.
  const trusting = { ...outbound, roots: outbound.roots ?? trustedRoots() };

  const timeline = opening.use(
    await Timeline.open({ dataDir: places.dataDir, world, sync: config.walSync }),
  );
  emptyTempFolder(places.tempDir);
  const uploads = Uploads.open(places.uploadRoot, world);
  const blobs = Blobs.open(places.dataDir, world);
  metrics.read("service_timeline_events_total", () => timeline.view.lastSeq);
  metrics.read("service_timeline_damaged_records_total", () => timeline.stats.damagedRecords);
  metrics.read("service_timeline_append_failures_total", () => timeline.stats.appendFailures);

  const searchIndex = opening.use(SearchIndex.open({ timeline, dataDir: places.dataDir, world }));
  const feedback = new Feedback(timeline);
  opening.use(feedback.observe());

  const decoder = opening.use(
    await Decoder.open({
      tools,
      tempDir: places.tempDir,
      world,
      maxConcurrent: navigator.hardwareConcurrency,
    }),
  );
  const extractor = opening.use(
    new Extractor({
      tools,
      tempDir: places.tempDir,
      world,
      maxConcurrent: navigator.hardwareConcurrency,
      metrics,
    }),
  );
  const gate = await GateKernel.load();

  const work = new RunWork();
  opening.defer(() => work.endAll());
  const shared = { timeline, world, metrics, work, streamTtlMs: config.streamTtlMs };
  const local = { operatorRoots: places.operatorRoots, uploadRoot: places.uploadRoot };
  const sources = opening.use(
    new Sources({ world, local, tempDir: places.tempDir, toggles: config, outbound: trusting }),
  );
  const providers = opening.use(new Providers({ backends, world, outbound: trusting }));
  const inference = new Inference({ providers, limits: config.inference, metrics, world });
  const sidecarAddress = config.audioSidecar.address;
  const audioSidecar = sidecarAddress === undefined
    ? null
    : opening.use(new AudioSidecar({ address: sidecarAddress, world, metrics }));
  const follower = new Follower({ timeline, world, metrics, wire: SSE_WIRE });
  const webhooks = opening.use(
    new Webhooks({
      ...shared,
      dataDir: places.dataDir,
      sending: opening.use(webhookSending(config, trusting)),
      retryDelaysMs: config.webhookRetryDelaysMs,
      allowPrivate: config.allowPrivateWebhooks,
    }),
  );
  failRunsLeftOpen(timeline, world);
  const table = new LiveRegistry({ work, metrics, world });
  const { embeddingAddress, embeddingTimeoutMs, ...novelty } = config.novelty;
  const embeddings = embeddingAddress === undefined ? null : opening.use(
    new EmbeddingSidecar({ address: embeddingAddress, timeoutMs: embeddingTimeoutMs, world, metrics }),
  );
  const decodes = await liveCodecs({ tools, world });
  const localOutput = config.triggerLocalOutputSocket;
  const ice = iceOf(config);
  const generations = new LiveSessionFactory({
    ...shared,
    table,
    blobs,
    inference,
    ice,
    workers: opening.use(
      liveWorkers ?? new LiveWorkerPool({
        start: { tools, tempDir: places.tempDir, decodes },
        readable: places.codeDirs,
        world,
        workersMax: Math.min(LIVE_WORKERS_MAX, navigator.hardwareConcurrency),
      }),
    ),
    capacity: new MediaCapacity({
      memoryBudgetBytes: config.mediaMemoryBudgetBytes,
      threadBudget: config.mediaWorkerThreadBudget,
      metrics,
      world,
    }),
    models: config.webrtc,
    novelty: embeddings && new SemanticNovelty({ sidecar: embeddings, settings: novelty, metrics }),
    audio: audioSidecar && { sidecar: audioSidecar, tools, timeoutMs: config.audioSidecar.timeoutMs },
    datagrams: localOutput === undefined ? null : opening.use(TriggerDatagramSender.open(localOutput, world)),
    thresholds: config.gateThresholds,
  });
  const attach = {
    crop: config.webrtc.crop ?? null,
    zone: restrictedZone,
    tokensPerSecond: config.webrtc.maxOutputTokensPerSecond,
    hasLocalOutput: localOutput !== undefined,
  };
  const live = { ...shared, table, generations, attach };
  const policies = new Policies({ timeline, sessions: table });
  const useCases = {
    runs: new Runs({ ...shared, activeStreamLimit: config.activeStreamLimit }),
    ingest: new Ingest({ ...shared, decoder, sources }),
    analyze: new Analyze({ ...shared, gate, thresholds: config.gateThresholds, labelMaps }),
    reads: new EventReads(timeline),
    search: new Search(timeline, searchIndex),
    interactions: new Interactions(timeline),
    feedback,
    files: opening.use(new Files({ world, uploads, decoder, sources: local })),
    blobs: new BlobReads(timeline, blobs),
    follower,
    webhooks,
    reason: new Reason({
      ...shared,
      decoder,
      extractor,
      sources,
      blobs,
      inference,
      audioSidecar,
      perPrincipalLimit: config.inference.perPrincipalLimit,
      thresholds: config.gateThresholds,
      labelMaps,
    }),
    infer: new Infer({ ...shared, inference, perPrincipalLimit: config.inference.perPrincipalLimit }),
    triggers: new Triggers(await TriggerKernel.load()),
    policies,
    policyReplay: new PolicyReplay({
      ...shared,
      policies,
      decoder,
      sources,
      gate,
      thresholds: config.gateThresholds,
    }),
    whip: new Whip({ ...live, ice, decodes: new Set(decodes), activeStreamLimit: config.activeStreamLimit }),
    liveSources: new LiveSources({ ...live, sources, decoder, toggles: config }),
    metrics,
    schemas: publishedSchemas(),
  };

  const app = createApp({
    guard: config,
    front: openEdgeChecks(config, world),
    useCases,
    world,
    settled: () => timeline.synced(),
  });
  const server = Deno.serve({ ...config.bindAddr, onListen() {} }, (request) => app.respond(request));
  opening.defer(() => closeServer(server, world));
  opening.use(inference); // calls that belong to no run would hold their answers up
  opening.defer(() => work.endAll()); // before inference, so that no chunk of a run is told as failed
  opening.defer(() => table.close()); // while everything that their last events need is there
  opening.use(follower); // an event stream never ends by itself, and the server waits for every answer

  const closing = opening.move();
  const { hostname, port } = server.addr as Deno.NetAddr;
  world.log.info(`listening on http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`);
  return {
    hostname,
    port,
    timeline,
    respond: (request) => app.respond(request),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

/** One a processor is enough for a hundred sessions of 720p on many; each costs some 50 MB. */
const LIVE_WORKERS_MAX = 8;

function iceOf({ webrtc }: Config): IceSettings {
  const { stunServers, turnUrl, turnUsername = "", turnCredential = "" } = webrtc;
  const turn = turnUrl === undefined
    ? null
    : { url: turnUrl, username: turnUsername, credential: turnCredential };
  return { stunServers, turn };
}

/** How long answers under way may take when the service closes; after that their connections are dropped. */
const CLOSE_GRACE_MS = 5_000;

/** No new connections from here on; waits for the answers under way, within the grace. */
async function closeServer(server: Deno.HttpServer, world: World): Promise<void> {
  const finished = new AbortController();
  const isFinished = server.shutdown().then(() => {
    finished.abort();
    return true;
  });
  const isLate = world.sleep(CLOSE_GRACE_MS, finished.signal).then(() => false, () => true);
  if (!await Promise.race([isFinished, isLate])) {
    world.log.warn(`answers under way did not end within ${CLOSE_GRACE_MS} ms, dropping them`);
  }
}

/** Without a root secret webhooks are off. */
function webhookSending(
  { webhookSecret: secret }: Config,
  { resolve, roots, reroute }: Outbound & { readonly roots: readonly string[] },
): (WebhookSending & Disposable) | undefined {
  if (secret === undefined) return undefined;
  const agent = new PinnedAgent({ roots, ...(reroute && { reroute }) });
  return { secret, agent, ...(resolve && { resolve }), [Symbol.dispose]: () => agent[Symbol.dispose]() };
}
