/** Leaves in deno.json the packages that the service imports, for an image: Deno fetches all that are listed,
 * and most are for tests and builds.
 */

import { join } from "node:path";

interface DenoJson {
  readonly imports: Readonly<Record<string, string>>;
}

/** The content of the file for sources that import `imported`; settings of tools are left out. */
export function serviceConfig(config: DenoJson, imported: ReadonlySet<string>): DenoJson {
  const { imports, ...settings } = config;
  const ofTools = new Set(["tasks", "fmt", "lint", "test", "exclude"]);
  return {
    ...Object.fromEntries(Object.entries(settings).filter(([name]) => !ofTools.has(name))),
    imports: Object.fromEntries(Object.entries(imports).filter(([name]) => imported.has(name))),
  };
}

/** Every specifier in the TypeScript files of a folder. */
export function importedIn(folder: string): Set<string> {
  const found = new Set<string>();
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    const path = join(folder, name);
    if (isDirectory) importedIn(path).forEach((specifier) => found.add(specifier));
    else if (name.endsWith(".ts")) {
      const specifiers = Deno.readTextFileSync(path).matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"([^"]+)"/g);
      for (const [, specifier] of specifiers) found.add(specifier!);
    }
  }
  return found;
}

if (import.meta.main) {
  const config = JSON.parse(Deno.readTextFileSync("deno.json"));
  Deno.writeTextFileSync("deno.json", JSON.stringify(serviceConfig(config, importedIn("src")), null, 2));
}
