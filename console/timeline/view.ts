/** What a person looks at on a timeline; it is kept in the address, so that a link shows the same. */

import { type Signal, signal } from "@preact/signals";
import { type MarkFilter, USUAL_MARKS } from "./mark.ts";

export interface Stretch {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface TimelineView {
  readonly playheadMs: Signal<number>;
  /** Null: the whole run, whose end moves while it is live. */
  readonly window: Signal<Stretch | null>;
  readonly selectedSeq: Signal<number | null>;
  /** What was chosen by dragging with shift. */
  readonly range: Signal<Stretch | null>;
  readonly filter: Signal<MarkFilter>;
}

/** Closer than this there is nothing to see. */
const SHORTEST_MS = 40;

/** The view that an address names. */
export function openView(query: URLSearchParams): TimelineView {
  const lanes = query.get("lanes");
  const confidence = numberIn(query, "min") ?? 0;
  const filter: MarkFilter = {
    lanes: lanes === null ? "usual" : lanes === "all" ? null : new Set(lanes.split(",").filter(Boolean)),
    text: query.get("text") ?? "",
    minConfidence: Math.min(1, confidence),
  };
  const isPlain = filter.lanes === "usual" && filter.text === "" &&
    filter.minConfidence === 0;
  return {
    playheadMs: signal(numberIn(query, "t") ?? 0),
    window: signal(stretchIn(query, "start", "end")),
    selectedSeq: signal(wholeNumberIn(query, "seq")),
    range: signal(stretchIn(query, "in", "out")),
    filter: signal(isPlain ? USUAL_MARKS : filter),
  };
}

/** The parts of the address that name the view; null for what is as it is without a name. */
export function queryOf(
  view: TimelineView,
): Readonly<Record<string, string | null>> {
  const { lanes, text, minConfidence } = view.filter.value;
  const window = view.window.value;
  const range = view.range.value;
  const playheadMs = Math.round(view.playheadMs.value);
  return {
    t: playheadMs === 0 ? null : String(playheadMs),
    start: window && String(Math.round(window.fromMs)),
    end: window && String(Math.round(window.toMs)),
    in: range && String(Math.round(range.fromMs)),
    out: range && String(Math.round(range.toMs)),
    seq: view.selectedSeq.value === null ? null : String(view.selectedSeq.value),
    lanes: lanes === "usual" ? null : lanes === null ? "all" : [...lanes].join(","),
    text: text === "" ? null : text,
    min: minConfidence === 0 ? null : String(minConfidence),
  };
}

/**
 * A window as long as `factor` times the present one, with the media time `aroundMs` at the same place in it.
 */
export function zoomed(
  present: Stretch,
  whole: Stretch,
  factor: number,
  aroundMs: number,
): Stretch | null {
  const lengthMs = Math.max(
    SHORTEST_MS,
    (present.toMs - present.fromMs) * factor,
  );
  if (lengthMs >= whole.toMs - whole.fromMs) return null;
  const isInside = aroundMs >= present.fromMs && aroundMs <= present.toMs;
  const share = isInside ? (aroundMs - present.fromMs) / (present.toMs - present.fromMs) : 0.5;
  return within(whole, aroundMs - share * lengthMs, lengthMs);
}

/** A window of this length that does not leave the whole. */
export function within(
  whole: Stretch,
  fromMs: number,
  lengthMs: number,
): Stretch {
  const start = Math.max(whole.fromMs, Math.min(fromMs, whole.toMs - lengthMs));
  return { fromMs: start, toMs: start + lengthMs };
}

function numberIn(query: URLSearchParams, name: string): number | null {
  const text = query.get(name);
  const value = text === null || text === "" ? NaN : Number(text);
  return value >= 0 && value <= Number.MAX_SAFE_INTEGER ? value : null;
}

function wholeNumberIn(query: URLSearchParams, name: string): number | null {
  const value = numberIn(query, name);
  return Number.isInteger(value) ? value : null;
}

function stretchIn(
  query: URLSearchParams,
  from: string,
  to: string,
): Stretch | null {
  const [fromMs, toMs] = [numberIn(query, from), numberIn(query, to)];
  return fromMs === null || toMs === null || toMs - fromMs < SHORTEST_MS ? null : { fromMs, toMs };
}
