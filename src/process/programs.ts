/** The programs of the service: the broker that starts them, and the cage around them, which is found when it
 * is first asked for.
 */

import { fileURLToPath } from "node:url";
import { ConfigFaults } from "../contract/config.ts";
import type { Log } from "../base/log.ts";
import { PROJECT } from "../base/program_paths.ts";
import { realWorld, type World } from "../base/world.ts";
import { findCageTools, forwarderCommand } from "./environment.ts";
import { Broker } from "../media/broker/broker.ts";
import { type CageLevel, streamsOf } from "../media/broker/cage.ts";
import { findCage, type FoundCage } from "../media/broker/cage_probe.ts";
import { openNativePipes } from "../media/broker/native_pipes.ts";
import type { Start } from "./sandbox.ts";

export interface Programs extends AsyncDisposable {
  /** Starts the programs; its first job waits for the cage. */
  readonly broker: Broker;
  /**
   * The cage around the programs, found once, by trials, and then told in the log. Throws {@link
   * ConfigFaults} where the setting requires more than the machine allows.
   */
  cage(): Promise<FoundCage>;
  readonly isClosed: boolean;
}

/** The programs of the service. None is started yet. */
export function openPrograms(start: Start, world: World): Programs {
  const closing = new AbortController();
  let found: Promise<FoundCage> | null = null;
  const cage = () => found ??= openCage(start, world, closing.signal);
  const broker = new Broker({
    ...start,
    cage: async () => (await cage()).cage,
    pipes: openNativePipes(),
    world: realWorld(world.log.child("broker")),
  });
  return {
    broker,
    cage,
    get isClosed() {
      return closing.signal.aborted;
    },
    async [Symbol.asyncDispose]() {
      closing.abort(new Error("the service is closing"));
      await broker[Symbol.asyncDispose]();
      await found?.catch(() => {}); // whoever asked was told
    },
  };
}

/** The system-call filters and their starters, which `scripts/build_seccomp.ts` makes. */
const FILTER_DIR = fileURLToPath(new URL("seccomp", PROJECT));

async function openCage(
  { config: { decoderCage }, tools, places: { socketDir } }: Start,
  world: World,
  signal: AbortSignal,
): Promise<FoundCage> {
  const found = await findCage({
    ...{ mode: decoderCage, tools, cageTools: findCageTools(), filterDir: FILTER_DIR },
    ...{ forwarderCommand: forwarderCommand(), socketDir, world, signal },
  });
  if (decoderCage === "required" && found.cage.level === "limits") {
    throw new ConfigFaults([
      "SERVICE_DECODER_CAGE must not be required on a machine that gives decoders no namespaces of their own " +
      `(${
        found.misses.join("; ")
      }); install bubblewrap and allow user namespaces (docs/security/cage.md), or set it to auto`,
    ]);
  }
  logCage(world.log, found);
  return found;
}

function logCage(log: Log, { cage, misses, streamsMiss, filterMiss }: FoundCage): void {
  const line = `decoder cage: ${CAGES[cage.level]}`;
  if (cage.level === "bubblewrap") log.info(line);
  else log.warn(misses.length === 0 ? line : `${line}; ${misses.join("; ")}`);
  if (filterMiss !== null) {
    log.warn(`decoder cage: no system-call filter, so ffmpeg may make any system call; ${filterMiss}`);
  }
  if (streamsMiss === null) return;
  const what = streamsOf(cage).by === "none"
    ? "HLS and RTSP sources are refused"
    : "jobs on HLS and RTSP have the network of the machine";
  log.warn(`decoder cage: no forwarder of streams, so ${what}; ${streamsMiss}`);
}

const CAGES: Record<CageLevel, string> = {
  bubblewrap: "bubblewrap, with namespaces of its own and a system-call filter",
  unshare: "unshare, with namespaces of its own",
  limits: "limits only, ffmpeg may open the files that the service's user may open",
  off: "off, ffmpeg may open what the service's user may open",
};
