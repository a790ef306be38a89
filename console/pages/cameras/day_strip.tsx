/** A day of a recording in one strip: what there is, what is missing, the chosen range and what is played. */

import { counted } from "../../text/numbers.ts";
import type { Day } from "./recorded_day.ts";
import type { RecordedStretch, WallRange } from "./stretches.ts";

export interface DayStripProps {
  readonly day: Day;
  readonly stretches: readonly RecordedStretch[];
  readonly range: WallRange;
  /** What is played now. */
  readonly atMs: number | null;
  readonly onPick: (ms: number) => void;
}

const WIDTH = 1_000;
const HEIGHT = 40;
const HOUR = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });

/** For pointers; the list and the fields below it do the same for keyboards. */
export function DayStrip({ day, stretches, range, atMs, onPick }: DayStripProps) {
  const { startMs, endMs } = day;
  const lengthMs = endMs - startMs;
  const x = (ms: number) => ((Math.min(Math.max(ms, startMs), endMs) - startMs) / lengthMs) * WIDTH;
  /** One path for all, as there may be thousands. */
  const blocks = (wanted: readonly WallRange[]) =>
    wanted.map(({ fromMs, toMs }) =>
      `M${x(fromMs).toFixed(2)} 0H${x(toMs).toFixed(2)}V${HEIGHT}H${x(fromMs).toFixed(2)}Z`
    )
      .join("");
  const of = (isGap: boolean) =>
    stretches.filter((stretch) => stretch.isGap === isGap)
      .map(({ startMs, endMs }) => ({ fromMs: startMs, toMs: endMs }));
  const gaps = of(true);
  return (
    <div class="plot day-strip">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`The recording of the day, with ${
          counted(gaps.length, "gap")
        }; the list below has the same`}
        onClick={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          onPick(startMs + (event.clientX - box.left) / box.width * lengthMs);
        }}
      >
        <defs>
          <pattern
            id="gap-hatch"
            width="6"
            height="6"
            patternUnits="userSpaceOnUse"
            patternTransform="rotate(45)"
          >
            <path class="day-hatch" d="M0 0V6" />
          </pattern>
        </defs>
        <path class="day-recorded" d={blocks(of(false))} />
        <path fill="url(#gap-hatch)" d={blocks(gaps)} />
        <path class="day-range" d={blocks([range])} />
        {atMs !== null && <path class="day-now" d={`M${x(atMs).toFixed(2)} 0V${HEIGHT}`} />}
      </svg>
      <div class="plot-times" aria-hidden="true">
        {[0, 1, 2, 3, 4].map((quarter) => (
          <span key={quarter}>{HOUR.format(startMs + quarter / 4 * lengthMs)}</span>
        ))}
      </div>
    </div>
  );
}
