/** Writes schemas/ from the tables in src/model; with --check, fails unless schemas/ is exactly what it would write. */

import { publishedSchemas, schemaText } from "../src/model/schemas/published.ts";

/** Names of files that are missing, different or left over, with what is wrong; empty when all is well. */
export function schemaFaults(directory: URL): string[] {
  const fresh = publishedSchemas();
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

/** Replaces the content of `directory` by a fresh generation and returns how many files it has now. */
function writeSchemas(directory: URL): number {
  const fresh = publishedSchemas();
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
    if (faults.length > 0) console.error("Run `deno run -A scripts/build_schemas.ts` and commit the result.");
    Deno.exit(faults.length > 0 ? 1 : 0);
  }
  console.log(`schemas/: ${writeSchemas(directory)} files`);
}
