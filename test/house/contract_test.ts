/** The tables of the code equal the expected ones, which are kept by hand. */

import assert from "node:assert/strict";
import type { z } from "zod";
import { readConfig } from "../../src/contract/config.ts";
import { SETTINGS } from "../../src/contract/settings.ts";
import { FAMILIES } from "../../src/contract/metric_families.ts";
import { EVENTS } from "../../src/model/events/event_table.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { CONTRACT } from "./contract.ts";

Deno.test("every setting has the expected name and default", () => {
  const ours = Object.entries(SETTINGS).map(([name, row]) => [name, row.default || null]);
  const expected = CONTRACT.config.map((row) => [row.name, row.default]);
  assert.deepEqual(sortedRows(ours), sortedRows(expected));
});

Deno.test("a setting with a range takes both ends, and refuses or clamps what lies outside", () => {
  for (const { name, range, outside } of CONTRACT.config) {
    if (!range) continue;
    const [min, max] = range;
    for (const inside of [min, max]) assert.equal(valueOf(name, inside), inside, `${name}=${inside}`);
    for (const [given, nearest] of [[min - 1, min], [max + 1, max]] as const) {
      if (outside === "clamp") assert.equal(valueOf(name, given), nearest, `${name}=${given}`);
      else {assert.throws(
          () => valueOf(name, given),
          new RegExp(`^ConfigFaults: .*\n${name} must be`),
          `${name}=${given}`,
        );}
    }
  }
});

Deno.test("every metric family has the expected type, labels and buckets", () => {
  const ours = Object.entries(FAMILIES).map(([name, family]) => ({
    name,
    type: family.type,
    labels: "labels" in family ? family.labels : {},
    buckets: "buckets" in family ? family.buckets : undefined,
  }));
  const expected = CONTRACT.metrics.map(({ name, type, labels, buckets }) => ({
    name,
    type,
    labels,
    buckets,
  }));
  assert.deepEqual(byName(ours), byName(expected));
});

Deno.test("every limit stands once, with the expected value", () => {
  const ours = Object.fromEntries(limitPaths(LIMITS));
  for (const [name, row] of Object.entries(SETTINGS)) if (row.default) ours[name] = row.default;
  for (const { subject, at, limit } of CONTRACT.limits) {
    assert.deepEqual(ours[at], limit, `${subject} (${at})`);
  }
  const expectedPaths = new Set(CONTRACT.limits.map((row) => row.at));
  assert.deepEqual(limitPaths(LIMITS).map(([path]) => path).filter((path) => !expectedPaths.has(path)), []);
});

Deno.test("every event kind has the expected payload fields", () => {
  const ours = Object.entries(EVENTS).map(([kind, row]) => ({
    name: kind,
    bookkeeping: row.bookkeeping,
    fields: [...fieldsOf(row.payload)].sort(),
  }));
  const expected = CONTRACT.events.map(({ kind, bookkeeping, forms }) => ({
    name: kind,
    bookkeeping,
    fields: [...new Set(forms.flat())].sort(),
  }));
  assert.deepEqual(byName(ours), byName(expected));
});

/**
 * The value that `name` has in a configuration where everything else is as it must be; seconds as seconds.
 */
function valueOf(name: string, given: number): unknown {
  const config = readConfig({
    SERVICE_API_KEYS: "key",
    SERVICE_INFERENCE_GLOBAL_LIMIT: "1024",
    SERVICE_INFERENCE_PER_PRINCIPAL_LIMIT: "1",
    [name]: String(given),
  });
  const { field } = SETTINGS[name as keyof typeof SETTINGS];
  const value = field.split(".").reduce<unknown>(
    (part, key) => (part as Record<string, unknown>)[key],
    config,
  );
  return name.endsWith("_SECS") ? Number(value) / 1000 : value;
}

/** Constants as ["group.name", value]; a range is one constant, written as a pair. */
function limitPaths(part: object, prefix = ""): [string, unknown][] {
  return Object.entries(part).flatMap(([name, value]): [string, unknown][] => {
    if (typeof value !== "object" || Array.isArray(value)) return [[prefix + name, value]];
    if ("minimum" in value) return [[prefix + name, [value.minimum, value.maximum]]];
    return limitPaths(value, `${prefix}${name}.`);
  });
}

function fieldsOf(schema: z.ZodType): Set<string> {
  const { shape, options } = schema as { shape?: Record<string, unknown>; options?: z.ZodType[] };
  if (options) return new Set(options.flatMap((option) => [...fieldsOf(option)]));
  assert.ok(shape, "a payload schema is an object or a union of objects");
  return new Set(Object.keys(shape));
}

function byName<T extends { name: string }>(rows: readonly T[]): T[] {
  return rows.toSorted((left, right) => left.name < right.name ? -1 : 1);
}

function sortedRows<T>(rows: readonly T[]): T[] {
  return rows.toSorted((left, right) => String(left) < String(right) ? -1 : 1);
}
