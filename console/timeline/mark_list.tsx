/** The same marks as a list, for keyboards and screen readers, and for reading: only the rows that can be
 * seen exist.
 */

import { lookOfMark } from "./mark.ts";
import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { countText, scoreText } from "../text/numbers.ts";
import { mediaTime } from "../text/time.ts";
import type { RunMarks } from "./run_marks.ts";
import type { TimelineView } from "./view.ts";

export interface MarkListProps {
  readonly marks: RunMarks;
  readonly view: TimelineView;
}

const ROW = 30;
/** Drawn above and below what can be seen. */
const SPARE_ROWS = 8;
const PAGE_ROWS = 10;

export function MarkList({ marks, view }: MarkListProps) {
  const list = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const height = useSignal(300);
  const isPointed = useRef(false);
  const shown = useComputed(() => {
    void marks.count.value;
    const { all } = marks.shown(view.filter.value);
    return { all, count: all.count };
  });
  const { all, count } = shown.value;
  /** The row of the last mark that began at the playhead or before it. */
  const present = useComputed(() => shown.value.all.positionAt(view.playheadMs.value, "behind") - 1);
  const chosen = useComputed(() => positionOf(marks, shown.value.all, view.selectedSeq.value));

  const reveal = (position: number) => {
    const element = list.current;
    if (!element || position < 0) return;
    const [from, to] = [position * ROW, (position + 1) * ROW];
    if (from < element.scrollTop) element.scrollTop = from;
    else if (to > element.scrollTop + element.clientHeight) {
      element.scrollTop = to - element.clientHeight;
    }
  };
  const choose = (position: number) => {
    const wanted = Math.max(0, Math.min(count - 1, position));
    view.selectedSeq.value = marks.store.seqAt(all.at(wanted));
    reveal(wanted);
  };
  useSignalEffect(() => {
    if (!isPointed.current) reveal(present.value);
  });
  useSignalEffect(() => reveal(chosen.value));
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => void (height.value = entry!.contentRect.height));
    observer.observe(list.current!);
    return () => observer.disconnect();
  }, []);
  const onKeyDown = (event: KeyboardEvent) => {
    const from = chosen.peek() >= 0 ? chosen.peek() : Math.max(0, present.peek());
    const to = targetOf(event.key, from, count);
    if (to === null || count === 0) return;
    event.preventDefault();
    choose(to);
  };
  const first = Math.max(0, Math.floor(top.value / ROW) - SPARE_ROWS);
  const end = Math.min(
    count,
    Math.ceil((top.value + height.value) / ROW) + SPARE_ROWS,
  );
  return (
    <section class="mark-list" aria-label="Marks">
      <h2>
        Marks <span class="number dim">{countOf(count, marks.count.value)}</span>
      </h2>
      <div
        ref={list}
        class="mark-rows"
        role="listbox"
        tabIndex={0}
        aria-label="Marks in the order of their times"
        aria-activedescendant={chosen.value >= first && chosen.value < end
          ? `mark-${chosen.value}`
          : undefined}
        onKeyDown={onKeyDown}
        onScroll={({ currentTarget: { scrollTop } }) => top.value = scrollTop}
        onPointerEnter={() => isPointed.current = true}
        onPointerLeave={() => isPointed.current = false}
      >
        <div role="presentation" style={{ height: `${count * ROW}px` }}>
          {Array.from(
            { length: Math.max(0, end - first) },
            (_, offset) => (
              <MarkRow
                key={first + offset}
                marks={marks}
                index={all.at(first + offset)}
                position={first + offset}
                count={count}
                isChosen={first + offset === chosen.value}
                isPresent={first + offset === present.value}
                onChoose={choose}
              />
            ),
          )}
        </div>
        {count === 0 && marks.count.value > 0 && <p class="hint">No mark passes the filter.</p>}
      </div>
    </section>
  );
}

interface MarkRowProps {
  readonly marks: RunMarks;
  readonly index: number;
  readonly position: number;
  readonly count: number;
  readonly isChosen: boolean;
  readonly isPresent: boolean;
  readonly onChoose: (position: number) => void;
}

function MarkRow(
  { marks, index, position, count, isChosen, isPresent, onChoose }: MarkRowProps,
) {
  const mark = marks.at(index);
  const { name, shape, colour } = lookOfMark(mark);
  const isPlain = mark.label === mark.eventType || mark.label === mark.kind;
  return (
    <div
      id={`mark-${position}`}
      class={`mark-row${isPresent ? " is-present" : ""}`}
      role="option"
      aria-selected={isChosen}
      aria-posinset={position + 1}
      aria-setsize={count}
      style={{ transform: `translateY(${position * ROW}px)` }}
      onClick={() => onChoose(position)}
    >
      <span class="mark" style={{ color: colour }} aria-hidden="true">
        {shape}
      </span>
      <span class="mark-name">{name}</span>
      <span class="number">{mediaTime(mark.startMs)}</span>
      <span class="number dim extra">
        {mark.endMs > mark.startMs ? `– ${mediaTime(mark.endMs)}` : ""}
      </span>
      <span class="mark-label" dir="auto">{isPlain ? "" : mark.label}</span>
      <span class="dim extra">{mark.status ?? ""}</span>
      <span class="number dim">
        {mark.confidence === null ? "" : scoreText(mark.confidence)}
      </span>
    </div>
  );
}

/** The row that a key leads to; null for a key that leads nowhere. */
function targetOf(key: string, from: number, count: number): number | null {
  switch (key) {
    case "ArrowDown":
      return from + 1;
    case "ArrowUp":
      return from - 1;
    case "PageDown":
      return from + PAGE_ROWS;
    case "PageUp":
      return from - PAGE_ROWS;
    case "Home":
      return 0;
    case "End":
      return count - 1;
    default:
      return null;
  }
}

/** -1 where the mark is not shown. */
function positionOf(
  marks: RunMarks,
  all: {
    count: number;
    at(position: number): number;
    positionAt(ms: number): number;
  },
  seq: number | null,
): number {
  const index = seq === null ? -1 : marks.store.indexOfSeq(seq);
  if (index < 0) return -1;
  const startMs = marks.store.startMsAt(index);
  for (
    let position = all.positionAt(startMs);
    position < all.count;
    position++
  ) {
    if (all.at(position) === index) return position;
    if (marks.store.startMsAt(all.at(position)) > startMs) break;
  }
  return -1;
}

function countOf(shown: number, all: number): string {
  return shown === all ? countText(all) : `${countText(shown)} of ${countText(all)}`;
}
