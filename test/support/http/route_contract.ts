/** Holds every answer that a test gets from a service to its route in fixtures/contract/routes.json and in
 * the API description.
 */

import { CONTRACT, type RouteRow } from "../../house/contract.ts";
import { faultOfBody, faultOfHead } from "./described_answers.ts";
import { recordExample } from "./recorded_examples.ts";

const ROUTES = CONTRACT.routes.map((row) => ({
  row,
  pattern: new RegExp(`^${row.path.replaceAll(".", "\\.").replaceAll(/:\w+/g, "[^/]+")}$`),
}));

const TEXT_BODIES: readonly RouteRow["body"][] = ["json", "sdp", "text"];

/** The row of a request; undefined for a path or method that no route has. */
export function routeOf(method: string, path: string): RouteRow | undefined {
  return ROUTES.find(({ row, pattern }) => row.method === method && pattern.test(path))?.row;
}

/** The statuses that a route may answer with: those of its row, and those that come before its handler. */
export function statusesOf(row: RouteRow): Set<number> {
  return new Set([
    ...[row.success, ...row.also ?? []],
    ...row.failures,
    ...[414, 429], // the length of the URL, and the rate
    ...(row.auth === "none" ? [] : [401]),
    // a write that the disk or the quota refuses
    ...(row.auth === "key" && row.method !== "GET" ? [503, 507] : []),
    ...(row.body === "json" ? [400, 413, 415] : []),
    ...(TEXT_BODIES.includes(row.body) ? [400, 408, 413] : []),
  ]);
}

/** What is wrong with the answer; null where it is one of the route's. */
export function faultOfAnswer(method: string, path: string, status: number): string | null {
  const row = routeOf(method, path);
  if (!row || statusesOf(row).has(status)) return null;
  return `${method} ${row.path} answered ${status}, which its row in fixtures/contract/routes.json does not have`;
}

const origins = new Set<string>();
const original = globalThis.fetch;

/** Checks the answer of every `fetch` that goes to a watched service. Tests need not call anything for it. */
globalThis.fetch = async (input, init) => {
  const response = await original(input, init);
  const { origin, pathname } = new URL(input instanceof Request ? input.url : input);
  if (origins.has(origin)) {
    const method = init?.method ?? (input instanceof Request ? input.method : "GET");
    const fault = faultOfAnswer(method, pathname, response.status) ?? faultOfHead(method, pathname, response);
    if (fault !== null) throw new Error(`${method} ${pathname}: ${fault}`);
    if (method !== "HEAD") {
      checkWhenRead(response, (body) => {
        const row = routeOf(method, pathname);
        if (row) recordExample(`${row.method} ${row.path}`, init?.body, response, body);
        return faultOfBody(method, pathname, response, body);
      });
    }
  }
  return response;
};

/** Looks at the body when the test reads it, so that a test may also leave it, or read it slowly. */
function checkWhenRead(response: Response, faultOf: (body: string) => string | null): void {
  const read = response.text.bind(response);
  const check = (body: string) => {
    const fault = faultOf(body);
    if (fault !== null) throw new Error(`${response.url}: ${fault}`);
    return body;
  };
  response.text = async () => check(await read());
  response.json = async () => JSON.parse(await response.text());
  // A stream of events or media has no end to wait for.
  if (!response.headers.get("content-type")?.startsWith("application/json")) return;
  let checked: typeof response.body | undefined;
  Object.defineProperty(response, "body", {
    get: () =>
      checked ??= checkedAtItsEnd(
        Object.getOwnPropertyDescriptor(Response.prototype, "body")!.get!.call(response),
        check,
      ),
  });
}

/**
 * A body for a test, or a client, that reads piece by piece: the same bytes, and an error in place of the end
 * where `check` throws.
 */
function checkedAtItsEnd(body: Response["body"], check: (text: string) => void): Response["body"] {
  const decoder = new TextDecoder();
  let text = "";
  return body?.pipeThrough(
    new TransformStream({
      transform(bytes, controller) {
        text += decoder.decode(bytes, { stream: true });
        controller.enqueue(bytes);
      },
      flush: () => check(text + decoder.decode()),
    }),
  ) ?? null;
}

/** Answers of the service at this URL are checked from now on. */
export function watchAnswers(url: string): void {
  origins.add(new URL(url).origin);
}
