/** The process: reads the environment, starts the service in its sandbox, closes it on a signal, gives the exit code. */

import { type Config, ConfigFaults, readVariables } from "./base/config.ts";
import { openLog } from "./base/log.ts";
import { timer } from "./base/wait.ts";
import { realWorld, type World } from "./base/world.ts";
import { type Environment, readEnvironmentOnce, warnOfExposure } from "./clean_process.ts";
import {
  adoptUploads,
  findTools,
  preparePlaces,
  readBackends,
  readLabelMaps,
  readSecretFiles,
  removeSocketDir,
} from "./environment.ts";
import { Broker } from "./media/tools/broker.ts";
import { type ServiceNotice, type ServiceOrder, type Start, startSandboxed } from "./sandbox.ts";

/** How long closing may take after a signal; after that the process exits anyway. */
const CLOSE_DEADLINE_MS = 15_000;

const EXIT_FAILED = 1;

function main(environment: Environment): Promise<number> {
  let start;
  try {
    start = readStart(environment.variables);
  } catch (error) {
    if (!(error instanceof ConfigFaults)) throw error;
    console.error(error.message);
    return Promise.resolve(EXIT_FAILED);
  }
  const world = realWorld(openLog(start.config.logFilter).child("main"));
  const { log } = world;
  for (const warning of start.config.warnings) log.warn(warning);
  warnOfExposure(log, environment);
  const { uploadRoot } = start.places;
  try {
    const adopted = adoptUploads(start.places);
    if (adopted > 0) log.info("uploads of an earlier version were moved", { uploads: adopted, uploadRoot });
  } catch (error) {
    log.error("cannot move the uploads of an earlier version", { uploadRoot, error: String(error) });
  }

  const exit = Promise.withResolvers<number>();
  const broker = new Broker({ ...start, world: realWorld(log.child("broker")) });
  const worker = startSandboxed(new URL("./service_worker.ts", import.meta.url), start, broker);
  worker.onmessage = ({ data: notice }: MessageEvent<ServiceNotice>) => {
    if (notice.type === "closed") exit.resolve(0);
    if (notice.type === "failed") {
      log.error(notice.message);
      exit.resolve(EXIT_FAILED);
    }
  };
  worker.onerror = (event) => {
    event.preventDefault();
    log.error(`the service ended unexpectedly: ${event.message}`);
    exit.resolve(EXIT_FAILED);
  };
  closeOnSignal(worker, world, exit.resolve);
  return exit.promise.then(async (code) => {
    await broker[Symbol.asyncDispose]();
    removeSocketDir(start.places);
    return code;
  });
}

/**
 * The configuration, and what the sandboxed service cannot find or read itself. Throws {@link ConfigFaults} with the faults
 * of the variables and those of programs, folders and files together.
 */
function readStart(given: Readonly<Record<string, string>>): Start {
  const faults: string[] = [];
  const variables = readSecretFiles(given, faults);
  const { config, faults: variableFaults } = readVariables(variables);
  faults.push(...variableFaults);
  const environment = {
    tools: findTools(config, faults),
    places: preparePlaces(config, faults),
    labelMaps: readLabelMaps(config, faults),
    backendFile: readBackends(config, variables, faults),
  };
  if (faults.length > 0) {
    removeSocketDir(environment.places);
    throw new ConfigFaults(faults);
  }
  return { config: config as Config, ...environment };
}

/** The first signal closes the service, a second one exits at once. */
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

if (import.meta.main) Deno.exit(await main(readEnvironmentOnce()));
