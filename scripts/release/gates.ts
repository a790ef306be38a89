/** TABLE of the gates of a release, with how each is observed. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Figure, FIGURES_FILE, median, ratiosOf } from "../../bench/support.ts";
import type { Gate } from "./gate.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/**
 * Tests that the same input gives the same events, and that the published schemas take the fixtures and
 * refuse what is broken.
 */
const REPLAY_TESTS = [
  "test/media/kernels/gate_kernel_test.ts",
  "test/model/schemas_test.ts",
  "test/model/events",
  "test/store/timeline/timeline_model_test.ts",
];
/** Tests that find a figure below its floor when a change to the kernels costs quality. */
const QUALITY_TESTS = ["test/lab/floor_test.ts"];

export const GATES: readonly Gate[] = [
  {
    name: "replay",
    what: "failed tests of replay and schemas",
    variable: "SERVICE_MAX_REPLAY_FAILURES",
    defaultCeiling: 0,
    observe: () => failedTests(REPLAY_TESTS),
  },
  {
    name: "allocations",
    what: "objects that 100,000 frames leave",
    variable: "SERVICE_MAX_ALLOC_TOTAL",
    defaultCeiling: 0,
    observe: async () => (await filterFigures()).allocations.total,
  },
  {
    name: "cli_size",
    what: "bytes of dist/service-cli",
    variable: "SERVICE_MAX_CLI_SIZE_BYTES",
    defaultCeiling: 25_000_000,
    observe: () => builtSize("service-cli"),
  },
  {
    name: "api_size",
    what: "bytes of dist/service",
    variable: "SERVICE_MAX_API_SIZE_BYTES",
    defaultCeiling: 45_000_000,
    observe: () => builtSize("service"),
  },
  {
    name: "filter_p95",
    what: "ns for a frame, 95 of 100",
    variable: "SERVICE_MAX_GATE_P95_NS",
    defaultCeiling: 50_000,
    observe: async () => (await filterFigures()).gate_process.p95_ns,
  },
  {
    name: "quality",
    what: "failed tests of the floors of quality",
    variable: "SERVICE_MAX_QUALITY_FAILURES",
    defaultCeiling: 0,
    observe: () => failedTests(QUALITY_TESTS),
  },
  {
    name: "ingest",
    what: "times the CPU time of a null decode, 1080p",
    variable: "SERVICE_MAX_INGEST_RATIO",
    defaultCeiling: 1.2,
    observe: async () =>
      median(
        ratiosOf(
          await figure("ingest.ts", ["--rounds", "5", "--only", "1080p"], /1080p, CPU time, known file/),
        ),
      ),
  },
  {
    name: "restart",
    what: "ms to the first read with 1,000,000 events",
    variable: "SERVICE_MAX_RESTART_MS",
    defaultCeiling: 400,
    observe: async () => median((await startFigure(/to the first read$/)).ours),
  },
  {
    name: "restart_memory",
    what: "MB resident with 1,000,000 events",
    variable: "SERVICE_MAX_RESTART_MB",
    defaultCeiling: 125,
    observe: async () => median((await startFigure(/idle memory with .* events, resident/)).ours),
  },
];

interface FilterFigures {
  readonly gate_process: { readonly p95_ns: number };
  readonly allocations: { readonly total: number };
}

let filterRun: Promise<FilterFigures> | undefined;

/** The figures of the filter, of one run for both of its gates. */
function filterFigures(): Promise<FilterFigures> {
  return filterRun ??= output(["run", "-A", "bench/filter.ts", "--json"]).then((text) => JSON.parse(text));
}

const START_ROUNDS = ["--rounds", "5"];

function startFigure(name: RegExp): Promise<Figure> {
  return figure("start.ts", START_ROUNDS, name);
}

const benchRuns = new Map<string, Promise<Figure[]>>();

/** The figure of this name that a benchmark reports, of one run for all of them. */
async function figure(script: string, args: readonly string[], name: RegExp): Promise<Figure> {
  const running = benchRuns.get(script) ?? figuresOf(script, args);
  benchRuns.set(script, running);
  const found = (await running).find((figure) => name.test(figure.name));
  if (!found) throw new Error(`bench/${script} reports no figure like ${name}`);
  return found;
}

async function figuresOf(script: string, args: readonly string[]): Promise<Figure[]> {
  const file = Deno.makeTempFileSync({ prefix: "service-gates-" });
  try {
    await output(["run", "-A", join("bench", script), ...args], { [FIGURES_FILE]: file });
    return Deno.readTextFileSync(file).trim().split("\n").map((line) => JSON.parse(line));
  } finally {
    Deno.removeSync(file);
  }
}

let build: Promise<string> | undefined;

async function builtSize(name: string): Promise<number> {
  await (build ??= output([], {}, join(ROOT, "scripts", "build")));
  return Deno.statSync(join(ROOT, "dist", name)).size;
}

/** How many tests of these files fail. Throws where the tests did not run to their end. */
async function failedTests(files: readonly string[]): Promise<number> {
  const command = new Deno.Command(join(ROOT, "scripts", "test"), {
    args: [...files],
    cwd: ROOT,
    stdin: "null",
  });
  const { stdout } = await command.output();
  const closing = /^(\d+) passed, (\d+) failed/m.exec(
    new TextDecoder().decode(stdout).split("\n").slice(-3).join("\n"),
  );
  if (!closing || Number(closing[1]) === 0) throw new Error("the tests did not run");
  return Number(closing[2]);
}

/** What a program prints. Throws where it fails. */
async function output(
  args: readonly string[],
  env: Record<string, string> = {},
  program = Deno.execPath(),
): Promise<string> {
  const command = new Deno.Command(program, {
    args: [...args],
    env,
    cwd: ROOT,
    stdin: "null",
    stderr: "inherit",
  });
  const { success, code, stdout } = await command.output();
  if (!success) throw new Error(`${[program, ...args].join(" ")} ended with exit code ${code}`);
  return new TextDecoder().decode(stdout);
}
