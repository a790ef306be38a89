/**
 * Builds the web pages of the service into dist/pages/: the console, and `pages/<page>/` of this repository
 * with the files of packages that the page uses. Every file but an index and a service worker has the hash of
 * its content in its name, so that browsers may keep it, and lies there compressed, so that nothing is
 * compressed while it is served. `bootstrap.sh` runs it once for each state of its inputs.
 */

import { createHash } from "node:crypto";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { constants, gzipSync } from "node:zlib";
import swaggerUi from "swagger-ui-dist/absolute-path.js";
import { type ConsoleFile, consoleFiles } from "./build_console.ts";

/** The packaged files of each static page, beside all files of its folder in pages/. */
const PACKAGED: Readonly<Record<string, readonly string[]>> = {
  docs: ["swagger-ui-bundle.js", "swagger-ui.css"].map((name) => join(swaggerUi(), name)),
};

const INDEX = "index.html";

/**
 * Files whose names must stay: the index, and a service worker, which a browser looks for under its old name.
 */
const FIXED = [INDEX, "service_worker.js"];

/** Writes the files of all pages to `target`, in place of what is there. */
export async function buildPages(root: string, target: string): Promise<void> {
  for (const [page, packaged] of Object.entries(PACKAGED)) {
    const folder = join(root, "pages", page);
    const own = [...Deno.readDirSync(folder)].map(({ name }) => join(folder, name));
    const files = [...own, ...packaged].map((path) => ({
      name: basename(path),
      bytes: Deno.readFileSync(path),
    }));
    replacePage(target, page, files, `${page}/`);
  }
  replacePage(target, "console", await consoleFiles(join(root, "console")), "");
}

/**
 * Replaces a page. It is built beside the old one and renamed, so that a server that runs meanwhile never
 * sees half of a page.
 */
function replacePage(target: string, page: string, files: readonly ConsoleFile[], prefix: string): void {
  Deno.mkdirSync(target, { recursive: true });
  const built = Deno.makeTempDirSync({ dir: target, prefix: `${page}-` });
  Deno.chmodSync(built, 0o755);
  writePage(files, prefix, built);
  Deno.mkdirSync(join(target, page), { recursive: true });
  Deno.removeSync(join(target, page), { recursive: true });
  Deno.renameSync(built, join(target, page));
}

/** The API description, made by `build_schemas.ts`, as a page of one file. */
function writeDescription(root: string, target: string): void {
  Deno.mkdirSync(join(target, "openapi"), { recursive: true });
  writeCompressed(
    join(target, "openapi", "openapi.json"),
    Deno.readFileSync(join(root, "schemas", "openapi.json")),
  );
}

/** Writes the files of a page. `prefix` is what a link of the index has before the name of a file. */
function writePage(files: readonly ConsoleFile[], prefix: string, folder: string): void {
  const named = new Map<string, string>();
  for (const { name, bytes } of files) {
    if (name === INDEX) continue;
    const served = FIXED.includes(name) ? name : hashedName(name, bytes);
    named.set(name, `${prefix}${served}`);
    writeCompressed(join(folder, served), bytes);
  }
  const index = new TextDecoder().decode(files.find(({ name }) => name === INDEX)!.bytes);
  const linked = index.replaceAll(/\{\{(.+?)\}\}/g, (_, name) => {
    const file = named.get(name);
    if (file === undefined) throw new Error(`${INDEX} names ${name}, which the page does not have`);
    return file;
  });
  writeCompressed(join(folder, INDEX), new TextEncoder().encode(linked));
}

/** The name of a file with the hash of its content: `page.css` becomes `page.0123456789abcdef.css`. */
function hashedName(name: string, bytes: Uint8Array): string {
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  const dot = name.lastIndexOf(".");
  return `${name.slice(0, dot)}.${hash}${name.slice(dot)}`;
}

function writeCompressed(path: string, bytes: Uint8Array): void {
  Deno.writeFileSync(`${path}.gz`, gzipSync(bytes, { level: constants.Z_BEST_COMPRESSION }));
}

if (import.meta.main) {
  const root = fileURLToPath(new URL("../", import.meta.url));
  await buildPages(root, join(root, "dist", "pages"));
  writeDescription(root, join(root, "dist", "pages"));
}
