/** Chooses the format of an answer by the `Accept` header. See docs/api/reading.md#formats. */

import { parseAccept } from "hono/utils/accept";

/**
 * The media type of `served` that the header likes best, RFC 9110 12.5.1: of each type the most specific
 * range decides; among types of equal weight the more specific range wins, then the one named first, then the
 * first served. Without a header, and where it takes none of them, the first served. With JSON and CSV
 * served, `text/csv, application/*` is CSV and `text/csv;q=0.5, application/*` is JSON, as is `text/plain`.
 */
export function preferredType<Type extends string>(
  accept: string | undefined,
  served: readonly [Type, ...Type[]],
): Type {
  const ranges = parseAccept(accept ?? "").map(({ type, q }, place) => ({
    type: type.toLowerCase(),
    ...{ weight: q, place, specificity: type.startsWith("*") ? 0 : type.endsWith("/*") ? 1 : 2 },
  })).toSorted((a, b) => b.specificity - a.specificity); // those of one specificity stay in order
  let best;
  for (const type of served) {
    const range = ranges.find((range) => isIn(type, range.type));
    if (range === undefined || range.weight === 0) continue;
    if (best === undefined || isBetter(range, best.range)) best = { type, range };
  }
  return best?.type ?? served[0];
}

interface WeightedRange {
  readonly weight: number;
  readonly specificity: number;
  readonly place: number;
}

function isBetter(range: WeightedRange, than: WeightedRange): boolean {
  if (range.weight !== than.weight) return range.weight > than.weight;
  if (range.specificity !== than.specificity) return range.specificity > than.specificity;
  return range.place < than.place;
}

function isIn(type: string, range: string): boolean {
  return range === type || range === "*/*" || range === `${type.split("/")[0]}/*`;
}
