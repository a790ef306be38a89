/** What the models said of a run, chunk by chunk, as a timeline of interactions. Contract 8.1, C8. */

import { parseWithRawNumbers } from "../exact_json.ts";
import { payloadFields } from "../events/payload_json.ts";

/** A semantic chunk event as it is read back. */
export interface ChunkEvent {
  readonly ptsMs: number;
  /** The payload's JSON text. */
  readonly payload: string;
}

/** What is read of a payload here; any of it may be missing or of another type. */
interface ChunkPayload {
  readonly request_id?: unknown;
  readonly session_id?: unknown;
  readonly track_id?: unknown;
  readonly stream_id?: unknown;
  readonly chunk_index?: unknown;
  readonly index_name?: unknown;
  readonly pts_start_ms?: unknown;
  readonly pts_end_ms?: unknown;
  readonly raw_output?: unknown;
  readonly object_label?: unknown;
  readonly event_type?: unknown;
}

interface Chunk {
  items: readonly unknown[];
  chunkIndex: number;
  /** The media time that one of the chunk's events gives. */
  startMs: number | undefined;
  endMs: number | undefined;
  /** When the first event of the chunk was written. */
  writtenMs: number;
}

/**
 * The interactions of the events, given in sequence order; with `index` only those of chunks of that index. Each is
 * for JSON.stringify: numbers of the model's own output are kept as text.
 *
 * A chunk is told of by two events, `semantic_chunk_inferred` with what the model said and later
 * `semantic_chunk_generated` with what it cost. The first one that says something gives the interactions, and media
 * times are taken from whichever has them; a chunk of which neither does gets the time of its first event.
 */
export function interactionsOf(events: Iterable<ChunkEvent>, index?: string): object[] {
  const chunks = new Map<string, Chunk>();
  for (const { ptsMs, payload: text } of events) {
    const payload: ChunkPayload | undefined = payloadFields(text);
    if (payload === undefined || (index !== undefined && payload.index_name !== index)) continue;
    const key = keyOf(payload);
    let chunk = chunks.get(key);
    if (chunk === undefined) {
      const chunkIndex = integer(payload.chunk_index) ?? 0;
      chunks.set(
        key,
        chunk = { items: [], chunkIndex, startMs: undefined, endMs: undefined, writtenMs: ptsMs },
      );
    }
    if (chunk.items.length === 0) chunk.items = itemsOf(payload, text);
    chunk.startMs ??= integer(payload.pts_start_ms);
    chunk.endMs ??= integer(payload.pts_end_ms);
  }
  return [...chunks.values()].flatMap((chunk) => chunk.items.map((item) => interactionOf(item, chunk)));
}

/** Chunks are counted from 0 by each request, and by each track of a live session. */
function keyOf({ request_id, session_id, track_id, stream_id, chunk_index }: ChunkPayload): string {
  return JSON.stringify([request_id, session_id, track_id, stream_id, chunk_index]);
}

function itemsOf(payload: ChunkPayload, text: string): readonly unknown[] {
  const { raw_output, object_label, event_type } = payload;
  if (raw_output !== undefined && raw_output !== null) {
    const exact = (parseWithRawNumbers(text) as ChunkPayload).raw_output;
    return Array.isArray(exact) ? exact : [exact];
  }
  const [object, event] = [label(object_label), label(event_type)];
  return object === "" && event === "" ? [] : [{ object_label: object, event_type: event }];
}

/** Output that is no object is told under the name that the reason route gives to text that it cannot parse. */
function interactionOf(item: unknown, { chunkIndex, startMs, endMs, writtenMs }: Chunk): object {
  const isObject = typeof item === "object" && item !== null && !Array.isArray(item) && !JSON.isRawJSON(item);
  const start = startMs ?? writtenMs;
  return {
    chunk_index: chunkIndex,
    pts_start_ms: start,
    pts_end_ms: endMs ?? start,
    ...(isObject ? item : { raw: item }),
  };
}

function integer(value: unknown): number | undefined {
  return Number.isSafeInteger(value) ? value as number : undefined;
}

function label(value: unknown): string {
  return typeof value === "string" ? value.trim() : "";
}
