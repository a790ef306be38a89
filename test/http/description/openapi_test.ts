/** The API description: every route is in it as its row says, its references and examples hold, and it is
 * served.
 */

import assert from "node:assert/strict";
import type { ZodType } from "zod";
import { REFUSALS } from "../../../src/contract/refusal.ts";
import { ROUTES } from "../../../src/http/routes/route_table.ts";
import type { Example } from "../../../src/http/description/openapi.ts";
import { refusalsOf } from "../../../src/http/description/refusals.ts";
import { JSON_TYPE } from "../../../src/http/route/route.ts";
import { EVENTS } from "../../../src/model/events/event_table.ts";
import { CONTRACT } from "../../house/contract.ts";
import { DESCRIPTION, faultOfBody, faultOfHead } from "../../support/http/described_answers.ts";
import { statusesOf, watchAnswers } from "../../support/http/route_contract.ts";
import { KEY_A, startService } from "../../support/service.ts";

/**
 * Statuses of every route in open mode only, so that the rows do not have them: a foreign origin, a foreign
 * host.
 */
const OPEN_MODE = [403, 421];

/** Status of every route with a key, for an `x-tenant-id` that is too long, where one is required. */
const TENANT_ID = 422;

const numbers = (statuses: Iterable<number>) => [...new Set(statuses)].toSorted((a, b) => a - b);

Deno.test("every route is described with the statuses of its row, and nothing else is described", () => {
  for (const row of CONTRACT.routes) {
    const path = row.path.replaceAll(/:(\w+)/g, "{$1}");
    const operation = DESCRIPTION.paths[path]?.[row.method.toLowerCase()];
    assert.ok(operation, `${row.method} ${row.path} is not described`);
    const described = Object.keys(operation.responses).map(Number);
    assert.deepEqual(
      numbers(described),
      numbers([...statusesOf(row), ...OPEN_MODE, ...(row.auth === "none" ? [] : [TENANT_ID])]),
      `${row.method} ${row.path}`,
    );
  }
  const count = Object.values(DESCRIPTION.paths).flatMap((operations) => Object.keys(operations)).length;
  assert.equal(count, CONTRACT.routes.length);
  assert.equal(ROUTES.length, CONTRACT.routes.length, "a route without a row of the contract");
});

Deno.test("no two operations have one name", () => {
  const ids = ROUTES.map(({ id }) => id);
  assert.deepEqual(ids.filter((id, at) => ids.indexOf(id) !== at), []);
});

Deno.test("every part of a path is a parameter, and every refusal has the codes of its status", () => {
  for (const route of ROUTES) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    // deno-lint-ignore no-explicit-any -- the description is plain JSON
    const operation = DESCRIPTION.paths[path]![route.method.toLowerCase()] as any;
    const parts = (operation.parameters ?? []).filter((part: { in?: string }) => part.in === "path");
    assert.deepEqual(
      parts.map(({ name }: { name: string }) => name),
      [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => name),
      path,
    );
    for (const status of refusalsOf(route)) {
      const name = operation.responses[status].$ref.split("/").pop();
      const codes = Object.values(REFUSALS).filter((row) => row.status === status).map(({ code }) => code);
      const text = JSON.stringify(DESCRIPTION.components.responses[name]);
      for (const code of codes) assert.ok(text.includes(`\`${code}\``), `${path} ${status} ${code}`);
    }
  }
});

Deno.test("all refusals in JSON have one shape, and shapes that stand in several places have a name", () => {
  const envelope = { $ref: "#/components/schemas/ErrorEnvelope" };
  for (const [name, { content = {} }] of Object.entries(DESCRIPTION.components.responses)) {
    if ("application/json" in content) {
      assert.deepEqual((content["application/json"] as { schema: object }).schema, envelope, name);
    }
  }
  const places = new Map<string, string[]>();
  const walk = (value: unknown, at: string) => {
    if (typeof value !== "object" || value === null) return;
    const { properties, enum: texts } = value as { properties?: object; enum?: unknown[] };
    const isShape = Object.keys(properties ?? {}).length > 2 || (texts?.length ?? 0) > 3;
    const { description: _, ...shape } = value as { description?: string };
    const text = isShape && JSON.stringify(shape);
    if (text) places.set(text, [...places.get(text) ?? [], at]);
    for (const [key, inner] of Object.entries(value)) walk(inner, `${at}.${key}`);
  };
  walk((DESCRIPTION.components as unknown as { schemas: object }).schemas, "");
  assert.deepEqual([...places.values()].filter((at) => at.length > 1), []);
});

Deno.test("a refusal that says when to come back is described with the header for it", () => {
  for (const status of [409, 429]) {
    const header = DESCRIPTION.components.responses[`Refused${status}`]!.headers?.["retry-after"];
    assert.ok(header!.$ref.split("/").pop()! in DESCRIPTION.components.headers, String(status));
  }
});

Deno.test("every kind of event has its payload, and a webhook unless it is bookkeeping", () => {
  // deno-lint-ignore no-explicit-any -- the description is plain JSON
  const { webhooks, components } = DESCRIPTION as any;
  const kinds = Object.keys(EVENTS);
  assert.deepEqual(Object.keys(components.schemas.EventPayloads.properties), kinds);
  const delivered = Object.entries(EVENTS).filter(([, { bookkeeping }]) => !bookkeeping).map(([kind]) =>
    kind
  );
  assert.deepEqual(Object.keys(webhooks), delivered);
});

Deno.test("every reference in the description leads to something", () => {
  const faults: string[] = [];
  const look = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    const { $ref } = value as { $ref?: unknown };
    if (typeof $ref === "string") {
      const parts = $ref.replace("#/", "").split("/").map((part) => part.replaceAll("~1", "/"));
      // deno-lint-ignore no-explicit-any -- the description is plain JSON
      if (parts.reduce((at: any, part) => at?.[part], DESCRIPTION) === undefined) faults.push($ref);
    }
    Object.values(value).forEach(look);
  };
  look(DESCRIPTION);
  assert.deepEqual(faults, []);
});

Deno.test("every JSON route has an example, and every example is as described", () => {
  const examples: Record<string, Example> = JSON.parse(
    Deno.readTextFileSync(new URL("../../../fixtures/api_examples.json", import.meta.url)),
  );
  for (const { method, path, answers, body: given } of ROUTES) {
    const key = `${method} ${path}`;
    const isJson = Object.values(answers).some(({ content }) => content?.[JSON_TYPE]);
    assert.equal(key in examples, isJson && path !== "/openapi.json", key);
    if (!isJson || path === "/openapi.json") continue;
    const { request, status, answer } = examples[key]!;
    const response = new Response(null, { status, headers: { "content-type": JSON_TYPE } });
    assert.equal(
      faultOfBody(method, path.replaceAll(/:\w+/g, "x"), response, JSON.stringify(answer)),
      null,
      key,
    );
    const body = given?.[JSON_TYPE] as ZodType | undefined;
    assert.equal(request !== undefined, body !== undefined, key);
    if (body) assert.ok(body.safeParse(request).success, key);
  }
});

Deno.test("an answer that is not as described is found", () => {
  const answer = (status: number, type: string | null, headers: Record<string, string> = {}) =>
    new Response(null, { status, headers: { ...headers, ...(type && { "content-type": type }) } });
  const json = answer(200, "application/json");
  const run = {
    run_id: `run-${"0".repeat(32)}`,
    status: "pending",
    mode: "",
    model: "",
    source_uri: "",
    on_hold: false,
    events_removed: false,
  };
  const times = { created_at: "2026-11-23T10:00:00.000Z", updated_at: "2026-11-23T10:00:00.000Z" };
  const path = `/v1/runs/${run.run_id}`;
  assert.equal(faultOfBody("GET", path, json, JSON.stringify({ ...run, ...times, new_field: 1 })), null);
  assert.match(faultOfBody("GET", path, json, JSON.stringify(run))!, /created_at/);
  assert.match(
    faultOfBody("GET", path, json, JSON.stringify({ ...run, ...times, status: "done" }))!,
    /status/,
  );
  const envelope = {
    error: { code: "conflict", message: "x", request_id: `req-${"0".repeat(16)}`, details: [] },
  };
  const missing = answer(404, "application/json");
  assert.match(faultOfBody("GET", path, missing, JSON.stringify(envelope))!, /code/);
  assert.match(faultOfHead("GET", path, answer(418, null))!, /418 is not described/);
  assert.match(faultOfHead("GET", path, answer(200, "text/html"))!, /media type text\/html/);
  assert.match(faultOfHead("GET", "/docs", answer(200, "text/html"))!, /no header etag/);
});

Deno.test("an answer is held to its description however a test reads it", async () => {
  let body = "";
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => new Response(body, { headers: { "content-type": "application/json" } }),
  );
  const url = `http://127.0.0.1:${server.addr.port}`;
  watchAnswers(url);
  const readings: ((response: Response) => Promise<unknown>)[] = [
    (response) => response.text(),
    (response) => response.json(),
    (response) => Array.fromAsync(response.body!),
  ];
  for (const read of readings) {
    body = '{"status": "unwell"}';
    await assert.rejects(
      async () => void await read(await fetch(`${url}/v1/health`)),
      /not as described: \/status/,
    );
    body = '{"status": "ok"}';
    await read(await fetch(`${url}/v1/health`));
  }
});

Deno.test("the description is served without a key, the same as the file, and the version of the service is in it", async () => {
  await using test = await startService();
  const served = await fetch(`${test.url}/openapi.json`);
  assert.equal(served.headers.get("content-type"), "application/json");
  assert.equal(served.headers.get("content-security-policy"), "default-src 'none'; frame-ancestors 'none'");
  assert.deepEqual(await served.json(), DESCRIPTION);
  const etag = served.headers.get("etag")!;
  const again = await fetch(`${test.url}/openapi.json`, {
    headers: { "if-none-match": etag, "x-api-key": KEY_A },
  });
  assert.equal(again.status, 304);
});
