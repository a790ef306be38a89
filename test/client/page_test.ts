/** The page of the client lists every method and every route. */

import assert from "node:assert/strict";
import { ROUTES } from "../../src/http/routes/route_table.ts";
import { METHODS } from "./methods.ts";

const PAGE = Deno.readTextFileSync(new URL("../../docs/client.md", import.meta.url));
const SOURCE = Deno.readTextFileSync(new URL("../../client/src/client.ts", import.meta.url));
const SECTION = PAGE.slice(PAGE.indexOf("\n## Methods"), PAGE.indexOf("\n## Retries"));
const ROWS = [...SECTION.matchAll(/^\| `(\w+)\((.*?)\)`( K)? +\| (.*?) +\|/gm)]
  .map(([, name, parameters, keyed, route]) => ({
    name: name!,
    parameters: parameters!,
    keyed,
    route: route!,
  }));

Deno.test("every method has its row, and nothing else has one", () => {
  assert.deepEqual(ROWS.map(({ name }) => name).toSorted(), METHODS.toSorted());
});

Deno.test("the rows have the parameters of the methods, and mark those that take a key", () => {
  for (const { name, parameters, keyed } of ROWS) {
    const [, written] = new RegExp(`^  (?:async )?\\*?${name}\\(((?:[^()]|\\([^()]*\\))*)\\):`, "m").exec(
      SOURCE,
    )!;
    assert.equal(parameters, parametersOf(written!).join(", "), name);
    assert.equal(keyed !== undefined, written!.includes("KeyedOptions"), name);
  }
});

Deno.test("every route has a method", () => {
  const listed = new Set(ROWS.flatMap(({ route }) => /^`([A-Z]+ [^`]+)`$/.exec(route)?.[1] ?? []));
  const missing = ROUTES.filter(({ path }) => !/^\/(docs.*|console.*)?$/.test(path)) // Pages for people.
    .map(({ method, path }) => `${method} ${path}`).filter((route) => !listed.has(route));
  assert.deepEqual(missing, []);
});

/** Names as the page has them, with `?` where they may be left out. */
function parametersOf(written: string): string[] {
  const parts = [""];
  let depth = 0;
  for (const character of written) {
    if ("({<[".includes(character)) depth += 1;
    if (")}>]".includes(character)) depth -= 1;
    if (character === "," && depth === 0) parts.push("");
    else parts[parts.length - 1] += character;
  }
  return parts.map((part) => part.trim()).filter((part) => part !== "").map((part) => {
    const name = /^\w+/.exec(part)?.[0] ?? "options"; // Taken apart where it stands.
    return /^\w+\?|[^=]=[^=>]/.test(part) ? `${name}?` : name;
  });
}
