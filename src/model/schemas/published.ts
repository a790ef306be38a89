/** The JSON Schemas that the service publishes, generated from the zod shapes; reads and writes no file. */

import { z } from "zod";
import { count, jsonObject, jsonValue, open, positive, text, U64_END } from "../events/payload_shapes.ts";
import { EVENTS } from "../events/event_table.ts";
import { exactNumber } from "../exact_json.ts";
import { frameMetadata } from "./frame_metadata.ts";
import { triggerProgram } from "../triggers/program.ts";
import { PROCESSING_DEFAULTS, processingConfig } from "./processing_config.ts";

/**
 * Every published schema by file name, draft 2020-12, in a stable order. Each call generates them anew, which takes some
 * milliseconds, so the caller keeps them. Only `schemaText` writes one correctly.
 */
export function publishedSchemas(): ReadonlyMap<string, object> {
  const schemas = new Map<string, object>();
  const publish = (name: string, title: string, description: string, shape: z.ZodType, more: object = {}) => {
    const $id = `${name}.schema.json`;
    const { $schema, ...rest } = jsonSchemaOf(shape);
    schemas.set($id, { $schema, $id, title, description, ...rest, ...more });
  };

  publish(
    "frame_metadata",
    "Frame metadata",
    "One row of metadata[] in the answers of analyze and reason. Closed at every level.",
    frameMetadata,
  );
  publish(
    "processing_config",
    "Processing configuration",
    "A processing profile; the examples are the profiles of the four modes.",
    processingConfig,
    { examples: Object.values(PROCESSING_DEFAULTS) },
  );
  publish(
    "trigger_program",
    "Trigger program",
    "A compiled trigger. What the schema cannot say, POST /v1/triggers/validate checks: jumps, stack, actions.",
    triggerProgram,
  );
  publish(
    "event_envelope",
    "Timeline event",
    "An event as the read routes return it. New fields may be added: tolerate what you do not know.",
    eventEnvelope,
  );
  publish(
    "cloudevent",
    "Timeline event as a CloudEvent",
    "The body of an SSE message and of a webhook delivery. Deduplicate by id.",
    cloudEventEnvelope,
  );
  for (const [kind, row] of Object.entries(EVENTS)) {
    const isFamily = kind.endsWith(".*");
    publish(
      `event.${isFamily ? kind.slice(0, -2) : kind}`,
      isFamily ? `Payload of every ${kind.slice(0, -1)}<event_type> event` : `Payload of ${kind} events`,
      row.summary,
      row.payload,
    );
  }
  return schemas;
}

/** A published schema as the text of its file: two blanks of indent, every digit of 2^64-1, a final line break. */
export function schemaText(schema: object): string {
  // A double cannot hold the largest unsigned 64-bit integer, so it is kept as 2^64 and written digit by digit.
  const exact = exactNumber("18446744073709551615");
  return JSON.stringify(schema, (_key, value) => value === U64_END ? exact : value, 2) + "\n";
}

/** A payload that is no JSON object is wrapped as `{ raw }`. See docs/events.md#envelope. */
const eventEnvelope = open({
  seq: positive.describe("Grows within one data directory; usable as a cursor"),
  pts_ms: count.describe("Wall-clock epoch milliseconds of the append, not media time"),
  kind: text,
  payload: jsonObject.describe("See event.<kind>.schema.json"),
});

/** See docs/events.md#cloudevents. */
const cloudEventEnvelope = open({
  specversion: z.literal("1.0"),
  id: z.string().regex(/^.+:[1-9][0-9]*$/).describe("<run_id>:<seq>"),
  source: z.string().regex(/^\/v1\/runs\/.+$/).describe("/v1/runs/<run_id>"),
  type: z.string().regex(/^dev\.service\.timeline\..+$/).describe("dev.service.timeline.<kind>"),
  subject: z.string().describe("Stream id"),
  datacontenttype: z.literal("application/json"),
  sequence: positive,
  pts_ms: count.describe("Wall-clock epoch milliseconds of the append, not media time"),
  data: jsonValue.describe("The payload; see event.<kind>.schema.json"),
});

function jsonSchemaOf(shape: z.ZodType): Record<string, unknown> {
  return z.toJSONSchema(shape, {
    target: "draft-2020-12",
    io: "input",
    // The only custom type, u64, has its schema as metadata; a test finds any other one without a schema.
    unrepresentable: "any",
    override: ({ jsonSchema }) => {
      // An empty schema allows everything, like no schema.
      if (isEmptyObject(jsonSchema.additionalProperties)) delete jsonSchema.additionalProperties;
      delete jsonSchema.propertyNames;
      // The largest safe integer is a bound of this implementation and not of the format.
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    },
  }) as Record<string, unknown>;
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}
