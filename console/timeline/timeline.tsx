/** The timeline of a run, recorded or live: an overview, the lanes of its marks, its signals and its times,
 * on one canvas.
 */

import { effect, useComputed, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Signals } from "../../client/mod.ts";
import { mediaTime } from "../text/time.ts";
import { drawLanes } from "./drawing/lanes.ts";
import { drawOverview } from "./drawing/overview.ts";
import { coloursOf, msAt, type Plot, type PlotRows, rowsOf } from "./drawing/plot.ts";
import { drawPlayhead, drawRange, drawRuler } from "./drawing/ruler.ts";
import { drawSignals } from "./drawing/signals.ts";
import { listenForGestures } from "./gestures.ts";
import { markAt } from "./mark_at.ts";
import { MarkTip } from "./mark_tip.tsx";
import { usePlottedSignals } from "./plotted_signals.ts";
import type { RunMarks } from "./run_marks.ts";
import { Thumbnails } from "./thumbnails.tsx";
import { type Stretch, type TimelineView, within } from "./view.ts";
import "./timeline.css";

export interface TimelineProps {
  readonly runId: string;
  readonly marks: RunMarks;
  readonly view: TimelineView;
  readonly onSeek: (ms: number) => void;
  /** Whether its end follows what happens. */
  readonly isLive: boolean;
  /** Shown between the pictures and the lanes. */
  readonly children?: ComponentChildren;
}

/** A run of which nothing is known yet is that long. */
const LEAST_MS = 1000;

export function Timeline(
  { runId, marks, view, onSeek, isLive, children }: TimelineProps,
) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useSignal(0);
  const hovered = useSignal<{ index: number; x: number; y: number } | null>(
    null,
  );
  const whole = useComputed<Stretch>(() => ({
    fromMs: marks.startMs.value,
    toMs: Math.max(marks.durationMs.value, marks.startMs.value + LEAST_MS),
  }));
  const window = useComputed(() => windowOf(view.window.value, whole.value, marks.isComplete.value));
  const signals = usePlottedSignals(runId, {
    window: view.window.value && window.value,
    decodes: marks.decodes.value,
  });
  const drawn: Drawn = {
    marks,
    view,
    whole: whole.value,
    window: window.value,
    signals,
    width: width.value,
  };
  const latest = useRef(drawn);
  latest.current = drawn;

  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) =>
      void (width.value = Math.floor(entry!.contentRect.width))
    );
    observer.observe(frame.current!);
    return () => observer.disconnect();
  }, []);
  useEffect(() => drawWhenChanged(canvas.current!, () => latest.current), [
    marks,
    view,
  ]);
  useEffect(() => void canvas.current!.dispatchEvent(new Event("redraw")), [
    signals,
    drawn.width,
  ]);
  useEffect(() => isLive ? followEnd(whole, view) : undefined, [isLive, view]);
  useEffect(() => {
    const scale = () => {
      const { whole, window, width, signals } = latest.current;
      return {
        whole,
        window,
        width,
        rows: rowsOf(width, marks.lanes.peek(), signals !== null),
      };
    };
    const found = (x: number, y: number) =>
      markAt(scale(), { x, y }, {
        shown: marks.shown(view.filter.peek()),
        store: marks.store,
      });
    return listenForGestures({
      canvas: canvas.current!,
      view,
      scale,
      onClick: (x, y) => {
        const { rows, whole } = scale();
        const index = found(x, y);
        if (index >= 0) view.selectedSeq.value = marks.store.seqAt(index);
        else if (x >= rows.gutter) {
          onSeek(msAt(
            y <= rows.overview.height ? { ...scale(), window: whole } : scale(),
            x,
          ));
        }
      },
      onHover: (place) => {
        const index = place ? found(place.x, place.y) : -1;
        canvas.current!.style.cursor = index >= 0 ? "pointer" : "";
        if (index !== hovered.peek()?.index) {
          hovered.value = index < 0 ? null : { index, ...place! };
        }
      },
    });
  }, [marks, view, onSeek]);

  const { height, gutter } = rowsOf(
    width.value,
    marks.lanes.value,
    signals !== null,
  );
  return (
    <section class="timeline" aria-label="Timeline">
      <div ref={frame} class="timeline-frame">
        <Thumbnails
          runId={runId}
          marks={marks}
          window={window.value}
          width={width.value}
          gutter={gutter}
          onChoose={(seq) => view.selectedSeq.value = seq}
        />
        {children}
        <canvas
          ref={canvas}
          role="img"
          aria-label={`${marks.count.value} marks from ${mediaTime(window.value.fromMs)} to ${
            mediaTime(window.value.toMs)
          }; the list of marks has the same`}
          style={{ height: `${height}px`, width: "100%" }}
        />
        {hovered.value && (
          <MarkTip
            mark={marks.at(hovered.value.index)}
            place={hovered.value}
          />
        )}
      </div>
    </section>
  );
}

/** An address may name anything; until all is loaded it is not known how long the run is. */
function windowOf(wished: Stretch | null, whole: Stretch, isComplete: boolean): Stretch {
  if (wished === null) return whole;
  if (!isComplete) return wished;
  return within(whole, wished.fromMs, Math.min(wished.toMs - wished.fromMs, whole.toMs - whole.fromMs));
}

interface Drawn {
  readonly marks: RunMarks;
  readonly view: TimelineView;
  readonly whole: Stretch;
  readonly window: Stretch;
  readonly signals: Signals | null;
  readonly width: number;
}

/** Draws once in a frame of the screen, when something has changed. Returns the end of it. */
function drawWhenChanged(
  canvas: HTMLCanvasElement,
  latest: () => Drawn,
): () => void {
  let asked: number | null = null;
  let colours = coloursOf(canvas.parentElement!);
  const ask = () => {
    asked ??= requestAnimationFrame(() => {
      asked = null;
      draw(canvas, latest(), colours);
    });
  };
  const { marks, view } = latest();
  const stop = effect(() => {
    // Each is read, so that each asks for a new drawing.
    void [
      marks.count.value,
      marks.lanes.value,
      marks.durationMs.value,
      marks.isComplete.value,
      marks.fps.value,
    ];
    void [
      view.playheadMs.value,
      view.window.value,
      view.selectedSeq.value,
      view.range.value,
      view.filter.value,
    ];
    ask();
  });
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const recolour = () => {
    colours = coloursOf(canvas.parentElement!);
    ask();
  };
  scheme.addEventListener("change", recolour);
  canvas.addEventListener("redraw", ask);
  return () => {
    stop();
    scheme.removeEventListener("change", recolour);
    canvas.removeEventListener("redraw", ask);
    if (asked !== null) cancelAnimationFrame(asked);
  };
}

function draw(
  canvas: HTMLCanvasElement,
  { marks, view, whole, signals, width }: Drawn,
  colours: Plot["colours"],
): void {
  if (width <= 0) return;
  const rows = rowsOf(width, marks.lanes.peek(), signals !== null);
  fit(canvas, width, rows);
  const context = canvas.getContext("2d")!;
  const plot: Plot = {
    context,
    width,
    rows,
    whole,
    window: windowOf(view.window.peek(), whole, marks.isComplete.peek()),
    colours,
  };
  context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  context.clearRect(0, 0, width, rows.height);
  const shown = marks.shown(view.filter.peek());
  drawRuler(plot, marks.fps.peek());
  drawOverview(plot, shown);
  drawLanes(plot, shown, marks.store, view.selectedSeq.peek());
  if (signals && rows.signals) drawSignals(plot, rows.signals, signals);
  const range = view.range.peek();
  if (range) drawRange(plot, range);
  drawPlayhead(plot, view.playheadMs.peek());
}

/** Setting the size of a canvas empties it, and costs: only when it is another one. */
function fit(
  canvas: HTMLCanvasElement,
  width: number,
  { height }: PlotRows,
): void {
  const [wide, high] = [
    Math.round(width * devicePixelRatio),
    Math.round(height * devicePixelRatio),
  ];
  if (canvas.width !== wide) canvas.width = wide;
  if (canvas.height !== high) canvas.height = high;
}

/** A window whose end is that of the run moves on with it, until the reader looks elsewhere. */
function followEnd(
  whole: { readonly value: Stretch },
  view: TimelineView,
): () => void {
  let endMs = whole.value.toMs;
  return effect(() => {
    const present = whole.value;
    const window = view.window.peek();
    if (window && window.toMs >= endMs && present.toMs > endMs) {
      view.window.value = within(
        present,
        present.toMs,
        window.toMs - window.fromMs,
      );
    }
    endMs = present.toMs;
  });
}
