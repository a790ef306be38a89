/** The events that the service writes today, each kind with its payload. Later versions may write more. */

import type { Schemas, TimelineEvent } from "../types.ts";

/** Payload by kind. All kinds that start with `trigger.` have that of `trigger.*`. */
export type EventPayloads = Schemas["EventPayloads"];

export type EventKind = keyof EventPayloads;

/** The event of one kind. */
export interface EventOf<K extends EventKind> {
  seq: number;
  /** Wall-clock time of the append, epoch milliseconds. */
  pts_ms: number;
  kind: K extends "trigger.*" ? `trigger.${string}` : K;
  payload: EventPayloads[K];
}

/**
 * Any event of a known kind: `switch (event.kind)` tells its payload. Kinds that a later version adds come
 * too; ignore them.
 */
export type RunEvent = { [K in EventKind]: EventOf<K> }[EventKind];

/** Whether an event is of this kind, so that its payload has a type. */
export function isEvent<K extends EventKind>(
  event: TimelineEvent | RunEvent,
  kind: K,
): event is EventOf<K> {
  return kind === "trigger.*" ? event.kind.startsWith("trigger.") : event.kind === kind;
}
