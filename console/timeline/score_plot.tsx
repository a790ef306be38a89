/** A score over media time: its greatest values as columns, its mean as a line, and the values that it is
 * compared with.
 */

import type { ComponentChildren } from "preact";
import { scoreText } from "../text/numbers.ts";
import { mediaTime } from "../text/time.ts";
import type { Stretch } from "./view.ts";

type BinValues = readonly (number | null)[];

export interface ScoreRowProps {
  readonly name: string;
  readonly range: Stretch;
  /** Media time of each value. */
  readonly ptsMs: readonly number[];
  readonly max: BinValues;
  readonly mean: BinValues;
  /** Drawn as dashed lines. */
  readonly thresholds: readonly number[];
  /** Times that are marked with a line of this colour. */
  readonly marked: {
    readonly ptsMs: readonly number[];
    readonly colour: string;
  };
}

/** The picture has these units; it is stretched to the width of the page. */
const WIDE = 1000;
const HIGH = 100;
const ROW_PX = 84;

export function ScoreRow(
  { name, range, ptsMs, max, mean, thresholds, marked }: ScoreRowProps,
) {
  const greatest = Math.max(0.05, ...max.map((value) => value ?? 0), ...thresholds) * 1.08;
  const y = (value: number) => (HIGH * (1 - value / greatest)).toFixed(1);
  const x = (ms: number) => (WIDE * shareOf(range, ms)).toFixed(1);
  const stepMs = ptsMs.length > 1 ? (ptsMs.at(-1)! - ptsMs[0]!) / (ptsMs.length - 1) : 1;
  const columns = ptsMs.map((ms, bin) => {
    const value = max[bin];
    return value == null ? "" : `M${x(ms)} ${HIGH}V${y(value)}H${x(ptsMs[bin + 1] ?? ms + stepMs)}V${HIGH}`;
  }).join("");
  const line = ptsMs.map((ms, bin) => {
    const value = mean[bin];
    return value == null ? "" : `${bin === 0 || mean[bin - 1] == null ? "M" : "L"}${x(ms)} ${y(value)}`;
  }).join("");
  const told = thresholds.map((value) => scoreText(value)).join(", ");
  const reached = scoreText(Math.max(0, ...max.map((value) => value ?? 0)));
  return (
    <div class="plot-row">
      <svg
        viewBox={`0 0 ${WIDE} ${HIGH}`}
        height={ROW_PX}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${name}, greatest value ${reached}${told === "" ? "" : `, compared with ${told}`}`}
      >
        <path d={columns} fill="var(--accent)" opacity="0.3" />
        <path
          d={line}
          fill="none"
          stroke="var(--accent)"
          stroke-width="1.2"
          vector-effect="non-scaling-stroke"
        />
        <path
          d={marked.ptsMs.map((ms) => `M${x(ms)} 0V${HIGH}`).join("")}
          stroke={marked.colour}
          stroke-width="2"
          vector-effect="non-scaling-stroke"
        />
        {thresholds.map((value) => (
          <path
            key={value}
            d={`M0 ${y(value)}H${WIDE}`}
            stroke="var(--text)"
            stroke-dasharray="5 4"
            vector-effect="non-scaling-stroke"
          />
        ))}
      </svg>
      <span class="plot-name">
        {name}{" "}
        <span class="number">
          · up to {reached}
          {told !== "" && ` · compared with ${told}`}
        </span>
      </span>
    </div>
  );
}

/** Where the times below a plot stand. */
const TIME_SHARES = [0, 0.25, 0.5, 0.75, 1];

/** The times of a plot from its begin to its end. */
export function PlotTimes({ range }: { range: Stretch }) {
  const { fromMs, toMs } = range;
  return (
    <div class="plot-times number" aria-hidden="true">
      {TIME_SHARES.map((share) => <span key={share}>{mediaTime(fromMs + share * (toMs - fromMs))}</span>)}
    </div>
  );
}

/** Something that stands at a time of the plot. */
export function AtTime(
  { range, ms, children }: {
    range: Stretch;
    ms: number;
    children: ComponentChildren;
  },
) {
  return (
    <span class="plot-at" style={{ left: `${shareOf(range, ms) * 100}%` }}>
      {children}
    </span>
  );
}

/** 0 for the begin of the range, 1 for its end. */
export function shareOf({ fromMs, toMs }: Stretch, ms: number): number {
  return Math.max(0, Math.min(1, (ms - fromMs) / Math.max(1, toMs - fromMs)));
}
