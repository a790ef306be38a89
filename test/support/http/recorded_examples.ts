/**
 * Records one good request and answer of each route without one as its example in the API description; where
 * the file has an example, it stays until somebody removes it:
 *
 *     API_EXAMPLES=fixtures/api_examples.json ./scripts/test test/http/route_contract_test.ts
 *     ./scripts/deno run -A scripts/build_schemas.ts
 *
 * Folders of this machine become those of an installed service, names that a random secret makes are always
 * the same, and of long lists the first items stay.
 */

import { ownerPrefix } from "../../../src/model/identifiers.ts";
import { fileURLToPath } from "node:url";
import { PrincipalNames } from "../../../src/model/principal_names.ts";
import type { Example } from "../../../src/http/description/openapi.ts";

const FILE = Deno.env.get("API_EXAMPLES");
const CLIPS = fileURLToPath(new URL("../../../fixtures/clips", import.meta.url));
const ITEMS_MAX = 8;

const PRINCIPAL = new PrincipalNames(new Uint8Array(32)).ofKey("key-of-a");

/** Route that is left out, as its answer is the description itself. */
const LEFT_OUT = "GET /openapi.json";

const recorded: Record<string, Example> = FILE === undefined ? {} : JSON.parse(Deno.readTextFileSync(FILE));

/** Keeps the first good answer of a route that is JSON, with the body of its request. */
export function recordExample(route: string, request: unknown, { status }: Response, answer: string): void {
  if (FILE === undefined || route === LEFT_OUT || status >= 300 || route in recorded) return;
  if (!answer.startsWith("{") && !answer.startsWith("[")) return;
  const body = typeof request === "string" && request.startsWith("{") ? { request: neutral(request) } : {};
  recorded[route] = { ...body, status, answer: shortened(neutral(answer)) };
}

/**
 * An example without what differs from run to run. `perceptual_hash` is read as a double: an example needs no
 * low digits.
 */
function neutral(json: string): unknown {
  return JSON.parse(
    json.replaceAll(CLIPS, "/srv/media").replaceAll(/"\/[^"]*\/uploads\//g, '"/var/lib/service/uploads/')
      .replaceAll(/api-key:[0-9a-f]{64}/g, PRINCIPAL).replaceAll(/[0-9a-f]{64}__/g, ownerPrefix(PRINCIPAL))
      .replaceAll(/rtsp:\/\/[^"]*/g, "rtsp://camera.example/dock"),
  );
}

function shortened(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, ITEMS_MAX).map(shortened);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, shortened(field)]));
}

if (FILE !== undefined) {
  addEventListener("unload", () => {
    const sorted = Object.fromEntries(Object.entries(recorded).toSorted(([a], [b]) => a < b ? -1 : 1));
    Deno.writeTextFileSync(FILE, JSON.stringify(sorted, null, 2) + "\n");
  });
}
