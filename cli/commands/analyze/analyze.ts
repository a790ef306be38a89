/** `analyze`: from a file or a source to a printed timeline, with or without a model. */

import { basename } from "node:path";
import { CliError } from "../../failure.ts";
import type { Flags, Handler } from "../../session.ts";
import { uploadFile } from "../upload.ts";
import { measure } from "./measure.ts";
import { reasonAbout } from "./reason.ts";
import { wantsReason } from "./requests.ts";
import { findFfmpeg } from "../ffmpeg.ts";

/** Decoding and models take as long as they do; Ctrl-C ends them. */
const TIMEOUT_MS = 6 * 3_600_000;
/** A row for each of 120,000 frames. */
const ANSWER_BYTES_MAX = 512 * 1024 * 1024;

export const analyze: Handler = async (session, [file], flags) => {
  const reasons = wantsReason(flags);
  await checkSource(file, flags, reasons);
  // A request that is sent again after hours would surprise more than it helps.
  const client = await session.client({
    timeoutMs: TIMEOUT_MS,
    maxRetries: 0,
    maxAnswerBytes: ANSWER_BYTES_MAX,
  });
  const source_uri = file === undefined
    ? flags.sourceUri as string
    : (await uploadFile(session, client, file)).file_path;
  const title = file === undefined ? source_uri : basename(file);
  const work = reasons ? reasonAbout : measure;
  await work(session, client, { source_uri, title, file }, flags);
};

/** Faults that would only show when the work is done. */
async function checkSource(file: string | undefined, flags: Flags, reasons: boolean): Promise<void> {
  const fault = (message: string) => new CliError("usage", message);
  if ((file === undefined) === (flags.sourceUri === undefined)) {
    throw fault("give either a file of this machine, or --source-uri");
  }
  if (flags.sheet === undefined) return;
  if (file === undefined) {
    throw fault("--sheet needs the file on this machine; the server keeps no pictures of recordings");
  }
  if (reasons || flags.fixedFps !== undefined || flags.samplingPolicy === "fixed") {
    throw fault(
      "--sheet shows single frames, so every frame has to be looked at: it goes with no prompt and no --fixed-fps",
    );
  }
  await findFfmpeg();
}
