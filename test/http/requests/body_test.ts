import assert from "node:assert/strict";
import { z } from "zod";
import { Refusal } from "../../../src/contract/refusal.ts";
import { readJson } from "../../../src/http/requests/body.ts";
import { boundedList } from "../../../src/model/schemas/bounded_list.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import { ReceivedBodies } from "../../../src/http/requests/received_body.ts";
import { Rejection } from "../../../src/http/answers/reply.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { KEY_A, startService } from "../../support/service.ts";

const ANY = z.unknown();
const READ_MS = 20;

/** A call with this body, on a clock that stands still unless the test moves it. */
function request(body: BodyInit | null, world = new ManualClock()) {
  const headers = { "content-type": "application/json" };
  const raw = new Request("http://x/", { method: "POST", headers, body });
  const bodies = new ReceivedBodies(world, { ...LIMITS.body, jsonReadMs: READ_MS });
  return { request: { raw }, caller: { principalKey: "a" }, use: { bodies } };
}

/** A body that never ends, and that records when its reader cancels it. */
function endless(): { body: ReadableStream<Uint8Array>; cancelled: Promise<void> } {
  const { promise: cancelled, resolve } = Promise.withResolvers<void>();
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode('{"mode":')),
    cancel: () => resolve(),
  });
  return { body, cancelled };
}

Deno.test("a body that does not arrive in time is 408, and is cancelled", async () => {
  const { body, cancelled } = endless();
  const clock = new ManualClock();
  const rejected = assert.rejects(
    readJson(request(body, clock), ANY),
    (error) => error instanceof Rejection && error.status === 408,
  );
  await clock.advance(READ_MS);
  await rejected;
  await clock.advance(1_000); // the answer goes first
  await cancelled;
});

Deno.test("whole numbers keep every digit, also when they are too large for a double", async () => {
  const read = await readJson(request('{"a":18446744073709551615,"b":9007199254740993,"c":1.5,"d":7}'), ANY);
  assert.deepEqual(read, { a: 18446744073709551615n, b: 9007199254740993n, c: 1.5, d: 7 });
});

Deno.test("a fault names the field, and a fault inside a list the list", async () => {
  const schema = z.strictObject({
    rows: z.array(z.strictObject({ a: z.number() })),
    at: z.strictObject({ x: z.number() }),
  });
  const check = async (body: unknown, fields: string[]) => {
    await assert.rejects(readJson(request(JSON.stringify(body)), schema), (error) => {
      assert.ok(error instanceof Refusal && error.status === 422);
      assert.deepEqual(error.details.map(({ field }) => field), fields);
      return true;
    });
  };
  await check({ rows: [{ a: 1 }], at: { x: "1" } }, ["at.x"]);
  await check({ rows: [{ a: 1 }, { a: "1", b: 2 }], at: { x: 1 } }, ["rows", "rows"]);
  await check({ rows: 1 }, ["rows", "at"]);
  await check(7, ["body"]);
});

Deno.test("the message of a fault says in plain words what is expected and what was given", async () => {
  const schema = z.strictObject({
    mode: z.string(),
    model: z.string(),
    count: z.int().nonnegative().nullish(),
    share: z.number().max(1).optional(),
    kind: z.enum(["a", "b"]).optional(),
    rows: z.array(z.strictObject({ a: z.int() })).optional(),
    is_on: z.boolean().optional(),
    schema: z.record(z.string(), z.unknown()).optional(),
  });
  const check = async (body: unknown, ...expected: string[]) => {
    await assert.rejects(readJson(request(JSON.stringify(body)), schema), (error) => {
      assert.ok(error instanceof Refusal && error.status === 422);
      assert.deepEqual(error.details.map(({ field, message }) => `${field} ${message}`), expected);
      return true;
    });
  };
  const good = { mode: "x", model: "y" };
  await check({ mode: 7 }, "mode must be a text, got a number", "model is required");
  await check({ ...good, count: 1.5 }, "count must be an integer, got a number with a fraction");
  await check({ ...good, count: -1, share: 2 }, "count must be at least 0", "share must be at most 1");
  await check({ ...good, kind: "c" }, 'kind must be "a" or "b"');
  await check(
    { ...good, rows: [{ a: 1 }, { a: null, b: 1 }] },
    "rows [1].a: must be a number, got null",
    "rows [1] has the unknown field b",
  );
  await check(
    { ...good, is_on: "yes", schema: [] },
    "is_on must be true or false, got a text",
    "schema must be an object, got a list",
  );
  await check([], "body must be an object, got a list");
});

Deno.test("JSON that is nested beyond all measure is 422, with long numbers in it and without", async () => {
  const check = (inner: string) =>
    assert.rejects(
      readJson(request(`${'{"a":['.repeat(100_000)}${inner}${"]}".repeat(100_000)}`), z.strictObject({})),
      (error) => error instanceof Refusal && error.status === 422,
      inner,
    );
  await check("1");
  await check("18446744073709551615");
});

Deno.test("a list stops at its first faults, and one that is too long is not looked at", async () => {
  const schema = z.strictObject({ rows: boundedList(z.strictObject({ a: z.number() }), 1000) });
  let looks = 0;
  const counting = z.strictObject({ rows: boundedList(z.custom(() => (looks++, false)), 1000) });
  const faults = await assertFaults(JSON.stringify({ rows: Array(1000).fill({}) }), schema);
  assert.equal(faults, 64);
  await assertFaults(JSON.stringify({ rows: Array(1000).fill({}) }), counting);
  assert.equal(looks, 64);
  const rows = Array(1001).fill({});
  assert.deepEqual(await readJson(request(JSON.stringify({ rows })), schema), { rows });
});

Deno.test("a body of too many values is 422 before it is parsed, whatever its strings contain", async () => {
  const { jsonValuesMax, jsonValuesExactMax } = LIMITS.body;
  const list = (count: number, item = "0") => `[${Array(count).fill(item).join()}]`;
  const strings = JSON.stringify({ a: ',[{"\\'.repeat(jsonValuesMax), b: [] });
  for (const body of [list(jsonValuesMax), list(jsonValuesExactMax - 1, "18446744073709551615"), strings]) {
    await readJson(request(body), ANY);
  }
  for (const body of [list(jsonValuesMax + 1), list(jsonValuesExactMax + 1, "18446744073709551615")]) {
    assert.equal(await assertFaults(body, ANY), 1);
  }
});

Deno.test("an object of too many fields, and too many levels, are 422 before they are parsed", async () => {
  const { jsonFieldsMax, jsonLevelsMax } = LIMITS.body;
  const object = (fields: number) =>
    JSON.stringify(Object.fromEntries(Array.from({ length: fields }, (_, at) => [`f${at}`, [0, 1]])));
  const levels = (count: number) => '{"a":['.repeat(count / 2) + "]}".repeat(count / 2);
  for (
    const body of [object(jsonFieldsMax), `[${object(jsonFieldsMax)},${object(3)}]`, levels(jsonLevelsMax)]
  ) {
    await readJson(request(body), ANY);
  }
  for (
    const body of [
      object(jsonFieldsMax + 1),
      `{"a":[{},${object(jsonFieldsMax + 1)}]}`,
      levels(jsonLevelsMax + 2),
    ]
  ) {
    assert.equal(await assertFaults(body, ANY), 1);
  }
});

Deno.test("an integer beyond every field is no bigint, and a long unknown field is not repeated whole", async () => {
  assert.deepEqual(await readJson(request(`{"a":${"9".repeat(4_000_000)}}`), ANY), { a: Infinity });
  const body = JSON.stringify({ ["x".repeat(100_000)]: 0 });
  await assert.rejects(readJson(request(body), z.strictObject({})), (error) => {
    assert.ok(error instanceof Refusal && JSON.stringify(error.details).length < 200);
    return true;
  });
});

/** The number of faults of the 422 with which `body` is refused. */
async function assertFaults(body: string, schema: z.ZodType): Promise<number> {
  try {
    await readJson(request(body), schema);
  } catch (error) {
    assert.ok(error instanceof Refusal && error.status === 422, String(error));
    return error.details.length;
  }
  throw new Error("it was admitted");
}

Deno.test("a body is the same text in however many parts it comes, and one that is not UTF-8 is 400 in any of them", async () => {
  const inParts = (bytes: Uint8Array, size: number) => {
    const parts = Array.from(
      { length: Math.ceil(bytes.length / size) },
      (_, at) => bytes.subarray(at * size, (at + 1) * size),
    );
    return new ReadableStream<Uint8Array>({
      start(controller) {
        for (const part of [new Uint8Array(), ...parts]) controller.enqueue(part);
        controller.close();
      },
    });
  };
  const value = { text: "größer als 1 € \u{1f980}" };
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  const broken = bytes.map((byte) => byte === 0xc3 ? 0xff : byte);
  const cut = bytes.subarray(0, bytes.indexOf(0xc3) + 1); // ends within a character
  for (const size of [1, 2, 3, 7, bytes.length]) {
    assert.deepEqual(await readJson(request(inParts(bytes, size)), ANY), value);
    for (const wrong of [broken, cut]) {
      await assert.rejects(
        readJson(request(inParts(wrong, size)), ANY),
        (error) => error instanceof Rejection && error.status === 400 && /UTF-8/.test(error.message),
      );
    }
  }
});

Deno.test("a request that no handler gets is refused in text, and in the envelope where JSON is asked for", async () => {
  await using test = await startService();
  const long = "x".repeat(LIMITS.body.urlCharacters);
  const json = { "content-type": "application/json" };
  const refused: [string, RequestInit, number, string][] = [
    ["/v1/nothing", {}, 404, "not_found"],
    ["/v1/runs", { method: "PUT" }, 405, "method_not_allowed"],
    [
      "/v1/runs",
      { method: "POST", body: "{}", headers: { "content-type": "text/xml" } },
      415,
      "unsupported_media_type",
    ],
    ["/v1/runs", { method: "POST", body: "{", headers: json }, 400, "bad_request"],
    [
      "/v1/runs",
      { method: "POST", body: `"${"x".repeat(LIMITS.body.jsonBytes)}"`, headers: json },
      413,
      "payload_too_large",
    ],
    [`/v1/runs?${long}`, {}, 414, "uri_too_long"],
  ];
  const ask = (path: string, init: RequestInit, accept?: string) =>
    fetch(`${test.url}${path}`, {
      ...init,
      headers: { ...init.headers, "x-api-key": KEY_A, ...(accept !== undefined && { accept }) },
    });
  for (const [path, init, status, code] of refused) {
    for (const accept of [undefined, "*/*", "text/html", "application/json;q=0"]) {
      const response = await ask(path, init, accept);
      assert.equal(response.status, status, code);
      assert.match(response.headers.get("content-type")!, /^text\/plain/, `${code} ${accept}`);
      assert.notEqual(await response.text(), "");
    }
    for (const accept of ["application/json", "application/json, text/plain, */*"]) {
      const response = await ask(path, init, accept);
      assert.deepEqual([response.status, response.headers.get("content-type")], [status, "application/json"]);
      const { error } = await response.json();
      assert.deepEqual([error.code, error.details], [code, []]);
      assert.match(error.request_id, /^req-/);
      if (status === 405) assert.equal(response.headers.get("allow"), "GET, HEAD, POST");
    }
  }
});
