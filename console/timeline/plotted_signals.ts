/** The signals that a timeline plots: the whole run coarsely, the window finely once it rests. */

import { useEffect, useState } from "preact/hooks";
import type { Signals } from "../../client/mod.ts";
import { client, returns } from "../service/session.ts";
import type { Stretch } from "./view.ts";

/** One bin a pixel, on a wide screen. */
const POINTS = 1200;
/** So long after the last movement the window is asked for. */
const REST_MS = 120;
/** Of the window's length, on each side, so that a small movement needs no question. */
const MARGIN = 0.5;

/** Null for a run that has decoded nothing. `decodes` changes when there may be others. */
export function usePlottedSignals(
  runId: string,
  { window, decodes }: { window: Stretch | null; decodes: number },
): Signals | null {
  const [whole, setWhole] = useState<Signals | null>(null);
  const [fine, setFine] = useState<
    { readonly of: Stretch; readonly signals: Signals } | null
  >(null);
  const isFine = whole !== null && whole.frames <= whole.pts_ms.length;
  const returned = returns.value;
  useEffect(() => {
    const ending = new AbortController();
    client.peek().getSignals(runId, { points: POINTS }, {
      signal: ending.signal,
    }).then(
      (signals) => {
        setWhole(signals.source_seq === null ? null : signals);
        setFine(null);
      },
      () => {}, // the marks of the same run say why nothing can be read
    );
    return () => ending.abort();
  }, [runId, decodes, returned]);
  const isCovered = window === null ||
    (fine !== null && covers(fine.of, window));
  useEffect(() => {
    if (whole === null || isFine || window === null || isCovered) return;
    const ending = new AbortController();
    const marginMs = (window.toMs - window.fromMs) * MARGIN;
    const of = {
      fromMs: Math.max(0, window.fromMs - marginMs),
      toMs: window.toMs + marginMs,
    };
    const range = {
      from_ms: Math.floor(of.fromMs),
      to_ms: Math.ceil(of.toMs),
      points: 2 * POINTS,
    };
    const timer = setTimeout(() => {
      client.peek().getSignals(runId, range, { signal: ending.signal }).then(
        (signals) => setFine({ of, signals }),
        () => {}, // the coarse ones stay
      );
    }, REST_MS);
    return () => {
      clearTimeout(timer);
      ending.abort();
    };
  }, [whole, isFine, window?.fromMs, window?.toMs, isCovered]);
  return window !== null && fine !== null && covers(fine.of, window) ? fine.signals : whole;
}

/** Whether bins of one stretch are fine enough for another, and reach over it. */
function covers(of: Stretch, window: Stretch): boolean {
  const isFine = of.toMs - of.fromMs <= (window.toMs - window.fromMs) * 4 * (1 + 2 * MARGIN);
  return isFine && of.fromMs <= Math.max(0, window.fromMs) &&
    of.toMs >= window.toMs;
}
