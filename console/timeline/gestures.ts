/** What the pointer does on a timeline: the wheel zooms, dragging pans, with shift it chooses a stretch, a
 * click chooses or seeks.
 */

import { msAt, type PlotScale } from "./drawing/plot.ts";
import { type Stretch, type TimelineView, within, zoomed } from "./view.ts";

export interface GestureTarget {
  readonly canvas: HTMLCanvasElement;
  readonly view: TimelineView;
  /** Where things are now. */
  readonly scale: () => PlotScale & { readonly whole: Stretch };
  readonly onClick: (x: number, y: number) => void;
  readonly onHover: (
    place: { readonly x: number; readonly y: number } | null,
  ) => void;
}

/** A notch of a wheel is some 100. */
const WHEEL_ZOOM = 0.0016;
/** Less is a click by an unsteady hand. */
const DRAG_MIN = 4;
const LINE_PIXELS = 16;

/** Listens until the returned function is called. */
export function listenForGestures(target: GestureTarget): () => void {
  const ending = new AbortController();
  const { canvas, view, scale, onClick, onHover } = target;
  const pointers = new Map<number, PointerEvent>();
  let drag: Drag | null = null;
  const listen = <Name extends keyof HTMLElementEventMap>(
    name: Name,
    listener: (event: HTMLElementEventMap[Name]) => void,
    options: AddEventListenerOptions = {},
  ) =>
    canvas.addEventListener(name, listener, {
      ...options,
      signal: ending.signal,
    });

  listen("wheel", (event) => {
    const { window, whole, width, rows } = scale();
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PIXELS : 1;
    const [sideways, along] = event.shiftKey ? [event.deltaY, 0] : [event.deltaX, event.deltaY];
    event.preventDefault();
    if (Math.abs(sideways) > Math.abs(along)) {
      const lengthMs = window.toMs - window.fromMs;
      const ms = sideways * unit / (width - rows.gutter) * lengthMs;
      if (view.window.peek() !== null) {
        view.window.value = within(whole, window.fromMs + ms, lengthMs);
      }
      return;
    }
    const factor = Math.exp(along * unit * WHEEL_ZOOM);
    view.window.value = zoomed(
      window,
      whole,
      factor,
      msAt(scale(), event.offsetX),
    );
  }, { passive: false });

  listen("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, event);
    drag = {
      start: event,
      window: scale().window,
      isMoving: false,
      spread: spreadOf(pointers),
    };
  });
  listen("pointermove", (event) => {
    if (!drag || !pointers.has(event.pointerId)) {
      onHover({ x: event.offsetX, y: event.offsetY });
      return;
    }
    pointers.set(event.pointerId, event);
    onHover(null);
    drag.isMoving ||= Math.abs(event.clientX - drag.start.clientX) >= DRAG_MIN;
    if (!drag.isMoving) return;
    if (pointers.size === 2) pinch(target, drag, pointers);
    else if (drag.start.shiftKey) chooseStretch(target, drag, event);
    else pan(target, drag, event);
  });
  for (const name of ["pointerup", "pointercancel"] as const) {
    listen(name, (event) => {
      if (!pointers.delete(event.pointerId)) return;
      if (
        name === "pointerup" && drag && !drag.isMoving && pointers.size === 0
      ) {
        if (drag.start.shiftKey) view.range.value = null;
        else onClick(event.offsetX, event.offsetY);
      }
      drag = pointers.size === 0 ? null : {
        ...drag!,
        start: [...pointers.values()][0]!,
        window: scale().window,
      };
    });
  }
  listen("pointerleave", () => onHover(null));
  listen("dblclick", () => void (view.window.value = null));
  return () => ending.abort();
}

interface Drag {
  readonly start: PointerEvent;
  /** When it began. */
  readonly window: Stretch;
  /** Between two fingers. */
  readonly spread: number;
  isMoving: boolean;
}

function pan(
  { view, scale }: GestureTarget,
  { start, window }: Drag,
  event: PointerEvent,
): void {
  const { width, rows, whole } = scale();
  if (view.window.peek() === null) return; // all of it is shown
  const lengthMs = window.toMs - window.fromMs;
  const ms = (event.clientX - start.clientX) / (width - rows.gutter) * lengthMs;
  // In the overview the window follows the pointer; in the lanes what lies under the pointer does.
  const isOverview = start.offsetY <= rows.overview.height;
  const moved = isOverview ? ms * (whole.toMs - whole.fromMs) / lengthMs : -ms;
  view.window.value = within(whole, window.fromMs + moved, lengthMs);
}

function chooseStretch(
  { view, scale }: GestureTarget,
  { start }: Drag,
  event: PointerEvent,
): void {
  const { whole } = scale();
  const clipped = (x: number) => Math.max(whole.fromMs, Math.min(whole.toMs, msAt(scale(), x)));
  const [one, other] = [clipped(start.offsetX), clipped(event.offsetX)];
  view.range.value = {
    fromMs: Math.min(one, other),
    toMs: Math.max(one, other),
  };
}

function pinch(
  { view, scale }: GestureTarget,
  { window, spread }: Drag,
  pointers: ReadonlyMap<number, PointerEvent>,
) {
  const [one, other] = [...pointers.values()];
  const middle = (one!.offsetX + other!.offsetX) / 2;
  const factor = Math.max(1, spread) / Math.max(1, spreadOf(pointers));
  view.window.value = zoomed(
    window,
    scale().whole,
    factor,
    msAt({ ...scale(), window }, middle),
  );
}

function spreadOf(pointers: ReadonlyMap<number, PointerEvent>): number {
  const [one, other] = [...pointers.values()];
  return one && other ? Math.abs(one.clientX - other.clientX) : 0;
}
