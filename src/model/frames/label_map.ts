/** Label maps: an operator renames the labels of events and objects, for all principals or for one. */

import * as z from "zod";
import { shapeMessage } from "../shape_message.ts";
import { PUBLIC_PRINCIPAL } from "../identifiers.ts";

const LABELS = z.record(z.string(), z.string().min(1));
const MAP = z.strictObject({ events: LABELS.optional(), objects: LABELS.optional() });
const MAPS = z.strictObject({ default: MAP.optional(), tenants: z.record(z.string(), MAP).optional() });

/**
 * The file of SERVICE_TENANT_LABEL_MAPS_PATH; `tenants` is by principal key. See docs/frames.md#label-maps.
 */
export type LabelMaps = z.infer<typeof MAPS>;

/** Reads label maps. Throws an Error that names all faults of the text in one line. */
export function parseLabelMaps(text: string): LabelMaps {
  const parsed = MAPS.safeParse(JSON.parse(text), { error: shapeMessage });
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map(({ path, message }) => [...path.map(String), message].join(": "));
  throw new Error(faults.join("; "));
}

/** A label after the label maps. */
export interface MappedLabel {
  readonly label: string;
  /** Whether the caller's own map has no entry for the label: then `fallback.used` of a row is true. */
  readonly isMissed: boolean;
}

/** The labels of one principal. */
export interface Labels {
  event(label: string): MappedLabel;
  object(label: string): MappedLabel;
}

/**
 * The labels of a principal: by its own map, then by the default map, then the label itself. A label counts
 * as missed only when maps are configured and the principal has a key: the principal of open mode has no map
 * of its own.
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

/**
 * The entry of a record, of its own properties only: a label may be named like an inherited one, such as
 * `toString`.
 */
function entry<T>(record: Record<string, T> | undefined, key: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined;
}
