/** Writes schemas/ from the tables of src/; with --check it fails unless schemas/ is up to date. */

import { schemaText } from "../src/model/published/json_schema.ts";
import { openApi } from "../src/http/description/openapi.ts";
import { publishedSchemas } from "../src/model/published/published.ts";

/** The published schemas and the API description, by file name. */
export function freshFiles(): ReadonlyMap<string, object> {
  const examples = JSON.parse(
    Deno.readTextFileSync(new URL("../fixtures/api_examples.json", import.meta.url)),
  );
  return new Map([...publishedSchemas(), ["openapi.json", inOrder(openApi(examples))]]);
}

/**
 * The order of named schemas says nothing and follows from imports: each keeps its place in the file, and new
 * ones come last.
 */
function inOrder(description: { readonly components: { readonly schemas: object } }): object {
  const { components } = description;
  const old = JSON.parse(Deno.readTextFileSync(new URL("../schemas/openapi.json", import.meta.url)));
  const known = Object.keys(old.components.schemas).filter((name) => name in components.schemas);
  const schemas = { ...Object.fromEntries(known.map((name) => [name, undefined])), ...components.schemas };
  return { ...description, components: { ...components, schemas } };
}

/**
 * What is wrong with each file that is missing, different or not needed; empty when all files are up to date.
 */
export function schemaFaults(directory: URL): string[] {
  const fresh = freshFiles();
  const committed = new Map(committedNames(directory).map((name) => [name, readText(directory, name)]));
  return [
    ...[...fresh].flatMap(([name, schema]) => {
      if (!committed.has(name)) return [`${name} is missing`];
      return committed.get(name) === schemaText(schema) ? [] : [`${name} differs from the tables`];
    }),
    ...[...committed.keys()].filter((name) => !fresh.has(name)).map((name) =>
      `${name} belongs to no table row`
    ),
  ];
}

/** Writes all schemas to `directory`, removes other JSON files from it, and returns the number of schemas. */
function writeSchemas(directory: URL): number {
  const fresh = freshFiles();
  Deno.mkdirSync(directory, { recursive: true });
  for (const [name, schema] of fresh) Deno.writeTextFileSync(new URL(name, directory), schemaText(schema));
  for (const name of committedNames(directory)) {
    if (!fresh.has(name)) Deno.removeSync(new URL(name, directory));
  }
  return fresh.size;
}

function committedNames(directory: URL): string[] {
  return [...Deno.readDirSync(directory)].map((entry) => entry.name).filter((name) => name.endsWith(".json"))
    .toSorted();
}

function readText(directory: URL, name: string): string {
  return Deno.readTextFileSync(new URL(name, directory));
}

if (import.meta.main) {
  const directory = new URL("../schemas/", import.meta.url);
  if (Deno.args.includes("--check")) {
    const faults = schemaFaults(directory);
    for (const fault of faults) console.error(`schemas/${fault}`);
    if (faults.length > 0) {
      console.error("Run `./scripts/deno run -A scripts/build_schemas.ts` and commit the result.");
    }
    Deno.exit(faults.length > 0 ? 1 : 0);
  }
  console.log(`schemas/: ${writeSchemas(directory)} files`);
}
