/**
 * Bundles the service into dist/bundle/: one file for each module of src/ that starts a Worker or a process,
 * with all that it imports, so that a start loads few files instead of five hundred. The text in it is that
 * of the sources, with the types taken out; a comment names the source of each part. What an entry imports
 * later, with `import()`, is a file beside it. `serve` runs this once for each state of the sources; whatever
 * runs src/main.ts needs no bundle.
 */

import { isBuiltin } from "node:module";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";
import { ENTRIES } from "../src/base/program_paths.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const GLOBALS = join(ROOT, "src", "base", "worker_globals.ts");

/**
 * The packages that every start loads. Unless all are bundled, the others are found by their names in
 * deno.json, from the bundle as from the sources.
 */
const BUNDLED = ["zod", "hono", "hono/utils/accept", "hono/utils/url", "smol-toml", "prom-client"];

/** What the service uses of prom-client, whose own entry loads several times as much. */
const METRICS = ["Registry", "Counter", "Gauge", "Histogram"];

/** The entries whose process or Worker may read the folder of the code while it runs. */
const READS_CODE = ["main", "service_worker"];

/**
 * What of the runtime's Node modules is loaded when it is first called: each of these modules takes 2 to 13
 * ms of a start and up to 2 MB, in every isolate. Nothing here may be called, extended or compared with while
 * modules are evaluated. A name that is missing here ends the build.
 */
const LATE: Readonly<Record<string, readonly string[]>> = {
  "node:crypto": [
    ...["createHash", "createHmac", "createPrivateKey", "createPublicKey", "generateKeyPairSync"],
    ...["sign", "verify", "X509Certificate"],
  ],
  "node:dns": ["lookup"],
  "node:http": ["Agent", "createServer", "request"],
  "node:https": ["Agent", "request"],
  "node:net": ["connect", "createServer", "isIP"],
  "node:tls": ["connect", "createSecureContext", "getCACertificates"],
  "node:zlib": ["crc32", "createGzip", "createUnzip", "gunzipSync", "gzipSync"],
};

/** What a bundle is made of. */
interface BundleOptions {
  /**
   * A folder `node_modules` with all packages, which are then bundled as well; without it only `BUNDLED` are.
   */
  readonly packages?: string;
}

/**
 * Writes the bundle to `target`, in place of what is there; it must lie two folders below the project, as
 * src/base/ does. Returns the paths of the files in it, from the project.
 */
export async function buildService(
  target: string = join(ROOT, "dist", "bundle"),
  options: BundleOptions = {},
): Promise<string[]> {
  const paths = [...Object.values(ENTRIES), relative(join(ROOT, "src"), GLOBALS).slice(0, -3)];
  return await buildBundle(paths.map((path) => join("src", path)), target, options);
}

/**
 * Writes a bundle of other entries, which are paths from the project without `.ts`. Returns the paths of its
 * files, from the project.
 */
export async function buildBundle(
  entries: readonly string[],
  target: string,
  options: BundleOptions,
): Promise<string[]> {
  Deno.mkdirSync(join(target, ".."), { recursive: true });
  const built = Deno.makeTempDirSync({ dir: join(target, ".."), prefix: "bundle-" });
  Deno.chmodSync(built, 0o755);
  const inputs: string[] = [];
  // Each entry by itself, as a file that two of them share holds what only one of them needs.
  for (const path of entries) inputs.push(...await bundle(path, built, options));
  Deno.mkdirSync(target, { recursive: true });
  Deno.removeSync(target, { recursive: true });
  Deno.renameSync(built, target);
  await esbuild.stop();
  return [...new Set(inputs)].sort();
}

async function bundle(path: string, folder: string, { packages }: BundleOptions): Promise<string[]> {
  const name = basename(path);
  const isWorker = name.endsWith("_worker");
  const { metafile } = await esbuild.build({
    entryPoints: { [name]: join(ROOT, `${path}.ts`) },
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    chunkNames: `${name}-[name]-[hash]`,
    bundle: true,
    splitting: true,
    metafile: true,
    format: "esm",
    target: "esnext",
    ...(packages !== undefined && { platform: "node", nodePaths: [packages] }),
    plugins: [findPackages(isWorker, packages)],
    // What it takes away must be gone before any other module is evaluated, also those of files beside the
    // entry.
    ...(isWorker && { banner: { js: `import "./${basename(GLOBALS, ".ts")}.mjs";` } }),
    absWorkingDir: ROOT,
    logLevel: "error",
  });
  if (READS_CODE.includes(name)) hideLaterImports(metafile, folder);
  return Object.keys(metafile.inputs);
}

/**
 * Deno takes every module apart that an `import()` names in plain text when the program starts, though it may
 * never be asked for; what a function gives is not looked for before. Such a module is read when it is
 * wanted, which needs the permission to.
 */
function hideLaterImports({ outputs }: esbuild.Metafile, folder: string): void {
  for (const [output, { imports }] of Object.entries(outputs)) {
    const later = new Set(
      imports.filter(({ kind, external }) => kind === "dynamic-import" && !external).map(({ path }) =>
        basename(path)
      ),
    );
    if (later.size === 0) continue;
    const path = join(folder, basename(output));
    let text = Deno.readTextFileSync(path);
    for (const imported of later) {
      const specifier = JSON.stringify(`./${imported}`);
      const plain = `import(${specifier})`;
      if (!text.includes(plain)) {
        throw new Error(`${basename(output)} does not import ${specifier} as expected`);
      }
      text = text.replaceAll(plain, `import((() => ${specifier})())`);
    }
    Deno.writeTextFileSync(path, text);
  }
}

/** Finds packages: all by esbuild itself where `packages` has them, else those of `BUNDLED` by Deno. */
function findPackages(isWorker: boolean, packages: string | undefined): esbuild.Plugin {
  const folderOf = (name: string) =>
    packages === undefined ? fileURLToPath(import.meta.resolve(name)) : join(packages, name, "index.js");
  return {
    name: "packages",
    setup(build) {
      build.onResolve({ filter: /^[@a-z]/ }, ({ path, importer, kind }) => {
        if (kind === "entry-point" || path.startsWith("default-of:")) return undefined;
        if (isBuiltin(path)) {
          const name = path.replace(/^(node:)?/, "node:");
          if (isLate(name, importer)) return { path: name, namespace: "late", sideEffects: false };
          return kind === "require-call"
            ? { path: name, namespace: "builtin" }
            : { path: name, external: true };
        }
        if (path === "prom-client") return { path, namespace: "metrics" };
        if (packages !== undefined) return undefined;
        if (BUNDLED.includes(path)) return { path: fileURLToPath(import.meta.resolve(path)) };
        return importer.startsWith(join(ROOT, "src")) ? { path, external: true } : undefined;
      });
      build.onLoad({ filter: /.*/, namespace: "late" }, ({ path }) => ({ contents: lateModule(path) }));
      // `require("util")` of a package gets what `import util from "node:util"` is.
      build.onLoad({ filter: /.*/, namespace: "builtin" }, ({ path }) => ({
        contents: `module.exports = require(${JSON.stringify(`default-of:${path}`)}).default;`,
      }));
      build.onResolve({ filter: /^default-of:/ }, ({ path }) => ({ path, namespace: "default" }));
      build.onLoad({ filter: /.*/, namespace: "default" }, ({ path }) => ({
        contents: `export { default } from ${JSON.stringify(path.replace("default-of:", ""))};`,
      }));
      build.onLoad({ filter: /.*/, namespace: "metrics" }, ({ path }) => {
        const folder = join(folderOf(path), "..");
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

/** Whether a module is loaded late. Packages load what they import at once, as they may extend it. */
function isLate(name: string, importer: string): boolean {
  return name in LATE && importer.startsWith(join(ROOT, "src"));
}

/**
 * The text of a late module: each name is a function that loads the module and from then on is the module's
 * own. Importers see the change.
 */
function lateModule(name: string): string {
  const names = LATE[name]!;
  const lines = names.map((each) =>
    `export let ${each} = function (...args) { load(); return new.target ? new ${each}(...args) : ${each}(...args); };`
  );
  return `${lines.join("\n")}
function load() { ({ ${names.join(", ")} } = globalThis.process.getBuiltinModule(${JSON.stringify(name)})); }
`;
}

if (import.meta.main) await buildService();
