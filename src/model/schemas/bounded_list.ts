/** Lists in request bodies whose faults are bounded: ten thousand wrong items cost no more than the first
 * few.
 */

import * as z from "zod";
import type { ZodType } from "zod";
import { shapeMessage } from "../shape_message.ts";

/** Faults after which the rest of a list is not looked at: more would not be answered. */
const FAULTS_MAX = 64;

/** What the items of a bounded list are, by the list as it is parsed first; for the published schemas. */
const ITEMS = new WeakMap<
  object,
  { readonly item: ZodType; readonly minimum: number; readonly maximum: number }
>();

/** The items of a bounded list and how many it may have; undefined for any other schema. */
export function itemsOf(
  schema: object,
): { readonly item: ZodType; readonly minimum: number; readonly maximum: number } | undefined {
  return ITEMS.get(schema);
}

/**
 * A list of `item`. A list of more than `maximum` items passes without a look at them: whoever reads it
 * refuses it for its length, in its own words and its own order; so does one of fewer than `minimum`.
 */
export function boundedList<T>(item: ZodType<T>, maximum = Infinity, minimum = 0) {
  const list = z.array(z.unknown());
  ITEMS.set(list, { item, minimum, maximum });
  return list.transform((given, context): T[] => {
    if (given.length > maximum) return given as T[];
    const items: T[] = [];
    let faults = 0;
    for (const [index, value] of given.entries()) {
      const parsed = item.safeParse(value, { error: shapeMessage });
      if (parsed.success) items.push(parsed.data);
      else {
        for (const issue of parsed.error.issues) {
          context.issues.push({ ...issue, path: [index, ...issue.path], input: value } as never);
        }
        faults += parsed.error.issues.length;
        if (faults >= FAULTS_MAX) break;
      }
    }
    return items;
  });
}
