/**
 * Builds the single files of `scripts/build`: a head (start.sh), behind it the program with all that it
 * reads, and Deno, both compressed. Nothing in them depends on when, where or by whom they were built. Beside
 * each lies what it is made of.
 *
 *     ./scripts/build [service] [service-cli]
 *     ./scripts/build --compile
 */

import { createHash } from "node:crypto";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { HEAP_OPTIONS } from "../../src/process/clean_process.ts";
import { VERSION } from "../../src/http/description/version.ts";
import { buildBundle, buildService } from "../build_service.ts";
import { billOfMaterials } from "./bill_of_materials.ts";
import { installPackages } from "./packages.ts";
import { smallerRuntime } from "./smaller_runtime.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const HEAD = fileURLToPath(new URL("start.sh", import.meta.url));
const HASH_CHARACTERS = 16;

interface Program {
  /** Files and folders of the project that it reads, as they are. */
  readonly reads: readonly string[];
  /** Packages whose files are in what it reads. */
  readonly packagesInFiles: readonly string[];
  readonly permissions: string;
  /** How Deno is packed: gzip unpacks in a third of the time, xz makes it a third smaller. */
  readonly packing: "gzip" | "xz";
  /** Shell commands before the start. */
  readonly exports: string;
  readonly bundle: (target: string, packages: string) => Promise<string[]>;
}

const PROGRAMS: Readonly<Record<string, Program>> = {
  service: {
    reads: ["wasm", "seccomp", "dist/pages"],
    packagesInFiles: ["preact", "@preact/signals", "@preact/signals-core", "swagger-ui-dist"],
    permissions: "--allow-all",
    packing: "gzip",
    exports: "",
    bundle: (target, packages) => buildService(target, { packages }),
  },
  "service-cli": {
    reads: [],
    packagesInFiles: [],
    permissions: "--allow-net --allow-env --allow-read --allow-write --allow-sys " +
      '--allow-run="ffmpeg,ffprobe${SERVICE_FFMPEG_PATH:+,$SERVICE_FFMPEG_PATH}${SERVICE_FFPROBE_PATH:+,$SERVICE_FFPROBE_PATH}"',
    packing: "xz",
    exports: 'SERVICE_CLI_STARTER=$(readlink -f -- "$self")\nexport SERVICE_CLI_STARTER',
    bundle: (target, packages) => buildBundle(["cli/main"], target, { packages }),
  },
};

interface BuildOptions {
  /** Whether the file is made in a fifth of the time and becomes larger; false unless given. */
  readonly isQuick?: boolean;
}

/** Writes `<target>/<name>` and `<target>/<name>.cdx.json`. Errors: the first step that fails. */
export async function buildSingleFile(
  name: string,
  target: string = join(ROOT, "dist"),
  { isQuick = false }: BuildOptions = {},
): Promise<void> {
  const program = PROGRAMS[name];
  if (program === undefined) {
    throw new Error(`there is no program '${name}'; there are ${Object.keys(PROGRAMS).join(", ")}`);
  }
  const staged = join(ROOT, "dist", `staged-${name}`);
  const inputs = await stage(program, staged);

  const wholeRuntime = Deno.readFileSync(Deno.execPath());
  const runtime = smallerRuntime(wholeRuntime).bytes;
  const halfBytes = Math.floor(runtime.length / 2);
  const halves = [runtime.subarray(0, halfBytes), runtime.subarray(halfBytes)];
  const packed = program.packing === "gzip"
    ? await Promise.all(halves.map((half) => packedRuntime(half, ["gzip", "-n", isQuick ? "-1" : "-9"])))
    : [await packedRuntime(runtime, xzCommand(isQuick ? 0 : 6))];
  const runtimeBytes = packed.reduce((sum, { length }) => sum + length, 0);
  const [halfB2, restB2] = await Promise.all(halves.map(blake2b));
  const [halfSha256, restSha256] = halves.map(sha256);
  const files = filesBelow(staged);
  const codeSha256 = await sums("sha256sum", staged, files);
  const codePayload = await packedCode(staged, files);
  const head = filled(Deno.readTextFileSync(HEAD), {
    NAME: name,
    CODE_FOLDER: `${name}-${VERSION}-${short(sha256(encoded(codeSha256)))}`,
    RUNTIME_FOLDER: `deno-${Deno.version.deno}-${short(sha256(runtime))}`,
    CODE_BYTES: String(codePayload.length),
    RUNTIME_BYTES: String(runtimeBytes),
    RUNTIME_PACKING: program.packing,
    PACKED_HALF_BYTES: String(packed[0]!.length),
    HALF_BYTES: String(halfBytes),
    CODE_B2: await sums("b2sum", staged, files),
    CODE_SHA256: codeSha256,
    ...{ HALF_B2: halfB2!, REST_B2: restB2!, HALF_SHA256: halfSha256!, REST_SHA256: restSha256! },
    EXPORTS: program.exports,
    PERMISSIONS: program.permissions,
  });
  removeAll(staged);

  Deno.mkdirSync(target, { recursive: true });
  const path = join(target, name);
  if (isFolder(path)) removeAll(path);
  using file = Deno.openSync(`${path}.new`, { write: true, create: true, truncate: true });
  for (const part of [encoded(head), codePayload, ...packed]) writeWhole(file, part);
  Deno.chmodSync(`${path}.new`, 0o755);
  Deno.renameSync(`${path}.new`, path);
  Deno.writeTextFileSync(
    `${path}.cdx.json`,
    billOfMaterials({
      name,
      version: VERSION,
      runtime: { version: Deno.version.deno, target: Deno.build.target, sha256: sha256(wholeRuntime) },
      lock: JSON.parse(Deno.readTextFileSync(join(ROOT, "deno.lock"))),
      bundled: packagesOf(inputs),
      inFiles: program.packagesInFiles,
    }),
  );
}

/**
 * Writes `<target>/service-compiled` by `deno compile`, with what `scripts/build` puts into `service`. It
 * starts from its own files on the disk, where the cage opens the filters. Errors: the words of Deno, as
 * where it finds no `denort`.
 */
export async function compileService(target: string = join(ROOT, "dist")): Promise<void> {
  const staged = join(ROOT, "dist", "staged-service-compiled");
  await stage(PROGRAMS.service!, staged);
  Deno.mkdirSync(target, { recursive: true });
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["compile", "--quiet", "--no-check", "--no-lock", "--no-remote", "--no-npm", "--no-code-cache"],
      ...["--self-extracting", "--config", join(staged, "deno.json"), `--v8-flags=${HEAP_OPTIONS}`],
      ...["--allow-all", "--output", join(target, "service-compiled"), "--include", staged],
      join(staged, "dist", "bundle", "main.mjs"),
    ],
    env: { NO_COLOR: "1" },
    stdin: "null",
    stdout: "inherit",
    stderr: "piped",
  }).output();
  removeAll(staged);
  if (!success) {
    const [words] = new TextDecoder().decode(stderr).split("Stack backtrace");
    throw new Error(
      `${
        words!.trim()
      }\nNo service-compiled was made. It takes the program denort of Deno ${Deno.version.deno}, which npm does not have: ` +
        "where Deno cannot download it, name the file in DENORT_BIN.",
    );
  }
}

/** Lays a program out below `staged` as it is in the project; returns the files in its bundle. */
async function stage({ bundle, reads }: Program, staged: string): Promise<string[]> {
  const packages = await installPackages(ROOT);
  removeAll(staged);
  const inputs = await bundle(join(staged, "dist", "bundle"), packages);
  for (const path of reads) copyFolder(join(ROOT, path), join(staged, path));
  const { unstable } = JSON.parse(Deno.readTextFileSync(join(ROOT, "deno.json")));
  Deno.writeTextFileSync(join(staged, "deno.json"), `${JSON.stringify({ unstable })}\n`);
  return inputs;
}

/** Names and versions of the packages to which files of a bundle belong. */
function packagesOf(inputs: readonly string[]): string[] {
  const found = new Set<string>();
  for (const path of inputs) {
    const folder = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0];
    if (folder === undefined) continue;
    const { name, version } = JSON.parse(Deno.readTextFileSync(join(ROOT, folder, "package.json")));
    found.add(`${name}@${version}`);
  }
  return [...found];
}

/** Deno, compressed. That takes half a minute, so what came out is kept. */
async function packedRuntime(
  part: Uint8Array<ArrayBuffer>,
  [program, ...options]: readonly [string, ...string[]],
): Promise<Uint8Array<ArrayBuffer>> {
  const kept = join(
    ROOT,
    ".tools",
    "packed",
    `${sha256(part)}-${short(sha256(encoded(options.join(" "))))}.${program}`,
  );
  if (!isFile(kept)) {
    Deno.mkdirSync(join(kept, ".."), { recursive: true });
    const packed = await outputBytes(program, ["-c", ...options], { input: part });
    const made = `${kept}.${Deno.pid}`;
    Deno.writeFileSync(made, packed);
    Deno.renameSync(made, kept);
  }
  return Deno.readFileSync(kept);
}

/** The command that compresses by xz, in blocks, so that two processors unpack it in half the time. */
function xzCommand(preset: number): [string, ...string[]] {
  return ["xz", "-T2", "--block-size=48MiB", "--x86", `--lzma2=preset=${preset},dict=48MiB`];
}

async function packedCode(folder: string, files: readonly string[]): Promise<Uint8Array<ArrayBuffer>> {
  const archive = await outputBytes("tar", [
    ...["-C", folder, "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"],
    // The starters of the cage stay programs.
    ...["--mode=u=rX,go=", "--format=ustar", "-c", "-f", "-", "--", ...files],
  ]);
  return await outputBytes("gzip", ["-n", "-9"], { input: archive });
}

/** Lines as `sha256sum --check` and `b2sum --check` read them. */
async function sums(
  program: "sha256sum" | "b2sum",
  folder: string,
  files: readonly string[],
): Promise<string> {
  const options = program === "b2sum" ? ["-l", "256"] : [];
  return (await output(program, [...options, "--", ...files], { folder })).trimEnd();
}

async function blake2b(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return (await output("b2sum", ["-l", "256"], { input: bytes })).split(" ")[0]!;
}

function filled(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/@([A-Z0-9_]+)@/g, (_, name) => values[name]!);
}

/** Paths from the folder, sorted. */
function filesBelow(folder: string, from = folder): string[] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory }) => {
    const path = join(folder, name);
    return isDirectory ? filesBelow(path, from) : [relative(from, path)];
  }).sort();
}

function copyFolder(from: string, to: string): void {
  for (const path of filesBelow(from)) {
    // Says for which sources the pages were built, and is not served.
    if (path === "built") continue;
    Deno.mkdirSync(join(to, path, ".."), { recursive: true });
    Deno.copyFileSync(join(from, path), join(to, path));
  }
}

async function output(program: string, args: readonly string[], options: RunOptions): Promise<string> {
  return new TextDecoder().decode(await outputBytes(program, args, options));
}

interface RunOptions {
  readonly input?: Uint8Array<ArrayBuffer>;
  readonly folder?: string;
}

async function outputBytes(
  program: string,
  args: readonly string[],
  { input, folder = ROOT }: RunOptions = {},
): Promise<Uint8Array<ArrayBuffer>> {
  const child = new Deno.Command(program, {
    args: [...args],
    cwd: folder,
    env: { LC_ALL: "C" },
    stdin: input === undefined ? "null" : "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const [{ success, stdout }] = await Promise.all([
    child.output(),
    input === undefined ? undefined : new Blob([input]).stream().pipeTo(child.stdin),
  ]);
  if (!success) throw new Error(`${program} failed`);
  return stdout;
}

function writeWhole(file: Deno.FsFile, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += file.writeSync(bytes.subarray(at));
}

function removeAll(path: string): void {
  Deno.mkdirSync(path, { recursive: true });
  Deno.removeSync(path, { recursive: true });
}

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const encoded = (text: string) => new TextEncoder().encode(text);
const short = (hash: string) => hash.slice(0, HASH_CHARACTERS);
const isFile = (path: string) => statOf(path)?.isFile === true;
const isFolder = (path: string) => statOf(path)?.isDirectory === true;

function statOf(path: string): Deno.FileInfo | null {
  try {
    return Deno.statSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

if (import.meta.main) await main(Deno.args);

async function main(args: readonly string[]): Promise<void> {
  if (args.includes("--compile")) {
    await compileService().catch((error) => {
      console.error(error.message);
      Deno.exit(1);
    });
    return showFile("service-compiled");
  }
  for (const name of args.length > 0 ? args : Object.keys(PROGRAMS)) {
    await buildSingleFile(name);
    showFile(name);
  }
}

function showFile(name: string): void {
  const path = join(ROOT, "dist", name);
  console.log(`${relative(Deno.cwd(), path)}  ${(Deno.statSync(path).size / 1e6).toFixed(1)} MB`);
}
