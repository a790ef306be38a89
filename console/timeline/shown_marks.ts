/** The marks that pass the filter, all together and lane by lane. */

import { ALL_MARKS, type MarkFilter } from "./mark.ts";
import type { MarkStore } from "./mark_store.ts";
import { SortedMarks } from "./sorted_marks.ts";

export class ShownMarks {
  readonly all: SortedMarks;
  readonly #store: MarkStore;
  readonly #lanes = new Map<string, SortedMarks>();
  #filter: MarkFilter = ALL_MARKS;
  /** Marks of the store that were looked at. */
  #taken = 0;

  constructor(store: MarkStore) {
    this.#store = store;
    this.all = new SortedMarks(store);
  }

  /** Takes in the marks that came since, and all anew where the filter is another one. */
  update(filter: MarkFilter): void {
    if (filter !== this.#filter) {
      this.#filter = filter;
      this.#taken = 0;
      this.all.clear();
      for (const lane of this.#lanes.values()) lane.clear();
    }
    const store = this.#store;
    const text = filter.text.toLowerCase();
    const passed: number[] = [];
    const byLane = new Map<string, number[]>();
    for (; this.#taken < store.count; this.#taken++) {
      if (!store.passes(this.#taken, filter, text)) continue;
      passed.push(this.#taken);
      const lane = store.laneAt(this.#taken);
      const ofLane = byLane.get(lane);
      if (ofLane) ofLane.push(this.#taken);
      else byLane.set(lane, [this.#taken]);
    }
    this.all.add(Uint32Array.from(passed));
    for (const [lane, indexes] of byLane) {
      this.lane(lane).add(Uint32Array.from(indexes));
    }
  }

  /** Empty for a lane without marks. */
  lane(name: string): SortedMarks {
    let lane = this.#lanes.get(name);
    if (!lane) this.#lanes.set(name, lane = new SortedMarks(this.#store));
    return lane;
  }
}
