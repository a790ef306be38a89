/** Which marks are shown: lanes on and off with their counts, a text, and the least confidence. */

import { useComputed } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { MARK_LOOKS, QUIET_LANES } from "../../text/event_types.ts";
import { countText, scoreText } from "../../text/numbers.ts";
import { type MarkFilter, showsLane } from "../../timeline/mark.ts";
import type { RunMarks } from "../../timeline/run_marks.ts";
import type { TimelineView } from "../../timeline/view.ts";

export interface FilterBarProps {
  readonly marks: RunMarks;
  readonly view: TimelineView;
}

/** While marks come, they are counted anew after so long. */
const COUNT_MS = 250;

export function FilterBar({ marks, view }: FilterBarProps) {
  const counts = useLaneCounts(marks);
  const lanes = marks.lanes.value;
  const filter = view.filter.value;
  const isFiltered = useComputed(() => isNarrow(view.filter.value, marks.lanes.value));
  return (
    <div class="filter-bar" role="group" aria-label="Which marks are shown">
      <div class="row">
        {lanes.map((lane, index) => (
          <button
            key={lane}
            type="button"
            class="lane"
            aria-pressed={showsLane(filter, lane)}
            title={index < 9 ? `Key ${index + 1}` : undefined}
            onClick={() => toggleLane(view, marks, lane)}
          >
            <span
              class="mark"
              style={{ color: lookOf(lane).colour }}
              aria-hidden="true"
            >
              {lookOf(lane).shape}
            </span>
            {lookOf(lane).name}
            <span class="number dim">{countText(counts.get(lane) ?? 0)}</span>
          </button>
        ))}
      </div>
      <div class="row">
        <input
          type="search"
          aria-label="Text of marks"
          placeholder="Text of marks"
          value={filter.text}
          onInput={({ currentTarget: { value } }) => view.filter.value = { ...filter, text: value }}
        />
        <label class="least">
          confidence from
          <input
            type="range"
            min="0"
            max="1"
            step="0.05"
            value={filter.minConfidence}
            onInput={({ currentTarget: { value } }) =>
              view.filter.value = { ...filter, minConfidence: Number(value) }}
          />
          <output class="number">{scoreText(filter.minConfidence)}</output>
        </label>
        <button
          type="button"
          class="quiet"
          disabled={!isFiltered.value}
          onClick={() => view.filter.value = { lanes: null, text: "", minConfidence: 0 }}
        >
          Show all
        </button>
      </div>
    </div>
  );
}

/** Shows or hides the marks of a lane. */
export function toggleLane(
  { filter }: TimelineView,
  { lanes }: RunMarks,
  lane: string,
): void {
  const present = filter.peek();
  const shown = new Set(lanes.peek().filter((each) => showsLane(present, each)));
  if (!shown.delete(lane)) shown.add(lane);
  const areAll = lanes.peek().every((other) => shown.has(other));
  const areUsual = lanes.peek().every((other) => shown.has(other) !== QUIET_LANES.has(other));
  filter.value = { ...present, lanes: areUsual ? "usual" : areAll ? null : shown };
}

function isNarrow(filter: MarkFilter, lanes: readonly string[]): boolean {
  return filter.text !== "" || filter.minConfidence > 0 || !lanes.every((lane) => showsLane(filter, lane));
}

function lookOf(lane: string) {
  return MARK_LOOKS[lane] ?? MARK_LOOKS.other!;
}

/** Marks of each lane, whatever the filter shows. */
function useLaneCounts(marks: RunMarks): ReadonlyMap<string, number> {
  const [counts, setCounts] = useState<ReadonlyMap<string, number>>(new Map());
  const count = marks.count.value;
  useEffect(() => {
    const timer = setTimeout(() => {
      const found = new Map<string, number>();
      for (let index = 0; index < count; index += 1) {
        const { lane } = marks.at(index);
        found.set(lane, (found.get(lane) ?? 0) + 1);
      }
      setCounts(found);
    }, counts.size === 0 ? 0 : COUNT_MS);
    return () => clearTimeout(timer);
  }, [marks, count]);
  return counts;
}
