/** The order of many markers by their place, without the markers: four numbers of each, sorted with turns for
 * others.
 */

import { yieldToEventLoop } from "../../base/wait.ts";
import type { Marker } from "../../model/frames/marker.ts";

/** Numbers kept of a marker: start_frame, end_frame, its id as a number, its sequence number. */
const FIELDS = 4;
/** Markers that are merged in one turn. */
const TURN = 16_384;

/**
 * Markers are sorted by start_frame, end_frame and marker_id. One pass of analyze writes its segments in that
 * order, and its ranges behind them, so a few stretches are merged, and one needs no work.
 *
 *     seqs 2 3 4 | 7 8 9      two stretches, each sorted
 *          2 7 3 8 4 9        merged
 */
export class MarkerOrder {
  #fields = new Float64Array(FIELDS * 256);
  #count = 0;
  /** Where a stretch begins that is sorted already. */
  readonly #stretches: number[] = [];

  add(marker: Pick<Marker, "start_frame" | "end_frame" | "marker_id">, seq: number): void {
    if (this.#count * FIELDS === this.#fields.length) {
      const larger = new Float64Array(this.#fields.length * 2);
      larger.set(this.#fields);
      this.#fields = larger;
    }
    const index = this.#count++;
    this.#fields.set([marker.start_frame, marker.end_frame, idNumber(marker.marker_id), seq], index * FIELDS);
    if (index === 0 || this.#compare(index - 1, index) > 0) this.#stretches.push(index);
  }

  /** The sequence numbers in order; markers of the same place in the order in which they were added. */
  async seqs(): Promise<Float64Array> {
    let order = Uint32Array.from({ length: this.#count }, (_, index) => index);
    let stretches: readonly number[] = this.#stretches;
    let merged = new Uint32Array(stretches.length > 1 ? this.#count : 0);
    let sinceTurn = 0;
    while (stretches.length > 1) {
      for (let at = 0; at < stretches.length; at += 2) {
        const [start, middle, end] = [0, 1, 2].map((step) => stretches[at + step] ?? this.#count);
        let [left, right] = [start!, middle!];
        for (let to = start!; to < end!; to++) {
          const takesLeft = left < middle! &&
            (right === end || this.#compare(order[left]!, order[right]!) <= 0);
          merged[to] = takesLeft ? order[left++]! : order[right++]!;
          if (++sinceTurn % TURN === 0) await yieldToEventLoop();
        }
      }
      [order, merged] = [merged, order];
      stretches = stretches.filter((_, at) => at % 2 === 0);
    }
    return Float64Array.from(order, (index) => this.#fields[index * FIELDS + 3]!);
  }

  #compare(left: number, right: number): number {
    for (let field = 0; field < FIELDS - 1; field++) {
      const difference = this.#fields[left * FIELDS + field]! - this.#fields[right * FIELDS + field]!;
      if (difference !== 0) return difference;
    }
    return 0;
  }
}

/** `mk-00000010` before `mkf-00000001`, as their texts are. */
function idNumber(id: string): number {
  const [, finalized, digits] = /^mk(f?)-([0-9a-f]+)$/.exec(id) ?? [];
  return (finalized === "f" ? 2 ** 40 : 0) + parseInt(digits ?? "0", 16);
}
