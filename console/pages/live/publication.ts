/** What this tab publishes: one session at a time, which goes on while other pages of the console are shown.
 */

import { signal } from "@preact/signals";
import type { AttachConfig, PublishSession, PublishState } from "../../../client/mod.ts";
import { client, whenCallerChanges } from "../../service/session.ts";
import { stopTracks } from "./capture.ts";

export interface Publication {
  readonly runId: string;
  readonly session: PublishSession;
  readonly stream: MediaStream;
  readonly state: PublishState;
}

const current = signal<Publication | null>(null);

// The camera of one caller is not left on for the next one.
whenCallerChanges(() => void endPublication().catch(() => {}));

/** The publication of this tab when its run is this one. */
export function publicationOf(runId: string): Publication | null {
  return current.value?.runId === runId ? current.value : null;
}

/** The run that this tab publishes; null while it publishes nothing. */
export function publishedRun(): string | null {
  return current.value?.runId ?? null;
}

/** Whether this tab publishes this very stream. */
export function isPublished(stream: MediaStream): boolean {
  return current.peek()?.stream === stream;
}

/**
 * Publishes a stream; what was published before ends. Resolves with the run once the service has answered.
 */
export async function publishStream(
  stream: MediaStream,
  attach: AttachConfig,
): Promise<string> {
  await endPublication();
  const session = await client.peek().publish(stream, attach, {
    onState: (state) => {
      if (current.peek()?.session === session) {
        current.value = { ...current.peek()!, state };
      }
    },
  });
  current.value = {
    runId: session.runId,
    session,
    stream,
    state: session.state,
  };
  addEventListener("beforeunload", askBeforeUnload);
  // The person may end the sharing of a screen in the browser itself.
  for (const track of stream.getTracks()) {
    track.addEventListener("ended", () => {
      if (current.peek()?.session === session) void endPublication();
    });
  }
  return session.runId;
}

/** Ends the session, which completes its run, and gives the camera back. */
export async function endPublication(): Promise<void> {
  const publication = current.peek();
  if (!publication) return;
  current.value = null;
  removeEventListener("beforeunload", askBeforeUnload);
  stopTracks(publication.stream);
  await publication.session.close();
}

/** The session is over on the service: the camera is given back. */
export function dropPublication(runId: string): void {
  if (current.peek()?.runId === runId) void endPublication().catch(() => {}); // it is over already
}

/** Leaving the page ends what it publishes. */
function askBeforeUnload(event: Event): void {
  event.preventDefault();
}
