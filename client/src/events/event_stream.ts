/** One connection to the event stream of a run: the events that come, and when nothing comes any more. */

import { checkType } from "../http/bodies.ts";
import { type Call, type Connection, failed, nameOf } from "../http/connection.ts";
import { ParseError } from "../http/errors.ts";
import { path, query } from "../http/paths.ts";
import { Deadline } from "../http/waiting.ts";
import type { TimelineEvent } from "../types.ts";
import { type SseMessage, SseParser } from "./sse_parser.ts";

export interface StreamWishes {
  /** Events with a greater `seq` are sent. */
  readonly after: number;
  readonly kind?: string | undefined;
  readonly withoutKind?: string | undefined;
  /**
   * Without one byte for so long, the connection counts as broken. The service writes every 15 s at least.
   */
  readonly idleTimeoutMs: number;
  readonly maxEventCharacters: number;
  readonly signal?: AbortSignal | undefined;
}

/** Yields events, and null for a sign of life without one. Ends where the service ends the stream. */
export async function* openEventStream(
  connection: Connection,
  runId: string,
  wishes: StreamWishes,
): AsyncGenerator<TimelineEvent | null, void> {
  const { after, kind, withoutKind, idleTimeoutMs, signal } = wishes;
  const call: Call = {
    method: "GET",
    path: path`/v1/runs/${runId}/events/stream` + query({ after, kind, without_kind: withoutKind }),
    headers: { accept: "text/event-stream", ...(after > 0 && { "last-event-id": String(after) }) },
  };
  let timeoutMs = connection.timeoutOf(call);
  signal?.throwIfAborted();
  const deadline = new Deadline(timeoutMs, signal);
  try {
    const response = await connection.open(call, deadline);
    checkType(nameOf(call), response, "text/event-stream");
    deadline.restart(timeoutMs = idleTimeoutMs);
    const reader = response.body!.getReader();
    const decoder = new TextDecoder();
    const parser = new SseParser(wishes.maxEventCharacters);
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const messages = parser.push(decoder.decode(value, { stream: true }));
      // What the consumer does with an event is not silence of the service.
      deadline.restart(Infinity);
      for (const message of messages) {
        // What was removed is also in the next event, of the kind `events_removed`.
        yield message.event === "cursor_expired" ? null : eventOf(connection, call, message);
      }
      if (messages.length === 0) yield null;
      deadline.restart(idleTimeoutMs);
    }
  } catch (error) {
    throw failed(nameOf(call), error, { signal, timeoutMs: deadline.isOver ? timeoutMs : undefined });
  } finally {
    deadline.end(true);
  }
}

/** The parts of a CloudEvents object that are read. */
interface CloudEvent {
  readonly type: string;
  readonly sequence: number;
  readonly pts_ms: number;
  readonly data: TimelineEvent["payload"];
}

function eventOf(connection: Connection, call: Call, { id, event, data }: SseMessage): TimelineEvent {
  const seq = Number(id);
  if (!/^\d+$/.test(id) || !Number.isSafeInteger(seq)) {
    throw new ParseError(`${nameOf(call)}: the id of an event is no integer that a number can hold`, id);
  }
  const envelope = connection.parse<CloudEvent | null>(call, data);
  if (envelope?.sequence !== seq) {
    throw new ParseError(`${nameOf(call)}: event ${seq} has another sequence in its data`, data);
  }
  if (typeof envelope.pts_ms !== "number") {
    throw new ParseError(`${nameOf(call)}: event ${seq} has no pts_ms`, data);
  }
  const kind = event || envelope.type.replace(/^dev\.service\.timeline\./, "");
  return { seq, pts_ms: envelope.pts_ms, kind, payload: envelope.data };
}
