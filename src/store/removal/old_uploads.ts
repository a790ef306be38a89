/** Uploads that are old or too much, the oldest first, and their removal. */

import { join } from "node:path";
import { yieldToEventLoop } from "../../base/wait.ts";

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

/** Those that go. `isUsed`: whether a run that is on hold or has not ended has it as its source. */
export async function oldUploads(
  root: string,
  { hours, bytes }: UploadLimits,
  { nowMs, isUsed }: { readonly nowMs: number; readonly isUsed: (name: string) => boolean },
): Promise<OldUpload[]> {
  const found: (OldUpload & { readonly atMs: number })[] = [];
  let total = 0;
  for await (const { name, isFile } of Deno.readDir(root)) {
    if (!isFile || name.startsWith(".")) continue; // unfinished ones, and their names
    const info = await Deno.lstat(join(root, name)).catch(() => null);
    if (info === null) continue; // removed meanwhile
    // Bytes that have two names go with the last one.
    const bytes = info.size / (info.nlink ?? 1);
    total += bytes;
    found.push({ name, bytes, atMs: info.mtime?.getTime() ?? nowMs });
    if (found.length % 256 === 0) await yieldToEventLoop();
  }
  const going: OldUpload[] = [];
  for (const upload of found.sort((a, b) => a.atMs - b.atMs)) {
    const isOld = hours !== undefined && nowMs - upload.atMs > hours * 3_600_000;
    const isTooMuch = bytes !== undefined && total > bytes;
    if (!isOld && !isTooMuch || isUsed(upload.name)) continue;
    total -= upload.bytes;
    going.push(upload);
  }
  return going;
}
