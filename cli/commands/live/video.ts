/** `runs video`: the live video of a run or of a named source, as it comes. */

import { CliError } from "../../failure.ts";
import type { Handler } from "../../session.ts";

const SOURCE = "source:";

/**
 * Each part is written at once: what a player reads from a pipe is late by nothing else, and a file can be
 * played at any time.
 */
export const writeLiveVideo: Handler = async ({ client, out, signal }, [watched], { output }) => {
  if (output === undefined && out.isTerminal) {
    throw new CliError(
      "usage",
      "a terminal shows no video",
      "name a file with --output, or a player behind a pipe",
    );
  }
  const service = await client();
  const { stream } = watched!.startsWith(SOURCE)
    ? await service.watchSourceVideo(watched!.slice(SOURCE.length), { signal })
    : await service.watchLiveVideo(watched!, { signal });
  using file = output === undefined ? null : await created(output);
  for await (const bytes of stream) {
    if (file) await writeAll(file, bytes);
    else out.bytes(bytes);
  }
  out.note(`${watched} has ended`);
};

async function created(path: string): Promise<Deno.FsFile> {
  try {
    return await Deno.open(path, { write: true, create: true, truncate: true });
  } catch (error) {
    throw new CliError("failed", `cannot write ${path}: ${(error as Error).message}`);
  }
}

async function writeAll(file: Deno.FsFile, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
}
