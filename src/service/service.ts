/** Builds every long-lived object once, in reading order on one disposal stack, and closes them in the
 * opposite order.
 */

import { type Config, hasSeveralPrincipals } from "../contract/config.ts";
import { FAMILIES } from "../contract/metric_families.ts";
import { Metrics } from "../contract/metrics.ts";
import type { DecodeDevices, Places } from "../base/program_paths.ts";
import { giveBackMemory, onceQuiet } from "../process/spare_memory.ts";
import type { World } from "../base/world.ts";
import { Follower } from "../flow/events/follower.ts";
import { Feedback } from "../flow/analysis/feedback.ts";
import type { Mirror } from "../flow/system/mirror.ts";
import { AgeClock } from "../flow/retention/age_clock.ts";
import { Retention } from "../flow/retention/retention.ts";
import { RecordingRemoval } from "../flow/retention/recording_removal.ts";
import { RunStanding } from "../flow/retention/run_standing.ts";
import { RunWork } from "../flow/runs/run_work.ts";
import type { AlwaysOn } from "../flow/cameras/always_on.ts";
import { NamedSources } from "../flow/sources/named_sources.ts";
import { Sources } from "../flow/sources/sources.ts";
import type { Webhooks } from "../flow/webhooks/webhooks.ts";
import { VERSION } from "../http/description/version.ts";
import type { LookAtConnections } from "../http/connections.ts";
import type { Certificate } from "../http3/listener.ts";
import { SSE_WIRE } from "../http/routes/sse.ts";
import type { LiveWorkers } from "../live/worker_pool.ts";
import type { BrokerClient } from "../media/broker/broker_client.ts";
import type { CageLevel, StreamsBy } from "../media/broker/cage.ts";
import type { LabelMaps } from "../model/frames/label_map.ts";
import type { PrincipalNames } from "../model/principal_names.ts";
import type { NamedSource } from "../model/sources/source_file.ts";
import type { BackendSettings } from "../model/infer/backend_file.ts";
import type { RestrictedZone } from "../model/policies/zone.ts";
import type { Outbound, Roots, TrustedOutbound } from "../remote/guard/outbound.ts";
import { trustedRoots } from "../remote/guard/trusted_roots.ts";
import type { Timeline } from "../store/timeline/timeline.ts";
import { BlobSweep } from "../store/media/blob_sweep.ts";
import { diskRoom } from "../store/space/disk_room.ts";
import { authorityOf } from "./addresses.ts";
import { type Http, openHttp } from "./open_http.ts";
import { openLive } from "./open_live.ts";
import { openMedia } from "./open_media.ts";
import type { OpenMirrorOptions } from "./open_mirror.ts";
import { openRelays } from "./open_relays.ts";
import { openModels } from "./open_models.ts";
import { openStore } from "./open_store.ts";
import { openWebhooks } from "./open_webhooks.ts";
import { openUseCases } from "./use_cases.ts";

export interface ServiceOptions {
  readonly config: Config;
  /** Starts the programs. */
  readonly broker: BrokerClient;
  /** How the broker's programs are caged; the metrics tell it, and a scrape waits for it. */
  readonly cageLevel?: CageLevel | Promise<CageLevel>;
  /**
   * The network of the broker's programs for streams; that of the machine when absent. Sources that are
   * streams wait for it.
   */
  readonly streams?: StreamsBy | Promise<StreamsBy>;
  readonly places: Places;
  /** The hardware decoders that this machine may have; none when absent. */
  readonly devices?: DecodeDevices;
  /** How labels are renamed; absent or null for not at all. */
  readonly labelMaps?: LabelMaps | null;
  /** The model backends, by priority; none when absent. */
  readonly backends?: readonly BackendSettings[];
  /** The zone of live sessions that bring none of their own; none when absent. */
  readonly restrictedZone?: RestrictedZone | null;
  /** The sources of the file of named sources; none when absent. */
  readonly namedSources?: readonly NamedSource[];
  /** The certificate of the HTTP/3 listener; absent or null where there is none. */
  readonly certificate?: Certificate | null;
  readonly world: World;
  /** Looks at the system's list of connections; absent where nobody can. */
  readonly lookAtConnections?: LookAtConnections;
  /** How many log lines were dropped so far; none when absent. */
  readonly droppedLogLines?: () => number;
  /** For tests: ffmpeg and ffprobe are known to work, and are not tried. */
  readonly knownTools?: boolean;
  /** For tests: where live sessions run; Workers of this process when absent. */
  readonly liveWorkers?: LiveWorkers;
  /** For tests: how outbound connections find and trust their peers. */
  readonly outbound?: Outbound;
}

/** A running service. Disposing it finishes the responses under way, then releases everything. */
export interface Service extends AsyncDisposable {
  readonly hostname: string;
  readonly port: number;
  readonly timeline: Timeline;
  /**
   * Takes the file of named sources that was read again; null where it cannot be used. Resolves when what has
   * changed is applied.
   */
  applySources(sources: readonly NamedSource[] | null): Promise<void>;
  /** Answers a request without a socket. */
  respond(request: Request): Response | Promise<Response>;
}

/**
 * Opens the service. Errors: the data directory is owned by another process, the address is taken, a kernel
 * does not load.
 */
export async function openService(options: ServiceOptions): Promise<Service> {
  const { config, broker, places, backends = [], restrictedZone = null } = options;
  const { liveWorkers, devices = {} } = options;
  await using opening = new AsyncDisposableStack();
  const metrics = new Metrics();
  for (const level of FAMILIES.service_decoder_cage.labels.level) {
    metrics.observeValue("service_decoder_cage", { level }, async () => {
      return await (options.cageLevel ?? "off") === level ? 1 : 0;
    });
  }
  metrics.observeValue("service_log_lines_dropped_total", options.droppedLogLines ?? (() => 0));
  const outbound = trusted(options.outbound ?? {});
  const world = await tracedWorld(opening, options.world, { config, roots: outbound.roots, metrics });
  const { dataDir, tempDir, socketDir, ingestRoots, uploadRoot } = places;

  const store = await openStore(opening, {
    places,
    walSync: config.walSync,
    apiKeys: config.apiKeys,
    storageQuotaBytes: config.storageQuotaBytes,
    runBytes: config.retention.runBytes,
    world,
    metrics,
  });
  const { timeline } = store;
  const { names } = timeline;
  const labelMaps = options.labelMaps ? labelMapsNaming(names, options.labelMaps) : null;
  const isShared = hasSeveralPrincipals(config);
  const mirror = await openMirrorOf(opening, {
    config,
    timeline,
    dataDir,
    roots: outbound.roots,
    world,
    metrics,
  });
  const feedback = new Feedback(timeline, mirror);
  opening.use(feedback.observe());
  const { decodeBackend: backend } = config;
  const media = await openMedia(opening, {
    runner: broker,
    tempDir,
    world,
    metrics,
    backend,
    devices,
    memoryBudgetBytes: config.decodeMemoryBudgetBytes,
    isShared,
    knownTools: options.knownTools ?? false,
  });
  const work = new RunWork();
  opening.defer(() => work.endAll()); // work of requests that came while the server closed
  const local = { ingestRoots, uploadRoot, names };
  const { streams = "machine", namedSources = [] } = options;
  const named = new NamedSources(sourcesNaming(names, namedSources));
  const folders = { tempDir, socketDir };
  const relays = opening.use(
    openRelays({ config, world, metrics, socketDir, outbound: options.outbound ? outbound : null }),
  );
  const sources = opening.use(
    new Sources({
      ...{ world, local, ...folders, streams, toggles: config, relays, named, isShared },
      labelOf: (path) => store.uploads.labelOf(path),
    }),
  );
  const models = await openModels(opening, { config, backends, outbound, isShared, world, metrics });
  const follower = new Follower({ timeline, world, metrics, wire: SSE_WIRE });
  const webhooks = openWebhooks(opening, {
    config,
    timeline,
    dataDir,
    named,
    outbound,
    isShared,
    world,
    metrics,
  });
  const live = openLive(opening, {
    config,
    labelMaps,
    broker,
    places,
    restrictedZone,
    liveWorkers,
    store,
    media,
    models,
    backends,
    sources,
    named,
    work,
    isShared,
    world,
    metrics,
  });
  const { streamTtlMs, retention: rules } = config;
  const { runHours } = rules;
  const ages = new AgeClock(world);
  const standing = new RunStanding({ work, webhooks, mirror, named, streamTtlMs, runHours, world: ages });
  const log = world.log.child("retention");
  const recordings = new RecordingRemoval({ recordings: store.recordings, named, metrics, world: ages, log });
  const retention = opening.use(
    new Retention({
      ...{
        timeline,
        rules,
        standing,
        recordings,
        dataDir,
        uploadRoot,
        stored: store.stored,
        room: diskRoom,
        world,
        ages,
        metrics,
      },
      sweep: (onRemoval) => new BlobSweep({ dataDir, timeline, world: ages, log, onRemoval }),
    }),
  );
  const useCases = await openUseCases(opening, {
    config,
    labelMaps,
    local,
    dataDir,
    pagesDir: places.pagesDir,
    feedback,
    mirror,
    follower,
    webhooks,
    retention,
    store,
    media,
    models,
    live,
    sources,
    work,
    isShared,
    world,
    metrics,
  });
  const http = await openHttp(opening, {
    config,
    names,
    useCases,
    world,
    synced: () => timeline.synced(),
    metrics,
    lookAtConnections: options.lookAtConnections,
    certificate: options.certificate ?? null,
  });
  const count = () => http.requests() + timeline.view.lastSeq;
  const afterStart = () => {
    giveBackMemory();
    media.trials.begin();
  };
  opening.use(onceQuiet(world, { windowMs: QUIET_MS, count, then: afterStart }));

  // Disposed before the server, in the opposite order:
  opening.use(models.inference); // what is left after the grace, such as calls that belong to no run
  opening.defer(() => work.endAll()); // before inference, so that no chunk of a run is recorded as failed
  // while everything that their last events need is open
  opening.defer(() => Promise.all([http.drain(), endSessions()]).then(() => {}));
  opening.use(follower); // an event stream never ends by itself, and the server waits for every response
  const endSessions = async () => {
    await live.alwaysOn[Symbol.asyncDispose](); // before the sessions, so that none begins again
    await live.registry.close();
  };
  void media.hardware.find(); // not waited for: only a decode is
  live.alwaysOn.start();
  retention.start();
  return running(opening.move(), http, { timeline, alwaysOn: live.alwaysOn, webhooks }, world);
}

/** The operator's sources, which name principals as the configuration does. */
function sourcesNaming(names: PrincipalNames, sources: readonly NamedSource[]): NamedSource[] {
  return sources.map((source) => ({
    ...source,
    principals: source.principals?.map((name) => names.sealed(name)) ?? null,
  }));
}

/** The label maps, which name tenants as the data do: by their sealed names. */
function labelMapsNaming(names: PrincipalNames, maps: LabelMaps): LabelMaps {
  const tenants = Object.entries(maps.tenants ?? {}).map(([name, map]) => [names.sealed(name), map]);
  return { ...maps, tenants: Object.fromEntries(tenants) };
}

/**
 * The world with traces where a collector is configured, else as it is; the packages for traces are not
 * loaded then.
 */
async function tracedWorld(
  opening: AsyncDisposableStack,
  world: World,
  { config: { traces: { endpoint, sampleRatio } }, roots, metrics }: Pick<ServiceOptions, "config"> & {
    readonly roots: Roots;
    readonly metrics: Metrics;
  },
): Promise<World> {
  if (endpoint === undefined) return world;
  await import("./empty_environment.ts");
  const { openTracing } = await import("./open_tracing.ts");
  return {
    ...world,
    tracing: openTracing(opening, {
      endpoint,
      sampleRatio,
      roots: roots(),
      version: VERSION,
      world,
      metrics,
    }),
  };
}

interface MirrorOfOptions extends Omit<OpenMirrorOptions, "url" | "schema" | "roots"> {
  readonly roots: Roots;
  readonly config: Config;
}

/** Opens the mirror; null where none is configured, and then its package is not loaded. */
async function openMirrorOf(
  opening: AsyncDisposableStack,
  { config: { mirror: { url, module: schema } }, roots, ...options }: MirrorOfOptions,
): Promise<Mirror | null> {
  if (url === undefined) return null;
  await import("./empty_environment.ts");
  const { openMirror } = await import("./open_mirror.ts");
  return openMirror(opening, { url, schema, roots: roots(), ...options });
}

/**
 * How long no request and no event must come before the start counts as over: then the memory that it left is
 * given back, and ffmpeg is tried.
 */
const QUIET_MS = 3_000;

/** Reads the certificates once, for media sources and webhooks alike. */
function trusted({ roots: given, ...outbound }: Outbound): TrustedOutbound {
  let read = given;
  return { ...outbound, roots: () => read ??= trustedRoots() };
}

function running(
  closing: AsyncDisposableStack,
  { app, hostname, port }: Http,
  { timeline, alwaysOn, webhooks }: {
    readonly timeline: Timeline;
    readonly alwaysOn: AlwaysOn;
    readonly webhooks: Webhooks;
  },
  world: World,
): Service {
  world.log.info(`listening on http://${authorityOf({ hostname, port })}`);
  return {
    hostname,
    port,
    timeline,
    applySources: async (sources) => {
      await alwaysOn.apply(sources && sourcesNaming(timeline.names, sources));
      webhooks.endRemoved();
    },
    respond: (request) => app.respond(request),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}
