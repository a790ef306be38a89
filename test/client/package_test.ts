/** The package that scripts/build-client makes: small, well formed, and usable by every runtime and by
 * TypeScript.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import * as esbuild from "esbuild";
import { publint } from "publint";
import ts from "typescript";
import { buildClient, type Built, GZIPPED_BYTES_MAX } from "../../scripts/build_client.ts";
import { VERSION } from "../../src/http/description/version.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { BUN, needing, NODE } from "../support/needs.ts";
import { prepare } from "./place.ts";
import { IN_BROWSERS, METHODS } from "./methods.ts";

const NAME = "video-analysis-client";

/** The package unpacked where an installation puts it, beside a program that calls every method. */
interface Installed extends Built {
  readonly scratch: string;
}

let installed: Installed | undefined;

Deno.test.beforeAll(async () => {
  const dist = Deno.realPathSync(
    Deno.makeTempDirSync({ prefix: "client-test-" }),
  );
  const built = await buildClient(dist);
  const scratch = join(dist, "scratch");
  const home = join(scratch, "node_modules", NAME);
  Deno.mkdirSync(home, { recursive: true });
  run("tar", ["-xzf", built.tarball, "-C", home, "--strip-components", "1"]);
  Deno.writeTextFileSync(
    join(scratch, "package.json"),
    '{"type": "module"}',
  );
  Deno.writeTextFileSync(join(scratch, "consumer.ts"), CONSUMER);
  const imports = { [NAME]: "../client/client.js" };
  Deno.writeTextFileSync(join(scratch, "deno.json"), JSON.stringify({ imports }));
  esbuild.buildSync({
    entryPoints: [fileURLToPath(new URL("./every_method.ts", import.meta.url))],
    outfile: join(scratch, "every_method.js"),
    format: "esm",
    logLevel: "error",
  });
  Deno.writeTextFileSync(join(scratch, "main.js"), MAIN);
  installed = { ...built, scratch };
});

Deno.test.afterAll(() => Deno.removeSync(join(installed!.folder, ".."), { recursive: true }));

const MAIN = `import * as library from "${NAME}";
import { callEveryMethod } from "./every_method.js";
const place = JSON.parse(process.argv[2]);
console.log(JSON.stringify(await callEveryMethod(library, place)));
`;

Deno.test("the library is small and its package names its version and commit", () => {
  const { folder, gzippedBytes } = installed!;
  assert.ok(
    gzippedBytes > 1000 && gzippedBytes <= GZIPPED_BYTES_MAX,
    String(gzippedBytes),
  );
  const { version, gitHead } = JSON.parse(
    Deno.readTextFileSync(join(folder, "package.json")),
  );
  assert.equal(version, VERSION);
  assert.match(gitHead, /^[0-9a-f]{40}(-dirty)?$|^unknown$/);
  for (const name of ["README.md", "LICENSE", "client.js", "client.d.ts"]) {
    assert.ok(Deno.statSync(join(folder, name)).size > 0, name);
  }
});

Deno.test("publint has nothing to say about the package", async () => {
  const { messages } = await publint({
    pkgDir: installed!.folder,
    strict: true,
    pack: false,
  });
  assert.deepEqual(messages, []);
});

Deno.test("the types are what every way of resolution finds", async () => {
  const tarball = createPackageFromTarballData(
    Deno.readFileSync(installed!.tarball),
  );
  const result = await checkPackage(tarball);
  assert.ok(result.types);
  // A program of CommonJS cannot \`require\` a package that is an ES module alone, and is told so.
  const faults = result.problems.filter(({ kind }) => kind !== "CJSResolvesToESM");
  assert.deepEqual(faults, []);
});

Deno.test({
  ...needing(NODE, "every method works in Node.js"),
  ...LONG_TEST,
  fn: () => callEveryMethodWith("node"),
});

Deno.test({
  ...needing(BUN, "every method works in Bun"),
  ...LONG_TEST,
  fn: () => callEveryMethodWith("bun"),
});

Deno.test({
  name: "every method works in Deno, from the package",
  ...LONG_TEST,
  fn: () =>
    callEveryMethodWith(
      Deno.execPath(),
      "run",
      "--quiet",
      "--allow-net",
    ),
});

const RESOLUTIONS = {
  node16: { module: ts.ModuleKind.Node16, moduleResolution: ts.ModuleResolutionKind.Node16 },
  bundler: { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler },
};

for (const [name, options] of Object.entries(RESOLUTIONS)) {
  Deno.test(`a program compiles against the types with moduleResolution ${name}`, () => {
    const file = join(installed!.scratch, "consumer.ts");
    Deno.writeTextFileSync(file, CONSUMER);
    const program = ts.createProgram([file], {
      ...options,
      target: ts.ScriptTarget.ES2022,
      strict: true,
      exactOptionalPropertyTypes: true,
      noEmit: true,
      types: [],
    });
    const faults = ts.getPreEmitDiagnostics(program).map(({ messageText }) =>
      ts.flattenDiagnosticMessageText(messageText, "\n")
    );
    assert.deepEqual(faults, [
      "Type 'number' is not assignable to type 'string'.",
    ]);
  });
}

Deno.test("Deno finds the types beside the file", async () => {
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["check", "consumer.ts"],
    cwd: installed!.scratch,
    env: { NO_COLOR: "1" },
  }).output();
  const said = new TextDecoder().decode(stderr);
  assert.ok(!success && said.includes(CONSUMER_FAULT), said);
  // Deno has no types of browsers.
  const others = said.match(/^TS\d+ \[ERROR\]: .*/gm)!.filter((line) =>
    !/MediaStream|mediaDevices/.test(line) && !line.includes(CONSUMER_FAULT)
  );
  assert.deepEqual(others, []);
});

Deno.test("the examples of the pages compile", () => {
  const pages = ["docs/client.md", "client/README.md"].map((name) =>
    Deno.readTextFileSync(new URL(`../../${name}`, import.meta.url))
  );
  const examples = pages.flatMap((page) =>
    Array.from(page.matchAll(/```ts\n(.*?)```/gs), ([, code]) => code!)
  );
  assert.ok(examples.length >= 5);
  const files = examples.map((code, index) => {
    const imports = code.match(/^import .*\n/gm)?.join("") ?? "";
    const body = code.replaceAll(/^import .*\n/gm, "");
    const given = Object.entries(GIVEN).filter(([name]) =>
      !new RegExp(`const \\{?.*\\b${name}\\b.* = `).test(body)
    );
    const parameters = given.map(([name, type]) => `${name}: ${type}`).join(", ");
    const file = `example${index}.ts`;
    Deno.writeTextFileSync(
      join(installed!.scratch, file),
      `${imports}export async function example(${parameters}) {\n${body}\n  return undefined;\n}\n`,
    );
    return file;
  });
  Deno.writeTextFileSync(join(installed!.scratch, "node.d.ts"), NODE_MODULES);
  assert.deepEqual(faultsOf([...files, "node.d.ts"], RESOLUTIONS.bundler), []);
});

/** What an example may use without making it. */
const GIVEN = {
  client: `import("${NAME}").Client`,
  runId: "string",
  request: "Request",
  rawBody: "Uint8Array",
  signingSecret: "string",
};
const NODE_MODULES = `declare module "node:fs" { export function createReadStream(path: string): unknown; }
declare module "node:stream" { export const Readable: { toWeb(stream: unknown): unknown }; }
`;

/** What TypeScript says of these files of the scratch folder. */
function faultsOf(files: string[], options: ts.CompilerOptions): string[] {
  const program = ts.createProgram(files.map((file) => join(installed!.scratch, file)), {
    ...options,
    target: ts.ScriptTarget.ES2022,
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    types: [],
  });
  return ts.getPreEmitDiagnostics(program).map(({ messageText }) =>
    ts.flattenDiagnosticMessageText(messageText, "\n")
  );
}

const CONSUMER_FAULT = "Type 'number' is not assignable to type 'string'.";
/** Has one fault, so that a check that sees nothing fails. */
const CONSUMER =
  `import { Client, isEvent, isHttpError, verifyWebhook, type Marker, type Run } from "${NAME}";
const client = new Client("http://127.0.0.1:8080", { apiKey: "k" });
const run: Run = await client.getRun("run-1", { signal: new AbortController().signal });
const markers: Marker[] = await client.getMarkers(run.run_id, { event_type: "scene_cut" });
for await (const { seq, kind } of client.subscribeEvents(run.run_id)) console.log(seq + 1, kind.length);
for await (const event of client.watch(run.run_id)) {
  if (event.kind === "vlm") console.log(event.payload.description.length);
  else if (isEvent(event, "trigger.*")) console.log(event.payload.evidence.image_sha256);
  else if (event.kind === "frames_decoded") console.log(BigInt(event.payload.signals[0]!.perceptual_hash));
}
const [first] = await client.getEvents(run.run_id);
if (first && isEvent(first, "run_failed")) console.log(first.payload.reason);
const camera: MediaStream = await navigator.mediaDevices.getUserMedia({ video: true });
const session = await client.publish(camera, { prompt: "Look." }, { onState: (state) => console.log(state) });
await session.close();
try {
  await client.createRun({ mode: "balanced" }, { idempotencyKey: "k" });
} catch (error) {
  if (isHttpError(error)) console.log(error.status + 1, error.apiError?.details[0]?.field);
}
await verifyWebhook(new Headers(), new Uint8Array(), "00");
export const wrong: string = markers[0]!.start_frame;
`;

async function callEveryMethodWith(
  program: string,
  ...args: string[]
): Promise<void> {
  await using prepared = await prepare();
  const { success, stdout, stderr } = await new Deno.Command(program, {
    args: [...args, "main.js", JSON.stringify(prepared.place)],
    cwd: installed!.scratch,
  }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
  const called = JSON.parse(new TextDecoder().decode(stdout));
  assert.deepEqual(METHODS.filter((name) => !called.includes(name)), IN_BROWSERS);
}

function run(program: string, args: string[]): void {
  const { success, stderr } = new Deno.Command(program, { args }).outputSync();
  assert.ok(success, new TextDecoder().decode(stderr));
}
