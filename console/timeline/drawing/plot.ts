/** Where things are on the canvas of a timeline, and in which colours. Lengths are CSS pixels. */

import type { Stretch } from "../view.ts";

export interface Plot {
  readonly context: CanvasRenderingContext2D;
  readonly width: number;
  readonly rows: PlotRows;
  /** What the whole run has, and the part of it that is shown. */
  readonly whole: Stretch;
  readonly window: Stretch;
  readonly colours: PlotColours;
}

/** A part of the canvas over its whole width. */
export interface PlotRow {
  readonly top: number;
  readonly height: number;
}

export interface PlotRows {
  readonly overview: PlotRow;
  readonly lanes: readonly (PlotRow & { readonly lane: string })[];
  /** Null where nothing was measured. */
  readonly signals: PlotRow | null;
  readonly ruler: PlotRow;
  readonly height: number;
  /** Width of the names before the lanes. */
  readonly gutter: number;
}

export interface PlotColours {
  readonly ground: string;
  readonly surface: string;
  readonly raised: string;
  readonly line: string;
  readonly strong: string;
  readonly text: string;
  readonly dim: string;
  readonly accent: string;
  readonly font: string;
}

const OVERVIEW_HEIGHT = 36;
const LANE_HEIGHT = 24;
const SIGNALS_HEIGHT = 72;
const RULER_HEIGHT = 22;
const GAP = 6;
/** Below this width only the shapes of the lanes are shown. */
const NARROW = 640;
const GUTTERS = { wide: 124, narrow: 26 };

export function rowsOf(
  width: number,
  lanes: readonly string[],
  hasSignals: boolean,
): PlotRows {
  let top = OVERVIEW_HEIGHT + GAP;
  const laneRows = lanes.map((lane) => {
    const row = { lane, top, height: LANE_HEIGHT };
    top += LANE_HEIGHT;
    return row;
  });
  if (lanes.length === 0) top += LANE_HEIGHT;
  top += GAP;
  const signals = hasSignals ? { top, height: SIGNALS_HEIGHT } : null;
  if (hasSignals) top += SIGNALS_HEIGHT + GAP;
  return {
    overview: { top: 0, height: OVERVIEW_HEIGHT },
    lanes: laneRows,
    signals,
    ruler: { top, height: RULER_HEIGHT },
    height: top + RULER_HEIGHT,
    gutter: width < NARROW ? GUTTERS.narrow : GUTTERS.wide,
  };
}

/** Where a media time of the window is. */
export function xOf(
  { window, width, rows: { gutter } }: PlotScale,
  ms: number,
): number {
  return gutter +
    (ms - window.fromMs) / (window.toMs - window.fromMs) * (width - gutter);
}

/** The media time at a place of the window. */
export function msAt(
  { window, width, rows: { gutter } }: PlotScale,
  x: number,
): number {
  return window.fromMs +
    (x - gutter) / (width - gutter) * (window.toMs - window.fromMs);
}

export type PlotScale = Pick<Plot, "window" | "width" | "rows">;

/** The tokens of the page, as they are now, light or dark. */
export function coloursOf(element: Element): PlotColours {
  const style = getComputedStyle(element);
  // A token may depend on the scheme: only a property that uses it has its colour.
  const probe = document.createElement("span");
  probe.hidden = true;
  element.append(probe);
  const token = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const colours = {
    ground: token("ground"),
    surface: token("surface"),
    raised: token("raised"),
    line: token("line"),
    strong: token("line-strong"),
    text: token("text"),
    dim: token("text-dim"),
    accent: token("accent"),
    font: style.fontFamily,
  };
  probe.remove();
  return colours;
}
