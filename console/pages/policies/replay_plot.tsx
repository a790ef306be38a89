/** The marks of a replay over media time, as high as their score, with the threshold of the revision. */

import { scoreText } from "../../text/numbers.ts";
import { mediaTime } from "../../text/time.ts";
import { PlotTimes, shareOf } from "../../timeline/score_plot.tsx";
import type { Stretch } from "../../timeline/view.ts";
import { type ReplayMark, type ReplayVerdict, VERDICTS } from "./verdicts.ts";

export interface ReplayPlotProps {
  readonly found: readonly ReplayMark[];
  readonly range: Stretch;
  readonly threshold: number | null;
  readonly href: (found: ReplayMark) => string;
}

/** Marks on the plot; the list has all of them. */
const MARKS_MAX = 300;

export function ReplayPlot({ found, range, threshold, href }: ReplayPlotProps) {
  const greatest = Math.max(0.05, threshold ?? 0, ...found.map(({ score }) => score ?? 0)) *
    1.15;
  const kinds = [...new Set(found.map(({ verdict }) => verdict))];
  const across = (ms: number) => `${shareOf(range, ms) * 100}%`;
  const above = (score: number | null) => `${(score ?? 0) / greatest * 100}%`;
  return (
    <div class="plot replay-plot">
      <p class="hint replay-legend">
        {kinds.map((verdict) => <Legend key={verdict} verdict={verdict} />)}
        {threshold !== null && <span>┄ threshold {scoreText(threshold)}</span>}
      </p>
      <div class="replay-field">
        {threshold !== null && <span class="replay-threshold" style={{ bottom: above(threshold) }} />}
        {found.slice(0, MARKS_MAX).map((one) => (
          <span key={one.key}>
            {one.endMs !== null && (
              <span
                class="replay-span"
                style={{
                  left: across(one.ms),
                  width: `${(shareOf(range, one.endMs) - shareOf(range, one.ms)) * 100}%`,
                }}
              />
            )}
            <a
              class={`replay-mark verdict is-${VERDICTS[one.verdict].tone}`}
              href={href(one)}
              tabIndex={-1}
              style={{ left: across(one.ms), bottom: above(one.score) }}
              title={`${VERDICTS[one.verdict].name} at ${mediaTime(one.ms)}`}
              aria-label={`${VERDICTS[one.verdict].name} at ${mediaTime(one.ms)}`}
            >
              <span aria-hidden="true">{VERDICTS[one.verdict].mark}</span>
            </a>
          </span>
        ))}
      </div>
      <PlotTimes range={range} />
    </div>
  );
}

function Legend({ verdict }: { verdict: ReplayVerdict }) {
  const { mark, name, tone } = VERDICTS[verdict];
  return (
    <span class={`verdict is-${tone}`}>
      <span aria-hidden="true">{mark}</span> {name}
    </span>
  );
}
