/** The events of a run until it ends. */

import type { Connection } from "../http/connection.ts";
import { HttpError } from "../http/errors.ts";
import { path } from "../http/paths.ts";
import type { RunStatus, TimelineEvent } from "../types.ts";
import type { RunEvent } from "./event_types.ts";
import { subscribe, type SubscribeOptions } from "./subscription.ts";

/** After one of these a run is terminal, or gone. */
const LAST_KINDS: readonly string[] = ["run_completed", "run_failed", "stop_requested", "run_deleted"];
const TERMINAL: readonly RunStatus[] = ["completed", "failed", "cancelled", "expired"];

/** Yields the events of `kind`, or all, and ends when the run was deleted. */
export async function* subscribedEvents(
  connection: Connection,
  runId: string,
  options: SubscribeOptions,
): AsyncGenerator<TimelineEvent, void> {
  for await (const event of subscribe(connection, runId, options)) {
    if (event !== null) yield event;
    // The filter hides the event that says so.
    else if (options.kind !== undefined && await statusOf(connection, runId, options.signal) === null) return;
  }
}

/**
 * Yields all events up to the one that ends the run. Expiry is no event: the status is asked for while
 * nothing comes.
 */
export async function* watchedEvents(
  connection: Connection,
  runId: string,
  options: SubscribeOptions,
): AsyncGenerator<RunEvent, void> {
  const { signal } = options;
  if (isOver(await statusOf(connection, runId, signal, "must exist"))) {
    const { events } = await connection.json<{ events: TimelineEvent[] }>({
      method: "GET",
      path: path`/v1/runs/${runId}/events`,
      has: "events",
    }, { ...(signal && { signal }) });
    yield* events.filter(({ seq }) => seq > (options.after ?? 0)) as RunEvent[];
    return;
  }
  for await (const event of subscribe(connection, runId, options)) {
    if (event !== null) {
      yield event as RunEvent;
      if (LAST_KINDS.includes(event.kind)) return;
    } else if (isOver(await statusOf(connection, runId, signal))) return;
  }
}

function isOver(status: RunStatus | null): boolean {
  return status === null || TERMINAL.includes(status);
}

/** Null for a run that is gone, unless it must exist. */
async function statusOf(
  connection: Connection,
  runId: string,
  signal: AbortSignal | undefined,
  wish?: "must exist",
): Promise<RunStatus | null> {
  try {
    const call = { method: "GET", path: path`/v1/runs/${runId}/state`, has: "state" } as const;
    return (await connection.json<{ state: RunStatus }>(call, { ...(signal && { signal }) })).state;
  } catch (error) {
    if (!wish && error instanceof HttpError && error.isNotFound) return null;
    throw error;
  }
}
