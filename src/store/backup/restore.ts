/** Puts a backup into an empty data directory, with every byte compared with its hash. */

import { dirname, join, normalize } from "node:path";
import type { World } from "../../base/world.ts";
import type { BackupHead } from "../../model/backup_head.ts";
import type { BackupStorage } from "../../model/backup_storage.ts";
import { syncFolder } from "../files/folder.ts";
import type { CheckedPlaces } from "../checks/directory_check.ts";
import { DATA_FORMAT, RESTORING } from "../files/data_format.ts";
import { DirectoryLock } from "../files/directory_lock.ts";
import {
  type BackupFile,
  backupIds,
  isAhead,
  newestOf,
  readHead,
  readList,
  readPart,
  UnreadableHead,
} from "./backup_list.ts";

export interface RestoreOptions {
  readonly places: CheckedPlaces;
  readonly storage: BackupStorage;
  /** The newest one unless given. */
  readonly id?: string | undefined;
  readonly world: Pick<World, "now">;
}

/** Errors: the directory is not empty, there is no whole backup, which one is the newest cannot be told, or a part of it is missing or damaged. */
export async function restoreBackup({ places, storage, id, world }: RestoreOptions): Promise<BackupHead> {
  const { dataDir, uploadRoot } = places;
  const chosen = id ?? newestOf(await backupIds(storage));
  if (chosen === undefined) throw new Error(`${storage.name} has no whole backup`);
  const head = await readHead(storage, chosen).catch((error) => {
    if (id !== undefined || !(error instanceof UnreadableHead)) throw error;
    throw new Error(`the newest backup is none to restore: ${error.message}; name another one with --backup`);
  });
  // It may be older than others, and the directory would go back in time unnoticed.
  if (id === undefined && isAhead(head, world.now())) {
    throw new Error(
      `which backup is the newest cannot be told: ${chosen} began at ${head.begun_at}, and the clock says ` +
        `${new Date(world.now()).toISOString()}; name one that \`service backups\` lists with --backup`,
    );
  }
  if (head.data_format > DATA_FORMAT) {
    throw new Error(
      `backup ${chosen} is of a data directory of format ${head.data_format}, and this version reads up to ${DATA_FORMAT}`,
    );
  }
  requireEmpty(dataDir, ["uploads", "lock"]);
  requireEmpty(uploadRoot, []);
  for (const folder of [dataDir, uploadRoot]) Deno.mkdirSync(folder, { recursive: true, mode: 0o700 });
  using _lock = DirectoryLock.acquire(dataDir);
  Deno.writeTextFileSync(join(dataDir, RESTORING), `${chosen}\n`, { mode: 0o600 });
  const folders = new Set<string>();
  for (const file of await readList(storage, head)) {
    folders.add(dirname(await restoreFile(file, { places, storage })));
  }
  folders.forEach(syncFolder);
  Deno.removeSync(join(dataDir, RESTORING));
  syncFolder(dataDir);
  return head;
}

/** A folder that is not there is empty. Files with the names `except` do not count, nor empty folders. */
function requireEmpty(folder: string, except: readonly string[]): void {
  try {
    for (const { name, isDirectory } of Deno.readDirSync(folder)) {
      if (isDirectory && Deno.readDirSync(join(folder, name))[Symbol.iterator]().next().done) continue;
      if (!except.includes(name)) {
        throw new Error(`${folder} is not empty, it has ${name}; restore into a directory that is`);
      }
    }
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

/** Returns where it is now. */
async function restoreFile(
  { path, bytes, mtime_ms, parts }: BackupFile,
  { places: { dataDir, uploadRoot }, storage }: Pick<RestoreOptions, "places" | "storage">,
): Promise<string> {
  if (normalize(path) !== path || path.startsWith("/") || path.startsWith("..")) {
    throw new Error(`the backup names a file outside of the directory: ${JSON.stringify(path)}`);
  }
  const isUpload = path.startsWith("uploads/");
  const to = isUpload ? join(uploadRoot, path.slice("uploads/".length)) : join(dataDir, path);
  Deno.mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  using file = Deno.openSync(to, { createNew: true, write: true, mode: 0o600 });
  let written = 0;
  for (const part of parts) {
    const content = await readPart(storage, part);
    for (let left = content; left.length > 0;) left = left.subarray(await file.write(left));
    written += content.length;
  }
  if (written !== bytes) throw new Error(`${path} has ${written} bytes in the backup, and had ${bytes}`);
  // Uploads are removed by it, and a file that has it is not read again by the next backup.
  await file.utime(mtime_ms / 1000, mtime_ms / 1000);
  await file.sync();
  return to;
}
