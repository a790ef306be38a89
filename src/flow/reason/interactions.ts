/** Reads the interactions of a run from the events of its chunks. See docs/api/reading.md#interactions. */

import { interactionsOf } from "../../model/reason/interaction.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { StoredEvent } from "../../store/timeline/event_reader.ts";
import type { Caller } from "../caller.ts";
import { ownedRun } from "../runs/ownership.ts";

const CHUNK_KINDS: ReadonlySet<string> = new Set(["semantic_chunk_inferred", "semantic_chunk_generated"]);

export class Interactions {
  readonly #timeline: Timeline;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  /**
   * In the order in which the chunks were first written; with `index` only those of one index. Errors: 422
   * and 404.
   */
  list(caller: Caller, runId: string, index?: string): readonly object[] {
    const run = ownedRun(this.#timeline.view, caller, runId);
    return interactionsOf(eventsOf(this.#timeline.read(run.runId, { kinds: CHUNK_KINDS })), index);
  }
}

function* eventsOf(batches: Iterable<readonly StoredEvent[]>): Iterable<StoredEvent> {
  for (const batch of batches) yield* batch;
}
