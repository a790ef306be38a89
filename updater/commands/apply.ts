/** `apply` and `watch`: bring the device on by a manifest. */

import { CliError, failureOf, tell } from "../../cli/failure.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { isManifestUri, readEnrollment } from "../device/enrollment.ts";
import { fetchManifest } from "../device/fetching.ts";
import { readText } from "../device/keys.ts";
import type { Command, Session } from "../session.ts";

/** Of the pause; a thousand devices that start at once are spread by it. */
const SPREAD = 0.1;

export const apply: Command = async (session, [source]) => {
  const enrollment = readEnrollment(session.folder);
  const trust = { ca: enrollment.ca, signal: session.signal };
  const text = source === undefined
    ? await fetchManifest(enrollment.manifest_uri, trust)
    : isManifestUri(source)
    ? await fetchManifest(source, trust)
    : readText(source);
  if (!await session.updater.apply(text)) {
    session.say("the manifest is the newest one already; `status` shows where its release is");
  }
};

export const watch: Command = async (session, _args, { intervalSecs, once }) => {
  if (once === true) return await look(session);
  const pauseMs = (intervalSecs as number) * 1000;
  let lastFault = "";
  for (let failures = 0; !session.signal.aborted;) {
    try {
      await look(session);
      failures = 0;
      lastFault = "";
    } catch (error) {
      if (session.signal.aborted) return;
      const failure = failureOf(error, "");
      // The next manifest may be a better one, and asking for it costs its server little.
      failures = isRefusal(failure) ? 0 : failures + 1;
      const fault = tell(failure, undefined).lines.join("\n");
      if (fault !== lastFault) session.out.warn(fault);
      lastFault = fault;
    }
    await pause(pauseAfter(failures, pauseMs) * (1 - SPREAD + 2 * SPREAD * Math.random()), session.signal);
  }
};

/** What was begun ends also where no manifest can be had. */
async function look(session: Session): Promise<void> {
  const { updater } = session;
  const { manifest_uri, ca } = readEnrollment(session.folder);
  let text: string;
  try {
    text = await fetchManifest(manifest_uri, { ca, signal: session.signal });
  } catch (error) {
    await updater.resume();
    throw error;
  }
  try {
    await updater.apply(text);
  } catch (error) {
    // A manifest that is not for this device says nothing about what it has begun.
    if (isRefusal(error)) await updater.resume();
    throw error;
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof CliError && (error.exit === "invalid" || error.exit === "refused");
}

/** It doubles with each failure, so that a fault of a server is not made worse by all its devices. */
export function pauseAfter(failures: number, pauseMs: number): number {
  return Math.min(
    pauseMs * 2 ** Math.min(failures, 32),
    Math.max(pauseMs, LIMITS.edge.watchPauseSecsMax * 1000),
  );
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
