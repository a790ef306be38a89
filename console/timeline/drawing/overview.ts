/** Draws the whole run in a narrow strip, with the window in it. */

import { MARK_LOOKS } from "../../text/event_types.ts";
import type { ShownMarks } from "../shown_marks.ts";
import { drawDensity } from "./lanes.ts";
import { type Plot, xOf } from "./plot.ts";

export function drawOverview(plot: Plot, shown: ShownMarks): void {
  const { context, width, rows, whole, window, colours } = plot;
  const { overview, gutter } = rows;
  const asWhole = { ...plot, window: whole };
  context.fillStyle = colours.raised;
  context.fillRect(gutter, overview.top, width - gutter, overview.height);
  // Each lane has its part of the height, so that no type of event hides another.
  const height = overview.height / Math.max(1, rows.lanes.length);
  for (const [number, { lane }] of rows.lanes.entries()) {
    drawDensity(asWhole, {
      top: overview.top + number * height,
      height: Math.max(4, height),
    }, {
      marks: shown.lane(lane),
      look: MARK_LOOKS[lane] ?? MARK_LOOKS.other!,
    });
  }
  if (gutter > 60) {
    context.fillStyle = colours.dim;
    context.font = `12px ${colours.font}`;
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillText(
      "whole run",
      24,
      overview.top + overview.height / 2,
      gutter - 28,
    );
  }
  if (window.fromMs <= whole.fromMs && window.toMs >= whole.toMs) return;
  const [left, right] = [
    xOf(asWhole, window.fromMs),
    xOf(asWhole, window.toMs),
  ];
  context.fillStyle = colours.surface;
  context.globalAlpha = 0.7;
  context.fillRect(gutter, overview.top, left - gutter, overview.height);
  context.fillRect(right, overview.top, width - right, overview.height);
  context.globalAlpha = 1;
  context.strokeStyle = colours.accent;
  context.lineWidth = 2;
  context.strokeRect(
    left,
    overview.top + 1,
    Math.max(4, right - left),
    overview.height - 2,
  );
}
