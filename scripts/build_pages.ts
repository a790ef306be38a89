/**
 * Builds the web pages of the service into dist/pages/: `pages/<page>/` of this repository and the files of packages that
 * the page uses. Every file but index.html has the hash of its content in its name, so that browsers may keep it, and lies
 * there compressed, so that nothing is compressed while it is served. `bootstrap.sh` runs it once for each state of its inputs.
 */

import { createHash } from "node:crypto";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { constants, gzipSync } from "node:zlib";
import swaggerUi from "swagger-ui-dist/absolute-path.js";

/** The packaged files of each page, beside all files of its folder in pages/. */
const PACKAGED: Readonly<Record<string, readonly string[]>> = {
  docs: ["swagger-ui-bundle.js", "swagger-ui.css"].map((name) => join(swaggerUi(), name)),
};

const INDEX = "index.html";

/** Writes the files of all pages to `target`, in place of what is there. */
export function buildPages(source: string, target: string): void {
  for (const [page, packaged] of Object.entries(PACKAGED)) {
    const own = [...Deno.readDirSync(join(source, page))].map(({ name }) => join(source, page, name));
    // Built beside and renamed, so that a server that runs meanwhile never sees half of a page.
    Deno.mkdirSync(target, { recursive: true });
    const built = Deno.makeTempDirSync({ dir: target, prefix: `${page}-` });
    Deno.chmodSync(built, 0o755);
    writePage([...own, ...packaged], page, built);
    Deno.mkdirSync(join(target, page), { recursive: true });
    Deno.removeSync(join(target, page), { recursive: true });
    Deno.renameSync(built, join(target, page));
  }
}

/** The API description, made by `build_schemas.ts`, as a page of one file. */
function writeDescription(root: string, target: string): void {
  Deno.mkdirSync(join(target, "openapi"), { recursive: true });
  writeCompressed(
    join(target, "openapi", "openapi.json"),
    Deno.readFileSync(join(root, "schemas", "openapi.json")),
  );
}

function writePage(paths: readonly string[], page: string, folder: string): void {
  const named = new Map<string, string>();
  for (const path of paths.filter((path) => basename(path) !== INDEX)) {
    const bytes = Deno.readFileSync(path);
    const name = hashedName(basename(path), bytes);
    named.set(basename(path), `${page}/${name}`);
    writeCompressed(join(folder, name), bytes);
  }
  const index = Deno.readTextFileSync(paths.find((path) => basename(path) === INDEX)!);
  const linked = index.replaceAll(/\{\{(.+?)\}\}/g, (_, name) => {
    const file = named.get(name);
    if (file === undefined) {
      throw new Error(`pages/${page}/${INDEX} names ${name}, which the page does not have`);
    }
    return file;
  });
  writeCompressed(join(folder, INDEX), new TextEncoder().encode(linked));
}

/** `page.css` becomes `page.0123456789abcdef.css`. */
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
  buildPages(join(root, "pages"), join(root, "dist", "pages"));
  writeDescription(root, join(root, "dist", "pages"));
}
