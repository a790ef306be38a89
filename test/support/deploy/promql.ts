/** What a PromQL expression takes from the metrics: each family with its labels. */

import { parser } from "@prometheus-io/lezer-promql";
import { FAMILIES, type Family } from "../../../src/contract/metric_families.ts";

/** Labels that the scrape adds. */
const OF_THE_SCRAPE = ["job", "instance"];
/** Series that the scrape makes. */
const BY_THE_SCRAPE = ["up"];

interface Selector {
  readonly series: string;
  readonly matchers: readonly { readonly label: string; readonly operator: string; readonly value: string }[];
}

/**
 * What is wrong with an expression: its syntax, a series that the service does not have, or a label or value
 * of none of them.
 */
export function promqlFaults(expression: string): string[] {
  const faults: string[] = [];
  const selectors: Selector[] = [];
  const grouped: string[] = [];
  const textOf = (node: { from: number; to: number }) => expression.slice(node.from, node.to);
  parser.parse(expression).iterate({
    enter(reference) {
      const { node } = reference;
      if (node.type.isError) faults.push(`not understood at ${node.from}: ${expression}`);
      if (node.name === "GroupingLabels") grouped.push(...node.getChildren("LabelName").map(textOf));
      if (node.name !== "VectorSelector") return;
      const matchers = node.getChild("LabelMatchers")?.getChildren("UnquotedLabelMatcher") ?? [];
      selectors.push({
        series: textOf(node.getChild("Identifier")!),
        matchers: matchers.map((matcher) => ({
          label: textOf(matcher.getChild("LabelName")!),
          operator: textOf(matcher.getChild("MatchOp")!),
          value: JSON.parse(textOf(matcher.getChild("StringLiteral")!)),
        })),
      });
    },
  });
  if (selectors.length === 0) faults.push(`no series: ${expression}`);
  const known = new Set(OF_THE_SCRAPE);
  for (const { series, matchers } of selectors) {
    const labels = labelsOf(series);
    if (labels === null) {
      faults.push(`no such series: ${series}`);
      continue;
    }
    Object.keys(labels).forEach((label) => known.add(label));
    for (const { label, operator, value } of matchers) {
      if (OF_THE_SCRAPE.includes(label)) continue;
      const values = labels[label];
      if (!values) faults.push(`${series} has no label ${label}`);
      else if (selected(operator, value, values).length === 0) {
        faults.push(`${series} never has ${label}${operator}"${value}"`);
      }
    }
  }
  return [...faults, ...grouped.filter((label) => !known.has(label)).map((label) => `no label ${label}`)];
}

/** The labels of a series as it is scraped; null for one that the service does not have. */
function labelsOf(series: string): Readonly<Record<string, readonly string[]>> | null {
  if (BY_THE_SCRAPE.includes(series)) return {};
  const plain = familyOf(series);
  if (plain && plain.type !== "histogram") return plain.labels ?? {};
  const [, name, part] = /^(.+)_(bucket|sum|count)$/.exec(series) ?? [];
  const histogram = name === undefined ? undefined : familyOf(name);
  if (histogram?.type !== "histogram") return null;
  const le = [...histogram.buckets ?? [], "+Inf"].map(String);
  return { ...histogram.labels, ...(part === "bucket" && { le }) };
}

function familyOf(name: string): Family | undefined {
  return (FAMILIES as Readonly<Record<string, Family>>)[name];
}

function selected(operator: string, value: string, values: readonly string[]): string[] {
  const pattern = new RegExp(`^(?:${value})$`);
  const isEqual = operator.includes("~")
    ? (one: string) => pattern.test(one)
    : (one: string) => one === value;
  return values.filter((one) => isEqual(one) !== operator.startsWith("!"));
}
