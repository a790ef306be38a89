/** Builds the console: one script and one style sheet of console/ and the packages that it uses. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import * as esbuild from "esbuild";

/** What a browser has to load before the first page can be used: index, script and style sheet. */
export const GZIPPED_BYTES_MAX = 150 * 1024;

/** The names under which console/ and the packages import each other. */
const PACKAGES = [
  "preact",
  "preact/hooks",
  "preact/jsx-runtime",
  "@preact/signals",
  "@preact/signals-core",
  "diff",
];
/** The browsers of 2024: `light-dark()` and popovers are in all of them. */
const TARGET = ["chrome123", "firefox125", "safari17.5"];

export interface ConsoleFile {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/**
 * The files of the console as they are served, without the hashes in their names. Throws where one cannot be
 * built.
 */
export async function consoleFiles(source: string): Promise<ConsoleFile[]> {
  const alias: Record<string, string> = {};
  for (const name of PACKAGES) alias[name] = await packagePath(name);
  const { outputFiles } = esbuild.buildSync({
    entryPoints: [join(source, "main.tsx")],
    outdir: source,
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: TARGET,
    jsx: "automatic",
    jsxImportSource: "preact",
    alias,
    logLevel: "error",
  });
  return [
    ...outputFiles.map(({ path, contents }) => ({ name: path.slice(source.length + 1), bytes: contents })),
    ...["index.html", "service_worker.js"].map((name) => ({
      name,
      bytes: Deno.readFileSync(join(source, name)),
    })),
  ];
}

/** Bytes of all files together, compressed. */
export function gzippedBytes(files: readonly ConsoleFile[]): number {
  return files.reduce((sum, { bytes }) => sum + gzipSync(bytes, { level: 9 }).length, 0);
}

/**
 * Where Deno keeps a package of deno.json, which it knows once the package is loaded. Not imported by name,
 * as its types are those of a browser.
 */
async function packagePath(name: string): Promise<string> {
  await import(name);
  return fileURLToPath(import.meta.resolve(name));
}

if (import.meta.main) {
  const files = await consoleFiles(fileURLToPath(new URL("../console", import.meta.url)));
  const bytes = gzippedBytes(files);
  for (const { name, bytes: own } of files) {
    console.log(`${name} ${own.length} bytes, ${gzipSync(own, { level: 9 }).length} gzipped`);
  }
  console.log(`console: ${bytes} bytes gzipped, at most ${GZIPPED_BYTES_MAX}`);
  if (bytes > GZIPPED_BYTES_MAX) Deno.exit(1);
}
