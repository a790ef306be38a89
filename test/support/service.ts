/** A real service on loopback for a test: its own folders, a clock that the test moves, and a client. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readConfig } from "../../src/contract/config.ts";
import { type Log, quietLog } from "../../src/base/log.ts";
import { yieldToEventLoop } from "../../src/base/wait.ts";
import { realWorld, type World } from "../../src/base/world.ts";
import type { LiveWorkers } from "../../src/live/worker_pool.ts";
import type { Outbound } from "../../src/remote/guard/outbound.ts";
import { type Cage, type CageLevel, NO_CAGE, streamsOf } from "../../src/media/broker/cage.ts";
import { openService, type Service } from "../../src/service/service.ts";
import { lookAtConnections } from "../../src/process/tcp_connections.ts";
import { readCertificate } from "../../src/process/certificate_files.ts";
import { findTools } from "../../src/process/environment.ts";
import { readBackends, readLabelMaps, readSourcesAtStart } from "../../src/process/setting_files.ts";
import type { Start } from "../../src/process/sandbox.ts";
import { watchAnswers } from "./http/route_contract.ts";
import type { ManualClock } from "./manual_clock.ts";
import { QuickFfmpeg } from "./quick_ffmpeg.ts";
import { TestBroker } from "./test_broker.ts";
import { cageOf } from "./cages.ts";
import { tools as allTools } from "./media.ts";
import { placesIn, SandboxedHost, type TestStart } from "./sandboxed_service.ts";

export const PROJECT_ROOT = fileURLToPath(new URL("../../", import.meta.url));
export const CLIPS = join(PROJECT_ROOT, "fixtures", "clips");
export const MODEL = "Qwen/Qwen3-VL-4B-Instruct";
export const KEY_A = "key-of-a";
export const KEY_B = "key-of-b";

/** An answer with its body already read. */
// deno-lint-ignore no-explicit-any -- tests look into answers of every shape
export type Answer = { status: number; headers: Headers; text: string; json: any };

export interface TestService extends AsyncDisposable {
  readonly url: string;
  readonly service: Service;
  readonly dataDir: string;
  readonly mediaDir: string;
  readonly uploadRoot: string;
  /** Moves the service's wall clock forward. */
  advance(ms: number): void;
  /** Lets so much time pass for the service: its clocks move, its timers do not end. */
  pass(ms: number): void;
  /** A JSON request with `key`: KEY_A by default, null for none. */
  call(method: string, path: string, body?: unknown, key?: string | null): Promise<Answer>;
  send(path: string, init: RequestInit): Promise<Answer>;
  /**
   * Stops the service, keeps its data directory, lets `meanwhile` change it, and starts again, with `env`
   * from then on.
   */
  restart(meanwhile?: () => void | Promise<void>, env?: Record<string, string>): Promise<void>;
}

export interface TestOptions {
  /**
   * Why the service runs in the test's own isolate and not in a sandboxed Worker: the test reaches into it.
   * The options below say so by themselves.
   */
  readonly inProcess?: string;
  /**
   * A folder that is there, for everything that the service writes, and stays; one of its own, which is
   * removed, unless given.
   */
  readonly root?: string;
  /** How many times faster than the wall clock the service's timers run; 1. */
  readonly timerSpeed?: number;
  /** Milliseconds that a timer of the service takes which is set for so many; as many unless given. */
  readonly timerMs?: (ms: number) => number;
  /** Moves the service's clocks and ends its timers, instead of the time of day. */
  readonly clock?: ManualClock;
  /** How outbound connections find and trust their peers; as in production. */
  readonly outbound?: Outbound;
  /** Where live sessions run, made anew at each start; real Workers unless given. */
  readonly liveWorkers?: () => LiveWorkers;
  /**
   * The cage in which programs run; none unless given. It needs an ffmpeg that is no script:
   * SERVICE_FFMPEG_PATH.
   */
  readonly cage?: Cage;
  /** Log of the service; silent unless given. */
  readonly log?: Log;
  /**
   * The text of the TOML file of model backends, whose variables are those of the service; no file unless
   * given.
   */
  readonly backendFile?: string;
  /**
   * The text of the file of named sources, whose variables are those of the service; no file unless given.
   */
  readonly sourcesFile?: string;
}

/** Reason of a test that commits events to the timeline of its service, or reads it. */
export const REACHES_IN = { inProcess: "the test uses the timeline of the service" } as const;
/** Reason of a test that calls `advance`. */
export const MOVES_CLOCK = { inProcess: "the test moves the clock of the service" } as const;

/** A sandboxed service unless an option needs one in this isolate. */
export async function startService(
  env: Record<string, string> = {},
  options: TestOptions = {},
): Promise<TestService> {
  const { inProcess, timerSpeed, timerMs, clock, outbound, liveWorkers, cage, log, root } = options;
  const isSandboxed = [inProcess, timerSpeed, timerMs, clock, outbound, liveWorkers, cage, log, root].every((
    option,
  ) => option === undefined);
  return isSandboxed ? await startSandboxed(env, options) : await startInProcess(env, options);
}

/** What opens and closes the service of a test, on its root folder. */
interface Opener {
  readonly root: string;
  /** The port. */
  open(start: TestStart): Promise<number>;
  close(): Promise<void>;
  /** Removes the root folder, or leaves it empty for the next service. */
  end(): void;
  /** The service itself and its clock. Throws for a service that is not in this isolate. */
  reach(): { service: Service; advance(ms: number): void; pass(ms: number): void };
}

async function startSandboxed(env: Record<string, string>, options: TestOptions): Promise<TestService> {
  const needs = findNeeds(env);
  const shared = idle.pop();
  const isShared = shared !== undefined && shared.suits(needs);
  if (shared && !isShared) idle.push(shared);
  const host = isShared ? shared : new SandboxedHost(needs, [CLIPS]);
  const opener: Opener = {
    root: host.root,
    open: (start) => host.open(start),
    close: () => host.close(),
    end: () => {
      if (!isShared) return host.terminate();
      host.clear();
      idle.push(host);
    },
    reach: () => {
      throw new Error("a test that reaches into its service starts it with `inProcess` and the reason");
    },
  };
  return await startWith(opener, env, options);
}

/**
 * The Worker that the tests of a file share, while none of them uses it. A second service at once gets its
 * own.
 */
const idle: SandboxedHost[] = [];

// Made before the first test, as a test must not leave behind what it has opened.
Deno.test.beforeAll(() => void idle.push(new SandboxedHost(findNeeds({}), [CLIPS])));
addEventListener("unload", () => {
  idle.forEach((host) => host.terminate());
  ffmpeg?.[Symbol.dispose]();
});

async function startInProcess(
  env: Record<string, string>,
  options: TestOptions,
): Promise<TestService> {
  const { timerSpeed = 1, timerMs = (ms) => ms, clock, outbound = {}, liveWorkers, log = quietLog() } =
    options;
  const root = options.root ?? Deno.realPathSync(Deno.makeTempDirSync({ prefix: "service-test-" }));
  let offsetMs = 0;
  let passedMs = 0;
  const real = realWorld(log);
  const startMs = real.now();
  const world: World = clock
    ? {
      ...real,
      now: () => startMs + clock.monotonicMs(),
      monotonicMs: () => clock.monotonicMs(),
      sleep: (ms, signal) => ms > 0 ? clock.sleep(ms, signal) : real.sleep(ms, signal),
    }
    : {
      ...real,
      now: () => real.now() + offsetMs,
      monotonicMs: () => real.monotonicMs() * timerSpeed + passedMs,
      sleep: (ms, signal) => real.sleep(timerMs(ms) / timerSpeed, signal),
    };
  let service: Service;
  let broker: TestBroker;
  const opener: Opener = {
    root,
    async open(start) {
      const { config, tools, cage: cageOfRun, places, labelMaps = null, backendFile } = start;
      const { namedSources = [], certificate = null } = start;
      const cage = options.cage ?? cageOfRun ?? NO_CAGE;
      broker = new TestBroker(tools, places, cage);
      service = await openService({
        ...{
          config,
          broker: broker.client,
          places,
          labelMaps,
          certificate,
          world,
          outbound,
          lookAtConnections,
        },
        backends: backendFile?.backends ?? [],
        restrictedZone: backendFile?.restrictedZone ?? null,
        streams: streamsOf(cage).by,
        namedSources,
        knownTools: start.knownTools,
        ...(liveWorkers && { liveWorkers: liveWorkers() }),
      }).catch(async (error) => {
        await broker[Symbol.asyncDispose]();
        throw error;
      });
      return service.port;
    },
    close: async () => {
      await service[Symbol.asyncDispose]();
      await broker[Symbol.asyncDispose]();
      // An answer whose client has gone ends at its next turn.
      await yieldToEventLoop();
    },
    end: () => options.root === undefined && Deno.removeSync(root, { recursive: true }),
    reach: () => ({
      service,
      advance: (ms) => void (offsetMs += ms),
      pass: (ms) => {
        offsetMs += ms;
        passedMs += ms;
      },
    }),
  };
  return await startWith(opener, env, options);
}

let ffmpeg: QuickFfmpeg | undefined;

/**
 * The cage of the services of all tests of a run, as `TEST_CAGE=bubblewrap ./scripts/test test/http/ingest`
 * asks for it. By default they have none, which saves time: what a cage changes is tested in
 * test/media/broker.
 */
const LEVEL = (Deno.env.get("TEST_CAGE") ?? "off") as CageLevel;
const CAGE = await cageOf(LEVEL, allTools());

/** What decides over the permissions of a service besides its folders. */
function findNeeds(env: Record<string, string>): Pick<Start, "config" | "tools"> {
  const faults: string[] = [];
  const config = readConfig({
    SERVICE_API_KEYS: `${KEY_A},${KEY_B}`,
    SERVICE_BIND_ADDR: "127.0.0.1:0",
    SERVICE_FFMPEG_PATH: LEVEL === "off" ? (ffmpeg ??= new QuickFfmpeg()).path : "ffmpeg",
    ...env,
  });
  const tools = findTools(config, faults);
  if (faults.length > 0) throw new Error(faults.join("\n"));
  return { config, tools };
}

/** Everything that the service needs in `root`, found as the process finds it. */
function findStart(root: string, env: Record<string, string>): TestStart {
  const { config, tools } = findNeeds(env);
  const faults: string[] = [];
  const labelMaps = readLabelMaps(config, faults);
  const backendFile = readBackends(config, env, faults);
  const namedSources = readSourcesAtStart(config, env, backendFile.restrictedZone, faults);
  const certificate = config.transport === "h3"
    ? readCertificate(config, faults, realWorld(quietLog()))
    : null;
  if (faults.length > 0) throw new Error(faults.join("\n"));
  return {
    config,
    tools,
    labelMaps,
    backendFile,
    namedSources,
    certificate,
    cage: CAGE,
    places: placesIn(root, [CLIPS]),
    // Those of the machine are tried by tests of their own.
    knownTools: env.SERVICE_FFMPEG_PATH === undefined && env.SERVICE_FFPROBE_PATH === undefined,
  };
}

async function startWith(
  opener: Opener,
  env: Record<string, string>,
  { backendFile, sourcesFile }: TestOptions,
): Promise<TestService> {
  const { root } = opener;
  env = {
    SERVICE_CONFIG: join(root, "service.toml"),
    SERVICE_SOURCES_CONFIG: join(root, "sources.toml"),
    ...env,
  };
  if (sourcesFile !== undefined) Deno.writeTextFileSync(join(root, "sources.toml"), sourcesFile);
  if (backendFile !== undefined) Deno.writeTextFileSync(join(root, "service.toml"), backendFile);
  let url = "";
  const open = async () => {
    url = `http://127.0.0.1:${await opener.open(findStart(root, env))}`;
    watchAnswers(url);
  };
  try {
    await open();
  } catch (error) {
    opener.end();
    throw error;
  }

  const test: TestService = {
    get url() {
      return url;
    },
    get service() {
      return opener.reach().service;
    },
    dataDir: join(root, "data"),
    mediaDir: join(root, "media"),
    uploadRoot: join(root, "uploads"),
    advance: (ms) => opener.reach().advance(ms),
    pass: (ms) => opener.reach().pass(ms),
    call: (method, path, body, key = KEY_A) =>
      test.send(path, {
        method,
        headers: {
          ...(key !== null && { "x-api-key": key }),
          ...(body !== undefined && { "content-type": "application/json" }),
        },
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      }),
    async send(path, init) {
      const response = await fetch(`${test.url}${path}`, init);
      const text = await response.text();
      const isJson = response.headers.get("content-type")?.startsWith("application/json") ?? false;
      return {
        status: response.status,
        headers: response.headers,
        text,
        json: isJson && text !== "" ? JSON.parse(text) : undefined,
      };
    },
    async restart(meanwhile = () => {}, changes = {}) {
      await opener.close();
      await meanwhile();
      env = { ...env, ...changes };
      await open();
    },
    async [Symbol.asyncDispose]() {
      await opener.close();
      opener.end();
    },
  };
  return test;
}

/** A new run of the holder of `key`; its id. */
export async function newRun(test: TestService, key = KEY_A): Promise<string> {
  const created = await test.call("POST", "/v1/runs", {}, key);
  if (created.status !== 200) throw new Error(`no run: ${created.status} ${created.text}`);
  return created.json.run_id;
}
