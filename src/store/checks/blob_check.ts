/** Hashes every blob, and compares the blobs with what the log names. */

import { errorText } from "../../base/log.ts";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { blobFolders } from "../media/blobs.ts";
import { openRegular } from "../files/file_bytes.ts";
import { filesBelowLinks } from "../files/folder.ts";
import { PARTIAL_PREFIX } from "../files/partial_file.ts";
import type { AcceptedLosses } from "../timeline/accepted_losses.ts";
import type { Findings } from "./findings.ts";
import type { CheckedLog } from "./log_check.ts";

export interface CheckedBlobs {
  readonly blobs: number;
  readonly bytes: number;
  /** Blobs that the log names. */
  readonly references: number;
}

const READ_BYTES = 1024 * 1024;

/**
 * `log` was read before: a blob is on the disk before any event names it. `isStillNamed` is asked about a blob that is not
 * there, as the event that names it may have been taken out of the log meanwhile.
 */
export function checkBlobs(
  dataDir: string,
  log: Pick<CheckedLog, "blobs">,
  { accepted, isStillNamed, findings }: {
    readonly accepted: AcceptedLosses;
    readonly isStillNamed: (path: string) => boolean;
    readonly findings: Findings;
  },
): CheckedBlobs {
  const present = new Set<string>();
  const buffer = new Uint8Array(READ_BYTES);
  let bytes = 0;
  for (const path of blobFiles(dataDir, findings)) {
    const sha256 = /([0-9a-f]{64})\.\w+$/.exec(path)![1]!;
    try {
      const hashed = hashOf(join(dataDir, path), buffer);
      present.add(path);
      bytes += hashed.bytes;
      if (hashed.sha256 === sha256) continue;
      const named = log.blobs.get(path);
      const by = named ? `; event ${named.seq} names it` : "; no event names it";
      findings.damaged("damaged_blob", path, `its bytes have the hash ${hashed.sha256}${by}`);
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) continue; // taken away meanwhile
      present.add(path);
      findings.damaged("unreadable_file", path, `it cannot be read: ${errorText(error)}`);
    }
  }
  const isLost = new Set(accepted.blobs);
  for (const [path, { seq }] of log.blobs) {
    if (present.has(path) || isThereNow(join(dataDir, path)) || !isStillNamed(path)) continue;
    if (isLost.has(path)) {
      findings.note("accepted_loss", path, `it is lost, as a repair said; event ${seq} names it`);
    } else {findings.damaged("missing_blob", path, `it is not there; event ${seq} names it`, {
        seqs: [seq, seq],
      });}
  }
  for (const path of present) {
    if (!log.blobs.has(path)) findings.note("unreferenced_blob", path, "no event names it");
  }
  return { blobs: present.size, bytes, references: log.blobs.size };
}

/** Paths of the blobs, relative to the data directory; everything else in their folders is noted. */
function* blobFiles(dataDir: string, findings: Findings): Iterable<string> {
  for (const [folder, extensions] of blobFolders()) {
    const isBlob = new RegExp(`^([0-9a-f]{2})[0-9a-f]{62}\\.(${extensions.join("|")})$`);
    for (const path of filesBelowLinks(dataDir, folder)) {
      const parts = path.slice(folder.length + 1).split("/");
      const name = parts.at(-1)!;
      if (parts.length === 2 && isBlob.exec(name)?.[1] === parts[0]) yield path;
      else if (name.startsWith(PARTIAL_PREFIX)) {
        findings.note(
          "leftover_file",
          path,
          "it is being written, or a process was killed before it was complete",
        );
      } else findings.note("strange_file", path, "it is no blob");
    }
  }
}

/** Reads the whole file through `buffer`. */
function hashOf(
  path: string,
  buffer: Uint8Array,
): { readonly sha256: string; readonly bytes: number } {
  using file = openRegular(path);
  const hash = createHash("sha256");
  let bytes = 0;
  for (let read = file.readSync(buffer); read; read = file.readSync(buffer)) {
    hash.update(buffer.subarray(0, read));
    bytes += read;
  }
  return { sha256: hash.digest("hex"), bytes };
}

function isThereNow(path: string): boolean {
  try {
    return Deno.lstatSync(path).isFile;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
