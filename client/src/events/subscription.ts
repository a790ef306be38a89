/** The events of a run as they come, across broken connections and restarts of the service. */

import type { Connection, RequestOptions } from "../http/connection.ts";
import { HttpError, NetworkError } from "../http/errors.ts";
import { pauseMs } from "../http/retries.ts";
import { pause } from "../http/waiting.ts";
import type { TimelineEvent } from "../types.ts";
import { openEventStream } from "./event_stream.ts";

export interface SubscribeOptions {
  /** Only events with a greater `seq`; 0. */
  after?: number;
  /** Only events of exactly this kind. */
  kind?: string;
  /** Every kind but this one. */
  withoutKind?: string;
  /** Whether to connect again when the connection breaks or ends; true. */
  reconnect?: boolean;
  /**
   * Pause before the first new connection; it doubles with each failed one, to 30 s at most, plus a random
   * part; 500.
   */
  reconnectDelayMs?: number;
  /**
   * Without one byte for so long, the connection counts as broken; 45,000. The service writes every 15 s at
   * least.
   */
  idleTimeoutMs?: number;
  /** An event of more characters is a ParseError; 4 MiB. `frames_decoded` of a long source is that long. */
  maxEventCharacters?: number;
  /** Ends the subscription, which then rejects with the signal's reason. */
  signal?: RequestOptions["signal"];
}

/**
 * Yields each event once, in the order of `seq`, and null for a sign of life without an event. Goes on until
 * the consumer ends it, the run is deleted, or, without `reconnect`, the stream ends.
 */
export async function* subscribe(
  connection: Connection,
  runId: string,
  options: SubscribeOptions,
): AsyncGenerator<TimelineEvent | null, void> {
  const { after = 0, kind, withoutKind, reconnect = true, reconnectDelayMs = 500, signal } = options;
  const { idleTimeoutMs = 45_000, maxEventCharacters = 4 * 1024 * 1024 } = options;
  if (!Number.isSafeInteger(after) || after < 0) {
    throw new TypeError(`after must be an integer from 0, got ${after}`);
  }
  let cursor = after;
  let failures = 0;
  let hasConnected = false;
  for (;;) {
    let broken: unknown;
    try {
      const wishes = { after: cursor, kind, withoutKind, idleTimeoutMs, maxEventCharacters, signal };
      for await (const event of openEventStream(connection, runId, wishes)) {
        hasConnected = true;
        failures = 0;
        if (event === null) yield null;
        if (event === null || event.seq <= cursor) continue;
        cursor = event.seq;
        yield event;
        if (event.kind === "run_deleted") return;
      }
      if (!reconnect) return;
    } catch (error) {
      if (!reconnect || !isPassing(error, hasConnected)) throw error;
      broken = error;
    }
    await pause(pauseMs(++failures, reconnectDelayMs, broken), signal);
  }
}

/**
 * A broken connection; later also the answer of a proxy while the service is started again, and of a full
 * one.
 */
function isPassing(error: unknown, hasConnected: boolean): boolean {
  if (error instanceof NetworkError) return true;
  return hasConnected && error instanceof HttpError && [429, 502, 503, 504].includes(error.status);
}
