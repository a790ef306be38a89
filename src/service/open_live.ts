/** Opens live media: the sessions' registry, Workers and budgets, and the two ways to start a session. */

import type { Config } from "../contract/config.ts";
import type { Metrics } from "../contract/metrics.ts";
import type { Places } from "../base/program_paths.ts";
import { NEVER_ABORTED } from "../base/wait.ts";
import type { World } from "../base/world.ts";
import { LiveSources } from "../flow/live/camera.ts";
import { MediaCapacity } from "../flow/live/capacity.ts";
import type { Inference } from "../flow/infer/inference.ts";
import { LiveModelChoice } from "../flow/live/describing/live_model_choice.ts";
import { SemanticNovelty } from "../flow/live/describing/novelty.ts";
import { LiveRegistry } from "../flow/live/registry.ts";
import { failRunsLeftOpen } from "../flow/live/restart.ts";
import { LiveSessionFactory } from "../flow/live/session_factory.ts";
import { Whip } from "../flow/live/whip.ts";
import { PolicyRevisions } from "../flow/policies/revisions.ts";
import type { RunWork } from "../flow/runs/run_work.ts";
import { AlwaysOn } from "../flow/cameras/always_on.ts";
import { ArmedSources } from "../flow/sources/armed_sources.ts";
import type { NamedSources } from "../flow/sources/named_sources.ts";
import type { Sources } from "../flow/sources/sources.ts";
import type { IceSettings } from "../live/messages/messages.ts";
import { LiveWorkerPool, type LiveWorkers } from "../live/worker_pool.ts";
import { LiveCodecs } from "../media/live/live_codecs.ts";
import type { BrokerClient } from "../media/broker/broker_client.ts";
import type { LabelMaps } from "../model/frames/label_map.ts";
import { quoted } from "../model/field_rules.ts";
import type { BackendSettings } from "../model/infer/backend_file.ts";
import { attachContext } from "../model/live/attach.ts";
import { type LiveModels, liveModels } from "../model/live/live_models.ts";
import { PUBLIC_PRINCIPAL } from "../model/identifiers.ts";
import type { RestrictedZone } from "../model/policies/zone.ts";
import { TriggerDatagramSender } from "../remote/trigger_datagram_sender.ts";
import { EmbeddingSidecar } from "../remote/sidecars/embedding_sidecar.ts";
import { ArmedCalls } from "../store/armed_calls.ts";
import type { Media } from "./open_media.ts";
import type { Models } from "./open_models.ts";
import type { Store } from "./open_store.ts";

export interface Live {
  readonly registry: LiveRegistry;
  readonly whip: Whip;
  readonly liveSources: LiveSources;
  readonly named: NamedSources;
  readonly alwaysOn: AlwaysOn;
  readonly armed: ArmedSources;
  /** The models that sessions ask. */
  readonly models: LiveModelChoice;
  /** The policies of runs, which the sessions that start later begin with. */
  readonly revisions: PolicyRevisions;
}

export interface LiveOptions {
  readonly config: Config;
  readonly labelMaps: LabelMaps | null;
  readonly broker: BrokerClient;
  readonly places: Pick<Places, "dataDir" | "socketDir" | "codeDirs">;
  readonly restrictedZone: RestrictedZone | null;
  /** The Workers of live sessions; Workers of this process when absent. */
  readonly liveWorkers: LiveWorkers | undefined;
  readonly store: Store;
  readonly media: Media;
  readonly models: Models;
  /** The backends behind `models`. */
  readonly backends: readonly BackendSettings[];
  readonly sources: Sources;
  readonly named: NamedSources;
  readonly work: RunWork;
  /** Whether the service has several principals. */
  readonly isShared: boolean;
  readonly world: World;
  readonly metrics: Metrics;
}

export function openLive(opening: AsyncDisposableStack, options: LiveOptions): Live {
  const {
    config,
    restrictedZone,
    store: { timeline },
    media,
    sources,
    named,
    work,
    isShared,
    world,
    metrics,
  } = options;
  const log = world.log.child("sources");
  failRunsLeftOpen(timeline, world, metrics);
  const { activeStreamLimit, streamTtlMs } = config;
  const revisions = new PolicyRevisions(timeline);
  const registry = new LiveRegistry({ work, isShared, metrics, world });
  const ice = iceOf(config);
  const live = openLiveModels(options);
  const sessions = openSessions(opening, { ...options, registry, ice, live });
  const attach = attachContext(config, restrictedZone);
  const liveSources = new LiveSources({
    timeline,
    registry,
    sessions,
    sources,
    decoder: media.decoder,
    trials: media.trials,
    attach,
    metrics,
    world,
    streamTtlMs,
    revisions,
  });
  const firstPrincipal = config.requireApiKey && config.apiKeys.length > 0
    ? timeline.names.ofKey(config.apiKeys[0]!)
    : PUBLIC_PRINCIPAL;
  const calls = ArmedCalls.open({ dataDir: options.places.dataDir, world });
  const ownWorld = { ...world, log };
  const armed = opening.use(new ArmedSources({ named, calls, metrics, world: ownWorld }));
  return {
    registry,
    whip: new Whip({
      timeline,
      registry,
      sessions,
      metrics,
      world,
      attach,
      codecs: new LiveCodecs(options.media.ffmpeg),
      trials: media.trials,
      ice,
      activeStreamLimit,
      streamTtlMs,
    }),
    liveSources,
    named,
    alwaysOn: new AlwaysOn({ named, live: liveSources, armed, firstPrincipal, metrics, world: ownWorld }),
    armed,
    models: live.choice,
    revisions,
  };
}

interface SessionsOptions extends LiveOptions {
  readonly registry: LiveRegistry;
  readonly ice: IceSettings;
  readonly live: OpenLiveModels;
}

interface OpenLiveModels {
  readonly models: LiveModels;
  readonly choice: LiveModelChoice;
}

/** Opens the models of live sessions. What is not served of them is said once in the log. */
function openLiveModels(
  { config, backends, models: { inference }, world }: LiveOptions,
): OpenLiveModels {
  const models = liveModels(config.webrtc, backends);
  const choice = new LiveModelChoice(models, inference);
  const fault = () => liveModelFault(models, choice, inference);
  const say = (text: string | null) => void (text !== null && world.log.child("live").warn(text));
  // What the configuration does not name, a server may have.
  const mayHaveMore = backends.some(({ model }) => model === null);
  if (fault() === null || !mayHaveMore) say(fault());
  else void inference.renewModels(NEVER_ABORTED).then(() => say(fault()));
  return { models, choice };
}

/** Why the models of live sessions are not served; null where they are, as far as is known. */
function liveModelFault(
  { secondPassModel }: LiveModels,
  choice: LiveModelChoice,
  inference: Inference,
): string | null {
  const { served, isConfigured } = inference;
  const { second, notServed } = choice.now;
  if (notServed !== null) {
    const wayOut = isConfigured
      ? `set SERVICE_WEBRTC_FIRST_PASS_MODEL to one of ${served.join(", ")}`
      : "set SERVICE_VLLM_BASE_URL or SERVICE_SGLANG_BASE_URL, or name a backend in the file of SERVICE_CONFIG";
    return `live sessions are not described: ${notServed}; ${wayOut}`;
  }
  if (secondPassModel === null || second !== null) return null;
  return `no second model is asked about live sessions: no inference provider serves ${
    quoted(secondPassModel)
  }; ` +
    `set SERVICE_WEBRTC_SECOND_PASS_MODEL to one of ${served.join(", ")}, or unset it`;
}

function openSessions(opening: AsyncDisposableStack, options: SessionsOptions): LiveSessionFactory {
  const { config, labelMaps, broker, store, models, registry, ice, isShared, world, metrics } = options;
  const { audioSidecar } = models;
  const { address: _, timeoutMs } = config.audioSidecar;
  return new LiveSessionFactory({
    timeline: store.timeline,
    blobs: store.blobs,
    recordings: store.recordings,
    metrics,
    world,
    novelty: openNovelty(opening, config, { world, metrics }),
    workers: opening.use(options.liveWorkers ?? openWorkers(options)),
    registry,
    capacity: new MediaCapacity({
      memoryBudgetBytes: config.mediaMemoryBudgetBytes,
      threadBudget: config.mediaWorkerThreadBudget,
      isShared,
      metrics,
      world,
    }),
    inference: models.inference,
    modelTimeoutMs: config.liveModelTimeoutMs,
    ...options.live,
    audio: audioSidecar && { sidecar: audioSidecar, runner: broker, timeoutMs },
    datagrams: openDatagrams(opening, config, world),
    thresholds: config.gateThresholds,
    labelMaps,
    ice,
    mediaIdleMs: config.webrtc.mediaIdleMs,
  });
}

/**
 * The most Workers of live sessions: one per processor is enough for a hundred sessions of 720p on many
 * processors, and each costs some 50 MB.
 */
const LIVE_WORKERS_MAX = 8;

function openWorkers(
  { broker, places: { socketDir, codeDirs }, world }: SessionsOptions,
): LiveWorkerPool {
  return new LiveWorkerPool({
    start: { socketDir },
    connect: () => broker.connect(),
    readable: codeDirs,
    world,
    workersMax: Math.min(LIVE_WORKERS_MAX, navigator.hardwareConcurrency),
  });
}

/** Opens novelty by embeddings; null where no embedding sidecar is configured. */
function openNovelty(
  opening: AsyncDisposableStack,
  { novelty: { embeddingAddress, embeddingTimeoutMs, ...settings } }: Pick<Config, "novelty">,
  { world, metrics }: { readonly world: World; readonly metrics: Metrics },
): SemanticNovelty | null {
  if (embeddingAddress === undefined) return null;
  const sidecar = opening.use(
    new EmbeddingSidecar({ address: embeddingAddress, timeoutMs: embeddingTimeoutMs, world, metrics }),
  );
  return new SemanticNovelty({ sidecar, settings, metrics });
}

/** Opens the sender of trigger datagrams; null where no socket is configured. */
function openDatagrams(
  opening: AsyncDisposableStack,
  { triggerLocalOutputSocket: path }: Pick<Config, "triggerLocalOutputSocket">,
  world: World,
): TriggerDatagramSender | null {
  return path === undefined ? null : opening.use(TriggerDatagramSender.open(path, world));
}

function iceOf(
  { webrtc, bindAddr, mediaAllowedNetworks }: Pick<Config, "webrtc" | "bindAddr" | "mediaAllowedNetworks">,
): IceSettings {
  const { stunServers, turnUrl, turnUsername = "", turnCredential = "" } = webrtc;
  const turn = turnUrl === undefined
    ? null
    : { url: turnUrl, username: turnUsername, credential: turnCredential };
  const candidates = { listenHost: bindAddr.hostname, allowedNetworks: mediaAllowedNetworks };
  return { stunServers, turn, candidates };
}
