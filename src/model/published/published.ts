/** The JSON Schemas that the service publishes, generated from the zod shapes; reads and writes no file. */

import * as z from "zod";
import { count, jsonObject, jsonValue, open, positive, text } from "../events/payload_shapes.ts";
import { EVENTS } from "../events/event_table.ts";
import { jsonSchemaOf } from "./json_schema.ts";
import { frameMetadata } from "./frame_metadata.ts";
import { triggerProgram } from "../triggers/program.ts";
import { PROCESSING_DEFAULTS, processingConfig } from "./processing_config.ts";

/**
 * Every published schema by file name, draft 2020-12, in a stable order. Each call generates them anew, which
 * takes some milliseconds, so the caller keeps them. Only `schemaText` of json_schema.ts writes one
 * correctly.
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

/**
 * The envelope of an event. A payload that is no JSON object is wrapped as `{ raw }`. See
 * docs/events.md#envelope.
 */
const eventEnvelope = open({
  seq: positive.describe("Grows within one data directory; usable as a cursor"),
  pts_ms: count.describe("Wall-clock epoch milliseconds of the append, not media time"),
  kind: text,
  payload: jsonObject.describe("See event.<kind>.schema.json"),
});

/** The CloudEvents envelope of an event. See docs/events.md#cloudevents. */
export const cloudEventEnvelope = open({
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
