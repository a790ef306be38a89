/** What a session finds, the newest first; while the list is read, new rows wait behind their number. */

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { TimelineEvent } from "../../../client/mod.ts";
import { useKeys } from "../../shell/keys.tsx";
import { hrefOf } from "../../shell/place.ts";
import { lookOfMark, type Mark } from "../../timeline/mark.ts";
import type { RunMarks } from "../../timeline/run_marks.ts";
import { lookOfEvent } from "../../text/event_types.ts";
import { countText } from "../../text/numbers.ts";
import { clock, mediaTime } from "../../text/time.ts";
import { eventSentence } from "../run/details/event_text.ts";

export interface EventFeedProps {
  readonly runId: string;
  readonly marks: RunMarks;
}

/** As many as are shown; the page of the run has all of them. */
const SHOWN = 200;
/** So many are looked at; more new ones than these are not counted. */
const LATEST = 1_000;

type Row = { readonly seq: number; readonly mark: Mark } | {
  readonly seq: number;
  readonly event: TimelineEvent;
};

export function EventFeed({ runId, marks }: EventFeedProps) {
  const count = marks.count.value;
  const history = marks.kept.value;
  const list = useRef<HTMLOListElement>(null);
  const isRead = useRef(false);
  /** Rows behind this one wait; Infinity while nothing is read. */
  const [shownSeq, setShownSeq] = useState(Infinity);
  const rows = rowsOf(marks, count, history);
  const waiting = rows.filter(({ seq }) => seq > shownSeq).length;
  const shown = rows.slice(waiting, waiting + SHOWN);
  const newest = rows[0]?.seq ?? 0;

  const showAll = useCallback(() => {
    setShownSeq(isRead.current ? newest : Infinity);
    if (list.current) list.current.scrollTop = 0;
  }, [newest]);
  useKeys("Events", useMemo(() => [{ keys: ["n"], does: "show new events", run: showAll }], [showAll]));
  const stay = () => {
    isRead.current = true;
    setShownSeq((seq) => seq === Infinity ? newest : seq);
  };
  const leave = () => {
    isRead.current = false;
    if ((list.current?.scrollTop ?? 0) === 0) setShownSeq(Infinity);
  };
  useEffect(() => {
    const element = list.current!;
    const onScroll = () => element.scrollTop > 0 ? stay() : !isRead.current && setShownSeq(Infinity);
    element.addEventListener("scroll", onScroll);
    return () => element.removeEventListener("scroll", onScroll);
  }, [newest]);

  return (
    <section
      class="live-feed"
      aria-labelledby="live-events"
      onPointerMove={({ movementX, movementY }) => (movementX !== 0 || movementY !== 0) && stay()}
      onPointerLeave={leave}
      onFocusIn={stay}
      onFocusOut={leave}
    >
      <div class="page-head">
        <h2 id="live-events">Events</h2>
        <button
          type="button"
          class="quiet"
          aria-hidden={waiting === 0}
          disabled={waiting === 0}
          onClick={showAll}
        >
          {waiting > 0 ? `${countText(waiting)} new` : ""}
        </button>
        <a href={hrefOf(["runs", runId])}>Timeline of the run</a>
      </div>
      {marks.isComplete.value && rows.length === 0 && (
        <p class="hint">Events appear here as the session finds them.</p>
      )}
      <ol
        ref={list}
        tabIndex={0}
        aria-label="Events, the newest first"
      >
        {shown.map((row) => <FeedRow key={row.seq} row={row} runId={runId} />)}
      </ol>
    </section>
  );
}

function FeedRow({ row, runId }: { row: Row; runId: string }) {
  if ("event" in row) {
    const { kind, pts_ms } = row.event;
    const { shape, colour } = lookOfEvent(kind);
    return (
      <li>
        <span class="mark" style={{ color: colour }} aria-hidden="true">
          {shape}
        </span>
        <time class="number dim">{clock(pts_ms)}</time>
        <span>{eventSentence(row.event)}</span>
      </li>
    );
  }
  const { mark } = row;
  const { name, shape, colour } = lookOfMark(mark);
  const isPlain = mark.label === mark.eventType || mark.label === mark.kind;
  return (
    <li>
      <span class="mark" style={{ color: colour }} aria-hidden="true">
        {shape}
      </span>
      <a
        class="number"
        href={hrefOf(["runs", runId], {
          seq: String(mark.seq),
          t: String(mark.startMs),
        })}
      >
        {mediaTime(mark.startMs)}
      </a>
      <span>
        <strong>{name}</strong>{" "}
        {!isPlain && <span dir="auto" class={mark.lane === "keyframe" ? "dim" : ""}>{mark.label}</span>}
      </span>
    </li>
  );
}

/** Marks, and events without a place in the media, the newest first. */
function rowsOf(
  marks: RunMarks,
  count: number,
  history: readonly TimelineEvent[],
): Row[] {
  const rows: Row[] = [];
  const described = new Set<string>();
  for (let index = Math.max(0, count - LATEST); index < count; index++) {
    const mark = marks.at(index);
    const said = `${mark.startMs} ${mark.label}`;
    // The picture of a description is stored with it: one row for both.
    if (!(mark.lane === "keyframe" && described.has(said))) rows.push({ seq: mark.seq, mark });
    described.add(said);
  }
  // A gap of the source is both: its sentence says more.
  for (const event of history.slice(-LATEST)) rows.push({ seq: event.seq, event });
  const bySeq = new Map(rows.map((row) => [row.seq, row]));
  return [...bySeq.values()].sort((one, other) => other.seq - one.seq);
}
