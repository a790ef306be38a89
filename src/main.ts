/** The process: reads the environment, starts the service in its sandbox, closes it on a signal, gives the exit code. */

import { fileURLToPath } from "node:url";
import { type Config, ConfigFaults, readVariables } from "./base/config.ts";
import { BackgroundOutput, type Log, openLog, quietLog } from "./base/log.ts";
import { hasEndedWithin, timer } from "./base/wait.ts";
import { realWorld, type World } from "./base/world.ts";
import { type Environment, readEnvironmentOnce, warnOfExposure } from "./clean_process.ts";
import {
  adoptUploads,
  findCageTools,
  findTools,
  forwarderCommand,
  preparePlaces,
  readBackends,
  readLabelMaps,
  readSecretFiles,
  removeSocketDir,
} from "./environment.ts";
import { FORWARD_STREAMS, forwardStreams } from "./forwarder_process.ts";
import { Broker } from "./media/tools/broker.ts";
import { type CageLevel, streamsOf } from "./media/tools/cage.ts";
import { findCage, type FoundCage } from "./media/tools/cage_probe.ts";
import { type ServiceNotice, type ServiceOrder, type Start, startSandboxed } from "./sandbox.ts";

/** How long closing may take after a signal; after that the process exits anyway. */
const CLOSE_DEADLINE_MS = 15_000;

const EXIT_FAILED = 1;
/** How long the process waits at its end for its last log lines to be read. */
const LOG_FLUSH_MS = 1000;

async function main(environment: Environment, output: BackgroundOutput): Promise<number> {
  let start;
  let logged: FoundCage;
  try {
    const found = readStart(environment.variables);
    const caged = await openCage(found, output);
    start = { ...found, cage: caged.cage };
    logged = caged;
  } catch (error) {
    if (!(error instanceof ConfigFaults)) throw error;
    console.error(error.message);
    return EXIT_FAILED;
  }
  const world = realWorld(openLog(start.config.logFilter, output).child("main"));
  const { log } = world;
  logCage(log, logged);
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
  const code = await exit.promise;
  await broker[Symbol.asyncDispose]();
  removeSocketDir(start.places);
  return code;
}

/**
 * The configuration, and what the sandboxed service cannot find or read itself. Throws {@link ConfigFaults} with the faults
 * of the variables and those of programs, folders and files together.
 */
function readStart(given: Readonly<Record<string, string>>): Omit<Start, "cage"> {
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

/** The system-call filters, which `scripts/build_seccomp.ts` makes. */
const FILTER_DIR = fileURLToPath(new URL("../seccomp", import.meta.url));

/** Throws {@link ConfigFaults} where the setting requires more than the machine allows. */
async function openCage(
  { config, tools, places }: Omit<Start, "cage">,
  output: BackgroundOutput,
): Promise<FoundCage> {
  const { decoderCage, logFilter } = config;
  const world = realWorld(openLog(logFilter, output).child("main"));
  const found = await findCage({
    ...{ mode: decoderCage, tools, cageTools: findCageTools(), filterDir: FILTER_DIR },
    ...{ forwarderCommand: forwarderCommand(), socketDir: places.socketDir, world },
  });
  if (decoderCage !== "required" || found.cage.level !== "limits") return found;
  removeSocketDir(places);
  throw new ConfigFaults([
    "SERVICE_DECODER_CAGE must not be required on a machine that gives decoders no namespaces of their own " +
    `(${
      found.misses.join("; ")
    }); install bubblewrap and allow user namespaces (docs/deployment.md#decoder-cage), or set it to auto`,
  ]);
}

function logCage(log: Log, { cage, misses, streamsMiss }: FoundCage): void {
  const line = `decoder cage: ${CAGES[cage.level]}`;
  if (cage.level === "bubblewrap") log.info(line);
  else log.warn(misses.length === 0 ? line : `${line}; ${misses.join("; ")}`);
  if (streamsMiss === null) return;
  const what = streamsOf(cage).by === "none"
    ? "HLS and RTSP sources are refused"
    : "jobs on HLS and RTSP have the network of the machine";
  log.warn(`decoder cage: no forwarder of streams, so ${what}; ${streamsMiss}`);
}

const CAGES: Record<CageLevel, string> = {
  bubblewrap: "bubblewrap, with namespaces of its own and a system-call filter",
  unshare: "unshare, with namespaces of its own and no system-call filter",
  limits: "limits only, ffmpeg may open what the service's user may open",
  off: "off, ffmpeg may open what the service's user may open",
};

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

if (import.meta.main) {
  // A compiled service is the only program at hand for its forwarder.
  if (Deno.args.at(-1) === FORWARD_STREAMS) await forwardStreams();
  const output = new BackgroundOutput();
  const code = await main(readEnvironmentOnce(), output);
  await hasEndedWithin(realWorld(quietLog()), LOG_FLUSH_MS, output.flushed());
  Deno.exit(code);
}
