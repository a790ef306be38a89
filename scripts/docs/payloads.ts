/** What docs/events.md says of each event kind: the fields of every form of its payload, and an example. */

import { z } from "zod";
import { type EventRow, EVENTS } from "../../src/model/events/event_table.ts";
import { chunkMoment, localAudio } from "../../src/model/events/analysis_payloads.ts";
import { U64_END } from "../../src/model/events/payload_shapes.ts";
import { coordinates, feedbackAudio, mediaEvidence } from "../../src/model/events/payload_shapes.ts";
import { application, restrictedZone } from "../../src/model/events/policy_payloads.ts";
import { frameSignals } from "../../src/model/events/run_payloads.ts";
import { FIELD_MEANINGS } from "./field_meanings.ts";
import { code, table } from "./markdown.ts";

export type Group = "run" | "analysis" | "live" | "policy";

const KINDS: Readonly<Record<Group, readonly string[]>> = {
  run: [
    ...[
      "run_created",
      "ingest_received",
      "frames_decoded",
      "inference_completed",
      "run_completed",
      "run_failed",
    ],
    ...[
      "stop_requested",
      "keepalive_refreshed",
      "events_removed",
      "media_removed",
      "hold_placed",
      "hold_released",
      "run_deleted",
      "operator_feedback_submitted",
    ],
    ...["webhook_registered", "webhook_deleted"],
  ],
  analysis: [
    ...["marker_emitted", "analysis_generated", "semantic_chunk_inferred", "multimodal_moment"],
    ...["semantic_chunk_generated", "semantic_fallback_activated"],
  ],
  live: [
    ...["vlm", "vlm_tiered", "clip_vlm", "clip_vlm_tiered", "state_transition", "loop_detected"],
    ...["keyframe_stored", "clip_stored", "restricted_zone_activity_entered", "event_enriched", "trigger.*"],
    ...["publisher_connected", "decoder_restarted", "live_source_opened", "source_gap", "source_resumed"],
    ...["source_armed", "source_disarmed"],
  ],
  policy: [
    "policy_revision_created",
    ...["policy_deployment_requested", "policy_deployment_acknowledged", "policy_deployment_rejected"],
    ...["policy_rollback_requested", "policy_rollback_acknowledged", "policy_rollback_rejected"],
    "policy_replay_evaluated",
  ],
};

/** Which group each kind is in. */
export const GROUPS: Readonly<Record<string, Group>> = Object.fromEntries(
  (Object.keys(KINDS) as Group[]).flatMap((group) => KINDS[group].map((kind) => [kind, group])),
);

/** The forms of a kind that is written in several ways, in the order of its schema. */
const FORMS: Readonly<Record<string, readonly string[]>> = {
  run_created: ["Written by `POST /v1/runs`", "Written by a WHIP offer", "Written for an always-on camera"],
  ingest_received: ["Written by ingest", "Written by reason"],
  run_completed: [
    "Written by reason",
    "Written when an always-on camera goes on in a new run",
    "Written at the end of a live session",
  ],
  run_deleted: [
    "Written by `DELETE /v1/runs/:id`",
    "Reserved: this version does not write it",
  ],
  event_enriched: ["With a description", "Without one"],
  analysis_generated: ["Written by analyze", "Written by reason"],
  semantic_chunk_inferred: [
    "Written by reason from pictures or short clips",
    "Written by reason from windows of video or sound",
    "Written by a live session from its audio",
  ],
  multimodal_moment: ["Written by reason", "Written by a live session from its audio"],
  policy_replay_evaluated: ["With `source: local_wal`", "With `source: signals`"],
};

/** Objects that stand in many payloads: told once on the page, and referred to from there. */
const SHARED: readonly (readonly [z.ZodType, string])[] = [
  [coordinates, "[coordinates](../frames.md#coordinates)"],
  [frameSignals, "[frame signals](#shared-objects)"],
  [localAudio, "[local audio](#shared-objects)"],
  [chunkMoment, "[chunk moment](#shared-objects)"],
  [mediaEvidence, "[media reference](#shared-objects)"],
  [feedbackAudio, "[spoken feedback](#shared-objects)"],
  [restrictedZone, "[restricted zone](#shared-objects)"],
  [application, "[application](#shared-objects)"],
];

/** A draft 2020-12 schema as zod writes it, as far as payloads use it. */
interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly minLength?: number;
  readonly minItems?: number;
  readonly pattern?: string;
}

/** One section for each kind of the group. */
export function payloadSections(group: Group): string {
  const missing = Object.keys(EVENTS).filter((kind) => !(kind in GROUPS));
  if (missing.length > 0) throw new Error(`these kinds have no group: ${missing.join(", ")}`);
  return KINDS[group].map((kind) => kindSection(kind, (EVENTS as Record<string, EventRow>)[kind]!)).join(
    "\n\n",
  );
}

/** The fields of the objects that payloads share. */
export function sharedSections(): string {
  const titled: readonly (readonly [string, z.ZodType])[] = [
    ["Frame signals, one frame of `frames_decoded.signals`", frameSignals],
    ["Chunk moment, one of `moments`; offsets count from the start of the chunk's clip", chunkMoment],
    ["Media reference: a stored MP4 or WAV", mediaEvidence],
    ["Spoken feedback: a stored WAV", feedbackAudio],
    ["Local audio: what the audio sidecar found in a window", localAudio],
    ["Restricted zone", restrictedZone],
    ["Application: what a live session made of a policy", application],
  ];
  return titled.map(([title, shape]) => `${title}:\n\n${fieldTable("", schemaOf(shape))}`).join("\n\n");
}

function kindSection(kind: string, row: EventRow): string {
  const schema = schemaOf(row.payload);
  const forms = schema.anyOf ?? [schema];
  const titles = FORMS[kind] ?? [""];
  if (titles.length !== forms.length) {
    throw new Error(`${kind} has ${forms.length} forms, FORMS names others`);
  }
  const parts = [`### ${kind}`, row.summary];
  const same = KINDS[GROUPS[kind]!].find((other) =>
    (EVENTS as Record<string, EventRow>)[other]!.payload === row.payload
  )!;
  if (same !== kind) parts.push(`Fields as in [${same}](#${same}).`);
  else {forms.forEach((form, index) => {
      if (titles[index] !== "") parts.push(`${titles[index]}:`);
      parts.push(fieldTable(kind, form));
    });}
  parts.push("Example:", `\`\`\`json\n${exampleOf(kind)}\n\`\`\``);
  return parts.join("\n\n");
}

function fieldTable(kind: string, schema: Schema): string {
  return table(["Field", "Type", "Meaning"], fieldRows(kind, schema, ""));
}

function fieldRows(kind: string, { properties = {}, required = [] }: Schema, prefix: string): string[][] {
  return Object.entries(properties).flatMap(([name, field]) => {
    const path = prefix + name;
    const optional = required.includes(name) ? "" : "optional; ";
    const meaning = field.description ?? meaningOf(kind, path);
    return [[code(path), optional + typeOf(field), meaning], ...nestedRows(kind, field, path)];
  });
}

/** What a field means: the schema's own words go first, then those for the kind, then those for the name. */
function meaningOf(kind: string, path: string): string {
  return FIELD_MEANINGS[`${kind}:${path}`] ?? FIELD_MEANINGS[path] ?? "";
}

function nestedRows(kind: string, field: Schema, path: string): string[][] {
  const inner = field.anyOf?.find(({ type }) => type !== "null") ?? field;
  if (sharedName(inner)) return [];
  if (inner.properties) return fieldRows(kind, inner, `${path}.`);
  if (inner.items?.properties && !sharedName(inner.items)) return fieldRows(kind, inner.items, `${path}[].`);
  return [];
}

function typeOf(schema: Schema): string {
  const shared = sharedName(schema);
  if (shared) return shared;
  if (schema.anyOf) {
    const isAny = schema.anyOf.length > 3;
    return isAny ? "any JSON value" : schema.anyOf.map(typeOf).join(" or ");
  }
  if ("const" in schema) return code(JSON.stringify(schema.const));
  if (schema.enum) return schema.enum.map((value) => code(JSON.stringify(value))).join(", ");
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type })).join(" or ");
  switch (schema.type) {
    case "integer":
    case "number":
      return `${schema.type}${rangeOf(schema)}`;
    case "string":
      if (schema.pattern === "^[0-9a-f]{64}$") return "64 hex digits";
      return schema.minLength ? "string, not empty" : "string";
    case "array":
      return `array of ${typeOf(schema.items ?? {})}${schema.minItems ? ", not empty" : ""}`;
    case "null":
      return "null";
    case undefined:
      return "any JSON value";
    default:
      return String(schema.type);
  }
}

function rangeOf({ minimum, maximum, exclusiveMinimum }: Schema): string {
  const top = maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum === U64_END ? "2^64-1" : maximum;
  if (exclusiveMinimum !== undefined) {
    return ` above ${exclusiveMinimum}${top === undefined ? "" : ` up to ${top}`}`;
  }
  if (minimum !== undefined && top !== undefined) return ` ${minimum} to ${top}`;
  return minimum === undefined ? "" : ` ≥ ${minimum}`;
}

const SHARED_NAMES: ReadonlyMap<string, string> = new Map(
  SHARED.map(([shape, name]) => [identityOf(schemaOf(shape)), name]),
);

function sharedName(schema: Schema): string | undefined {
  return schema.properties && SHARED_NAMES.get(identityOf(schema));
}

/** Identity of a shape: two objects with the same fields are the same one. */
function identityOf({ properties, required }: Schema): string {
  return JSON.stringify({ properties, required });
}

function schemaOf(shape: z.ZodType): Schema {
  return z.toJSONSchema(shape, { target: "draft-2020-12", io: "input", unrepresentable: "any" }) as Schema;
}

/** An example of a kind: its first sample; of a list of frames only the first one. */
function exampleOf(kind: string): string {
  const name = kind.replace(".*", "");
  const text = Deno.readTextFileSync(new URL(`../../fixtures/events/${name}.json`, import.meta.url));
  const exact = JSON.parse(text, (key, value, context?: { source?: string }) => {
    if (key === "signals") return value.slice(0, 1);
    const isLong = typeof value === "number" && !Number.isSafeInteger(value) && Number.isInteger(value);
    return isLong ? (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(context!.source!) : value;
  }) as { valid: unknown[] };
  return printed(exact.valid[0]);
}

const LINE_CHARACTERS = 100;

/** JSON in the layout of `deno fmt`: what fits stays on one line, but for the outermost object. */
function printed(value: unknown, indent = ""): string {
  const isObject = typeof value === "object" && value !== null && !isRaw(value);
  if (!isObject) return JSON.stringify(value);
  const inner = `${indent}  `;
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const items = Array.isArray(value)
    ? value.map((item) => printed(item, inner))
    : Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${printed(item, inner)}`);
  if (items.length === 0) return `${open}${close}`;
  const space = Array.isArray(value) ? "" : " ";
  const line = `${open}${space}${items.join(", ")}${space}${close}`;
  const fits = indent !== "" && !line.includes("\n") && indent.length + line.length <= LINE_CHARACTERS;
  return fits ? line : `${open}\n${items.map((item) => inner + item).join(",\n")}\n${indent}${close}`;
}

function isRaw(value: unknown): boolean {
  return (JSON as unknown as { isRawJSON(value: unknown): boolean }).isRawJSON(value);
}
