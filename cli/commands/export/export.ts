/** `runs export`: all of a run in a folder, streamed to the disk; the folder appears when it is whole. */

import { dirname, join, resolve } from "node:path";
import { CliError } from "../../failure.ts";
import { megabytes, Progress } from "../../output/progress.ts";
import type { Handler, Session } from "../../session.ts";
import { BlobFinder } from "./blob_finder.ts";
import { saveBlobs } from "./blobs.ts";
import { saveWhole } from "../whole_file.ts";
import { saveStream } from "./saved_stream.ts";

const FORMATS: readonly (readonly [file: string, mediaType: string])[] = [
  ["markers.csv", "text/csv"],
  ["markers.edl", "text/x-edl"],
  ["markers.vtt", "text/vtt"],
];

export const exportRun: Handler = async (session, [id, folder], { media }) => {
  const { out } = session;
  const target = await checkedTarget(resolve(folder!));
  const saved = await saveWhole(target, async (temporary) => {
    await Deno.mkdir(temporary, { recursive: true });
    return await saveAll(session, id!, temporary, media);
  });
  if (out.isJson) return out.json({ run_id: id, folder: target, ...saved });
  if (out.isQuiet) return out.line(folder!);
  out.line(
    `${folder}: ${saved.events} events (${
      megabytes(saved.event_bytes)
    }), ${saved.keyframes} keyframes, ${saved.clips} clips`,
  );
};

/**
 * A folder that is there may be empty: the new one takes its place. Of a link to one it is the folder itself.
 */
async function checkedTarget(target: string): Promise<string> {
  try {
    for await (const _ of Deno.readDir(target)) {
      throw new CliError("usage", `${target} is there already, and not empty`);
    }
    return await Deno.realPath(target);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) {
      await Deno.mkdir(dirname(target), { recursive: true });
      return target;
    }
    if (error instanceof CliError) throw error;
    throw new CliError("usage", `${target}: ${(error as Error).message}`);
  }
}

async function saveAll(session: Session, id: string, folder: string, withMedia: boolean) {
  const run = await (await session.client()).getRun(id, { signal: session.signal });
  await Deno.writeTextFile(join(folder, "run.json"), `${JSON.stringify(run, null, 2)}\n`);
  const path = `/v1/runs/${encodeURIComponent(id)}`;
  const finder = new BlobFinder();
  const event_bytes = await saveLists(session, path, folder, finder);
  const blobs = withMedia ? finder.blobs : [];
  const missing = new Set(await saveBlobs(session, path, folder, blobs));
  const countOf = (kind: string) => blobs.filter((blob) => blob.kind === kind && !missing.has(blob)).length;
  return {
    events: finder.events,
    event_bytes,
    keyframes: countOf("keyframes"),
    clips: countOf("media"),
    missing: Array.from(missing, ({ sha256 }) => sha256),
  };
}

/** All lists at once, as the server waits between parts of each; the bytes of the events. */
async function saveLists(
  session: Session,
  path: string,
  folder: string,
  finder: BlobFinder,
): Promise<number> {
  const { out, settings } = session;
  using progress = new Progress(out, { what: "events and markers", amount: megabytes });
  const failing = new AbortController();
  const signal = AbortSignal.any([session.signal, failing.signal]);
  let bytes = 0;
  const save = (list: string, accept: string, file: string, onPiece?: (piece: Uint8Array) => void) =>
    saveStream(settings, {
      path: `${path}/${list}`,
      accept,
      file: join(folder, file),
      signal,
      onPiece: (piece) => {
        onPiece?.(piece);
        progress.update(bytes += piece.length);
      },
    }).catch((error) => {
      failing.abort(error);
      throw error;
    });
  const ends = await Promise.allSettled([
    save("events", "application/x-ndjson", "events.ndjson", (piece) => finder.push(piece)),
    ...FORMATS.map(([file, accept]) => save("markers", accept, file)),
  ]);
  session.signal.throwIfAborted();
  failing.signal.throwIfAborted();
  return (ends[0] as PromiseFulfilledResult<number>).value;
}
