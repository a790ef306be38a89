/** Motion and novelty of the last minute, with the scores that enter and leave the zone. */

import { scoreText } from "../../text/numbers.ts";
import { durationText } from "../../text/time.ts";
import { type PlottedSignals, WINDOW_MS } from "./signal_window.ts";

export interface MotionPlotProps {
  readonly signals: PlottedSignals;
  /** Of the zone; null without one. */
  readonly thresholds: { readonly enter: number; readonly exit: number } | null;
}

/** Of the drawing; it is stretched to the width of its place. */
const WIDTH = 600;
const HEIGHT = 120;
/** A plot of less would have wide steps. */
const LEAST_MS = 10_000;
/** A hole of this length in the samples is a gap of the stream. */
const GAP_MS = 1_000;

export function MotionPlot({ signals, thresholds }: MotionPlotProps) {
  const { ptsMs, motion, novelty } = signals;
  const lastMs = ptsMs.at(-1);
  if (lastMs === undefined) {
    return (
      <figure class="motion-plot">
        <figcaption>Motion</figcaption>
        <p class="hint">The plot begins with the first frames.</p>
      </figure>
    );
  }
  const now = motion.at(-1)!;
  const highest = motion.reduce((most, value) => Math.max(most, value), 0);
  const levels = thresholds ? [thresholds.enter, thresholds.exit] : [];
  const top = Math.min(1, Math.max(0.25, highest, ...novelty, ...levels) * 1.1);
  const widthMs = Math.min(WINDOW_MS, Math.max(LEAST_MS, lastMs - ptsMs[0]!));
  const pathOf = (values: readonly number[]) => linesOf(ptsMs, values, { widthMs, top });
  const shown = durationText(Math.max(1_000, lastMs - ptsMs[0]!));
  return (
    <figure class="motion-plot">
      <figcaption class="row">
        <span class="plot-key is-motion">motion {scoreText(now)}</span>
        <span class="plot-key is-novelty">
          novelty {scoreText(novelty.at(-1)!)}
        </span>
        {thresholds && (
          <span class="plot-key is-level">
            zone: enters {thresholds.enter}, leaves {thresholds.exit}
          </span>
        )}
        <span class="dim">last {shown}, at most {scoreText(highest)}</span>
      </figcaption>
      <div class="plot-area">
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`Motion of the last ${shown}: now ${scoreText(now)}, at most ${scoreText(highest)}`}
        >
          {levels.map((level) => (
            <line
              key={level}
              class="plot-level"
              x1="0"
              x2={WIDTH}
              y1={yOf(level, top)}
              y2={yOf(level, top)}
              vector-effect="non-scaling-stroke"
            />
          ))}
          <path
            class="plot-novelty"
            d={pathOf(novelty)}
            vector-effect="non-scaling-stroke"
          />
          <path
            class="plot-motion"
            d={pathOf(motion)}
            vector-effect="non-scaling-stroke"
          />
        </svg>
        <span class="plot-top number" aria-hidden="true">{scoreText(top)}</span>
        <span class="plot-bottom number" aria-hidden="true">0</span>
      </div>
    </figure>
  );
}

/** As an SVG path; a gap of the stream is a gap in the line. */
function linesOf(
  ptsMs: readonly number[],
  values: readonly number[],
  { widthMs, top }: { widthMs: number; top: number },
): string {
  const lastMs = ptsMs.at(-1) ?? 0;
  let path = "";
  for (const [at, ms] of ptsMs.entries()) {
    const isJoined = at > 0 && ms - ptsMs[at - 1]! < GAP_MS;
    const x = WIDTH * (1 - (lastMs - ms) / widthMs);
    path += `${isJoined ? "L" : "M"}${x.toFixed(1)} ${yOf(values[at]!, top).toFixed(1)}`;
  }
  return path;
}

function yOf(value: number, top: number): number {
  return HEIGHT - (Math.min(value, top) / top) * (HEIGHT - 2) - 1;
}
