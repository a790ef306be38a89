/** The API description, OpenAPI 3.1, made from the route table, the descriptions of the operations and the zod shapes. */

import type { ZodType } from "zod";
import { REFUSALS } from "../../base/refusal.ts";
import { VERSION } from "../../base/version.ts";
import { EVENTS, eventTypeOf } from "../../model/events/event_table.ts";
import { IDEMPOTENCY_KEY } from "../../model/idempotency_key.ts";
import { bare, jsonSchemaOf, namedJsonSchemas } from "../../model/schemas/json_schema.ts";
import { ROUTES } from "../app.ts";
import type { Route } from "../call.ts";
import { namedShapes } from "./components.ts";
import { type Answer, type Content, JSON_TYPE, type Operation, TAGS } from "./operation.ts";
import { ANALYSIS_OPERATIONS } from "./operations/analysis.ts";
import { FILE_OPERATIONS } from "./operations/files.ts";
import { LIVE_OPERATIONS } from "./operations/live.ts";
import { POLICY_OPERATIONS } from "./operations/policies.ts";
import { READ_OPERATIONS } from "./operations/reads.ts";
import { RUN_OPERATIONS } from "./operations/runs.ts";
import { WEBHOOK_OPERATIONS } from "./operations/webhooks.ts";
import {
  ANSWER_HEADERS,
  type HeaderName,
  OPTIONAL_HEADERS,
  type ParameterRow,
  PATH_PARAMETERS,
  REQUEST_HEADERS,
} from "./parameters.ts";

/** By method and path, as `Route` has them. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  ...RUN_OPERATIONS,
  ...ANALYSIS_OPERATIONS,
  ...READ_OPERATIONS,
  ...WEBHOOK_OPERATIONS,
  ...FILE_OPERATIONS,
  ...POLICY_OPERATIONS,
  ...LIVE_OPERATIONS,
};

const WRITTEN_BODIES = [JSON_TYPE, "application/sdp", "application/trickle-ice-sdpfrag"];

/** Every status that a route may refuse with: those of its operation, and those that come before its handler. */
export function refusalsOf({ method, once }: Route, { failures, body, access }: Operation): number[] {
  const media = Object.keys(body ?? {});
  const statuses = [
    ...[...failures, 403, 414, 421, 429],
    ...(access === "open" ? [] : [401]),
    ...(once ? [409, 422] : []),
    ...(access === undefined && method !== "GET" ? [507] : []),
    ...(media.includes(JSON_TYPE) ? [415] : []),
    ...(media.some((type) => WRITTEN_BODIES.includes(type)) ? [400, 408, 413] : []),
  ];
  return [...new Set(statuses)].toSorted((a, b) => a - b);
}

/** The whole description. Making it takes some tens of milliseconds; `schemas/openapi.json` is a copy. */
export function openApi(): object {
  const shapes = namedShapes();
  const names = new Map(Object.entries(shapes).map(([name, shape]) => [shape, name]));
  const paths: Record<string, Record<string, object>> = {};
  for (const route of ROUTES) {
    const operation = OPERATIONS[`${route.method} ${route.path}`];
    if (!operation) throw new Error(`${route.method} ${route.path} has no description in http/description/`);
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    (paths[path] ??= {})[route.method.toLowerCase()] = described(route, operation, names);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Video analysis service",
      version: VERSION,
      description:
        "Turns video and audio into a durable timeline of events for each run. Times that end in `_ms` are milliseconds. " +
        "Answers and events may get more fields; request bodies are closed.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/", description: "This server" }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    security: [{ key: [] }, { bearer: [] }],
    paths,
    webhooks: eventWebhooks(),
    components: {
      securitySchemes: {
        key: { type: "apiKey", in: "header", name: "x-api-key" },
        bearer: { type: "http", scheme: "bearer" },
      },
      schemas: namedJsonSchemas(shapes, refTo),
      headers: Object.fromEntries(
        Object.entries(ANSWER_HEADERS).map(([name, row]) => [
          name,
          { ...parameter(row), required: !OPTIONAL_HEADERS.has(name as HeaderName) },
        ]),
      ),
      parameters: Object.fromEntries(
        Object.entries(REQUEST_HEADERS).map((
          [name, row],
        ) => [name, { name, in: "header", ...parameter(row) }]),
      ),
      responses: refusalResponses(),
    },
  };
}

type Names = ReadonlyMap<ZodType, string>;

function refTo(name: string): string {
  return `#/components/schemas/${name}`;
}

function described(route: Route, operation: Operation, names: Names): object {
  const { id, tag, body, query = {}, headers = [], answers, access, refusesInText } = operation;
  const parts = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    ...{ name, in: "path", required: true },
    ...parameter(PATH_PARAMETERS[name!]!),
  }));
  const asked = Object.entries(query).map(([name, row]) => ({ name, in: "query", ...parameter(row) }));
  const parameters = [
    ...parts,
    ...asked,
    ...[...headers, ...(route.once ? [IDEMPOTENCY_KEY] : [])].map((name) => ({
      $ref: `#/components/parameters/${name}`,
    })),
  ];
  return {
    operationId: id,
    tags: [tag],
    summary: route.summary,
    ...(access === "open" && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, content: contentOf(body, names) } }),
    responses: {
      ...Object.fromEntries(
        Object.entries(answers).map(([status, answer]) => [status, answered(answer, names)]),
      ),
      ...Object.fromEntries(
        refusalsOf(route, operation).map((status) => [status, {
          $ref: `#/components/responses/${refusalName(status, refusesInText === true)}`,
        }]),
      ),
    },
  };
}

function parameter({ description, schema }: ParameterRow): object {
  return { description, schema: bare(jsonSchemaOf(schema)) };
}

function answered({ description, content, headers }: Answer, names: Names): object {
  return {
    description,
    ...(headers && {
      headers: Object.fromEntries(headers.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
    }),
    ...(content && { content: contentOf(content, names) }),
  };
}

function contentOf(content: Content, names: Names): object {
  return Object.fromEntries(
    Object.entries(content).map(([type, schema]) => {
      if (schema === "binary") return [type, {}];
      if (schema === "text") return [type, { schema: { type: "string" } }];
      const name = names.get(schema);
      return [type, { schema: name ? { $ref: refTo(name) } : bare(jsonSchemaOf(schema)) }];
    }),
  );
}

/** Refusals that come as plain text from every route. */
const PLAIN_ONLY = [408, 412, 413, 414, 415, 416];
/** Refusals that come from before the handler, so that they have the envelope on every route. */
const ENVELOPE_ONLY = [401, 421, 429, 507];

function refusalName(status: number, isPlain: boolean): string {
  const hasBoth = isPlain && !PLAIN_ONLY.includes(status) && !ENVELOPE_ONLY.includes(status);
  return hasBoth ? `Live${status}` : `Refused${status}`;
}

/** A response for each status of a refusal, with the codes that it may have. */
function refusalResponses(): Record<string, object> {
  const statuses = new Set([...Object.values(REFUSALS).map(({ status }) => status), ...PLAIN_ONLY]);
  return Object.fromEntries(
    [...statuses].toSorted((a, b) => a - b).flatMap((status) => {
      const inText = PLAIN_ONLY.includes(status) || status === 400;
      const ordinary = [refusalName(status, false), refusalResponse(status, { inText })] as const;
      const ofLive = refusalName(status, true);
      return ofLive === ordinary[0]
        ? [ordinary]
        : [ordinary, [ofLive, refusalResponse(status, { inText: true })] as const];
    }),
  );
}

function refusalResponse(status: number, { inText }: { inText: boolean }): object {
  const rows = Object.values(REFUSALS).filter((row) => row.status === status);
  const codes = [...new Set(rows.map(({ code }) => code))];
  const coded = { properties: { error: { properties: { code: { enum: codes } } } } };
  const reasons = rows.map(({ code, when }) => `\`${code}\`: ${when}`);
  return {
    description: [
      ...reasons,
      ...(inText ? [PLAIN_REASONS[status] ?? "In plain text from a live session."] : []),
    ]
      .join("\n\n"),
    ...(status === 429 && { headers: { "retry-after": { $ref: "#/components/headers/retry-after" } } }),
    content: {
      ...(rows.length > 0 &&
        { [JSON_TYPE]: { schema: { allOf: [{ $ref: refTo("ErrorEnvelope") }, coded] } } }),
      ...(inText && { "text/plain": { schema: { type: "string" } } }),
    },
  };
}

/** See docs/api.md#plain-rejections. */
const PLAIN_REASONS: Readonly<Record<number, string>> = {
  400: "Malformed JSON, a body that was cut short, or a value in the URL that is no number; in plain text.",
  408: "The body did not arrive in time.",
  412: "A condition on a file or an ICE session does not hold.",
  413: "The body is too long.",
  414: "The URL is too long.",
  415: "The content type is not what the route takes.",
  416: "No byte of the file is in the range.",
};

const DELIVERY_HEADERS: Readonly<Record<string, string>> = {
  "x-service-event-id": "`<run_id>:<seq>`, the same for each attempt and redelivery: deduplicate by it",
  "x-service-signature": "`v1=` and the hex HMAC-SHA256 of the body under the webhook's secret",
};

/** What a webhook's receiver gets for each kind of event; an event stream sends the same bodies as `data`. */
function eventWebhooks(): Record<string, object> {
  const kinds = Object.entries(EVENTS).filter(([, { bookkeeping }]) => !bookkeeping);
  return Object.fromEntries(kinds.map(([kind, { summary }]) => {
    const isFamily = kind.endsWith(".*");
    const type = eventTypeOf(kind);
    const data = { $ref: `${refTo("EventPayloads")}/properties/${kind}` };
    const form = isFamily
      ? { type: "string", pattern: `^${type.slice(0, -1).replaceAll(".", "\\.")}` }
      : { const: type };
    return [kind, {
      post: {
        operationId: `on_${isFamily ? kind.slice(0, -2) : kind}`,
        tags: ["webhooks"],
        summary,
        security: [],
        parameters: Object.entries(DELIVERY_HEADERS).map(([name, description]) => ({
          ...{ name, in: "header", required: true, description },
          schema: { type: "string" },
        })),
        requestBody: {
          required: true,
          content: {
            "application/cloudevents+json": {
              schema: { allOf: [{ $ref: refTo("CloudEvent") }, { properties: { type: form, data } }] },
            },
          },
        },
        responses: { "2XX": { description: "Delivered; any other answer is tried again" } },
      },
    }];
  }));
}
