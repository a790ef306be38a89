/** The events that led to an event, and those that followed from it, as far as their payloads name each
 * other.
 */

import type { TimelineEvent, Webhook } from "../../../../client/mod.ts";
import { client } from "../../../service/session.ts";
import { sourceName } from "../../../text/names.ts";
import { lookOfMark, type Mark } from "../../../timeline/mark.ts";
import type { RunMarks } from "../../../timeline/run_marks.ts";
import type { RunHistory } from "../history.ts";
import { numberAt, textAt } from "../payload.ts";
import { eventSentence } from "./event_text.ts";

export interface ChainLink {
  readonly seq: number;
  readonly text: string;
  /** When it was written, epoch milliseconds; null where only its mark is known. */
  readonly writtenMs: number | null;
  readonly isThis: boolean;
  /** A mark that can be chosen. */
  readonly isMark: boolean;
}

/** What else belongs to the same chunk of a pass. */
const OF_A_CHUNK: readonly string[] = [
  "semantic_chunk_inferred",
  "multimodal_moment",
  "semantic_chunk_generated",
];
/** More marks of one frame than this are not told. */
const SAME_FRAME_MAX = 12;

/** The events of the same chunk; none for an event that belongs to no chunk. */
export async function eventsOfChunk(
  runId: string,
  event: TimelineEvent,
  signal: AbortSignal,
): Promise<TimelineEvent[]> {
  if (!OF_A_CHUNK.includes(event.kind)) return [];
  const lists = await Promise.all(
    OF_A_CHUNK.filter((kind) => kind !== event.kind).map(async (kind) => {
      const { matches } = await client.peek().query({ run_id: runId, kind }, {
        signal,
      });
      return matches.filter(({ payload }) =>
        payload.request_id === event.payload.request_id &&
        payload.chunk_index === event.payload.chunk_index
      );
    }),
  );
  return lists.flat();
}

/** In the order of seq; the event itself is among them. */
export function chainOf(
  event: TimelineEvent,
  history: RunHistory,
  marks: RunMarks,
  ofChunk: readonly TimelineEvent[],
): ChainLink[] {
  const events = [
    ...before(event, history),
    ...ofChunk,
    event,
    ...after(event, history),
  ];
  const links = new Map(
    events.map((other) => [other.seq, linkOf(other, event.seq, marks)]),
  );
  for (const mark of marksBeside(event, marks)) {
    if (!links.has(mark.seq)) links.set(mark.seq, linkOfMark(mark));
  }
  return [...links.values()].sort((one, other) => one.seq - other.seq);
}

function before(
  { seq, kind, payload }: TimelineEvent,
  history: RunHistory,
): TimelineEvent[] {
  const requestId = textAt(payload, "request_id");
  const ingest = history.events.find((event) =>
    event.kind === "ingest_received" && requestId !== null &&
    event.payload.request_id === requestId
  );
  const isZone = kind === "restricted_zone_activity_entered";
  return [
    ingest ?? history.last(["ingest_received", "live_source_opened"], seq),
    history.last(["publisher_connected"], seq),
    kind === "source_resumed" ? history.last(["source_gap"], seq) : undefined,
    isZone
      ? history.last([
        "policy_deployment_acknowledged",
        "policy_rollback_acknowledged",
      ], seq)
      : undefined,
  ].filter((event) => event !== undefined);
}

/**
 * The end of the pass that the event is of. Markers name no request: their pass is the one that ended next.
 */
function after(
  { seq, kind, payload }: TimelineEvent,
  history: RunHistory,
): TimelineEvent[] {
  if (textAt(payload, "session_id") !== null) return [];
  const pass = kind === "marker_emitted" || OF_A_CHUNK.includes(kind)
    ? history.next("analysis_generated", seq)
    : undefined;
  return pass ? [pass] : [];
}

/** Marks of the same frame of a live session; for a correction, the marker that it takes the place of. */
function marksBeside(
  { seq, kind, payload }: TimelineEvent,
  marks: RunMarks,
): Mark[] {
  if (kind === "marker_emitted") {
    const corrected = payload.supersedes_marker_id != null ? marks.bySeq(seq - 1) : null;
    return corrected ? [corrected] : [];
  }
  const frame = numberAt(payload, "frame_index");
  if (frame === null) return [];
  const found: Mark[] = [];
  for (
    let index = 0;
    index < marks.count.peek() && found.length < SAME_FRAME_MAX;
    index += 1
  ) {
    const mark = marks.at(index);
    if (
      mark.frame === frame && mark.seq !== seq && mark.kind !== "marker_emitted"
    ) found.push(mark);
  }
  return found;
}

function linkOf(event: TimelineEvent, seq: number, marks: RunMarks): ChainLink {
  const source = textAt(event.payload, "source_uri");
  const name = textAt(event.payload, "source_name") || (source && sourceName(source));
  const model = (numberAt(event.payload, "chunks_analyzed") ?? 0) > 0 ? textAt(event.payload, "model") : null;
  const more = [name, model].filter((part) => part !== null);
  return {
    seq: event.seq,
    text: [eventSentence(event), ...more].join(" "),
    writtenMs: event.pts_ms,
    isThis: event.seq === seq,
    isMark: marks.bySeq(event.seq) !== null,
  };
}

function linkOfMark(mark: Mark): ChainLink {
  const { seq, label } = mark;
  const { name, shape } = lookOfMark(mark);
  return {
    seq,
    text: `${shape} ${name}: ${label}`,
    writtenMs: null,
    isThis: false,
    isMark: true,
  };
}

/** What became of the event at a webhook; null where the webhook is not for it. */
export function deliveryText(
  webhook: Webhook,
  { seq, kind, payload }: TimelineEvent,
): string | null {
  const isWanted = webhook.event_kinds.length === 0 ||
    webhook.event_kinds.includes(kind);
  const isOrdered = !kind.startsWith("trigger.") ||
    textAt(payload, "trigger.program_id") === null ||
    (payload.trigger as { actions?: { webhook?: boolean } }).actions
        ?.webhook === true;
  if (!isWanted || !isOrdered || seq <= webhook.registered_seq) return null;
  const dead = webhook.recent_dead_letters.find((letter) => letter.seq === seq);
  if (dead) {
    return `given up after ${dead.attempts.length} attempts: ${dead.error}`;
  }
  if (seq > webhook.last_terminal_seq) return "waits to be delivered";
  return webhook.dead_letters > webhook.recent_dead_letters.length
    ? "delivered, or given up long ago"
    : "delivered";
}
