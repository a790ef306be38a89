/** The formats of a list of events: JSON, CSV, and JSON lines. See docs/api/reading.md#formats. */

import type { LongEntry, TimelineEntry } from "../../flow/events/reads.ts";
import { cell, csvLine, quotedText } from "./csv.ts";
import { jsonTail, type ListForm, type ListFormats } from "./list_text.ts";

type AnyEntry = TimelineEntry | LongEntry;

export const EVENT_FORMATS: ListFormats<AnyEntry> = [
  ["application/json", {
    contentType: "application/json",
    form: ({ caller }, runId, batches) =>
      eventsJson(
        `{"request_id":"${caller.requestId}","run_id":${JSON.stringify(runId)},"events":[`,
        jsonTail(batches),
      ),
  }],
  ["text/csv", {
    contentType: "text/csv; charset=utf-8; header=present",
    form: () => ({
      ...{ head: csvLine(["seq", "pts_ms", "kind", "payload"]), between: "", tail: "" },
      entry: entryOf({
        before: ({ seq, ptsMs, kind }) => `${seq},${ptsMs},${cell(kind)},"`,
        payload: quotedText,
        after: '"\r\n',
      }),
    }),
  }],
  ["application/x-ndjson", {
    contentType: "application/x-ndjson",
    form: () => ({
      ...{ head: "", between: "", tail: "" },
      entry: entryOf({ before: jsonBefore, payload: unchanged, after: "}\n" }),
    }),
  }],
];

/** Events as a JSON array that ends an object. */
export function eventsJson(head: string, tail: ListForm<AnyEntry>["tail"] = "]}"): ListForm<AnyEntry> {
  return {
    ...{ head, between: ",", tail },
    entry: entryOf({ before: jsonBefore, payload: unchanged, after: "}" }),
  };
}

/** The log has each payload on one line. */
function unchanged(payload: string): string {
  return payload;
}

function jsonBefore({ seq, ptsMs, kind }: Pick<AnyEntry, "seq" | "ptsMs" | "kind">): string {
  return `{"seq":${seq},"pts_ms":${ptsMs},"kind":${JSON.stringify(kind)},"payload":`;
}

/** What is before a payload and after it, and what becomes of its text, which may come in any pieces. */
interface Parts {
  before(stored: AnyEntry): string;
  payload(text: string): string;
  readonly after: string;
}

function entryOf(parts: Parts): (stored: AnyEntry) => string | AsyncIterable<string> {
  return (stored) =>
    "pieces" in stored
      ? inPieces(parts, stored)
      : parts.before(stored) + parts.payload(stored.payload) + parts.after;
}

async function* inPieces({ before, payload, after }: Parts, stored: LongEntry): AsyncIterable<string> {
  yield before(stored);
  for await (const piece of stored.pieces) yield payload(piece);
  yield after;
}
