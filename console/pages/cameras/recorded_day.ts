/** The segments of a source's recording of one day, page by page, and of today those that come. */

import { useEffect, useState } from "preact/hooks";
import type { RecordedSegment } from "../../../client/mod.ts";
import { client, returns } from "../../service/session.ts";

export interface Day {
  /** Midnight in the reader's zone, and the next one. */
  readonly startMs: number;
  readonly endMs: number;
}

export interface RecordedDay {
  readonly segments: readonly RecordedSegment[];
  /** Everything that there is by now was read. */
  readonly isWhole: boolean;
  readonly failure: unknown;
  readonly reload: () => void;
}

const PAGE = 1_000;
/** A segment has ten seconds and more. */
const NEWER_MS = 10_000;

/** The day of a moment. */
export function dayOf(ms: number): Day {
  const at = new Date(ms);
  const midnight = (days: number) => new Date(at.getFullYear(), at.getMonth(), at.getDate() + days).getTime();
  return { startMs: midnight(0), endMs: midnight(1) };
}

export function useRecordedDay(source: string, { startMs, endMs }: Day): RecordedDay {
  const [state, setState] = useState<Omit<RecordedDay, "reload">>(NOTHING);
  const [asked, setAsked] = useState(0);
  const inputs = [source, startMs, endMs, client.value, returns.value, asked];
  useEffect(() => {
    const ending = new AbortController();
    setState(NOTHING);
    readDay(source, { startMs, endMs }, ending.signal, setState).catch((failure) =>
      ending.signal.aborted || setState((now) => ({ ...now, failure }))
    );
    return () => ending.abort();
  }, inputs);
  return { ...state, reload: () => setAsked((count) => count + 1) };
}

const NOTHING: Omit<RecordedDay, "reload"> = { segments: [], isWhole: false, failure: undefined };

/** To the end of the day; until the page is left, where that is still to come. */
async function readDay(
  source: string,
  day: Day,
  signal: AbortSignal,
  show: (state: Omit<RecordedDay, "reload">) => void,
): Promise<void> {
  const known = new Map<string, RecordedSegment>();
  for (let fromMs = day.startMs; !signal.aborted;) {
    let cursor: string | null = null;
    do {
      const page = await client.peek().listRecordings(source, {
        ...{ from: fromMs, to: day.endMs, limit: PAGE },
        ...(cursor !== null && { cursor }),
      }, { signal });
      for (const segment of page.segments) known.set(segment.segment_id, segment);
      cursor = page.next_cursor;
      if (signal.aborted) return;
      if (page.segments.length > 0 || cursor === null) {
        show({ segments: [...known.values()], isWhole: cursor === null, failure: undefined });
      }
    } while (cursor !== null);
    if (Date.now() > day.endMs) return;
    do await new Promise((resolve) => setTimeout(resolve, NEWER_MS)); while (document.hidden);
    fromMs = [...known.values()].at(-1)?.end_at_ms ?? day.startMs;
  }
}
