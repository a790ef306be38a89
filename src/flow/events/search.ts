/** Search: finds the caller's events whose description contains a text. See docs/api/reading.md#search. */

import { utf8Length } from "../../base/bytes.ts";
import { yieldToEventLoop } from "../../base/wait.ts";
import type { SearchBody } from "../../model/api/search.ts";
import { describedPayload } from "../../model/events/description.ts";
import { matchScore } from "../../model/events/match_score.ts";
import { FieldRules } from "../../model/field_rules.ts";
import { isRunId } from "../../model/identifiers.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { SearchIndex } from "../../store/search/search_index.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { StoredEvent } from "../../store/timeline/event_reader.ts";
import type { Caller } from "../caller.ts";
import { ownedRun } from "../runs/ownership.ts";

export interface SearchHit {
  readonly seq: number;
  readonly run_id: string;
  /** Media time where the payload has one, else the time of the append; milliseconds. */
  readonly pts_ms: number;
  readonly kind: string;
  /** The description that matched, as it was written. */
  readonly description: string;
  readonly index_name: string | null;
  /** Above 0 to 1: how well the description matches the text. */
  readonly score: number;
  /** What the event says of its own certainty. */
  readonly confidence: number | null;
}

export interface SearchResult {
  /** Events of the runs that were searched. */
  readonly scanned: number;
  /** Matches before the limit. */
  readonly total_hits: number;
  /** In sequence order. */
  readonly hits: readonly SearchHit[];
}

/** After the scores of so many characters others get their turn: some milliseconds. */
const YIELD_CHARACTERS = 32_768;

export class Search {
  readonly #timeline: Timeline;
  readonly #index: SearchIndex;

  constructor(timeline: Timeline, index: SearchIndex) {
    this.#timeline = timeline;
    this.#index = index;
  }

  /** Errors: 422 on `query`, `limit` and `run_id`; 404 for a run that is not the caller's. */
  async run(caller: Caller, body: SearchBody): Promise<SearchResult> {
    const { text, limit, runId } = checked(body);
    if (runId !== undefined) ownedRun(this.#timeline.view, caller, runId);
    const found = await this.#index.find(caller.principalKey, { text, runId, limit });
    const hits: SearchHit[] = [];
    let characters = 0;
    for (const seq of found.seqs) {
      const hit = hitOf(this.#timeline.readOne(seq), text);
      if (hit === undefined) continue;
      hits.push(hit);
      characters += hit.description.length;
      if (characters < YIELD_CHARACTERS) continue;
      characters = 0;
      await yieldToEventLoop();
    }
    return { scanned: this.#scanned(caller, runId), total_hits: found.total, hits };
  }

  #scanned(caller: Caller, runId: string | undefined): number {
    const { view } = this.#timeline;
    if (runId !== undefined) return view.run(runId)?.eventCount ?? 0;
    let scanned = 0;
    for (const run of view.runsOf(caller.principalKey)) scanned += run.eventCount;
    return scanned;
  }
}

function checked(body: SearchBody): { text: string; limit: number; runId: string | undefined } {
  const rules = new FieldRules();
  const text = body.query.trim();
  const bytes = utf8Length(text);
  const { minimum, maximum } = LIMITS.search.queryBytes;
  if (bytes < minimum || bytes > maximum) {
    rules.fault("query", `must have ${minimum} to ${maximum} bytes when trimmed: got ${bytes}`);
  }
  const limit = body.limit ?? LIMITS.search.hitsDefault;
  rules.range("limit", limit, LIMITS.search.hits);
  if (body.run_id != null && !isRunId(body.run_id)) rules.fault("run_id", "must be a run id");
  rules.check();
  return { text, limit, runId: body.run_id ?? undefined };
}

/** Undefined for an event that was damaged on the disk after it was indexed. */
function hitOf(event: StoredEvent | undefined, text: string): SearchHit | undefined {
  const described = event && describedPayload(event.payload);
  if (!described) return undefined;
  return {
    seq: event.seq,
    run_id: event.runId,
    pts_ms: described.ptsMs ?? event.ptsMs,
    kind: event.kind,
    description: described.description,
    index_name: described.indexName,
    score: matchScore(described.description, text),
    confidence: described.confidence,
  };
}
