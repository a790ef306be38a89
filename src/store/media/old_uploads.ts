/** Uploads that are old or too much, the oldest first, and their removal. */

import { join } from "node:path";
import { FairRemoval, type StoredPart } from "../../sharing/fair_removal.ts";
import { yieldToEventLoop } from "../../base/wait.ts";
import { ownerPrefixIn } from "../../model/files/file_name.ts";

export interface UploadLimits {
  readonly hours: number | undefined;
  /** Of all uploads together. */
  readonly bytes: number | undefined;
}

export interface OldUpload {
  readonly name: string;
  readonly bytes: number;
}

/** False where it is gone already. Errors: the disk refuses. */
export async function removeUpload(root: string, { name }: OldUpload): Promise<boolean> {
  try {
    await Deno.remove(join(root, name));
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** What one principal has uploaded, and what of it may go, the oldest first. */
interface UploadStore extends StoredPart {
  readonly going: OldUpload[];
  next: number;
}

/** Those that go. `isUsed`: whether a run that is on hold or has not ended has it as its source. */
export async function oldUploads(
  root: string,
  { hours, bytes: bytesMax }: UploadLimits,
  { nowMs, isUsed }: { readonly nowMs: number; readonly isUsed: (name: string) => boolean },
): Promise<OldUpload[]> {
  const found: (OldUpload & { readonly atMs: number })[] = [];
  for await (const { name, isFile } of Deno.readDir(root)) {
    if (!isFile || name.startsWith(".")) continue; // unfinished ones, and their names
    const info = await Deno.lstat(join(root, name)).catch(() => null);
    if (info === null) continue; // removed meanwhile
    // Bytes that have two names go with the last one.
    const bytes = info.size / (info.nlink ?? 1);
    found.push({ name, bytes, atMs: info.mtime?.getTime() ?? nowMs });
    if (found.length % 256 === 0) await yieldToEventLoop();
  }
  const going: OldUpload[] = [];
  const stores = new Map<string, UploadStore>();
  for (const upload of found.sort((a, b) => a.atMs - b.atMs)) {
    const used = isUsed(upload.name);
    if (hours !== undefined && nowMs - upload.atMs > hours * 3_600_000 && !used) {
      going.push(upload);
      continue;
    }
    const owner = ownerPrefixIn(upload.name) ?? ""; // files that an operator put there are one principal's
    const store = stores.get(owner) ?? { bytes: 0, going: [], next: 0 };
    stores.set(owner, store);
    store.bytes += upload.bytes;
    if (!used) store.going.push(upload);
  }
  const removal = new FairRemoval(stores.values(), bytesMax ?? Infinity);
  for (let store = removal.next(); store !== null; store = removal.next()) {
    const upload = store.going[store.next++];
    removal.took(upload?.bytes ?? null);
    if (upload !== undefined) going.push(upload);
  }
  return going;
}
