/** Finds out at start how strongly this machine lets decoders be caged, by running ffmpeg and ffprobe in each
 * level.
 */

import { errorText } from "../../base/log.ts";
import type { CageTools, Tools } from "../../base/program_paths.ts";
import { NEVER_ABORTED } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { type MemoryLimits, run } from "../process.ts";
import { BUSY_FACTOR } from "../tool_limits.ts";
import { type Cage, enclosureOf, NO_CAGE, type Starters, type Streams } from "./cage.ts";
import type { UnshareTools } from "./cage_unshare.ts";
import { Forwarder, type ForwarderCommand, type ForwarderTools } from "./forwarder.ts";
import { socketName } from "./job_paths.ts";
import { systemFilesOf } from "./system_files.ts";

export interface CageProbe {
  /** Which levels may be taken: `auto` takes the strongest one that works. */
  readonly mode: "auto" | "required" | "off";
  readonly tools: Tools;
  readonly cageTools: CageTools;
  /** The folder of the system-call filters, and of the starters that set them. */
  readonly filterDir: string;
  /** Starts the process of the forwarder. */
  readonly forwarderCommand: ForwarderCommand;
  /** The folder of the sockets of relays. */
  readonly socketDir: string;
  readonly world: World;
  /** Ends the trials; then there is no cage, but its reason. */
  readonly signal?: AbortSignal;
}

export interface FoundCage {
  readonly cage: Cage;
  /** Why not a stronger level, one reason for each; empty if it is the strongest. */
  readonly misses: readonly string[];
  /** Why the cage has no forwarder; null if it has one, and at the levels that have none anyway. */
  readonly streamsMiss: string | null;
  /** Why the cage has no system-call filter; null if it has one, and at the level `off`. */
  readonly filterMiss: string | null;
}

/** Says that a level does not work here. The message is the reason. */
class Miss extends Error {}

const TRIAL_PORT = 8000;
/**
 * Seconds of processor time of a trial; a busy machine may take longer, and its cage must not be weaker for
 * that.
 */
const TRIAL_CPU_SECONDS = 10;
/** Memory of a trial: far more than a list of abilities needs. */
const TRIAL_MEMORY: MemoryLimits = { stackBytes: 2 ** 23, dataBytes: 2 ** 32, addressSpaceBytes: 2 ** 32 };
const TRIAL_DEADLINE_MS = TRIAL_CPU_SECONDS * 1000 * BUSY_FACTOR;
const OUTPUT_BYTES_MAX = 64 * 1024;

/** The strongest level that works here. */
export async function findCage(probe: CageProbe): Promise<FoundCage> {
  const { signal = NEVER_ABORTED } = probe;
  const found = await strongest({ ...probe, signal });
  signal.throwIfAborted(); // what failed as it was ended says nothing about the machine
  return found;
}

type StoppableProbe = CageProbe & { readonly signal: AbortSignal };

async function strongest(probe: StoppableProbe): Promise<FoundCage> {
  if (probe.mode === "off") return { cage: NO_CAGE, misses: [], streamsMiss: null, filterMiss: null };
  const misses: string[] = [];
  for (const [name, level] of Object.entries({ bubblewrap, unshare })) {
    try {
      const { cage, filterMiss } = await level(probe);
      return { ...await withForwarder(cage, probe), misses, filterMiss };
    } catch (error) {
      misses.push(`${name}: ${errorText(error)}`);
    }
  }
  return { ...await limitsOnly(probe), misses, streamsMiss: null };
}

type Tried<C extends Cage> = { readonly cage: C } & Pick<FoundCage, "filterMiss">;
type NamespaceCage = Extract<Cage, { level: "bubblewrap" | "unshare" }>;

/** The cage with the strongest network for streams that works, tried with the forwarder's process itself. */
async function withForwarder(
  cage: NamespaceCage,
  { mode, tools, cageTools: { unshare, setpriv, nsenter }, forwarderCommand, socketDir, world, signal }:
    StoppableProbe,
): Promise<Pick<FoundCage, "cage" | "streamsMiss">> {
  try {
    const missing = Object.entries({ unshare, setpriv, nsenter }).flatMap(([name, path]) =>
      path === null ? [name] : []
    );
    if (missing.length > 0) throw new Miss(`${missing.join(", ")} not installed`);
    const found = { unshare, setpriv, nsenter, command: forwarderCommand } as ForwarderTools;
    await using forwarder = new Forwarder({ tools: found, socketDir, world });
    const socket = `${socketDir}/${socketName(world.randomBytes(8))}`;
    using passage = await forwarder.open({ socket, port: TRIAL_PORT }, signal);
    await trial(cage, tools.ffprobe, { tools, world, signal, usesLoopback: true, joining: passage.words });
    return { cage: { ...cage, streams: { by: "forwarder", forwarder: found } }, streamsMiss: null };
  } catch (error) {
    const streams: Streams = { by: mode === "required" ? "none" : "machine" };
    return {
      cage: { ...cage, streams },
      streamsMiss: errorText(error),
    };
  }
}

async function bubblewrap(
  { tools, cageTools, filterDir, world, signal }: StoppableProbe,
): Promise<Tried<NamespaceCage>> {
  const { bwrap, sh } = cageTools;
  if (bwrap === null || sh === null) throw new Miss("it is not installed");
  const filters = filesIn(filterDir, "bpf");
  const system = await systemFilesOf([tools.ffmpeg, tools.ffprobe], world);
  const cage = await tried(
    { level: "bubblewrap", sh, bwrap, filters, system, streams: { by: "machine" } },
    { tools, world, signal },
  );
  return { cage, filterMiss: null };
}

/** The file for this processor, for each network. */
function filesIn(filterDir: string, kind: "bpf" | "starter"): Starters {
  const file = (network: keyof Starters) => `${filterDir}/${Deno.build.arch}-${network}.${kind}`;
  return { none: file("none"), loopback: file("loopback") };
}

async function unshare(
  { tools, cageTools, filterDir, world, signal }: StoppableProbe,
): Promise<Tried<NamespaceCage>> {
  const { sh, unshare, setpriv, mount, umount, pivotRoot, mkdir } = cageTools;
  const missing = Object.entries({ sh, unshare, setpriv, mount, umount, pivot_root: pivotRoot, mkdir })
    .flatMap(([name, path]) => path === null ? [name] : []);
  if (missing.length > 0) throw new Miss(`${missing.join(", ")} not installed`);
  const found = { sh, unshare, setpriv, mount, umount, pivotRoot, mkdir } as UnshareTools;
  const { prlimit } = tools;
  const inside = [
    tools.ffmpeg,
    tools.ffprobe,
    found.setpriv,
    found.umount,
    ...(prlimit === null ? [] : [prlimit]),
  ];
  const system = await systemFilesOf(inside, world);
  const bare = {
    level: "unshare",
    tools: found,
    system,
    streams: { by: "machine" },
    starters: null,
  } as const;
  return await strongestOf([
    { ...bare, starters: filesIn(filterDir, "starter") },
    bare,
  ], { tools, world, signal });
}

/**
 * The first of the cages that works: those with a filter come first. Throws {@link Miss} where none does.
 */
async function strongestOf<C extends Extract<Cage, { starters: unknown }>>(
  cages: readonly C[],
  machine: Pick<StoppableProbe, "tools" | "world" | "signal">,
): Promise<Tried<C>> {
  let filterMiss: string | null = null;
  let miss: unknown;
  for (const cage of cages) {
    try {
      return { cage: await tried(cage, machine), filterMiss: cage.starters === null ? filterMiss : null };
    } catch (error) {
      if (cage.starters !== null) filterMiss = errorText(error);
      miss = error;
    }
  }
  throw miss;
}

/**
 * Options of setpriv: no_new_privs, and of root's capabilities only the one by which it reads the files of
 * other users.
 */
const NO_PRIVILEGES = [
  ...["--pdeathsig", "KILL", "--no-new-privs"],
  ...["--bounding-set=-all,+dac_override", "--inh-caps=-all", "--ambient-caps=-all"],
];

type LimitsCage = Extract<Cage, { level: "limits" }>;

async function limitsOnly(
  { tools, cageTools: { setpriv }, filterDir, world, signal }: StoppableProbe,
): Promise<Tried<LimitsCage>> {
  // Only root may give up capabilities; another user has none.
  const words = setpriv === null
    ? [[]]
    : [NO_PRIVILEGES, NO_PRIVILEGES.slice(0, 3), ["--no-new-privs"]].map((options) => [
      setpriv,
      ...options,
      "--",
    ]);
  const cages = [filesIn(filterDir, "starter"), null].flatMap((starters) =>
    words.map((setpriv): LimitsCage => ({ level: "limits", setpriv, starters }))
  );
  try {
    return await strongestOf(cages, { tools, world, signal });
  } catch (error) {
    if (!(error instanceof Miss)) throw error;
    // Where ffmpeg does not start at all, its jobs say so.
    return { cage: { level: "limits", setpriv: [], starters: null }, filterMiss: errorText(error) };
  }
}

/** The cage, if both programs run in it, and with both kinds of network. */
async function tried<C extends Cage>(
  cage: C,
  machine: Pick<StoppableProbe, "tools" | "world" | "signal">,
): Promise<C> {
  const { tools } = machine;
  await Promise.all([
    trial(cage, tools.ffmpeg, { ...machine, usesLoopback: false }),
    trial(cage, tools.ffprobe, { ...machine, usesLoopback: true }),
  ]);
  return cage;
}

interface Trial {
  readonly tools: Tools;
  readonly world: World;
  readonly signal: AbortSignal;
  readonly usesLoopback: boolean;
  readonly joining?: readonly string[];
}

/** Throws {@link Miss} where the program does not start. */
async function trial(
  cage: Cage,
  program: string,
  { tools: { prlimit }, world, signal, usesLoopback, joining }: Trial,
): Promise<void> {
  const touches = { reads: [], writes: [], devices: [], isCaged: true, makesIn: null, usesLoopback };
  const { end, code, stderr } = await run(program, ["-version"], {
    ...{ world, signal, deadlineMs: TRIAL_DEADLINE_MS },
    ...{ maxStdoutBytes: OUTPUT_BYTES_MAX, maxStderrBytes: OUTPUT_BYTES_MAX },
    limits: { prlimit, cpuSeconds: TRIAL_CPU_SECONDS, memory: TRIAL_MEMORY },
    enclosure: enclosureOf(cage, program, touches, joining),
  });
  if (end === "exited" && code === 0) return;
  const why = stderr.trim().split("\n").at(-1) || `exit code ${code}`;
  throw new Miss(
    `${program} does not start in it: ${
      end === "out_of_time" ? `no end after ${TRIAL_DEADLINE_MS / 1000} s` : why
    }`,
  );
}
