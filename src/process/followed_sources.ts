/** Reads the file of named sources again when it changes and on SIGHUP, and tells the sandboxed service. See
 * docs/cameras.md#changes-of-the-file.
 */

import { basename, dirname, resolve } from "node:path";
import { timer } from "../base/wait.ts";
import type { World } from "../base/world.ts";
import type { SourcesRead, Start } from "./sandbox.ts";

/** How long a file must stay unchanged before it is read: an editor writes it in several steps. */
const SETTLED_MS = 250;
/** The link in a mounted ConfigMap that is moved to its next version. */
const MOUNTED_VERSION = "..data";

export interface FollowedSources {
  readonly world: World;
  readonly tell: (read: SourcesRead) => void;
}

/** Starts the watch; `variables` are those that the file may name. Disposing the result ends it. */
export function followSources(
  { config, backendFile, namedSources = [] }: Start,
  variables: Readonly<Record<string, string>>,
  { world, tell }: FollowedSources,
): AsyncDisposable {
  const { log } = world;
  const path = resolve(config.sourcesFile);
  let known = JSON.stringify(namedSources);
  let isFaulty = false;
  let settled: Disposable | null = null;

  async function read(): Promise<void> {
    const { readSources } = await import("./setting_files.ts");
    const { SourceFaults } = await import("../model/sources/source_file.ts");
    try {
      const sources = readSources(config, variables, backendFile?.restrictedZone ?? null);
      // A disk that is away, or a file that is put in its place in two steps, is to end no camera.
      if (sources === null && known !== NONE) {
        throw new SourceFaults([
          `SERVICE_SOURCES_CONFIG ${JSON.stringify(config.sourcesFile)} is gone; an empty file means none`,
        ]);
      }
      const text = JSON.stringify(sources ?? []);
      if (text !== known || isFaulty) tell(sources ?? []);
      known = text;
      isFaulty = false;
    } catch (error) {
      // Whatever the file does, the service goes on.
      const faults = error instanceof SourceFaults ? error.faults : ["it cannot be read"];
      for (const fault of faults) log.error(`the sources stay as they are: ${fault}`);
      if (!isFaulty) tell(null);
      isFaulty = true;
    }
  }

  const readSoon = () => {
    settled?.[Symbol.dispose]();
    settled = timer(world, SETTLED_MS, () => void read());
  };
  const onHangUp = () => void read();
  // A terminal that is closed sends it too, and the service in it ends.
  const hasTerminal = Deno.stdout.isTerminal();
  if (!hasTerminal) Deno.addSignalListener("SIGHUP", onHangUp);
  const watch = openWatch(dirname(path), log);
  const watching = (async () => {
    const names = [basename(path), MOUNTED_VERSION];
    for await (const { paths } of watch ?? []) {
      if (paths.some((changed) => names.includes(basename(changed)))) readSoon();
    }
  })();
  return {
    [Symbol.asyncDispose]: async () => {
      if (!hasTerminal) Deno.removeSignalListener("SIGHUP", onHangUp);
      watch?.close();
      settled?.[Symbol.dispose]();
      await watching;
    },
  };
}

const NONE = JSON.stringify([]);

/** A watch on the folder; null where it cannot be watched, and then only SIGHUP is left. */
function openWatch(folder: string, log: World["log"]): Deno.FsWatcher | null {
  try {
    return Deno.watchFs(folder, { recursive: false });
  } catch (error) {
    log.warn("the folder of the file of sources cannot be watched: send SIGHUP after a change", {
      folder,
      error: String(error),
    });
    return null;
  }
}
