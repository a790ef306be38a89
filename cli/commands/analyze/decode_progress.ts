/** Shows how far the server is with a decode, while a request waits for its end. */

import type { Client } from "../../../client/mod.ts";
import { clock } from "../../contact_sheet/marks.ts";
import { Progress } from "../../output/progress.ts";
import type { Session } from "../../session.ts";

const POLL_MS = 500;

/** Runs `work`, and meanwhile asks for the progress of the run. */
export async function withDecodeProgress<T>(
  session: Session,
  { client, run_id, title }: { readonly client: Client; readonly run_id: string; readonly title: string },
  work: () => Promise<T>,
): Promise<T> {
  using progress = new Progress(session.out, {
    what: `decoding ${title}`,
    amount: (ms) => clock(ms),
    rate: (msPerSecond) => `${(msPerSecond / 1000).toFixed(1)} times its pace`,
  });
  using _asking = asking(POLL_MS, async () => {
    const now = await client.getRunProgress(run_id, { signal: session.signal });
    if (now?.work === "ingest") progress.update(now.pts_ms, now.end_ms);
  });
  return await work();
}

/** Calls `ask` again and again until it is disposed; a call that fails only tells less. */
export function asking(everyMs: number, ask: () => Promise<void>): Disposable {
  let isAsking = false;
  const timer = setInterval(async () => {
    if (isAsking) return;
    isAsking = true;
    await ask().catch(() => {});
    isAsking = false;
  }, everyMs);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
