/** The cages of this machine, level by level. */

import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import type { CageTools, Tools } from "../../src/base/program_paths.ts";
import { findCageTools, forwarderCommand } from "../../src/process/environment.ts";
import { type Cage, type CageLevel, streamsOf } from "../../src/media/broker/cage.ts";
import { Forwarder } from "../../src/media/broker/forwarder.ts";
import { type CageProbe, findCage, type FoundCage } from "../../src/media/broker/cage_probe.ts";
import { world } from "./media.ts";
import { type Need, programOnPath } from "./needs.ts";

export const FILTER_DIR = fileURLToPath(new URL("../../seccomp", import.meta.url));

/** What is found when some programs are not installed. */
export function foundCage(
  tools: Tools,
  { absent = [], replaced = {}, mode = "auto", filterDir = FILTER_DIR }: {
    absent?: readonly string[];
    replaced?: Partial<CageTools>;
    mode?: CageProbe["mode"];
    filterDir?: string;
  } = {},
): Promise<FoundCage> {
  const missing = Object.fromEntries(absent.map((name) => [name, null]));
  const cageTools = { ...findCageTools(), ...missing, ...replaced };
  return findCage({
    ...{ mode, tools, cageTools, filterDir, world: world() },
    ...{ forwarderCommand: forwarderCommand(), socketDir: tmpdir() },
  });
}

/** The cage of this machine, found as in production. */
export async function machineCage(tools: Tools): Promise<Cage> {
  return (await foundCage(tools)).cage;
}

/** The programs without which a level is not taken. */
const WITHOUT: Record<CageLevel, readonly string[]> = {
  bubblewrap: [],
  unshare: ["bwrap"],
  limits: ["bwrap", "unshare"],
  off: [],
};

/** The cage of this level. Throws where the machine has it not. */
export async function cageOf(level: CageLevel, tools: Tools): Promise<Cage> {
  const { cage, misses } = await foundCage(tools, {
    absent: WITHOUT[level],
    mode: level === "off" ? "off" : "auto",
  });
  if (cage.level !== level) throw new Error(`no cage of level ${level}: ${misses.join("; ")}`);
  return cage;
}

/** The forwarder of a cage, for relays in a folder. Throws where it has none. */
export function forwarderOf(cage: Cage, socketDir: string): Forwarder {
  const streams = streamsOf(cage);
  if (streams.by !== "forwarder") throw new Error("this cage has no forwarder");
  return new Forwarder({ tools: streams.forwarder, socketDir, world: world() });
}

/** Whether a program may make namespaces here, which containers often forbid. */
export const NAMESPACES: Need = {
  isMet: () =>
    programOnPath("unshare") !== null &&
    new Deno.Command("unshare", { args: ["--user", "--net", "--mount", "--pid", "--fork", "true"] })
      .outputSync().success,
  reason: "no right to make namespaces",
};

export const BUBBLEWRAP: Need = {
  isMet: () => programOnPath("bwrap") !== null && NAMESPACES.isMet(),
  reason: "no bubblewrap that may make namespaces",
};
