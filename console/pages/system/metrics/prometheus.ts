/** Reads the Prometheus text of the service: values by name and labels, sums, and quantiles of histograms. */

export interface MetricValue {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** One scrape. */
export class Metrics {
  readonly samples: readonly MetricValue[];
  readonly #byName = new Map<string, MetricValue[]>();

  constructor(text: string, readonly atMs: number) {
    this.samples = text.split("\n").flatMap((line) => {
      const [, name, labels = "", value] = LINE.exec(line) ?? [];
      if (name === undefined) return [];
      return [{ name, labels: labelsOf(labels), value: Number(value) }];
    });
    for (const sample of this.samples) {
      const others = this.#byName.get(sample.name);
      if (others === undefined) this.#byName.set(sample.name, [sample]);
      else others.push(sample);
    }
  }

  /** The sum of all samples that have these labels; 0 for none. */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number {
    return this.#of(name, labels).reduce((sum, { value }) => sum + value, 0);
  }

  /** About the value below which this share of the observations lies; null where there is none. */
  quantile(name: string, share: number, labels: Readonly<Record<string, string>> = {}): Quantile | null {
    const buckets = this.#of(`${name}_bucket`, labels)
      .map(({ labels: { le }, value }) => ({ end: le === "+Inf" ? Infinity : Number(le), count: value }))
      .sort((one, other) => one.end - other.end);
    const total = buckets.at(-1)?.count ?? 0;
    if (total === 0) return null;
    const wanted = share * total;
    let start = 0;
    let before = 0;
    for (const { end, count } of buckets) {
      if (count >= wanted && count > before) {
        if (end === Infinity) return { value: start, isAbove: true };
        return { value: start + (end - start) * (wanted - before) / (count - before), isAbove: false };
      }
      start = end;
      before = count;
    }
    return null;
  }

  #of(name: string, labels: Readonly<Record<string, string>>): readonly MetricValue[] {
    const wanted = Object.entries(labels);
    return (this.#byName.get(name) ?? [])
      .filter((sample) => wanted.every(([label, value]) => sample.labels[label] === value));
  }
}

export interface Quantile {
  readonly value: number;
  /** It lies somewhere above `value`, the largest bound of the histogram. */
  readonly isAbove: boolean;
}

function labelsOf(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    [...text.matchAll(LABEL)].map(([, name, value]) => [name!, value!.replaceAll(/\\(.)/g, "$1")]),
  );
}
