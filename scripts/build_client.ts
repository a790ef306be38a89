/** Builds the client library into dist/client/: one ES module, its types, and what a package needs; then
 * packs it.
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";
import { declarationsOf } from "./client_declarations.ts";
import { VERSION } from "../src/http/description/version.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const CLIENT = join(ROOT, "client");
/** Most bytes that a page has to load, compressed. */
export const GZIPPED_BYTES_MAX = 20 * 1024;
/** What Node.js 18 and the browsers of 2022 understand. */
const TARGET = ["es2022", "node18"];

export interface Built {
  /** Folder of the package. */
  readonly folder: string;
  /** Path of the tarball. */
  readonly tarball: string;
  readonly gzippedBytes: number;
}

/**
 * Builds and packs everything below `dist`, in place of what is there. Throws when the library is too large.
 */
export async function buildClient(dist: string): Promise<Built> {
  const folder = join(dist, "client");
  Deno.mkdirSync(dist, { recursive: true });
  removeIfThere(folder);
  Deno.mkdirSync(folder);
  bundle(join(CLIENT, "mod.ts"), join(folder, "client.js"));
  Deno.writeTextFileSync(join(folder, "client.d.ts"), declarationsOf(CLIENT));
  Deno.copyFileSync(join(CLIENT, "README.md"), join(folder, "README.md"));
  Deno.copyFileSync(join(ROOT, "LICENSE"), join(folder, "LICENSE"));
  const { name, ...manifest } = JSON.parse(Deno.readTextFileSync(join(CLIENT, "manifest.json")));
  Deno.writeTextFileSync(
    join(folder, "package.json"),
    `${JSON.stringify({ name, version: VERSION, ...manifest, gitHead: commit() }, null, 2)}\n`,
  );
  const gzippedBytes = await gzipped(join(folder, "client.js"));
  if (gzippedBytes > GZIPPED_BYTES_MAX) {
    throw new Error(
      `client.js has ${gzippedBytes} bytes gzipped, more than ${GZIPPED_BYTES_MAX}`,
    );
  }
  return { folder, tarball: pack(folder, dist), gzippedBytes };
}

/** One file with all that `entry` imports. */
export function bundle(entry: string, file: string): void {
  esbuild.buildSync({
    entryPoints: [entry],
    outfile: file,
    bundle: true,
    minify: true,
    sourcemap: "linked",
    format: "esm",
    target: TARGET,
    banner: { js: '// @ts-self-types="./client.d.ts"' }, // Where Deno finds the types of a file.
    logLevel: "error",
  });
}

async function gzipped(file: string): Promise<number> {
  const stream = new Blob([Deno.readFileSync(file)]).stream().pipeThrough(
    new CompressionStream("gzip"),
  );
  return (await new Response(stream).bytes()).length;
}

/**
 * The commit of the sources, with `-dirty` where they were changed since; `unknown` outside a repository, and
 * without git.
 */
function commit(): string {
  const git = (...args: string[]) => {
    try {
      const { success, stdout } = new Deno.Command("git", { args: ["-C", ROOT, ...args], stderr: "null" })
        .outputSync();
      return success ? new TextDecoder().decode(stdout).trim() : null;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return null;
      throw error;
    }
  };
  const head = git("rev-parse", "HEAD");
  if (head === null) return "unknown";
  return git("status", "--porcelain", "--", "client") === "" ? head : `${head}-dirty`;
}

/** `npm pack`, which asks no registry. */
function pack(folder: string, dist: string): string {
  const { success, stdout, stderr } = new Deno.Command("npm", {
    args: [
      "pack",
      folder,
      "--pack-destination",
      dist,
      "--offline",
      "--ignore-scripts",
      "--json",
    ],
    cwd: dist,
  }).outputSync();
  if (!success) {
    throw new Error(`npm pack failed:\n${new TextDecoder().decode(stderr)}`);
  }
  const [{ filename }] = JSON.parse(new TextDecoder().decode(stdout));
  return join(dist, filename);
}

function removeIfThere(path: string): void {
  try {
    Deno.removeSync(path, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

if (import.meta.main) {
  const { folder, tarball, gzippedBytes } = await buildClient(
    join(ROOT, "dist"),
  );
  console.log(
    `${folder}\n${tarball}\nclient.js: ${gzippedBytes} bytes gzipped of ${GZIPPED_BYTES_MAX}`,
  );
}
