/** The interactions of a run: the answers of models, chunk by chunk, in order of time. See
 * docs/api/reading.md#interactions.
 */

import { parseWithRawNumbers } from "../exact_json.ts";
import { payloadFields } from "../events/payload_json.ts";

/** A semantic chunk event as it is read from the log. */
export interface ChunkEvent {
  readonly ptsMs: number;
  /** The payload's JSON text. */
  readonly payload: string;
}

/** The fields that are read here; any of them may be missing or of another type. */
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

interface InteractionChunk {
  items: readonly unknown[];
  chunkIndex: number;
  /** The media time, from the first event of the chunk that has it. */
  startMs: number | undefined;
  endMs: number | undefined;
  /** When the first event of the chunk was written, epoch milliseconds. */
  writtenMs: number;
}

/**
 * The interactions of the events, which are given in sequence order; with `index` only those of chunks of
 * that index. The results are for JSON.stringify: the numbers of a model's output are kept as text.
 *
 * A chunk has two events: `semantic_chunk_inferred` with the answer of the model, and later
 * `semantic_chunk_generated` with the costs. The interactions come from the first one with an answer, the
 * media times from the first one with times. A chunk without media times gets the time at which its first
 * event was written.
 */
export function interactionsOf(events: Iterable<ChunkEvent>, index?: string): object[] {
  const chunks = new Map<string, InteractionChunk>();
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

/** What tells chunks apart: each request, and each track of a live session, counts its chunks from 0. */
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

/**
 * The interaction of an answer. Output that is no object is given as `raw`, like text that reason cannot
 * parse.
 */
function interactionOf(item: unknown, { chunkIndex, startMs, endMs, writtenMs }: InteractionChunk): object {
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
