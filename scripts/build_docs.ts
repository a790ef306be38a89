/** Fills the generated sections of docs/ from the tables of the code; with --check, fails unless they are up
 * to date.
 */

import { filled } from "./docs/markdown.ts";
import { GENERATED } from "./docs/tables.ts";

/** Every page of docs/ with its text, and with its generated sections made anew. */
export function builtPages(directory: URL): { name: string; text: string; built: string }[] {
  const cache = new Map<string, string>();
  const textOf = (name: string) => {
    const generate = GENERATED[name];
    if (!generate) throw new Error(`no generated section is called ${name}`);
    const text = cache.get(name) ?? generate();
    cache.set(name, text);
    return text;
  };
  return [...pagesBelow(directory)].toSorted().map((name) => {
    const text = Deno.readTextFileSync(new URL(name, directory));
    return { name, text, built: filled(text, textOf) };
  });
}

/** Paths of the pages in `directory` and its folders, as seen from it. */
function* pagesBelow(directory: URL): Iterable<string> {
  for (const { name, isDirectory } of Deno.readDirSync(directory)) {
    if (name.endsWith(".md")) yield name;
    else if (isDirectory) {
      for (const page of pagesBelow(new URL(`${name}/`, directory))) yield `${name}/${page}`;
    }
  }
}

if (import.meta.main) {
  const directory = new URL("../docs/", import.meta.url);
  const stale = builtPages(directory).filter(({ text, built }) => text !== built);
  if (Deno.args.includes("--check")) {
    for (const { name } of stale) console.error(`docs/${name} differs from the tables of the code`);
    if (stale.length > 0) {
      console.error("Run `./scripts/deno run -A scripts/build_docs.ts` and commit the result.");
    }
    Deno.exit(stale.length > 0 ? 1 : 0);
  }
  for (const { name, built } of stale) Deno.writeTextFileSync(new URL(name, directory), built);
  console.log(`docs/: ${stale.length} pages written`);
}
