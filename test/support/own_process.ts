/** What this process holds of the system: its children and its descriptors, as Linux tells. */

export interface ChildProcess {
  readonly pid: number;
  readonly command: string;
}

/** Children, dead ones that nobody has reaped included, whose command line has `text` in it. */
export function childProcesses(text = ""): ChildProcess[] {
  return [...Deno.readDirSync("/proc")].flatMap(({ name }) => {
    try {
      const [, parent] = Deno.readTextFileSync(`/proc/${name}/stat`).split(") ")[1]!.split(" ");
      if (Number(parent) !== Deno.pid) return [];
      const command = Deno.readTextFileSync(`/proc/${name}/cmdline`).replaceAll("\0", " ");
      return command.includes(text) ? [{ pid: Number(name), command }] : [];
    } catch {
      return []; // no process, or one that has just gone
    }
  });
}

export function descriptors(): number {
  return [...Deno.readDirSync("/proc/self/fd")].length;
}

/** Pipes and UDP sockets: what sessions hold. Connections to other servers are kept open as long as they please. */
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
