/** A real service on loopback for a test: its own folders, a clock that the test moves, and a client. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Config, readConfig } from "../../src/base/config.ts";
import { type Log, quietLog } from "../../src/base/log.ts";
import { realWorld, type World } from "../../src/base/world.ts";
import type { LiveWorkers } from "../../src/live/worker_pool.ts";
import { watchAnswers } from "./http/route_contract.ts";
import type { Outbound } from "../../src/remote/guard/outbound.ts";
import { openService, type Service } from "../../src/service/service.ts";
import { findTools, readBackends, readLabelMaps } from "../../src/environment.ts";

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
  /** A JSON request as the holder of `key` (KEY_A unless told; null sends none). */
  call(method: string, path: string, body?: unknown, key?: string | null): Promise<Answer>;
  send(path: string, init: RequestInit): Promise<Answer>;
  /** Stops the service, keeps its data directory, lets `meanwhile` change it, and starts again, with `env` from then on. */
  restart(meanwhile?: () => void, env?: Record<string, string>): Promise<void>;
}

export interface TestOptions {
  /** How many times faster than the wall clock the service's timers run; 1. */
  readonly timerSpeed?: number;
  /** How outbound connections find and trust their peers; as in production. */
  readonly outbound?: Outbound;
  /** The text of the TOML file of model backends, whose variables are those of the service; no file unless given. */
  readonly backendFile?: string;
  /** Where live sessions run, made anew at each start; real Workers unless given. */
  readonly liveWorkers?: () => LiveWorkers;
  /** Silent unless given. */
  readonly log?: Log;
}

export async function startService(
  env: Record<string, string> = {},
  { timerSpeed = 1, outbound = {}, backendFile, liveWorkers, log = quietLog() }: TestOptions = {},
): Promise<TestService> {
  const root = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "service-test-" }));
  const folder = (name: string) => {
    Deno.mkdirSync(join(root, name), { recursive: true });
    return join(root, name);
  };
  if (backendFile !== undefined) Deno.writeTextFileSync(join(root, "service.toml"), backendFile);
  env = { SERVICE_CONFIG: join(root, "service.toml"), ...env };
  let config = configOf(env);
  const places = {
    dataDir: folder("data"),
    uploadRoot: folder("uploads"),
    tempDir: folder("tmp"),
    operatorRoots: [folder("media"), CLIPS],
    codeDirs: [],
  };
  const faults: string[] = [];
  const tools = findTools(config, faults);
  const labelMaps = readLabelMaps(config, faults);
  let { backends, restrictedZone } = readBackends(config, env, faults);
  if (faults.length > 0) throw new Error(faults.join("\n"));

  let offsetMs = 0;
  const real = realWorld(log);
  const world: World = {
    ...real,
    now: () => real.now() + offsetMs,
    monotonicMs: () => real.monotonicMs() * timerSpeed,
    sleep: (ms, signal) => real.sleep(ms / timerSpeed, signal),
  };
  const open = () =>
    openService({
      config,
      tools,
      places,
      labelMaps,
      backends,
      restrictedZone,
      world,
      ...(liveWorkers && { liveWorkers: liveWorkers() }),
      outbound,
    });
  let service = await open();
  watchAnswers(`http://127.0.0.1:${service.port}`);

  const test: TestService = {
    get url() {
      return `http://127.0.0.1:${service.port}`;
    },
    get service() {
      return service;
    },
    dataDir: places.dataDir,
    mediaDir: join(root, "media"),
    uploadRoot: places.uploadRoot,
    advance: (ms) => void (offsetMs += ms),
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
      await service[Symbol.asyncDispose]();
      meanwhile();
      config = configOf({ ...env, ...changes });
      ({ backends, restrictedZone } = readBackends(config, { ...env, ...changes }, faults));
      service = await open();
      watchAnswers(test.url);
    },
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      Deno.removeSync(root, { recursive: true });
    },
  };
  return test;
}

function configOf(env: Record<string, string>): Config {
  return readConfig({ SERVICE_API_KEYS: `${KEY_A},${KEY_B}`, SERVICE_BIND_ADDR: "127.0.0.1:0", ...env });
}

/** A new run of the holder of `key`; its id. */
export async function newRun(test: TestService, key = KEY_A): Promise<string> {
  const created = await test.call("POST", "/v1/runs", {}, key);
  if (created.status !== 200) throw new Error(`no run: ${created.status} ${created.text}`);
  return created.json.run_id;
}
