/** Draws what was measured of the frames: brightness as a line, change as columns. */

import type { Signals } from "../../../client/mod.ts";
import { type Plot, type PlotRow, xOf } from "./plot.ts";

/** From the back to the front. A score is 0 to 1, so the height of the row is that of its greatest value. */
const LINES = [
  { signal: "ghosting_score", name: "change", isColumns: true },
  { signal: "luma_mean", name: "brightness", isColumns: false },
] as const;

export function drawSignals(plot: Plot, row: PlotRow, bins: Signals): void {
  const { context, width, rows: { gutter }, colours } = plot;
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.strokeRect(
    gutter + 0.5,
    row.top + 0.5,
    width - gutter - 1,
    row.height - 1,
  );
  context.save();
  context.beginPath();
  context.rect(gutter, row.top, width - gutter, row.height);
  context.clip();
  for (const { signal, isColumns } of LINES) {
    const values = bins.signals[signal];
    if (!values) continue;
    if (isColumns) drawColumns(plot, row, bins.pts_ms, values.max);
    else drawBand(plot, row, bins.pts_ms, values);
  }
  context.restore();
  drawNames(plot, row);
}

type Values = readonly (number | null)[];

function drawColumns(
  plot: Plot,
  row: PlotRow,
  ptsMs: readonly number[],
  values: Values,
): void {
  const { context, colours } = plot;
  const greatest = Math.max(0.02, ...values.map((value) => value ?? 0));
  context.fillStyle = colours.accent;
  context.globalAlpha = 0.55;
  for (const [bin, value] of values.entries()) {
    if (value === null) continue;
    const x = xOf(plot, ptsMs[bin]!);
    const next = bin + 1 < ptsMs.length ? xOf(plot, ptsMs[bin + 1]!) : x + 2;
    const height = value / greatest * (row.height - 4);
    context.fillRect(
      x,
      row.top + row.height - 1 - height,
      Math.max(1, next - x - 0.3),
      height,
    );
  }
  context.globalAlpha = 1;
}

/** Least to greatest as a band, the mean as a line. */
function drawBand(
  plot: Plot,
  row: PlotRow,
  ptsMs: readonly number[],
  { min, max, mean }: { min: Values; max: Values; mean: Values },
): void {
  const { context, colours } = plot;
  const y = (value: number) => row.top + row.height - 3 - Math.min(1, value) * (row.height - 6);
  context.fillStyle = colours.text;
  context.globalAlpha = 0.12;
  for (let bin = 0; bin < ptsMs.length; bin++) {
    const [least, most] = [min[bin], max[bin]];
    if (least == null || most == null || most - least < 0.005) continue;
    const x = xOf(plot, ptsMs[bin]!);
    const next = bin + 1 < ptsMs.length ? xOf(plot, ptsMs[bin + 1]!) : x + 1;
    context.fillRect(
      x,
      y(most),
      Math.max(1, next - x),
      Math.max(1, y(least) - y(most)),
    );
  }
  context.globalAlpha = 1;
  context.strokeStyle = colours.text;
  context.lineWidth = 1.2;
  context.beginPath();
  let isDown = false;
  for (let bin = 0; bin < ptsMs.length; bin++) {
    const value = mean[bin];
    if (value == null) {
      isDown = false;
      continue;
    }
    if (isDown) context.lineTo(xOf(plot, ptsMs[bin]!), y(value));
    else context.moveTo(xOf(plot, ptsMs[bin]!), y(value));
    isDown = true;
  }
  context.stroke();
}

function drawNames(
  { context, colours, rows: { gutter } }: Plot,
  { top, height }: PlotRow,
): void {
  if (gutter < 60) return;
  context.font = `12px ${colours.font}`;
  context.textAlign = "left";
  context.textBaseline = "middle";
  for (const [number, { name, isColumns }] of LINES.toReversed().entries()) {
    const y = top + height * (number === 0 ? 0.3 : 0.7);
    context.fillStyle = isColumns ? colours.accent : colours.text;
    context.fillRect(8, y - (isColumns ? 4 : 1), 9, isColumns ? 8 : 2);
    context.fillStyle = colours.dim;
    context.fillText(name, 24, y, gutter - 28);
  }
}
