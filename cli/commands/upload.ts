/** `upload`: a file of this machine, sent as a stream. */

import type { Client } from "../../client/mod.ts";
import { basename } from "node:path";
import { CliError } from "../failure.ts";
import { megabytes, Progress } from "../output/progress.ts";
import type { Handler, Session } from "../session.ts";

/** The server takes no more. */
const BYTES_MAX = 200 * 1024 * 1024;
const ENDINGS = /\.(mp4|webm|mov|avi)$/i;
/** As long as the server waits. */
const TIMEOUT_MS = 3_600_000;

export const upload: Handler = async (session, [file]) => {
  const { out } = session;
  const answer = await uploadFile(session, await session.client(), file!);
  if (out.isJson) out.json(answer);
  else out.line(answer.file_path);
};

export const removeUpload: Handler = async ({ client, out, signal }, [file]) => {
  const filename = file!.slice(file!.lastIndexOf("/") + 1);
  await (await client()).deleteFile(filename, { signal });
  out.record({ filename, deleted: true }, [["filename", filename], ["deleted", "yes"]], filename);
};

/** Uploads with a progress bar; what the server would refuse anyway is not sent. */
export async function uploadFile(
  { out, signal }: Session,
  client: Client,
  path: string,
): Promise<{ file_path: string }> {
  const name = basename(path);
  const file = await open(path);
  const { isFile, size } = await file.stat();
  const fault = !isFile
    ? "is no file"
    : size === 0
    ? "is empty"
    : size > BYTES_MAX
    ? `has ${megabytes(size)}; the server takes at most ${
      megabytes(BYTES_MAX)
    }, put it under an ingest root and use --source-uri`
    : !ENDINGS.test(name)
    ? "must end with .mp4, .webm, .mov or .avi"
    : undefined;
  if (fault) {
    file.close();
    throw new CliError("invalid", `${path} ${fault}`);
  }
  using progress = new Progress(out, { what: `uploading ${name}`, amount: megabytes });
  const answer = await client.uploadFile(
    { stream: file.readable, name, size },
    (loaded, total) => progress.update(loaded, total),
    { signal, timeoutMs: TIMEOUT_MS },
  );
  const { seconds } = progress;
  progress[Symbol.dispose]();
  out.note(`uploaded ${megabytes(size)} in ${seconds.toFixed(1)} s, ${megabytes(size / seconds)}/s`);
  return answer;
}

async function open(path: string): Promise<Deno.FsFile> {
  try {
    return await Deno.open(path);
  } catch (error) {
    throw new CliError("failed", `cannot read ${path}: ${(error as Error).message}`);
  }
}
