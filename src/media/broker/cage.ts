/** The cage around a decoder: what it sees of the machine, at the level that this machine allows. See
 * docs/security/cage.md.
 */

import type { Enclosure } from "../process.ts";
import { DEVICES, type UnshareTools, unshareWords } from "./cage_unshare.ts";
import type { ForwarderTools } from "./forwarder.ts";
import type { SystemFiles } from "./system_files.ts";
import type { Touches } from "../jobs/invocation.ts";

/**
 * What is put around a decoder, from the strongest level to the weakest. Plain data, found once at start by
 * `cage_probe.ts`.
 */
export type Cage =
  | {
    readonly level: "bubblewrap";
    readonly sh: string;
    readonly bwrap: string;
    /** Files with the system-call filters. */
    readonly filters: Readonly<Record<CageNetwork, string>>;
    readonly system: SystemFiles;
    readonly streams: Streams;
  }
  | {
    readonly level: "unshare";
    readonly tools: UnshareTools;
    readonly system: SystemFiles;
    readonly streams: Streams;
    readonly starters: Starters | null;
  }
  | {
    readonly level: "limits";
    /** The program setpriv with its options; empty where it is not installed. */
    readonly setpriv: readonly string[];
    readonly starters: Starters | null;
  }
  | { readonly level: "off" };

/** Whether a program may open connections to 127.0.0.1, besides those to Unix sockets. */
export type CageNetwork = "none" | "loopback";

/**
 * Programs that set the system-call filter for themselves and become what their arguments name; null where
 * they do not work.
 */
export type Starters = Readonly<Record<CageNetwork, string>>;

/**
 * Which network jobs on streams have. A `forwarder` gives each a network namespace in which only its relay
 * answers; without one they have that of the machine, or are refused.
 */
export type Streams =
  | { readonly by: "forwarder"; readonly forwarder: ForwarderTools }
  | { readonly by: "machine" | "none" };

export type StreamsBy = Streams["by"];

/** How jobs on streams reach their relays. */
export function streamsOf(cage: Cage): Streams {
  return "streams" in cage ? cage.streams : { by: "machine" };
}

export type CageLevel = Cage["level"];

/** The cage of the level `off`: programs run with their limits only. */
export const NO_CAGE: Cage = { level: "off" };

/** What a caged program opens. */
export type OpenedInside = Omit<Touches, "makesIn" | "isCaged">;

/**
 * What is put around `program` when it is started. A program that reads nothing from others is not caged.
 * `joining` are the words of the forwarder that give it the network of a stream.
 */
export function enclosureOf(
  cage: Cage,
  program: string,
  touches: Touches,
  joining: readonly string[] = [],
): Enclosure {
  return cagedBy(touches.isCaged ? cage : NO_CAGE, program, touches, joining);
}

function cagedBy(cage: Cage, program: string, opened: OpenedInside, joining: readonly string[]): Enclosure {
  // ffmpeg's exit code may be the number of an error of the network, which are those of signals too.
  const isAround = { givesSignalsAsCodes: !opened.usesLoopback, hasProcesses: true };
  switch (cage.level) {
    case "bubblewrap": {
      const words = bubblewrapWords(cage, program, opened);
      return { ...isAround, commandLine: (limits, args) => [...limits, ...joining, ...words, ...args] };
    }
    case "unshare":
      return {
        ...isAround,
        commandLine: (limits, args) => [
          ...joining,
          ...unshareWords(cage, { program, opened, limits, starter: starterFor(cage, opened) }),
          ...args,
        ],
      };
    case "limits": {
      const starter = starterFor(cage, opened);
      const words = [...cage.setpriv, ...(starter === null ? [] : [starter]), program];
      return { ...REPLACES, commandLine: (limits, args) => [...limits, ...words, ...args] };
    }
    case "off":
      return { ...REPLACES, commandLine: (limits, args) => [...limits, program, ...args] };
  }
}

/**
 * The program that sets the system-call filter; null where there is none, and for a decode on hardware, whose
 * drivers need calls that the filter refuses.
 */
function starterFor(
  { starters }: { readonly starters: Starters | null },
  { devices, usesLoopback }: OpenedInside,
): string | null {
  if (starters === null || devices.length > 0) return null;
  return starters[networkOf(usesLoopback)];
}

function networkOf(usesLoopback: boolean): CageNetwork {
  return usesLoopback ? "loopback" : "none";
}

/** Facts about prlimit, setpriv and the starter, which replace themselves by the program. */
const REPLACES = { givesSignalsAsCodes: false, hasProcesses: false } as const;

/** The user inside of the cage; outside it stays the user of the service. */
const NOBODY = "65534";

/** A line of shell that gives bubblewrap its filter, which it reads from descriptor 3. */
const WITH_FILTER = 'exec "$@" 3< "$0"';

/**
 * The words of bubblewrap. There is no /proc, no /tmp and no shell: the root of the program has its
 * libraries, its own file, and what it opens. bubblewrap sets no_new_privs itself and ends, with everything
 * inside, when the service ends. Its session is the one that the outermost process gets.
 */
function bubblewrapWords(
  { sh, bwrap, filters, system }: Extract<Cage, { level: "bubblewrap" }>,
  program: string,
  { reads, writes, devices, usesLoopback }: OpenedInside,
): string[] {
  const real = system.programs[program] ?? program;
  return [
    ...[sh, "-c", WITH_FILTER, filters[networkOf(usesLoopback)]],
    ...[bwrap, "--unshare-user", "--uid", NOBODY, "--gid", NOBODY, "--cap-drop", "ALL"],
    ...["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--hostname", "decoder", "--unshare-cgroup-try"],
    ...(usesLoopback ? [] : ["--unshare-net"]),
    ...["--die-with-parent", "--seccomp", "3"],
    ...system.folders.flatMap(({ from, at }) => ["--ro-bind", from, at]),
    ...[...system.files, real, ...reads].flatMap((path) => ["--ro-bind", path, path]),
    ...writes.flatMap((path) => ["--bind", path, path]),
    ...[...DEVICES, ...devices].flatMap((path) => ["--dev-bind", path, path]),
    ...["--remount-ro", "/", "--", real],
  ];
}
