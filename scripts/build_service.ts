/**
 * Bundles the service into dist/service/: one file for each module of src/ that starts a Worker or a process, with all that it
 * imports, so that a start loads few files instead of five hundred. The text in it is that of the sources, with the types taken out; a
 * comment names the source of each part. What an entry imports later, with `import()`, is a file beside it. `serve` runs this once
 * for each state of the sources; whatever runs src/main.ts needs no bundle.
 */

import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";
import { ENTRIES } from "../src/base/program_paths.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const GLOBALS = join(ROOT, "src", "base", "worker_globals.ts");

/** The packages that every start loads. All others are found by their names in deno.json, from the bundle as from the sources. */
const BUNDLED = ["zod", "hono", "hono/utils/accept", "hono/utils/url", "smol-toml", "prom-client"];

/** What the service uses of prom-client, whose own entry loads several times as much. */
const METRICS = ["Registry", "Counter", "Gauge", "Histogram"];

/** Writes the bundle to `target`, in place of what is there; it must lie two folders below the project, as src/base/ does. */
export async function buildService(target: string = join(ROOT, "dist", "service")): Promise<void> {
  Deno.mkdirSync(join(target, ".."), { recursive: true });
  const built = Deno.makeTempDirSync({ dir: join(target, ".."), prefix: "service-" });
  Deno.chmodSync(built, 0o755);
  // Each entry by itself, as a file that two of them share holds what only one of them needs.
  for (const path of [...Object.values(ENTRIES), relative(join(ROOT, "src"), GLOBALS).slice(0, -3)]) {
    await bundle(path, built);
  }
  Deno.mkdirSync(target, { recursive: true });
  Deno.removeSync(target, { recursive: true });
  Deno.renameSync(built, target);
  await esbuild.stop();
}

async function bundle(path: string, folder: string): Promise<void> {
  const name = basename(path);
  const isWorker = name.endsWith("_worker");
  await esbuild.build({
    entryPoints: { [name]: join(ROOT, "src", `${path}.ts`) },
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    chunkNames: `${name}-[name]-[hash]`,
    bundle: true,
    splitting: true,
    format: "esm",
    target: "esnext",
    plugins: [packages(isWorker)],
    // What it takes away must be gone before any other module is evaluated, also those of files beside the entry.
    ...(isWorker && { banner: { js: `import "./${basename(GLOBALS, ".ts")}.mjs";` } }),
    absWorkingDir: ROOT,
    logLevel: "error",
  });
}

function packages(isWorker: boolean): esbuild.Plugin {
  return {
    name: "packages",
    setup(build) {
      build.onResolve({ filter: /^[@a-z]/ }, ({ path, importer, kind }) => {
        if (kind === "entry-point") return undefined;
        if (kind === "require-call" && path === "util") return { path: "node:util", namespace: "builtin" };
        if (path.startsWith("node:")) return { path, external: true };
        if (path === "prom-client") return { path, namespace: "metrics" };
        if (BUNDLED.includes(path)) return { path: fileURLToPath(import.meta.resolve(path)) };
        return importer.startsWith(join(ROOT, "src")) ? { path, external: true } : undefined;
      });
      build.onLoad({ filter: /.*/, namespace: "builtin" }, ({ path }) => ({
        contents: `export * from ${JSON.stringify(path)};`,
      }));
      // zod writes messages in fifty languages, half of its text; the service takes none of them but the default.
      build.onLoad({ filter: /\/zod\/.*\/locales\/index\.js$/ }, () => ({
        contents: 'export { default as en } from "./en.js";',
      }));
      build.onLoad({ filter: /.*/, namespace: "metrics" }, ({ path }) => {
        const folder = join(fileURLToPath(import.meta.resolve(path)), "..");
        const lines = METRICS.map((name) =>
          `export { default as ${name} } from "./lib/${name.toLowerCase()}.js";`
        );
        return { contents: lines.join("\n"), resolveDir: folder };
      });
      if (!isWorker) return;
      build.onResolve(
        { filter: /\/worker_globals\.ts$/ },
        ({ kind }) =>
          kind === "entry-point" ? undefined : { path: `./${basename(GLOBALS, ".ts")}.mjs`, external: true },
      );
    },
  };
}

if (import.meta.main) await buildService();
