/** The conditions of a webhook on the content of events: what may be asked for, and whether an event meets
 * it. See docs/events/webhooks.md#filters.
 */

import { utf8Length } from "../../base/bytes.ts";
import { FieldRules, quoted } from "../field_rules.ts";
import { LIMITS } from "../../contract/limits.ts";
import { SOURCE_NAME, sourceUriOf } from "../source_name.ts";

/**
 * The conditions of a webhook: every one that is there holds for a delivered event; none of the lists is
 * empty.
 */
export interface WebhookFilter {
  readonly labels?: readonly string[] | undefined;
  /** Ids of zone policies. */
  readonly zones?: readonly string[] | undefined;
  /** Names of named sources. */
  readonly sources?: readonly string[] | undefined;
  readonly min_confidence?: number | undefined;
  /** Which events of armed and disarmed cameras are delivered; absent for `armed`. */
  readonly armed?: "disarmed" | "any" | undefined;
}

/** What is delivered of the events that say whether their camera was armed. */
export const ARMED_CHOICES = ["armed", "disarmed", "any"] as const;

/** A filter of a request: an absent, null or empty field is no condition. */
export type GivenFilter =
  & { readonly [Name in keyof Omit<WebhookFilter, "armed">]: WebhookFilter[Name] | null }
  & { readonly armed?: typeof ARMED_CHOICES[number] | null | undefined };

/** Something that an event says was seen or heard. */
interface Sighting {
  readonly labels: readonly string[];
  readonly confidence: number | null;
}

/** What the conditions look at. */
export interface EventFacts {
  readonly sightings: readonly Sighting[];
  readonly zone: string | null;
  /** Whether the camera was armed; null where the event does not say. */
  readonly armed: boolean | null;
  /** The `source_uri` as the event itself names it; most name a session or a stream only. */
  readonly sourceUri: string | null;
  readonly sessionId: string | null;
  readonly streamId: string | null;
  readonly requestId: string | null;
  /** The number of the event that this one follows from. */
  readonly causeSeq: number | null;
}

/**
 * The conditions of a request, trimmed and sorted, each entry once; null for none. The faults go to `rules`,
 * under `filter.<field>`.
 */
export function checkedFilter(
  given: GivenFilter | null | undefined,
  rules: FieldRules,
): WebhookFilter | null {
  if (given == null) return null;
  const labels = entries(given.labels, "filter.labels", rules);
  const zones = entries(given.zones, "filter.zones", rules);
  const sources = entries(given.sources, "filter.sources", rules);
  for (const name of sources ?? []) {
    if (!SOURCE_NAME.test(name)) {
      rules.fault(
        "filter.sources",
        `must be names of sources, 1 to 64 of a-z, 0-9 and -: got ${quoted(name)}`,
      );
    }
  }
  const least = given.min_confidence ?? undefined;
  if (least !== undefined) rules.range("filter.min_confidence", least, LIMITS.webhook.minConfidence);
  const armed = given.armed ?? "armed";
  const filter = {
    ...(labels && { labels }),
    ...(zones && { zones }),
    ...(sources && { sources }),
    ...(least !== undefined && { min_confidence: least }),
    ...(armed !== "armed" && { armed }),
  };
  return Object.keys(filter).length === 0 ? null : filter;
}

function entries(
  given: readonly string[] | null | undefined,
  field: string,
  rules: FieldRules,
): readonly string[] | undefined {
  if (given == null || given.length === 0) return undefined;
  const { minimum, maximum } = LIMITS.webhook.filterEntryBytes;
  if (given.length > LIMITS.webhook.filterEntriesMax) {
    rules.fault(field, `must have at most ${LIMITS.webhook.filterEntriesMax} entries: got ${given.length}`);
    return undefined;
  }
  const texts = given.map((text) => text.trim());
  for (const bytes of texts.map(utf8Length)) {
    if (bytes < minimum || bytes > maximum) {
      rules.fault(field, `entries must have from ${minimum} to ${maximum} bytes: got ${bytes}`);
      return undefined;
    }
  }
  return [...new Set(texts)].sort();
}

/** Whether events of this kind say whether their camera was armed. */
export function mayBeDisarmed(kind: string): boolean {
  return kind === "restricted_zone_activity_entered" || kind.startsWith("trigger.");
}

/**
 * Whether the event meets every condition. `sourceUri` is that of the event's source, null where it is not
 * known.
 */
export function meets(filter: WebhookFilter, facts: EventFacts, sourceUri: string | null): boolean {
  const { labels, zones, sources, min_confidence: least, armed = "armed" } = filter;
  if (armed !== "any" && (facts.armed === false) !== (armed === "disarmed")) return false;
  if (zones && !zones.includes(facts.zone ?? "")) return false;
  if (sources && !sources.some((name) => sourceUriOf(name) === sourceUri)) return false;
  if (!labels && least === undefined) return true;
  // One sighting has both: a label of one and the confidence of another say nothing together.
  return facts.sightings.some((sighting) =>
    (!labels || sighting.labels.some((label) => labels.includes(label))) &&
    (least === undefined || (sighting.confidence !== null && sighting.confidence >= least))
  );
}

/** The facts in a payload's JSON; a malformed one says nothing. */
export function eventFacts(payloadJson: string): EventFacts {
  const payload = fieldsOf(parsed(payloadJson));
  const { assertion, local_audio, moments, zone } = payload;
  return {
    sightings: [payload, ...listOf(fieldsOf(local_audio).observations), ...listOf(moments)].map(sighting),
    zone: textOf(fieldsOf(assertion).policy_id) ?? textOf(zone),
    armed: typeof payload.armed === "boolean" ? payload.armed : null,
    sourceUri: textOf(payload.source_uri),
    sessionId: textOf(payload.session_id),
    streamId: textOf(payload.stream_id),
    requestId: textOf(payload.request_id),
    causeSeq: typeof payload.cause_seq === "number" ? payload.cause_seq : null,
  };
}

/** The fields by which events call what they saw or heard. */
const LABEL_FIELDS = ["event_type", "object_label", "label", "kind"] as const;

function sighting(given: unknown): Sighting {
  const fields = fieldsOf(given);
  const { confidence } = fields;
  return {
    labels: LABEL_FIELDS.map((name) => textOf(fields[name])).filter((label) => label !== null),
    confidence: typeof confidence === "number" ? confidence : null,
  };
}

/** A filter of a stored event. Conditions of a later version are not known here, and are ignored. */
export function storedFilter(value: unknown): WebhookFilter | null {
  const { labels, zones, sources, min_confidence, armed } = fieldsOf(value);
  const texts = (given: unknown) => listOf(given).filter((each) => typeof each === "string");
  const given: GivenFilter = {
    labels: texts(labels),
    zones: texts(zones),
    sources: texts(sources),
    min_confidence: typeof min_confidence === "number" ? min_confidence : null,
    armed: ARMED_CHOICES.find((choice) => choice === armed) ?? null,
  };
  return checkedFilter(given, new FieldRules());
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return null;
  }
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? value as Record<string, unknown> : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
