/** The life of a sidecar's process: settings in, signals in, exit code out. */

import { errorText, openLog, processOutput } from "../base/log.ts";
import type { Address } from "../contract/setting_parsers.ts";
import { realWorld, type World } from "../base/world.ts";
import type { SidecarEnvironment } from "./sidecar_settings.ts";

export interface RunningSidecar extends AsyncDisposable {
  readonly bindAddr: Address;
  readonly port: number;
  /** One line for the log: what this sidecar can do with its settings. */
  readonly summary: string;
}

export interface SidecarProgram {
  /** The target of its log lines. */
  readonly name: string;
  readonly variables: readonly string[];
  readonly start: (env: SidecarEnvironment, world: World) => Promise<RunningSidecar> | RunningSidecar;
}

/**
 * Runs until SIGINT or SIGTERM. Gives the exit code: 1 when the sidecar could not start or stopped with an
 * error.
 */
export async function runSidecar({ name, variables, start }: SidecarProgram): Promise<number> {
  const world = realWorld(openLog("info", processOutput()));
  const log = world.log.child(name);
  const ended = Promise.withResolvers<void>();
  Deno.addSignalListener("SIGINT", ended.resolve);
  Deno.addSignalListener("SIGTERM", ended.resolve);
  try {
    const env = Object.fromEntries(variables.map((variable) => [variable, Deno.env.get(variable)]));
    await using sidecar = await start(env, { ...world, log });
    const { bindAddr: { hostname }, port, summary } = sidecar;
    log.info(summary);
    log.info(`listening on tcp://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`);
    await ended.promise;
    return 0;
  } catch (error) {
    log.error(errorText(error));
    return 1;
  }
}
