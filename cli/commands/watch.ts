/** `watch`: the events of a run as they are written. */

import { visibleJson } from "../output/visible.ts";
import type { Handler, Session } from "../session.ts";
import { eventLine } from "./reading.ts";

export const watchRun: Handler = async (session, [id], { kind, after }) => {
  await followRun(session, id!, { kind, after });
};

export interface Following {
  readonly kind?: string | undefined;
  readonly after?: number;
  /** In place of the session's. */
  readonly signal?: AbortSignal;
}

/** Prints the events until the run has ended. */
export async function followRun(
  session: Session,
  runId: string,
  { kind, after = 0, signal = session.signal }: Following,
): Promise<void> {
  const { client, out } = session;
  // Times of the frames of a long recording make one event of many megabytes.
  const maxEventCharacters = 512 * 1024 * 1024;
  for await (const event of (await client()).watch(runId, { after, signal, maxEventCharacters })) {
    if (kind !== undefined && event.kind !== kind) continue;
    if (out.isJson) out.line(visibleJson(JSON.stringify(event)));
    else if (out.isQuiet) out.line(String(event.seq));
    else out.line(eventLine(session, event));
    out.flush();
  }
  if (!out.isJson) out.note(`${runId} has ended`);
}
