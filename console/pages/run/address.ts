/** The view of a run in the address of the page, both ways: what is looked at is written there, and a link
 * shows what it names.
 */

import { batch, effect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { openView, queryOf, type TimelineView } from "../../timeline/view.ts";
import { place, setQuery } from "../../shell/place.ts";

/** So long after the last change the address names it: browsers take no more than some changes a second. */
const REST_MS = 400;

export function useAddress(view: TimelineView, query: URLSearchParams): void {
  /** What this page has written, or was opened with. */
  const known = useRef(asText(openView(query)));
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = effect(() => {
      const changes = queryOf(view);
      clearTimeout(timer);
      timer = setTimeout(() => {
        // Another address came meanwhile, which the page is about to follow: it must not be written over.
        if (asText(openView(place.peek().query)) !== known.current) return;
        known.current = JSON.stringify(changes);
        setQuery(changes);
      }, REST_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [view]);
  useEffect(() => {
    const named = openView(query);
    if (asText(named) === known.current) return;
    known.current = asText(named);
    batch(() => {
      view.playheadMs.value = named.playheadMs.value;
      view.window.value = named.window.value;
      view.selectedSeq.value = named.selectedSeq.value;
      view.range.value = named.range.value;
      view.filter.value = named.filter.value;
    });
  }, [query]);
}

function asText(view: TimelineView): string {
  return JSON.stringify(queryOf(view));
}
