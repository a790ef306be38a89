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

/** Resident memory, bytes. */
export function residentBytes(): number {
  return Deno.memoryUsage().rss;
}
