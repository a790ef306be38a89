/** Types that others make of the API description: they compile, and say what a route takes and answers. */

import assert from "node:assert/strict";
import { join } from "node:path";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";
import { LONG_TEST } from "../../support/long_tests.ts";
import { TempFolder } from "../../support/media.ts";

const USER = `
import type { operations, paths, webhooks } from "./service.js";

type Ok<Operation extends { responses: { 200: { content: { "application/json": unknown } } } }> =
  Operation["responses"][200]["content"]["application/json"];

export const status = (run: Ok<operations["getRun"]>): "pending" | "processing" | "completed" | "failed" | "cancelled" | "expired" =>
  run.status;
export const body: NonNullable<paths["/v1/runs"]["post"]["requestBody"]>["content"]["application/json"] = { mode: "balanced" };
export const data = (event: webhooks["vlm"]["post"]["requestBody"]["content"]["application/cloudevents+json"]): number =>
  event.sequence;
`;

/** Messages of the compiler for the sources of a folder. */
function faultsOf(folder: string, names: readonly string[]): string[] {
  const program = ts.createProgram(names.map((name) => join(folder, name)), {
    ...{ strict: true, noEmit: true, skipLibCheck: false, types: [] },
    ...{ target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
    moduleResolution: ts.ModuleResolutionKind.Bundler,
  });
  return ts.getPreEmitDiagnostics(program).map(({ messageText }) =>
    ts.flattenDiagnosticMessageText(messageText, "\n")
  );
}

Deno.test({
  name: "types of the whole description compile, and a program that uses them wrongly does not",
  ...LONG_TEST,
  async fn() {
    using folder = new TempFolder();
    const nodes = await openapiTS(new URL("../../../schemas/openapi.json", import.meta.url), {
      silent: true,
    });
    folder.file("service.d.ts", astToString(nodes));
    folder.file("user.ts", USER);
    assert.deepEqual(faultsOf(folder.path, ["service.d.ts", "user.ts"]), []);
    folder.file(
      "wrong.ts",
      USER.replace('mode: "balanced"', "colour: 7").replace("event.sequence", "event.sequence_number"),
    );
    const faults = faultsOf(folder.path, ["wrong.ts"]);
    assert.equal(faults.length, 2, faults.join("\n"));
  },
});
