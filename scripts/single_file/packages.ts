/** Lays out the packages of the service and the command line as a folder `node_modules`, in which a bundler
 * finds them.
 */

import { join } from "node:path";

/** What the files of src/ and cli/ import; the names in deno.json. */
const IMPORT = /(?:\bfrom|\bimport\()\s*"([@a-z][^":]*)"/g;

/**
 * Writes dist/packages/node_modules with the versions that deno.lock has, and returns its path, which is the
 * same for every build, as comments in a bundle name the files in it.
 */
export async function installPackages(root: string): Promise<string> {
  const { imports } = JSON.parse(Deno.readTextFileSync(join(root, "deno.json"))) as {
    imports: Record<string, string>;
  };
  const needed: Record<string, string> = {};
  for (const name of [...importedNames(join(root, "src")), ...importedNames(join(root, "cli"))].sort()) {
    const [entry] = Object.entries(imports).filter(([key]) => name === key || name.startsWith(`${key}/`));
    if (entry !== undefined) needed[packageOf(entry[0])] = packageOf(entry[1]);
  }
  const folder = join(root, "dist", "packages");
  Deno.mkdirSync(folder, { recursive: true });
  Deno.writeTextFileSync(
    join(folder, "deno.json"),
    JSON.stringify({ nodeModulesDir: "auto", imports: needed }),
  );
  // Deno takes what it does not need out of this copy, and checks the rest against the hashes in it.
  Deno.copyFileSync(join(root, "deno.lock"), join(folder, "deno.lock"));
  const { success } = await new Deno.Command(Deno.execPath(), {
    args: ["install", "--quiet"],
    cwd: folder,
    stdout: "null",
    stderr: "inherit",
  }).output();
  if (!success) throw new Error("the packages of deno.lock could not be laid out");
  return join(folder, "node_modules");
}

/**
 * Name of a package without a path in it: `hono/utils/url` and `npm:hono@4.13.19/utils/url` lose
 * `/utils/url`.
 */
function packageOf(name: string): string {
  return /^(?:npm:)?(?:@[^/]+\/)?[^/]+/.exec(name)![0];
}

function importedNames(folder: string): Set<string> {
  const names = new Set<string>();
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    const path = join(folder, name);
    if (isDirectory) importedNames(path).forEach((found) => names.add(found));
    else for (const [, found] of Deno.readTextFileSync(path).matchAll(IMPORT)) names.add(found!);
  }
  return names;
}
