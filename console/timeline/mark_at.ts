/** Which mark lies at a place of the canvas. */

import { msAt, type PlotScale, xOf } from "./drawing/plot.ts";
import type { MarkStore } from "./mark_store.ts";
import type { ShownMarks } from "./shown_marks.ts";

/** So near to a mark counts as on it, in pixels: half of the smallest target that can be hit. */
const NEAR = 12;
/** Of marks that lie over each other no more than so many are looked at. */
const LOOKED_AT = 2000;

/**
 * The index of the mark; -1 for none. A mark that begins nearer goes before one that lasts over the place.
 */
export function markAt(
  scale: PlotScale,
  { x, y }: { x: number; y: number },
  { shown, store }: { shown: ShownMarks; store: MarkStore },
): number {
  const row = scale.rows.lanes.find(({ top, height }) => y >= top && y < top + height);
  if (!row) return -1;
  const marks = shown.lane(row.lane);
  const ms = msAt(scale, x);
  let [found, distance] = [-1, Infinity];
  const end = marks.positionAt(msAt(scale, x + NEAR), "behind");
  const first = Math.max(
    0,
    marks.positionAt(ms - marks.longestMs),
    end - LOOKED_AT,
  );
  const from = Math.min(first, marks.positionAt(msAt(scale, x - NEAR)));
  for (let position = end - 1; position >= from; position--) {
    const index = marks.at(position);
    const away = Math.abs(xOf(scale, store.startMsAt(index)) - x);
    const isOver = store.startMsAt(index) <= ms && store.endMsAt(index) >= ms;
    const counted = isOver ? Math.min(away, NEAR) : away;
    if (counted <= NEAR && counted < distance) {
      [found, distance] = [index, counted];
    }
  }
  return found;
}
