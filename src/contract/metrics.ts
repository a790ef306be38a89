/** The metrics of the process: typed counting in the families of the table, and the text for a scrape. */

import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { FAMILIES, type Family } from "./metric_families.ts";

type Families = typeof FAMILIES;
type OfType<T extends Family["type"]> = {
  [F in keyof Families]: Families[F]["type"] extends T ? F : never;
}[keyof Families];

export type CounterName = OfType<"counter">;
export type GaugeName = OfType<"gauge">;
export type HistogramName = OfType<"histogram">;
export type FamilyName = keyof Families;

/**
 * The labels of a family, each with the closed set of its values; `undefined` for a family without labels.
 */
export type LabelsOf<F extends FamilyName> = Families[F] extends { labels: infer L extends object }
  ? { readonly [K in keyof L]: L[K] extends readonly (infer V)[] ? V : never }
  : undefined;

type AddArguments<F extends FamilyName> = LabelsOf<F> extends undefined ? [amount?: number]
  : [labels: LabelsOf<F>, amount?: number];
type ValueArguments<F extends FamilyName, V> = LabelsOf<F> extends undefined ? [value: V]
  : [labels: LabelsOf<F>, value: V];

/**
 * The metrics of one process. A misspelt family, label or label value does not compile. The text has every
 * family with every combination of its labels from the start.
 *
 *     metrics.add("service_runs_created_total");
 *     metrics.add("service_infer_requests_total", { provider: "vllm", status: "ok" });
 *     metrics.observeValue("service_timeline_events_total", () => timeline.lastSeq);
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #counters = new Map<string, Counter>();
  readonly #gauges = new Map<string, Gauge>();
  readonly #histograms = new Map<string, Histogram>();
  /** Functions that give values owned by other modules, by family; called at every scrape. */
  readonly #readers = new Map<string, { labels: LabelValues; read: ReadValue }[]>();

  constructor() {
    for (const [name, family] of Object.entries(FAMILIES)) this.#open(name, family);
  }

  /** Adds to a counter, one by default. The amount must not be negative. */
  add<F extends CounterName>(family: F, ...rest: AddArguments<F>): void {
    const [labels, amount] = labelsAndValue<number>(rest);
    this.#counters.get(family)!.inc(labels, amount ?? 1);
  }

  /** Sets a gauge. */
  set<F extends GaugeName>(family: F, ...rest: ValueArguments<F, number>): void {
    const [labels, value] = labelsAndValue<number>(rest);
    this.#gauges.get(family)!.set(labels, value!);
  }

  /** Adds one measurement to a histogram, in the unit at the end of the name of the family. */
  observe<F extends HistogramName>(family: F, ...rest: ValueArguments<F, number>): void {
    const [labels, value] = labelsAndValue<number>(rest);
    this.#histograms.get(family)!.observe(labels, value!);
  }

  /**
   * Registers `read`, called at every scrape, for the value of a counter or gauge that another module owns.
   */
  observeValue<F extends CounterName | GaugeName>(family: F, ...rest: ValueArguments<F, ReadValue>): void {
    const [labels, read] = labelsAndValue<ReadValue>(rest);
    const readers = this.#readers.get(family) ?? [];
    readers.push({ labels, read: read! });
    this.#readers.set(family, readers);
  }

  /** The present value of a gauge without labels, as a scrape would have it. */
  async value(family: GaugeName): Promise<number> {
    const { values } = await this.#gauges.get(family)!.get();
    return values[0]?.value ?? 0;
  }

  /** The Prometheus text exposition, with HELP and TYPE lines. */
  text(): Promise<string> {
    return this.#registry.metrics();
  }

  #open(name: string, family: Family): void {
    const labelNames = Object.keys(family.labels ?? {});
    const shared = { name, help: family.help, labelNames, registers: [this.#registry] };
    const combinations = labelCombinations(family.labels ?? {});
    const readers = () => this.#readers.get(name) ?? [];
    if (family.type === "counter") {
      const counter = new Counter({
        ...shared,
        async collect() {
          for (const { labels, read } of readers()) {
            const value = await read();
            this.remove(labels);
            this.inc(labels, value);
          }
        },
      });
      for (const labels of combinations) counter.inc(labels, 0);
      this.#counters.set(name, counter);
    } else if (family.type === "gauge") {
      const gauge = new Gauge({
        ...shared,
        async collect() {
          for (const { labels, read } of readers()) this.set(labels, await read());
        },
      });
      for (const labels of combinations) gauge.set(labels, family.initialValue ?? 0);
      this.#gauges.set(name, gauge);
    } else {
      const histogram = new Histogram({ ...shared, buckets: [...family.buckets ?? []] });
      for (const labels of combinations) histogram.zero(labels);
      this.#histograms.set(name, histogram);
    }
  }
}

/** Gives a value of another module; one that has to ask for it waits with a deadline of its own. */
type ReadValue = () => number | Promise<number>;
type LabelValues = Record<string, string>;

/** The arguments of a call: the labels, where the family has them, and then the value or its reader. */
function labelsAndValue<V>(rest: readonly unknown[]): [LabelValues, V | undefined] {
  const [first, second] = rest;
  return typeof first === "object" && first !== null
    ? [first as LabelValues, second as V | undefined]
    : [{}, first as V | undefined];
}

/**
 * Every combination of label values: {a: [1, 2], b: [3]} gives {a: 1, b: 3} and {a: 2, b: 3}; no labels give
 * one empty combination.
 */
function labelCombinations(labels: NonNullable<Family["labels"]>): LabelValues[] {
  return Object.entries(labels).reduce<LabelValues[]>(
    (combinations, [name, values]) =>
      combinations.flatMap((combination) => values.map((value) => ({ ...combination, [name]: value }))),
    [{}],
  );
}
