/** What the keys of the keyboard do on the run page. */

import type { KeyAction } from "../../shell/keys.tsx";
import type { RunMarks } from "../../timeline/run_marks.ts";
import { type Stretch, type TimelineView, zoomed } from "../../timeline/view.ts";
import { toggleLane } from "./filter_bar.tsx";
import type { Playback } from "./player/playback.ts";

export interface KeyTargets {
  readonly marks: RunMarks;
  readonly view: TimelineView;
  readonly playback: Playback;
  readonly frameMs: () => number;
  readonly goToMark: (direction: 1 | -1) => void;
}

/** One press shows so much more or less. */
const ZOOM = 2;

export function runKeys(
  { marks, view, playback, frameMs, goToMark }: KeyTargets,
): KeyAction[] {
  return [
    { keys: [" "], does: "play and pause", run: () => playback.toggle() },
    {
      keys: ["j"],
      does: "play backwards, faster with each press",
      run: () => playback.shuttle(-1),
    },
    { keys: ["k"], does: "pause", run: () => playback.pause() },
    {
      keys: ["l"],
      does: "play, faster with each press",
      run: () => playback.shuttle(1),
    },
    {
      keys: ["ArrowLeft"],
      does: "one frame back",
      run: () => playback.step(-frameMs()),
    },
    {
      keys: ["ArrowRight"],
      does: "one frame on",
      run: () => playback.step(frameMs()),
    },
    {
      keys: ["Shift+ArrowLeft"],
      does: "one second back",
      run: () => playback.step(-1000),
    },
    {
      keys: ["Shift+ArrowRight"],
      does: "one second on",
      run: () => playback.step(1000),
    },
    { keys: ["["], does: "previous mark", run: () => goToMark(-1) },
    { keys: ["]"], does: "next mark", run: () => goToMark(1) },
    {
      keys: ["+", "="],
      does: "zoom in at the playhead",
      run: () => zoom(view, marks, 1 / ZOOM),
    },
    { keys: ["-"], does: "zoom out", run: () => zoom(view, marks, ZOOM) },
    {
      keys: ["f"],
      does: "fit the whole run",
      run: () => view.window.value = null,
    },
    {
      keys: ["i", "o"],
      does: "a stretch begins, or ends, at the playhead",
      run: (key) => choose(view, marks, key === "i"),
    },
    { keys: ["x"], does: "give up the stretch", run: () => view.range.value = null },
    {
      keys: ["1", "2", "3", "4", "5", "6", "7", "8", "9"],
      does: "lane on and off",
      run: (key) => {
        const lane = marks.lanes.peek()[Number(key) - 1];
        if (lane !== undefined) toggleLane(view, marks, lane);
      },
    },
  ];
}

/** The other end stays where it is, or is that of the run. */
function choose(view: TimelineView, marks: RunMarks, isStart: boolean): void {
  const atMs = view.playheadMs.peek();
  const { fromMs, toMs } = view.range.peek() ?? wholeOf(marks);
  const chosen = isStart
    ? { fromMs: atMs, toMs: toMs > atMs ? toMs : wholeOf(marks).toMs }
    : { fromMs: fromMs < atMs ? fromMs : wholeOf(marks).fromMs, toMs: atMs };
  if (chosen.toMs > chosen.fromMs) view.range.value = chosen;
}

function wholeOf({ startMs, durationMs }: RunMarks): Stretch {
  return { fromMs: startMs.peek(), toMs: Math.max(startMs.peek() + 1, durationMs.peek()) };
}

/** The playhead stays where it is in the window, or comes into its middle. */
function zoom(
  view: TimelineView,
  marks: RunMarks,
  factor: number,
): void {
  const whole = wholeOf(marks);
  view.window.value = zoomed(
    view.window.peek() ?? whole,
    whole,
    factor,
    view.playheadMs.peek(),
  );
}
