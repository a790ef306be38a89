/** Label maps: how an operator renames the labels of events and objects, for everyone or for one principal. */

import { z } from "zod";
import { PUBLIC_PRINCIPAL } from "../identifiers.ts";

const LABELS = z.record(z.string(), z.string().min(1));
const MAP = z.strictObject({ events: LABELS.optional(), objects: LABELS.optional() });
const MAPS = z.strictObject({ default: MAP.optional(), tenants: z.record(z.string(), MAP).optional() });

/** The file of SERVICE_TENANT_LABEL_MAPS_PATH as contract 4.4 has it: `tenants` by principal key. */
export type LabelMaps = z.infer<typeof MAPS>;

/** Errors: an Error that says in one line what is wrong with the text. */
export function parseLabelMaps(text: string): LabelMaps {
  const parsed = MAPS.safeParse(JSON.parse(text));
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map(({ path, message }) => [...path.map(String), message].join(": "));
  throw new Error(faults.join("; "));
}

/** A label as it is shown. */
export interface MappedLabel {
  readonly label: string;
  /** Whether the caller's own map should have had it and does not: `fallback.used` of a row. */
  readonly isMissed: boolean;
}

/** The labels of one principal. */
export interface Labels {
  event(label: string): MappedLabel;
  object(label: string): MappedLabel;
}

/**
 * Contract 4.4: the principal's own map, then the default, then the label itself. A label is missed only where maps
 * are configured and the principal has a key: the caller of open mode has no map of its own that could lack it.
 */
export function labelsOf(maps: LabelMaps | null, principalKey: string): Labels {
  const own = principalKey === PUBLIC_PRINCIPAL ? undefined : entry(maps?.tenants, principalKey);
  const canMiss = maps !== null && principalKey !== PUBLIC_PRINCIPAL;
  const mapped = (of: "events" | "objects", label: string): MappedLabel => {
    const ownLabel = entry(own?.[of], label);
    return {
      label: ownLabel ?? entry(maps?.default?.[of], label) ?? label,
      isMissed: canMiss && ownLabel === undefined,
    };
  };
  return { event: (label) => mapped("events", label), object: (label) => mapped("objects", label) };
}

/** A caller's label may be called like something that every object has. */
function entry<T>(record: Record<string, T> | undefined, key: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined;
}
