/** The CloudEvents envelope of the event stream and of webhooks, around the payload text as it is in the log.
 */

import { utf8Length } from "../../base/bytes.ts";
import { eventTypeOf } from "./event_table.ts";

/** A timeline event as it is in the log. */
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
 * The envelope as JSON text, with its keys in a fixed order. The text of the payload is inserted unchanged,
 * so 64-bit integers keep every digit. `withheld` is what the delivery to a webhook tells of its cooldown;
 * without it there is no such field. Example, with run `run-1`, seq 7 and stream `stream-0` (see
 * docs/events.md#cloudevents):
 *
 *     {"specversion":"1.0","id":"run-1:7","source":"/v1/runs/run-1","type":"dev.service.timeline.vlm",
 *      "subject":"stream-0","datacontenttype":"application/json","sequence":7,"pts_ms":1764316800123,"data":{…}}
 */
export function cloudEvent(event: LoggedEvent, withheld = 0): string {
  const data = isOwnObject(event.payload) ? event.payload : jsonOrString(event.payload);
  return envelopeHead(event, withheld) + data + "}";
}

/** The bytes of the envelope with a payload of `payloadBytes`. */
export function cloudEventBytes(event: Omit<LoggedEvent, "payload">, payloadBytes: number): number {
  return utf8Length(envelopeHead(event)) + payloadBytes + 1;
}

/** The text up to the payload; a brace follows the payload. */
export function envelopeHead(event: Omit<LoggedEvent, "payload">, withheld = 0): string {
  return '{"specversion":"1.0","id":' + JSON.stringify(`${event.runId}:${event.seq}`) +
    ',"source":' + JSON.stringify(`/v1/runs/${event.runId}`) +
    ',"type":' + JSON.stringify(eventTypeOf(event.kind)) +
    ',"subject":' + JSON.stringify(event.streamId) +
    ',"datacontenttype":"application/json","sequence":' + event.seq +
    ',"pts_ms":' + event.ptsMs +
    (withheld > 0 ? ',"withheld":' + withheld : "") +
    ',"data":';
}

/**
 * Whether the payload is a JSON object on one line. The log writes each payload as one JSON object under a
 * checksum, so a text in braces is known to be an object and is not parsed. Text with a line break is handled
 * like any other text, because a line break would end an SSE data line.
 */
function isOwnObject(payload: string): boolean {
  return payload.startsWith("{") && payload.endsWith("}") && !payload.includes("\n") &&
    !payload.includes("\r");
}

/** `text` itself, on one line, when it is JSON; else `text` as a JSON string. */
export function jsonOrString(text: string): string {
  try {
    JSON.parse(text);
  } catch {
    return JSON.stringify(text);
  }
  return onOneLine(text);
}

/** The JSON on one line. JSON allows line breaks only between tokens, where a blank means the same. */
export function onOneLine(json: string): string {
  return /[\r\n]/.test(json) ? json.replaceAll(/[\r\n]/g, " ") : json;
}
