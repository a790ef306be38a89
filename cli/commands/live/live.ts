/** `live`: a file published over WebRTC, or a camera that the server watches; the run's events are printed
 * meanwhile.
 */

import { CliError } from "../../failure.ts";
import type { Flags, Handler, Session } from "../../session.ts";
import { readJson } from "../text_input.ts";
import { followRun } from "../watch.ts";
import { publishFile } from "./publish_file.ts";

const IS_ADDRESS = /^((rtsps?|https?|hls):\/\/|source:)/i;
/** The server opens the source before it answers. */
const OPEN_TIMEOUT_MS = 60_000;

export const live: Handler = async (session, [source], flags) => {
  const attach = await attachConfig(flags);
  if (!IS_ADDRESS.test(source!)) {
    return await publishFile(session, { path: source!, attach, isLoop: flags.loop === true });
  }
  if (flags.loop) throw new CliError("usage", "--loop goes with a file");
  await watchCamera(session, source!, attach);
};

async function attachConfig({ prompt, crop, trigger }: Flags) {
  return {
    ...(prompt !== undefined && { prompt }),
    ...(crop !== undefined && { crop }),
    ...(trigger !== undefined && { trigger_program: await readJson(trigger) }),
  };
}

async function watchCamera(session: Session, source_uri: string, attach: object): Promise<void> {
  const { out, signal } = session;
  const client = await session.client({ timeoutMs: OPEN_TIMEOUT_MS });
  const { run_id } = await client.createRun({}, { signal });
  try {
    await client.openLiveSource(run_id, { source_uri, ...attach }, { signal });
  } catch (error) {
    await client.deleteRun(run_id).catch(() => {});
    throw error;
  }
  out.note(`${run_id} watches ${source_uri}; Ctrl-C ends it`);
  try {
    await followRun(session, run_id, {});
  } finally {
    await client.closeLiveSource(run_id).catch(() =>
      out.warn(`${run_id} could not be ended; \`runs stop\` does it`)
    );
    out.note(`${run_id} is kept; \`runs rm ${run_id}\` removes it`);
  }
}
