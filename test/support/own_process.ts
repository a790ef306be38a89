/** What this process has of the system, read from /proc of Linux: programs that it started, descriptors,
 * memory.
 */

export interface ChildProcess {
  readonly pid: number;
  readonly command: string;
  /** Whether it has ended, and its exit code was not read yet. */
  readonly isZombie: boolean;
}

/** Programs that this process started, and those that they started, whose command line has `text` in it. */
export function childProcesses(text = "", parent: number | "self" = "self"): ChildProcess[] {
  return childPids(parent).flatMap((pid) => {
    const below = childProcesses(text, pid);
    try {
      const command = Deno.readTextFileSync(`/proc/${pid}/cmdline`).replaceAll("\0", " ");
      const isZombie = Deno.readTextFileSync(`/proc/${pid}/stat`).split(") ").at(-1)!.startsWith("Z");
      return command.includes(text) ? [{ pid, command, isZombie }, ...below] : below;
    } catch {
      return below; // it has just ended
    }
  });
}

/** Ids of the children of a process. Each thread has a list of the children that it started. */
function childPids(parent: number | "self"): number[] {
  try {
    return [...Deno.readDirSync(`/proc/${parent}/task`)].flatMap(({ name }) =>
      Deno.readTextFileSync(`/proc/${parent}/task/${name}/children`).split(" ").filter((pid) => pid !== "")
        .map(Number)
    );
  } catch {
    return []; // it has just ended
  }
}

export function descriptors(): number {
  return [...Deno.readDirSync("/proc/self/fd")].length;
}

/**
 * Pipes and UDP sockets, which live sessions open. TCP connections are left out: their pools keep them open.
 */
export function pipesAndDatagramSockets(): { readonly pipes: number; readonly sockets: number } {
  const udp = new Set(
    ["udp", "udp6"].flatMap((name) =>
      Deno.readTextFileSync(`/proc/self/net/${name}`).split("\n").slice(1).map((line) =>
        `socket:[${line.trim().split(/\s+/)[9]}]`
      )
    ),
  );
  const links = [...Deno.readDirSync("/proc/self/fd")].map(({ name }) => linkOf(`/proc/self/fd/${name}`));
  return {
    pipes: links.filter((link) => link.startsWith("pipe:")).length,
    sockets: links.filter((link) => udp.has(link)).length,
  };
}

function linkOf(path: string): string {
  try {
    return Deno.readLinkSync(path);
  } catch {
    return ""; // closed meanwhile
  }
}

/** Resident memory, bytes. */
export function residentBytes(): number {
  return Deno.memoryUsage().rss;
}
