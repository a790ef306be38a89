/** Runs the test files, each in a process of its own, side by side where they stand it, and sums up what they
 * say.
 */

import { delimiter, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { isSkipAllowed } from "../../test/support/needs.ts";
import { type FileReport, readReport, testUnderWay } from "./file_report.ts";
import { FILE_DEADLINE_SECS, planOf, type Turn, turnsOf } from "./plan.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PRELOAD = "test/support/preload.ts";
const SLOWEST_SHOWN = 10;

interface Result extends FileReport {
  /** The file, with the version of its ffmpeg where that is not the first one. */
  readonly file: string;
  readonly output: string;
  readonly seconds: number;
}

async function main(): Promise<number> {
  Deno.chdir(ROOT);
  const { files, options, isAll, missing } = readArguments(Deno.args);
  if (missing.length > 0) return closing(`neither a file nor a folder: ${missing.join(", ")}`, 0, 1, 0);
  if (files.length === 0) return closing("no test file there", 0, 1, 0);
  if (!await typesAreRight(files, isAll)) return closing("the types are wrong (see above)", 0, 1, 0);

  const results: Result[] = [];
  const [first, ...others] = ffmpegFolders();
  const turns = turnsOf(files, others);
  const isStreamed = turns.length === 1;
  const { sideBySide, alone } = planOf(turns);
  const runAll = async (queue: Turn[], jobs: number) => {
    const job = async () => {
      for (let turn = queue.shift(); turn !== undefined; turn = queue.shift()) {
        const result = await runFile(turn, first ?? null, { options, isStreamed });
        results.push(result);
        if (!isStreamed) showFile(result);
      }
    };
    await Promise.all(Array.from({ length: jobs }, job));
  };
  await runAll([...sideBySide], jobs());
  await runAll([...alone], 1);
  return sumUp(results);
}

interface Arguments {
  readonly files: string[];
  readonly options: string[];
  readonly isAll: boolean;
  /** Paths at which nothing is. */
  readonly missing: string[];
}

/**
 * An option, with the value of one that takes one, is for `deno test`; all else is a file or a folder of
 * tests.
 */
function readArguments(args: readonly string[]): Arguments {
  const isOption = (argument: string, index: number) =>
    argument.startsWith("-") || args[index - 1] === "--filter";
  const paths = args.filter((argument, index) => !isOption(argument, index));
  const files = (paths.length > 0 ? paths : ["test"]).filter(exists).flatMap((path) => testFiles(path));
  return {
    files: [...new Set(files)],
    options: args.filter(isOption),
    isAll: paths.length === 0,
    missing: paths.filter((path) => !exists(path)),
  };
}

function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}

function testFiles(path: string): string[] {
  if (Deno.statSync(path).isFile) return [relative(ROOT, Deno.realPathSync(path))];
  return [...Deno.readDirSync(path)].flatMap(({ name, isDirectory }) => {
    const inner = `${path.replace(/\/$/, "")}/${name}`;
    if (isDirectory) return testFiles(inner);
    return name.endsWith("_test.ts") ? [relative(ROOT, Deno.realPathSync(inner))] : [];
  });
}

function jobs(): number {
  return Math.max(1, Number(Deno.env.get("TEST_JOBS")) || navigator.hardwareConcurrency + 1);
}

function deadlineSecs(): number {
  return Number(Deno.env.get("TEST_FILE_DEADLINE_SECS")) || FILE_DEADLINE_SECS;
}

/**
 * Checks the types once for all files, as each of their processes would check the same modules again.
 * Everything is checked by the same words as in scripts/check: Deno then knows the answer if it has just been
 * asked.
 */
async function typesAreRight(files: readonly string[], isAll: boolean): Promise<boolean> {
  const roots = isAll ? ["src", "test", "scripts", "lab", "bench", "client", "cli"] : [PRELOAD, ...files];
  const args = ["check", "--quiet", ...roots];
  return (await new Deno.Command(Deno.execPath(), { args }).spawn().status).success;
}

/** The folders of FFMPEGS; none where it is not set. */
function ffmpegFolders(): string[] {
  return (Deno.env.get("FFMPEGS") ?? "").split(delimiter).filter((folder) => folder !== "");
}

/** The variables under which a file finds the programs of a folder, and what its test files share. */
function ffmpegVariables(folder: string | null): Record<string, string> {
  const path = Deno.env.get("PATH") ?? "";
  if (folder === null || isFirstOn(path, folder)) return { TEST_RUN_DIR: runFolder };
  const shared = join(runFolder, encodeURIComponent(folder));
  Deno.mkdirSync(shared, { recursive: true });
  return { TEST_RUN_DIR: shared, PATH: `${folder}${delimiter}${path}` };
}

function isFirstOn(path: string, folder: string): boolean {
  const found = path.split(delimiter).find((each) => exists(join(each, "ffmpeg")));
  return found !== undefined && Deno.realPathSync(found) === Deno.realPathSync(folder);
}

/** The version of the ffmpeg in a folder, such as ` [ffmpeg 7.1.5]`. */
function versionOf(folder: string): string {
  const { stdout } = new Deno.Command(join(folder, "ffmpeg"), { args: ["-version"] }).outputSync();
  const [, version] = /^ffmpeg version ([^\s-]+)/.exec(new TextDecoder().decode(stdout)) ?? [];
  return ` [ffmpeg ${version ?? `of ${folder}`}]`;
}

async function runFile(
  turn: Turn,
  firstFfmpeg: string | null,
  { options, isStreamed }: { readonly options: readonly string[]; readonly isStreamed: boolean },
): Promise<Result> {
  const file = turn.ffmpeg === null ? turn.file : `${turn.file}${versionOf(turn.ffmpeg)}`;
  const junitPath = Deno.makeTempFileSync({ prefix: "test-report-", suffix: ".xml" });
  const start = performance.now();
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      ...["test", "--allow-all", "--no-prompt", "--no-check", "--preload", PRELOAD],
      ...[`--junit-path=${junitPath}`, ...options, turn.file],
    ],
    env: { NO_COLOR: "1", ...ffmpegVariables(turn.ffmpeg ?? firstFfmpeg) },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    detached: true, // a process group of its own, which ends as a whole
  }).spawn();
  running.add(child);
  let isLate = false;
  const deadline = setTimeout(() => {
    isLate = true;
    killGroup(child);
  }, deadlineSecs() * 1000);
  let output = "";
  const collect = async (stream: ReadableStream<Uint8Array>) => {
    for await (const text of stream.pipeThrough(new TextDecoderStream())) {
      output += text;
      if (isStreamed) Deno.stdout.writeSync(new TextEncoder().encode(text));
    }
  };
  const streams = Promise.all([collect(child.stdout), collect(child.stderr)]);
  const { success } = await child.status;
  killGroup(child); // what a failed test left running would hold the streams open
  await streams;
  clearTimeout(deadline);
  running.delete(child);

  const report = readReport(output, Deno.readTextFileSync(junitPath));
  Deno.removeSync(junitPath);
  const seconds = (performance.now() - start) / 1000;
  const result = { ...report, file, output, seconds };
  if (success || (report.failed > 0 && !isLate)) return result;
  // No test failed, so the process itself did: it was ended, it broke down, or the file could not be loaded.
  const underWay = testUnderWay(output);
  const why = isLate ? `was ended after ${deadlineSecs()} s` : "ended with an error";
  const failure = `${file} ${why}${underWay ? ` in the test "${underWay}"` : ""}`;
  return { ...result, failed: report.failed + 1, failures: [...report.failures, failure] };
}

/** What the files of one run share, such as answers of programs that are asked by many. */
const runFolder = Deno.makeTempDirSync({ prefix: "test-run-" });

const running = new Set<Deno.ChildProcess>();

function killGroup(child: Deno.ChildProcess): void {
  try {
    Deno.kill(-child.pid, "SIGKILL");
  } catch {
    // It has ended, with all that it started.
  }
}

function endOnSignal(): void {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, () => {
      running.forEach(killGroup);
      Deno.removeSync(runFolder, { recursive: true });
      Deno.exit(signal === "SIGINT" ? 130 : 143);
    });
  }
}

function showFile({ file, output, seconds, passed, failed, skipped }: Result): void {
  if (failed > 0) console.log(output.trimEnd());
  const counts = `${passed} passed${failed > 0 ? `, ${failed} FAILED` : ""}`;
  const note = skipped.length > 0 ? `, ${skipped.length} skipped` : "";
  console.log(`${failed > 0 ? "FAILED" : "ok"} ${file}: ${counts}${note} (${seconds.toFixed(1)} s)`);
}

function sumUp(results: readonly Result[]): number {
  const named = <Item>(pick: (result: Result) => readonly Item[]) =>
    results.flatMap((result) => pick(result).map((item) => ({ file: result.file, item })));
  const skipped = named((result) => result.skipped);
  const forbidden = Deno.env.get("CI") === "true" ? skipped.filter(({ item }) => !isSkipAllowed(item)) : [];
  const failures = named((result) => result.failures);
  const times = named((result) => result.times).sort((a, b) => b.item.seconds - a.item.seconds);

  section(
    "Slowest tests",
    times.slice(0, SLOWEST_SHOWN).map(({ file, item }) =>
      `${item.seconds.toFixed(1)} s ${file}: ${item.name}`
    ),
  );
  section("Skipped", skipped.map(({ file, item }) => `${file}: ${item}`));
  section("Skipped, which CI does not allow", forbidden.map(({ file, item }) => `${file}: ${item}`));
  section("Failed", failures.map(({ file, item }) => `${file}: ${item}`));
  const total = (count: (result: Result) => number) =>
    results.reduce((sum, result) => sum + count(result), 0);
  const passed = total((result) => result.passed);
  const failed = total((result) => result.failed) + forbidden.length;
  if (passed + failed + skipped.length === 0) return closing("no test ran", 0, 1, 0);
  return closing("", passed, failed, skipped.length - forbidden.length);
}

function section(title: string, lines: readonly string[]): void {
  if (lines.length > 0) console.log(`\n${title}:\n${lines.map((line) => `  ${line}`).join("\n")}`);
}

/** Prints the last line; the exit code. */
function closing(reason: string, passed: number, failed: number, skipped: number): number {
  if (reason !== "") console.log(reason);
  console.log(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
  return failed > 0 ? 1 : 0;
}

if (import.meta.main) {
  endOnSignal();
  const code = await main();
  Deno.removeSync(runFolder, { recursive: true });
  Deno.exit(code);
}
