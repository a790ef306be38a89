/** The second level of the cage: what bubblewrap does, done with the programs of util-linux and a starter
 * that sets the system-call filter.
 */

import { dirname } from "node:path";
import { threadsMax } from "../tool_limits.ts";
import type { SystemFiles } from "./system_files.ts";
import type { Touches } from "../jobs/invocation.ts";

/** Programs of util-linux and coreutils. */
export interface UnshareTools {
  readonly sh: string;
  readonly unshare: string;
  readonly setpriv: string;
  readonly mount: string;
  readonly umount: string;
  readonly pivotRoot: string;
  readonly mkdir: string;
}

/** The devices that libraries may open. */
export const DEVICES = ["/dev/null", "/dev/urandom"];

interface Caged {
  readonly program: string;
  readonly opened: Omit<Touches, "makesIn" | "isCaged">;
  /** The words that set its limits; they go inside, as making the new root is no work of the program. */
  readonly limits: readonly string[];
  /** The program that sets the system-call filter; null for none. */
  readonly starter: string | null;
}

/**
 * The folder on which the new root is built: it is always there, and no file that a program needs lies in it.
 */
const ROOT = "/sys";
/** The old root, until it is unmounted. */
const OLD = ".old";
/** Programs for the last steps, which are taken in the new root. */
const HELPERS = "/.cage";

/** The words before the arguments of the program. */
export function unshareWords(
  { tools, system }: { readonly tools: UnshareTools; readonly system: SystemFiles },
  { program, opened, limits, starter }: Caged,
): string[] {
  const { sh, unshare, setpriv, mount, umount, pivotRoot, mkdir } = tools;
  const real = system.programs[program] ?? program;
  const [prlimit, ...bounds] = limits;
  const helpers = {
    ...{ umount, setpriv },
    ...(prlimit !== undefined && { prlimit }),
    ...(starter !== null && { starter }),
  };
  const mounts: Mount[] = [
    ...system.folders.map(({ from, at }) => ({ from, at, options: READ_ONLY })),
    ...[...system.files, real, ...opened.reads].map((path) => ({ from: path, at: path, options: READ_ONLY })),
    ...opened.writes.map((path) => ({ from: path, at: path, options: WRITABLE })),
    ...Object.entries(helpers).map(([name, path]) => ({
      ...{ from: path, at: `${HELPERS}/${name}`, options: READ_ONLY },
    })),
    ...[...DEVICES, ...opened.devices].map((path) => ({ from: path, at: path, options: "bind" })),
  ];
  const folders = new Set([
    ...[`/${OLD}`, "/proc/self", HELPERS, ...system.folders.map(({ at }) => at)],
    ...mounts.map(({ at }) => dirname(at)),
  ]);
  const isFolder = (path: string) => system.folders.some(({ at }) => at === path);
  const script = [
    "set -eu",
    // The program cannot get capabilities by a user namespace of its own.
    "(echo 0 > /proc/sys/user/max_user_namespaces) 2> /dev/null || :",
    `${quoted(mount)} -n -t tmpfs -o mode=755,size=1m cage ${ROOT}`,
    `cd ${ROOT}`,
    `${quoted(mkdir)} -p -- ${[...folders].map((path) => quoted(`.${path}`)).join(" ")}`,
    ...mounts.filter(({ at }) => !isFolder(at)).map(({ at }) => `: > ${quoted(`.${at}`)}`),
    // umount asks what is mounted before it acts.
    `echo '1 0 0:1 / /${OLD} rw - tmpfs cage rw' > ./proc/self/mountinfo`,
    // One program for all mounts: a start costs more than a mount.
    `printf '%s\\n' ${mounts.map((each) => quoted(lineOf(each))).join(" ")} > .${HELPERS}/mounts`,
    `${quoted(mount)} -n -a -T ${ROOT}${HELPERS}/mounts`,
    `${quoted(mount)} -n -o remount,ro,bind ${ROOT}`,
    `${quoted(pivotRoot)} . ${OLD}`,
    "cd /",
    `${HELPERS}/umount -n -l /${OLD}`,
    "unset PWD OLDPWD",
    // Without `exec`: as process 1 the program would not get the signals of its limits.
    '"$@"',
    "exit $?",
  ];
  return [
    ...[
      setpriv,
      "--pdeathsig",
      "KILL",
      unshare,
      "--user",
      "--map-root-user",
      "--mount",
      "--pid",
      "--ipc",
      "--uts",
    ],
    ...(opened.usesLoopback ? [] : ["--net"]),
    ...["--fork", "--kill-child=KILL", sh, "-c", script.join("\n"), "sh"],
    ...(prlimit === undefined ? [] : [`${HELPERS}/prlimit`, ...withThreads(bounds)]),
    ...[
      `${HELPERS}/setpriv`,
      "--no-new-privs",
      "--bounding-set=-all",
      "--inh-caps=-all",
      "--ambient-caps=-all",
    ],
    "--",
    ...(starter === null ? [] : [`${HELPERS}/starter`]),
    real,
  ];
}

/**
 * Adds the limit of threads. The kernel counts all threads of the namespace together. It counts none of
 * root's.
 */
function withThreads(bounds: readonly string[]): string[] {
  return [`--nproc=${threadsMax()}`, ...bounds];
}

interface Mount {
  readonly from: string;
  readonly at: string;
  readonly options: string;
}

const READ_ONLY = "bind,ro,nosuid,nodev";
const WRITABLE = "bind,nosuid,nodev,noexec";

/** A line of a table of mounts. */
function lineOf({ from, at, options }: Mount): string {
  return `${escaped(from)} ${escaped(`${ROOT}${at}`)} none ${options}`;
}

function escaped(path: string): string {
  return path.replace(/[\s\\]/g, (sign) => `\\${sign.charCodeAt(0).toString(8).padStart(3, "0")}`);
}

/** One word of a shell, whatever is in it. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
