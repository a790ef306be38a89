/** Fetches pictures and clips of a run into folders, a few at a time, and checks what has arrived. */

import { createHash } from "node:crypto";
import { join } from "node:path";
import { CliError } from "../../failure.ts";
import { Progress } from "../../output/progress.ts";
import type { Session } from "../../session.ts";
import type { Blob } from "./blob_finder.ts";
import { saveStream } from "./saved_stream.ts";

const AT_ONCE = 4;
const FOLDERS = { keyframes: "keyframes", media: "clips" } as const;
const ENDINGS: Readonly<Record<string, string>> = {
  "image/jpeg": "jpg",
  "video/mp4": "mp4",
  "audio/wav": "wav",
};

/** Blobs that the server does not have any more. `path` is that of the run. */
export async function saveBlobs(
  session: Session,
  path: string,
  folder: string,
  blobs: readonly Blob[],
): Promise<readonly Blob[]> {
  for (const name of Object.values(FOLDERS)) await Deno.mkdir(join(folder, name));
  using progress = new Progress(session.out, {
    what: "pictures and clips",
    amount: (count) => String(Math.round(count)),
  });
  const missing: Blob[] = [];
  const waiting = [...blobs];
  let done = 0;
  const work = async () => {
    for (let blob = waiting.shift(); blob; blob = waiting.shift()) {
      if (!await saveBlob(session, path, folder, blob)) missing.push(blob);
      progress.update(++done, blobs.length);
    }
  };
  const workers = Array.from({ length: Math.min(AT_ONCE, blobs.length) }, () =>
    work().catch((error) => {
      waiting.length = 0;
      throw error;
    }));
  const ends = await Promise.allSettled(workers);
  const failed = ends.find((end) => end.status === "rejected");
  if (failed) throw failed.reason;
  missing.forEach(({ kind, sha256 }) =>
    session.out.warn(`${kind}/${sha256} is gone from the server, left out`)
  );
  return missing;
}

/** False where the server does not have it. */
async function saveBlob(
  { settings, signal }: Session,
  path: string,
  folder: string,
  blob: Blob,
): Promise<boolean> {
  const { kind, sha256, mediaType } = blob;
  const file = join(folder, FOLDERS[kind], `${sha256}.${ENDINGS[mediaType] ?? "bin"}`);
  const hash = createHash("sha256");
  try {
    await saveStream(settings, {
      path: `${path}/${kind}/${sha256}`,
      accept: "*/*",
      file,
      signal,
      onPiece: (piece) => void hash.update(piece),
    });
  } catch (error) {
    if (error instanceof CliError && error.exit === "missing") return false;
    throw error;
  }
  if (hash.digest("hex") !== sha256) {
    throw new CliError("server", `${kind}/${sha256} arrived with other bytes than its name says`);
  }
  return true;
}
