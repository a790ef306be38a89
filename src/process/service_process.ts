/** The process: starts the service in its sandbox and the broker of its programs, closes both on a signal,
 * gives the exit code.
 */

import { type Config, ConfigFaults, readVariables } from "../contract/config.ts";
import { BackgroundOutput, isOnePlace, openLog, quietLog } from "../base/log.ts";
import { giveBackMemory, keepTrimmed } from "./spare_memory.ts";
import { hasEndedWithin, timer } from "../base/wait.ts";
import { endStalledAnswers } from "./stalled_answers.ts";
import { realWorld, type World } from "../base/world.ts";
import { entryOf } from "../base/program_paths.ts";
import { type Environment, warnOfExposure } from "./clean_process.ts";
import {
  adoptUploads,
  findTools,
  isThere,
  preparePlaces,
  readSecretFiles,
  removeSocketDir,
} from "./environment.ts";
import { followSources } from "./followed_sources.ts";
import type { Certificate } from "../http3/listener.ts";
import type { Programs } from "./programs.ts";
import {
  factsOf,
  loadSandboxed,
  type ServiceNotice,
  type ServiceOrder,
  type Start,
  startOrder,
} from "./sandbox.ts";

/** How long closing may take after a signal; after that the process exits anyway. */
const CLOSE_DEADLINE_MS = 15_000;

const EXIT_FAILED = 1;
/** How long the process waits at its end for its last log lines to be read. */
const LOG_FLUSH_MS = 1000;

/** Runs the service until it is told to close. Returns the exit code. */
export async function runService(environment: Environment): Promise<number> {
  const output = new BackgroundOutput({ isOnePlace: isOnePlace() });
  const code = await main(environment, output);
  await hasEndedWithin(realWorld(quietLog()), LOG_FLUSH_MS, output.flushed());
  return code;
}

async function main(environment: Environment, output: BackgroundOutput): Promise<number> {
  try {
    const start = await readStart(environment.variables);
    try {
      return await serve(
        start,
        environment,
        realWorld(openLog(start.config.logFilter, output).child("main")),
      );
    } finally {
      removeSocketDir(start.places);
    }
  } catch (error) {
    if (!(error instanceof ConfigFaults)) throw error;
    console.error(error.message);
    return EXIT_FAILED;
  }
}

/**
 * ```
 *   process   load the sandboxed Worker ── order to start ....... load the broker ── find the cage ── tell it
 *   Worker    ........ load the service ── open ── listening ── first jobs wait for the broker and the cage
 * ```
 * The broker takes as long to load as the rest of the process, and a start needs none: until then orders to
 * it wait in their port. Throws {@link ConfigFaults} where the setting requires a cage that the machine does
 * not allow; then nothing has listened.
 */
async function serve(start: Start, environment: Environment, world: World): Promise<number> {
  const { log } = world;
  const exit = Promise.withResolvers<number>();
  const fail = (message: string) => {
    log.error(message);
    exit.resolve(EXIT_FAILED);
  };
  const worker = loadSandboxed(entryOf("service"), start);
  worker.onerror = (event) => {
    event.preventDefault();
    fail(`the service ended unexpectedly: ${event.message}`);
  };
  const listening = Promise.withResolvers<boolean>();
  let stalled: Disposable | undefined;
  worker.onmessage = ({ data: notice }: MessageEvent<ServiceNotice>) => {
    if (notice.type === "listening") {
      stalled = endStalledAnswers(notice, world);
      listening.resolve(true);
    }
    if (notice.type === "closed") exit.resolve(0);
    if (notice.type === "failed") fail(notice.message);
  };
  await using closing = new AsyncDisposableStack();
  closing.defer(() => stalled?.[Symbol.dispose]());
  const open = async () => closing.use((await import("./programs.ts")).openPrograms(start, world));
  const opened = start.config.decoderCage === "required" ? await open() : null;
  // Nobody else waits for the cage, so that its trials do not slow down the start.
  await opened?.cage();
  for (const warning of start.config.warnings) log.warn(warning);
  warnOfExposure(log, environment);
  const { uploadRoot } = start.places;
  try {
    const adopted = adoptUploads(start.places);
    if (adopted > 0) log.info("uploads of an earlier version were moved", { uploads: adopted, uploadRoot });
  } catch (error) {
    log.error("cannot move the uploads of an earlier version", { uploadRoot, error: String(error) });
  }
  const ports: MessagePort[] = [];
  const order = startOrder(start, { serve: (port) => void ports.push(port) });
  worker.postMessage(order, [order.broker]);
  closeOnSignal(worker, world, exit.resolve);
  await using _followed = followSources(start, environment.variables, {
    world,
    tell: (sources) => worker.postMessage({ type: "sources", sources } satisfies ServiceOrder),
  });
  if (await Promise.race([listening.promise, exit.promise.then(() => false)])) {
    const programs = opened ?? await open();
    for (const port of ports) programs.broker.serve(port);
    tellCage(worker, programs, fail);
  }
  using _trimmed = keepTrimmed(world);
  return await exit.promise;
}

/**
 * The configuration, and what the sandboxed service cannot find or read itself. Throws {@link ConfigFaults}
 * with the faults of the variables and those of programs, folders and files together.
 */
export async function readStart(given: Readonly<Record<string, string>>): Promise<Start> {
  const faults: string[] = [];
  const variables = readSecretFiles(given, faults);
  const { config, faults: variableFaults } = readVariables(variables);
  faults.push(...variableFaults);
  const environment = {
    tools: findTools(config, faults),
    places: preparePlaces(config, faults),
    ...(namesFiles(config, variables) && await readFiles(config, variables, faults)),
    ...(config.transport === "h3" && { certificate: await certificateOf(config, faults) }),
  };
  if (faults.length > 0) {
    removeSocketDir(environment.places);
    throw new ConfigFaults(faults);
  }
  const warnings = [...config.warnings!, ...warningsOfMissing(config, variables)];
  const logsOnce = isOnePlace();
  return { config: { ...config as Config, warnings }, cage: null, logsOnce, ...environment };
}

/**
 * A warning for each file of settings that is not there. It counts as an empty one, but where a variable
 * names it that is a mistake as a rule.
 */
function warningsOfMissing(
  { backendFile, sourcesFile }: Partial<Config>,
  variables: Readonly<Record<string, string>>,
): string[] {
  const files = [["SERVICE_CONFIG", backendFile], ["SERVICE_SOURCES_CONFIG", sourcesFile]] as const;
  return files.flatMap(([name, path]) =>
    variables[name] === undefined || path === undefined || isThere(path)
      ? []
      : [`${name} names a file that is not there: ${JSON.stringify(path)}`]
  );
}

/** Whether there is anything for `process/setting_files.ts` to read. */
function namesFiles(
  { labelMapsPath, backendFile, sourcesFile }: Partial<Config>,
  { SERVICE_VLLM_BASE_URL, SERVICE_SGLANG_BASE_URL }: Readonly<Record<string, string>>,
): boolean {
  const isNamed = [labelMapsPath, SERVICE_VLLM_BASE_URL, SERVICE_SGLANG_BASE_URL].some((name) =>
    name !== undefined
  );
  return isNamed || [backendFile, sourcesFile].some((path) => path !== undefined && isThere(path));
}

/** Loads the parsers, which take as long to load as the rest of the process. */
async function readFiles(
  config: Partial<Config>,
  variables: Readonly<Record<string, string>>,
  faults: string[],
): Promise<Pick<Start, "labelMaps" | "backendFile" | "namedSources">> {
  const { readBackends, readLabelMaps, readSourcesAtStart } = await import("./setting_files.ts");
  const backendFile = readBackends(config, variables, faults);
  return {
    labelMaps: readLabelMaps(config, faults),
    backendFile,
    namedSources: readSourcesAtStart(config, variables, backendFile.restrictedZone, faults),
  };
}

/** The certificate of the HTTP/3 listener; null where the files are faulty. */
async function certificateOf(config: Partial<Config>, faults: string[]): Promise<Certificate | null> {
  const { readCertificate } = await import("./certificate_files.ts");
  return readCertificate(config, faults, realWorld(quietLog()));
}

/** Finds the cage, unless it is known, and tells it to the service. */
function tellCage(worker: Worker, programs: Programs, fail: (message: string) => void): void {
  programs.cage().then(
    ({ cage }) => {
      worker.postMessage({ type: "cage", cage: factsOf(cage) } satisfies ServiceOrder);
      giveBackMemory(); // the start is over, and this thread serves no requests
    },
    (error) => {
      if (!programs.isClosed) fail(`the cage of decoders cannot be found: ${error}`);
    },
  );
}

/** Closes the service on the first signal, and exits at once on a second one. */
function closeOnSignal(worker: Worker, world: World, exit: (code: number) => void): void {
  let isClosing = false;
  const onSignal = () => {
    if (isClosing) return exit(EXIT_FAILED);
    isClosing = true;
    world.log.info("closing");
    worker.postMessage({ type: "close" } satisfies ServiceOrder);
    timer(world, CLOSE_DEADLINE_MS, () => {
      world.log.error(`not closed after ${CLOSE_DEADLINE_MS} ms, exiting anyway`);
      exit(EXIT_FAILED);
    });
  };
  Deno.addSignalListener("SIGINT", onSignal);
  Deno.addSignalListener("SIGTERM", onSignal);
}
