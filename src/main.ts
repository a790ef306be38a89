/** The process: environment in, signals in, exit code out. What it starts is confined before it serves anyone. */

import { type Config, ConfigFaults, readConfig } from "./base/config.ts";
import { openLog } from "./base/log.ts";
import { type ServiceNotice, type ServiceOrder, startSandboxed } from "./sandbox.ts";
import { findTools, preparePlaces, readBackends, readLabelMaps } from "./environment.ts";

/** How long answers under way may take once a signal has come, before the process ends all the same. */
const CLOSE_DEADLINE_MS = 15_000;

const EXIT_FAILED = 1;

function main(): Promise<number> {
  let start;
  try {
    const config = readConfig(Deno.env.toObject());
    start = { config, ...settle(config) };
  } catch (error) {
    if (!(error instanceof ConfigFaults)) throw error;
    console.error(error.message);
    return Promise.resolve(EXIT_FAILED);
  }
  const log = openLog(start.config.logFilter).child("main");
  for (const warning of start.config.warnings) log.warn(warning);

  const exit = Promise.withResolvers<number>();
  const worker = startSandboxed(new URL("./service_worker.ts", import.meta.url), start);
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
  closeOnSignal(worker, log, exit.resolve);
  return exit.promise;
}

/** Faults of the machine are told all at once, like those of the variables. */
function settle(config: Config) {
  const faults: string[] = [];
  const settled = {
    tools: findTools(config, faults),
    places: preparePlaces(config, faults),
    labelMaps: readLabelMaps(config, faults),
    backendFile: readBackends(config, Deno.env.toObject(), faults),
  };
  if (faults.length > 0) throw new ConfigFaults(faults);
  return settled;
}

/** The first signal asks for a graceful end, a second one does not wait for it. */
function closeOnSignal(worker: Worker, log: ReturnType<typeof openLog>, exit: (code: number) => void): void {
  let isClosing = false;
  const onSignal = () => {
    if (isClosing) return exit(EXIT_FAILED);
    isClosing = true;
    log.info("closing");
    worker.postMessage({ type: "close" } satisfies ServiceOrder);
    setTimeout(() => {
      log.error(`not closed after ${CLOSE_DEADLINE_MS} ms, ending all the same`);
      exit(EXIT_FAILED);
    }, CLOSE_DEADLINE_MS);
  };
  Deno.addSignalListener("SIGINT", onSignal);
  Deno.addSignalListener("SIGTERM", onSignal);
}

if (import.meta.main) Deno.exit(await main());
