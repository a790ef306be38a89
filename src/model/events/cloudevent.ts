/** The CloudEvents envelope that SSE and webhooks send: the logged payload inside it, never parsed and rewritten. */

import { eventTypeOf } from "./event_table.ts";

/** A timeline event as the log holds it. */
export interface LoggedEvent {
  readonly seq: number;
  readonly runId: string;
  readonly streamId: string;
  /** Wall-clock epoch milliseconds of the append, not media time. */
  readonly ptsMs: number;
  readonly kind: string;
  /** The payload's JSON text. */
  readonly payload: string;
}

/**
 * The envelope of interface 6.1 as JSON text, keys in the table's order. The payload's own text is spliced in, so
 * 64-bit integers keep every digit. Example, with run `run-1`, seq 7 and stream `stream-0`:
 *
 *     {"specversion":"1.0","id":"run-1:7","source":"/v1/runs/run-1","type":"dev.service.timeline.vlm",
 *      "subject":"stream-0","datacontenttype":"application/json","sequence":7,"pts_ms":1764316800123,"data":{…}}
 */
export function cloudEvent(event: LoggedEvent): string {
  return '{"specversion":"1.0","id":' + JSON.stringify(`${event.runId}:${event.seq}`) +
    ',"source":' + JSON.stringify(`/v1/runs/${event.runId}`) +
    ',"type":' + JSON.stringify(eventTypeOf(event.kind)) +
    ',"subject":' + JSON.stringify(event.streamId) +
    ',"datacontenttype":"application/json","sequence":' + event.seq +
    ',"pts_ms":' + event.ptsMs +
    ',"data":' + (isOwnObject(event.payload) ? event.payload : jsonOrString(event.payload)) + "}";
}

/**
 * The log writes one JSON object a payload, and a checksum guards it: text with an object's braces is one. Only
 * text from elsewhere pays for a parse. A line break would end an SSE data line, so such text pays as well.
 */
function isOwnObject(payload: string): boolean {
  return payload.startsWith("{") && payload.endsWith("}") && !payload.includes("\n") &&
    !payload.includes("\r");
}

/** `text` itself when it is JSON, on one line; else `text` as a JSON string (contract 8.2). */
export function jsonOrString(text: string): string {
  try {
    JSON.parse(text);
  } catch {
    return JSON.stringify(text);
  }
  // Between tokens JSON allows raw line breaks, inside strings it does not: a blank changes nothing.
  return text.replaceAll(/[\r\n]/g, " ");
}
