/** Holds an answer to the description of its route in schemas/openapi.json: its media type, its headers and
 * its body.
 */

import { REFUSALS } from "../../../src/contract/refusal.ts";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";

interface DescribedAnswer {
  readonly $ref?: string;
  readonly headers?: Readonly<Record<string, { readonly $ref: string }>>;
  readonly content?: Readonly<Record<string, { readonly schema?: object }>>;
}

interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
  readonly components: {
    readonly responses: Readonly<Record<string, DescribedAnswer>>;
    readonly headers: Readonly<Record<string, { readonly required: boolean }>>;
  };
}

export interface DescribedOperation {
  readonly operationId: string;
  readonly responses: Readonly<Record<string, DescribedAnswer>>;
}

const FILE = new URL("../../../schemas/openapi.json", import.meta.url);

export const DESCRIPTION: Description = JSON.parse(Deno.readTextFileSync(FILE));

const ROUTES = Object.entries(DESCRIPTION.paths).map(([path, operations]) => ({
  pattern: new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`),
  path,
  operations,
}));

/** Made at the first body that is checked, as few test files look at bodies of every route. */
let ajv: Ajv2020 | undefined;
const validators = new Map<string, ValidateFunction>();

/** The described answer of a status, and the pointer to it; undefined for a request that no route takes. */
function answerOf(
  method: string,
  path: string,
  status: number,
): { answer?: DescribedAnswer; at: string } | undefined {
  const route = ROUTES.find(({ pattern }) => pattern.test(path));
  const operation = route?.operations[method.toLowerCase()];
  if (!route || !operation) return undefined;
  const answer = operation.responses[status];
  if (answer?.$ref === undefined) {
    const place = ["paths", route.path, method.toLowerCase(), "responses", String(status)];
    return { answer, at: `#/${place.map((part) => part.replaceAll("/", "~1")).join("/")}` };
  }
  return { answer: DESCRIPTION.components.responses[answer.$ref.split("/").pop()!], at: answer.$ref };
}

/** What is wrong with the status, the headers or the media type; null where they are as described. */
export function faultOfHead(method: string, path: string, { status, headers }: Response): string | null {
  const described = answerOf(method, path, status);
  if (!described) return null;
  const { answer } = described;
  if (!answer) return `${status} is not described`;
  for (const [name, { $ref }] of Object.entries(answer.headers ?? {})) {
    const { required } = DESCRIPTION.components.headers[$ref.split("/").pop()!]!;
    if (required && !headers.has(name)) return `${status} has no header ${name}`;
  }
  const given = essence(headers);
  const types = Object.keys(answer.content ?? {});
  if (given === null || types.some((type) => type === given || type === `${given.split("/")[0]}/*`)) {
    return null;
  }
  return `${status} has the media type ${given}, described are ${types.join(", ") || "none"}`;
}

/** What is wrong with a JSON body; null where it is as described, or is no JSON. */
export function faultOfBody(
  method: string,
  path: string,
  { status, headers }: Response,
  body: string,
): string | null {
  const described = answerOf(method, path, status);
  const type = essence(headers);
  if (type !== "application/json" || !described?.answer?.content?.[type]?.schema) return null;
  const pointer = `${described.at}/content/application~1json/schema`;
  const validate = validatorOf(pointer);
  const value = JSON.parse(body) as { error: { code: string } };
  if (validate(value)) return status < 400 ? null : faultOfCode(status, value.error.code);
  const [fault] = validate.errors!;
  return `${status} is not as described: ${fault!.instancePath || "the body"} ${fault!.message} ${
    JSON.stringify(fault!.params)
  }`;
}

/**
 * What is wrong with the code of a refusal. All refusals have one shape, so the code is held to its status by
 * the table.
 */
function faultOfCode(status: number, code: string): string | null {
  const isKnown = Object.values(REFUSALS).some((row) => row.status === status && row.code === code);
  return isKnown ? null : `${status} does not have the code ${code}`;
}

function validatorOf(pointer: string): ValidateFunction {
  ajv ??= new Ajv2020({ strict: false, validateFormats: false }).addSchema(DESCRIPTION, "openapi");
  const made = validators.get(pointer) ?? ajv.compile({ $ref: `openapi${pointer}` });
  validators.set(pointer, made);
  return made;
}

function essence(headers: Headers): string | null {
  return headers.get("content-type")?.replace(/;.*/, "").trim() ?? null;
}
