/** The API description, OpenAPI 3.1, made from the route table and the zod shapes. */

import { ZodType } from "zod";
import { IDEMPOTENCY_KEY } from "../../model/idempotency_key.ts";
import { bare, jsonSchemaOf, namedJsonSchemas } from "../../model/published/json_schema.ts";
import { mayBeEmpty } from "../requests/body.ts";
import {
  ANSWER_HEADERS,
  type AnswerHeaderName,
  type LazyShape,
  OPTIONAL_HEADERS,
  type ParameterRow,
  PATH_PARAMETERS,
  REQUEST_HEADERS,
} from "../route/parameters.ts";
import { type AnswerRow, type Content, JSON_TYPE, type Route, TAGS } from "../route/route.ts";
import { ROUTES } from "../routes/route_table.ts";
import { namedShapes, refTo } from "./components.ts";
import { eventWebhooks } from "./event_webhooks.ts";
import { refusalName, refusalResponses, refusalsOf } from "./refusals.ts";
import { VERSION } from "./version.ts";

/** A request that was answered, as the examples of a route. */
export interface Example {
  /** Absent for a route without a JSON body. */
  readonly request?: unknown;
  readonly status: number;
  readonly answer: unknown;
}

/** The whole description; `examples` are by method and path. `schemas/openapi.json` is a copy. */
export function openApi(examples: Readonly<Record<string, Example>>) {
  const shapes = namedShapes(ROUTES);
  const names = new Map(Object.entries(shapes).map(([name, shape]) => [shape, name]));
  const paths: Record<string, Record<string, object>> = {};
  for (const route of ROUTES) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    (paths[path] ??= {})[route.method.toLowerCase()] = described(route, {
      names,
      example: examples[`${route.method} ${route.path}`],
    });
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
          { ...parameter(row), required: !OPTIONAL_HEADERS.has(name as AnswerHeaderName) },
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

interface Context {
  /** Names of shapes. */
  readonly names: ReadonlyMap<ZodType, string>;
  readonly example: Example | undefined;
}

function described(route: Route, context: Context): object {
  const { id, tag, body, query = {}, headers = [], answers, access, refusesInText } = route;
  const parts = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    ...{ name, in: "path", required: true },
    ...parameter(PATH_PARAMETERS[name!]!),
  }));
  const asked = Object.entries(query).map(([name, row]) => ({ name, in: "query", ...parameter(row) }));
  const parameters = [
    ...parts,
    ...asked,
    ...[
      ...headers,
      ...(access === undefined ? ["x-tenant-id"] : []),
      ...(route.once ? [IDEMPOTENCY_KEY] : []),
    ].map((name) => ({ $ref: `#/components/parameters/${name}` })),
  ];
  return {
    operationId: id,
    tags: [tag],
    summary: route.summary,
    ...(access === "open" && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(body &&
      {
        requestBody: {
          required: isRequired(body),
          content: contentOf(body, context.names, context.example?.request),
        },
      }),
    responses: {
      ...Object.fromEntries(
        Object.entries(answers).map(([status, answer]) => [
          status,
          answered(route.once ? replayable(answer) : answer, context, Number(status)),
        ]),
      ),
      ...Object.fromEntries(
        refusalsOf(route).map((status) => [status, {
          $ref: `#/components/responses/${refusalName(status, refusesInText === true)}`,
        }]),
      ),
    },
  };
}

function isRequired({ [JSON_TYPE]: schema }: Content): boolean {
  return !(schema instanceof ZodType) || !mayBeEmpty(schema);
}

/** An answer that may be given again, to the same idempotency key. */
function replayable(answer: AnswerRow): AnswerRow {
  return { ...answer, headers: [...answer.headers ?? [], "idempotency-replayed"] };
}

function parameter({ description, schema }: ParameterRow): object {
  return { description, schema: bare(jsonSchemaOf(shapeOf(schema))) };
}

function answered(
  { description, content, headers }: AnswerRow,
  { names, example }: Context,
  status: number,
): object {
  return {
    description,
    ...(headers && {
      headers: Object.fromEntries(headers.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
    }),
    ...(content &&
      { content: contentOf(content, names, example?.status === status ? example.answer : undefined) }),
  };
}

function shapeOf(shape: LazyShape): ZodType {
  return typeof shape === "function" ? shape() : shape;
}

/** The example, where there is one, is of the JSON among them. */
function contentOf(content: Content, names: Context["names"], example?: unknown): object {
  return Object.fromEntries(
    Object.entries(content).map(([type, given]) => {
      if (given === "binary") return [type, {}];
      if (given === "text") return [type, { schema: { type: "string" } }];
      const schema = shapeOf(given);
      const name = names.get(schema);
      return [type, {
        schema: name ? { $ref: refTo(name) } : bare(jsonSchemaOf(schema)),
        ...(type === JSON_TYPE && example !== undefined && { example }),
      }];
    }),
  );
}
