/** `runs export`: all of a run in a folder, streamed to the disk; the folder appears when it is whole. */

import { dirname, join, resolve } from "node:path";
import { CliError } from "../../failure.ts";
import { megabytes, Progress } from "../../output/progress.ts";
import type { Handler, Session } from "../../session.ts";
import { BlobFinder } from "./blob_finder.ts";
import { saveBlobs } from "./blobs.ts";
import { saveStream } from "./saved_stream.ts";

const FORMATS: readonly (readonly [file: string, mediaType: string])[] = [
  ["markers.csv", "text/csv"],
  ["markers.edl", "text/x-edl"],
  ["markers.vtt", "text/vtt"],
];

export const exportRun: Handler = async (session, [id, folder], { media }) => {
  const { out } = session;
  const target = resolve(folder!);
  await checkTarget(target);
  const temporary = `${target}.${crypto.randomUUID()}.tmp`;
  try {
    await Deno.mkdir(temporary, { recursive: true });
    const saved = await saveAll(session, id!, temporary, media);
    await Deno.rename(temporary, target);
    if (out.isJson) return out.json({ run_id: id, folder: target, ...saved });
    if (out.isQuiet) return out.line(folder!);
    out.line(
      `${folder}: ${saved.events} events (${
        megabytes(saved.event_bytes)
      }), ${saved.keyframes} keyframes, ${saved.clips} clips`,
    );
  } catch (error) {
    await Deno.remove(temporary, { recursive: true }).catch(() => {});
    throw error instanceof Deno.errors.NotFound || error instanceof Deno.errors.PermissionDenied
      ? new CliError("failed", `cannot write ${target}: ${error.message}`)
      : error;
  }
};

/** A folder that is there may be empty: the new one takes its place. */
async function checkTarget(target: string): Promise<void> {
  try {
    for await (const _ of Deno.readDir(target)) {
      throw new CliError("usage", `${target} is there already, and not empty`);
    }
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) {
      return void await Deno.mkdir(dirname(target), { recursive: true });
    }
    if (error instanceof CliError) throw error;
    throw new CliError("usage", `${target}: ${(error as Error).message}`);
  }
}

async function saveAll(session: Session, id: string, folder: string, withMedia: boolean) {
  const { client, out, settings, signal } = session;
  const run = await (await client()).getRun(id, { signal });
  await Deno.writeTextFile(join(folder, "run.json"), `${JSON.stringify(run, null, 2)}\n`);
  const path = `/v1/runs/${encodeURIComponent(id)}`;
  const finder = new BlobFinder();
  const event_bytes = await (async () => {
    using progress = new Progress(out, { what: "events", amount: megabytes });
    let bytes = 0;
    return await saveStream(settings, {
      path: `${path}/events`,
      accept: "application/x-ndjson",
      file: join(folder, "events.ndjson"),
      signal,
      onPiece: (piece) => {
        finder.push(piece);
        progress.update(bytes += piece.length);
      },
    });
  })();
  for (const [file, accept] of FORMATS) {
    await saveStream(settings, { path: `${path}/markers`, accept, file: join(folder, file), signal });
  }
  const blobs = withMedia ? finder.blobs : [];
  const missing = await saveBlobs(session, path, folder, blobs);
  const count = (kind: string) =>
    blobs.filter((blob) => blob.kind === kind).length - missing.filter((blob) => blob.kind === kind).length;
  return {
    events: finder.events,
    event_bytes,
    keyframes: count("keyframes"),
    clips: count("media"),
    missing: missing.map(({ sha256 }) => sha256),
  };
}
