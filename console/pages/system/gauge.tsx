/** How much of a limit is used, in words and as a bar. */

export interface GaugeProps {
  readonly title: string;
  readonly used: number;
  readonly limit: number;
  /** How a value is written: as bytes, or as a number. */
  readonly text: (value: number) => string;
}

/** From this share on, the bar is marked. */
const NEARLY_FULL = 0.9;

export function Gauge({ title, used, limit, text }: GaugeProps) {
  const share = limit === 0 ? 0 : Math.min(1, used / limit);
  const isFull = share >= NEARLY_FULL;
  return (
    <div class={isFull ? "gauge is-full" : "gauge"}>
      <span>{title}</span>
      <span class="number">
        <strong>{text(used)}</strong> of {text(limit)}
        {isFull && (used >= limit ? ", full" : ", nearly full")}
      </span>
      <span
        class="gauge-bar"
        role="meter"
        aria-label={title}
        aria-valuemin={0}
        aria-valuemax={limit}
        aria-valuenow={Math.min(used, limit)}
        aria-valuetext={`${text(used)} of ${text(limit)}`}
      >
        <span style={{ width: `${share * 100}%` }} />
      </span>
    </div>
  );
}
