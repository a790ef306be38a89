/** The metrics of the process: typed counting in the families of the table, and the text for a scrape. */

import { FAMILIES, type Family } from "./metric_families.ts";

type Families = typeof FAMILIES;
type OfType<T extends Family["type"]> = {
  [F in keyof Families]: Families[F]["type"] extends T ? F : never;
}[keyof Families];

export type CounterName = OfType<"counter">;
export type GaugeName = OfType<"gauge">;
export type HistogramName = OfType<"histogram">;
export type FamilyName = keyof Families;

/** The labels of a family, each with the closed set of its values; `undefined` for a family without labels. */
export type LabelsOf<F extends FamilyName> = Families[F] extends { labels: infer L extends object }
  ? { readonly [K in keyof L]: L[K] extends readonly (infer V)[] ? V : never }
  : undefined;

type AddArguments<F extends FamilyName> = LabelsOf<F> extends undefined ? [amount?: number]
  : [labels: LabelsOf<F>, amount?: number];
type ValueArguments<F extends FamilyName, V> = LabelsOf<F> extends undefined ? [value: V]
  : [labels: LabelsOf<F>, value: V];

/**
 * The metrics of one process. A misspelt family, label or label value does not compile. The text has every family with
 * every combination of its labels from the start.
 *
 *     metrics.add("service_runs_created_total");
 *     metrics.add("service_infer_requests_total", { provider: "vllm", status: "ok" });
 *     metrics.observeValue("service_timeline_events_total", () => timeline.lastSeq);
 */
export class Metrics {
  readonly #families = new Map<string, OpenFamily>(
    Object.entries(FAMILIES).map(([name, family]) => [name, new OpenFamily(name, family)]),
  );

  /** Adds to a counter, one by default. The amount must not be negative. */
  add<F extends CounterName>(family: F, ...rest: AddArguments<F>): void {
    const [labels, amount = 1] = labelsAndValue<number>(rest);
    if (!(amount >= 0)) throw new RangeError(`Cannot add ${amount} to the counter ${family}`);
    this.#families.get(family)!.seriesOf(labels).value += amount;
  }

  /** Sets a gauge. */
  set<F extends GaugeName>(family: F, ...rest: ValueArguments<F, number>): void {
    const [labels, value] = labelsAndValue<number>(rest);
    this.#families.get(family)!.seriesOf(labels).value = value!;
  }

  /** Adds one measurement to a histogram, in the unit at the end of the name of the family. */
  observe<F extends HistogramName>(family: F, ...rest: ValueArguments<F, number>): void {
    const [labels, value] = labelsAndValue<number>(rest);
    this.#families.get(family)!.observe(labels, value!);
  }

  /** Registers `read`, called at every scrape, for the value of a counter or gauge that another module owns. */
  observeValue<F extends CounterName | GaugeName>(family: F, ...rest: ValueArguments<F, ReadValue>): void {
    const [labels, read] = labelsAndValue<ReadValue>(rest);
    this.#families.get(family)!.seriesOf(labels).read = read!;
  }

  /** The Prometheus text exposition, with HELP and TYPE lines. */
  async text(): Promise<string> {
    const families = await Promise.all(Array.from(this.#families.values(), (family) => family.text()));
    return families.join("\n");
  }
}

/** One combination of the labels of a family. */
interface Series {
  /** As in the text: `provider="vllm",status="ok"`. */
  readonly labels: string;
  /** Of a counter or gauge; of a histogram the sum of what was observed. */
  value: number;
  /** Gives the value at every scrape; null where it is counted here. */
  read: ReadValue | null;
  /** Of a histogram: how often a value was at most each bound and above the one before; the last is above all bounds. */
  readonly counts: number[];
}

class OpenFamily {
  readonly #name: string;
  readonly #family: Family;
  readonly #labelNames: readonly string[];
  readonly #bounds: readonly number[];
  /** By the values of the labels. */
  readonly #series = new Map<string, Series>();

  constructor(name: string, family: Family) {
    this.#name = name;
    this.#family = family;
    this.#labelNames = Object.keys(family.labels ?? {});
    this.#bounds = family.buckets ?? [];
    for (const labels of labelCombinations(family.labels ?? {})) {
      this.#series.set(this.#keyOf(labels), {
        labels: this.#labelNames.map((label) => `${label}="${labels[label]}"`).join(","),
        value: family.initialValue ?? 0,
        read: null,
        counts: Array(family.type === "histogram" ? this.#bounds.length + 1 : 0).fill(0),
      });
    }
  }

  seriesOf(labels: LabelValues): Series {
    const series = this.#series.get(this.#keyOf(labels));
    if (!series) throw new Error(`${this.#name} has no labels ${JSON.stringify(labels)}`);
    return series;
  }

  observe(labels: LabelValues, value: number): void {
    if (!Number.isFinite(value)) throw new TypeError(`Cannot observe ${value} for ${this.#name}`);
    const series = this.seriesOf(labels);
    const bucket = this.#bounds.findIndex((bound) => value <= bound);
    series.value += value;
    series.counts[bucket === -1 ? this.#bounds.length : bucket]!++;
  }

  async text(): Promise<string> {
    const { type, help } = this.#family;
    let text = `# HELP ${this.#name} ${escaped(help)}\n# TYPE ${this.#name} ${type}\n`;
    for (const series of this.#series.values()) {
      if (series.read) series.value = await series.read();
      text += type === "histogram" ? this.#bucketLines(series) : this.#line("", series.labels, series.value);
    }
    return text;
  }

  #bucketLines({ labels, value, counts }: Series): string {
    let total = 0;
    let lines = "";
    counts.forEach((count, bucket) => {
      total += count;
      const bound = `le="${this.#bounds[bucket] ?? "+Inf"}"`;
      lines += this.#line("_bucket", labels === "" ? bound : `${bound},${labels}`, total);
    });
    return lines + this.#line("_sum", labels, value) + this.#line("_count", labels, total);
  }

  #line(suffix: string, labels: string, value: number): string {
    return `${this.#name}${suffix}${labels === "" ? "" : `{${labels}}`} ${numberText(value)}\n`;
  }

  #keyOf(labels: LabelValues): string {
    const names = this.#labelNames;
    if (names.length === 0) return "";
    if (names.length === 1) return labels[names[0]!]!;
    return names.map((name) => labels[name]).join("\n");
  }
}

/** As the format has numbers that are not finite. */
function numberText(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  return Number.isFinite(value) ? String(value) : value < 0 ? "-Inf" : "+Inf";
}

function escaped(help: string): string {
  return help.replace(/[\\\n]/g, (character) => character === "\n" ? "\\n" : "\\\\");
}

/** Gives a value of another module; one that has to ask for it waits with a deadline of its own. */
type ReadValue = () => number | Promise<number>;
type LabelValues = Record<string, string>;

/** Of the arguments of a call: the labels, where the family has them, and then the value or the reader of it. */
function labelsAndValue<V>(rest: readonly unknown[]): [LabelValues, V | undefined] {
  const [first, second] = rest;
  return typeof first === "object" && first !== null
    ? [first as LabelValues, second as V | undefined]
    : [{}, first as V | undefined];
}

/** {a: [1, 2], b: [3]} gives {a: 1, b: 3} and {a: 2, b: 3}; no labels give one empty combination. */
function labelCombinations(labels: NonNullable<Family["labels"]>): LabelValues[] {
  return Object.entries(labels).reduce<LabelValues[]>(
    (combinations, [name, values]) =>
      combinations.flatMap((combination) => values.map((value) => ({ ...combination, [name]: value }))),
    [{}],
  );
}
