/** Small plots of the metrics since the page was opened, and all metrics as a table. */

import { countText, scoreText } from "../../../text/numbers.ts";
import { durationText } from "../../../text/time.ts";
import { type Column, Table } from "../../../ui/table.tsx";
import type { MetricValue } from "./prometheus.ts";
import { EVERY_MS, type Sampled } from "./sampled.ts";
import { SERIES } from "./series.ts";

const WIDTH = 160;
const HEIGHT = 32;

const COLUMNS: readonly Column<MetricValue>[] = [
  {
    title: "Metric",
    cell: ({ name, labels }) => (
      <code title={name}>
        {name}
        <span class="narrow-only dim">{labelText(labels)}</span>
      </code>
    ),
    sortBy: ({ name }) => name,
  },
  {
    title: "Labels",
    cell: ({ labels }) => labelText(labels),
    sortBy: ({ labels }) => labelText(labels),
    isExtra: true,
  },
  { title: "Value", cell: ({ value }) => countText(value), sortBy: ({ value }) => value, isNumber: true },
];

export function Sparklines({ of: { last, past } }: { of: Sampled }) {
  return (
    <>
      <ul class="sparks">
        {SERIES.map(({ title }) => <Spark key={title} title={title} values={past.get(title) ?? []} />)}
      </ul>
      {last !== null && (
        <details>
          <summary>All metrics</summary>
          <Table
            name="metrics"
            rows={last.samples}
            columns={COLUMNS}
            keyOf={({ name, labels }) => `${name} ${labelText(labels)}`}
            textOf={({ name, labels }) => `${name} ${labelText(labels)}`}
          />
        </details>
      )}
    </>
  );
}

function Spark({ title, values }: { title: string; values: readonly number[] }) {
  const now = values.at(-1);
  const most = Math.max(0, ...values);
  const span = durationText(Math.max(0, values.length - 1) * EVERY_MS);
  const x = (at: number) => WIDTH - (values.length - 1 - at) * WIDTH / 149;
  const y = (value: number) => HEIGHT - 1 - (most === 0 ? 0 : value / most * (HEIGHT - 3));
  const about = now === undefined
    ? `${title}: not known yet`
    : `${title}: ${shown(now)} now, at most ${shown(most)} in ${span}`;
  return (
    <li class="spark">
      <span class="spark-title">{title}</span>
      <strong class="number">{now === undefined ? "…" : shown(now)}</strong>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={about}>
        <title>{about}</title>
        {values.length > 1 && (
          <polyline
            points={values.map((value, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ")}
          />
        )}
      </svg>
    </li>
  );
}

function shown(value: number): string {
  return value >= 10 ? countText(Math.round(value)) : scoreText(value);
}

function labelText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels).map(([name, value]) => `${name}=${value}`).join(" ");
}
