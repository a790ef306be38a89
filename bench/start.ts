/**
 * How long the process takes from its start to the first healthy answer, with and without the replacement of
 * the environment (docs/security.md#secrets), which starts Deno twice; to the first correct read of a service
 * that has a million events; and what memory it has when it has nothing to do. Beside it a bare `Deno.serve`,
 * the least that a service can be here. They alternate, so that other load on the machine affects all of
 * them. Processor time is that of all threads of the process.
 *
 *     ./scripts/deno run -A bench/start.ts [--rounds 10] [--events 1000000] [--runs 2000]
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { buildService } from "../scripts/build_service.ts";
import { SearchIndex } from "../src/store/search/search_index.ts";
import { Timeline } from "../src/store/timeline/timeline.ts";
import { fillTimeline, runId } from "./filled_timeline.ts";
import { pause, quietWorld, report, TemporaryFolder } from "./support.ts";

/** The bundle of the service, as `./scripts/serve` starts it. */
const BUNDLE = fileURLToPath(new URL("../dist/service_bench", import.meta.url));
const MAIN = join(BUNDLE, "main.mjs");
const CONFIG = fileURLToPath(new URL("../deno.json", import.meta.url));
/** Permissions but that for foreign functions, without which the process cannot replace itself. */
const WITHOUT_FFI = ["read", "write", "run", "net", "env", "sys"].map((name) => `--allow-${name}`);
/**
 * Milliseconds after which memory is read. By then the trials of the cage have ended, and the service has
 * given back what its start left in memory.
 */
const IDLE_AFTER_MS = 10_000;
/** Milliseconds of a clock tick, in which the kernel counts processor time. */
const TICK_MS = 10;
const READ_RUN = 7;

const { values } = parseArgs({
  args: Deno.args,
  options: {
    rounds: { type: "string", default: "10" },
    events: { type: "string", default: "1000000" },
    runs: { type: "string", default: "2000" },
  },
});
const [rounds, events, runs] = [values.rounds, values.events, values.runs].map(Number) as [
  number,
  number,
  number,
];

interface Started {
  readonly tookMs: number;
  readonly cpuMs: number;
  readonly rssMb: number;
  readonly pssMb: number;
}

await buildService(BUNDLE);
using folder = new TemporaryFolder();
const bareServer = join(folder.path, "bare.ts");
Deno.writeTextFileSync(
  bareServer,
  'Deno.serve({ hostname: "127.0.0.1", port: Number(Deno.args[0]), onListen() {} }, () => new Response("ok"));\n',
);
const filled = join(folder.path, "filled");
await fillTimeline({ dataDir: filled, events, runs, principalOf: () => "public" });
await indexed(filled);

const bareStart = () => start(["--no-config", "--allow-net", bareServer], { path: "/", isBare: true });
const { bare, replaced, restarted } = await byTurns({
  bare: bareStart,
  replaced: () => start(serviceArgs(["--allow-all"]), { dataDir: newFolder() }),
  restarted: () =>
    start(serviceArgs(["--allow-all"]), {
      dataDir: filled,
      path: `/v1/runs/${runId(READ_RUN)}/events`,
      check: checkEvents,
    }),
});
// Not by turns with the others: its engine has other options, and would write compiled code that theirs
// cannot use.
const { kept, bareBesideKept } = await byTurns({
  bareBesideKept: bareStart,
  kept: () => start(serviceArgs(WITHOUT_FFI), { dataDir: newFolder() }),
});

const tell = (name: string, [ours, limit]: readonly [Started[], Started[]], field: keyof Started) =>
  report({
    name: `start: ${name}`,
    unit: field.endsWith("Mb") ? "MB" : "ms",
    better: "less",
    ours: ours.map((one) => one[field]),
    limit: { name: "bare Deno.serve", values: limit.map((one) => one[field]) },
  });
tell("to healthy, environment replaced", [replaced, bare], "tookMs");
tell("to healthy, processor time", [replaced, bare], "cpuMs");
tell("to healthy, environment kept", [kept, bareBesideKept], "tookMs");
tell(`restart with ${events} events to the first read`, [restarted, bare], "tookMs");
tell(`restart with ${events} events, processor time`, [restarted, bare], "cpuMs");
tell("idle memory, resident", [replaced, bare], "rssMb");
tell("idle memory, shared pages by share", [replaced, bare], "pssMb");
tell(`idle memory with ${events} events, resident`, [restarted, bare], "rssMb");

function newFolder(): string {
  return Deno.makeTempDirSync({ dir: folder.path });
}

/** The first round warms up the file cache and writes what the next starts read; it is not counted. */
async function byTurns<Name extends string>(
  starts: Record<Name, () => Promise<Started>>,
): Promise<Record<Name, Started[]>> {
  const names = Object.keys(starts) as Name[];
  const measured = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, Started[]>;
  for (let round = 0; round <= rounds; round++) {
    for (const name of names) {
      const started = await starts[name]();
      if (round > 0) measured[name].push(started);
    }
  }
  return measured;
}

/** Adds a search index, as a service that has run for a while leaves in its data directory. */
async function indexed(dataDir: string): Promise<void> {
  const world = quietWorld();
  await using timeline = await Timeline.open({ dataDir, world, sync: "none" });
  await using index = SearchIndex.open({ timeline, dataDir, world });
  await index.caughtUp();
}

function serviceArgs(permissions: readonly string[]): string[] {
  return [...permissions, "--config", CONFIG, MAIN];
}

interface StartOptions {
  readonly dataDir?: string;
  readonly path?: string;
  /** Whether it is the bare server, which takes the port as its argument. */
  readonly isBare?: boolean;
  /** Checks the first answer; throws where it is not the right one. */
  readonly check?: (body: string) => void;
}

/** Starts a program and asks for `path` until it answers. */
async function start(
  args: readonly string[],
  { dataDir, path = "/v1/health", isBare = false, check = () => {} }: StartOptions,
): Promise<Started> {
  const port = freePort();
  const startMs = performance.now();
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-prompt", ...args, ...(isBare ? [String(port)] : [])],
    env: {
      SERVICE_REQUIRE_API_KEY: "false",
      SERVICE_BIND_ADDR: `127.0.0.1:${port}`,
      ...(dataDir !== undefined && { SERVICE_DATA_DIR: dataDir }),
    },
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  let body: string | null;
  while ((body = await answerOf(`http://127.0.0.1:${port}${path}`)) === null) await pause(2);
  const tookMs = performance.now() - startMs;
  const cpuMs = processorMs(child.pid);
  check(body);
  await pause(isBare ? 0 : IDLE_AFTER_MS);
  const memory = memoryOf(child.pid);
  child.kill("SIGTERM");
  await child.status;
  return { tookMs, cpuMs, ...memory };
}

/** The answer at an address; null while nothing listens. Throws for an answer that is an error. */
async function answerOf(url: string): Promise<string | null> {
  const response = await fetch(url).catch(() => null);
  if (response === null) return null;
  const body = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${body}`);
  return body;
}

function checkEvents(body: string): void {
  const seqs = JSON.parse(body).events.map(({ seq }: { seq: number }) => seq);
  const expected = Array.from({ length: events / runs }, (_, at) => READ_RUN + at * runs);
  if (String(seqs) !== String(expected)) {
    throw new Error(`other events than were written: ${body.slice(0, 500)}`);
  }
}

/** Processor time of all threads of the process since it was started, milliseconds. */
function processorMs(pid: number): number {
  const stat = Deno.readTextFileSync(`/proc/${pid}/stat`);
  const [user, system] = stat.slice(stat.lastIndexOf(")") + 2).split(" ").slice(11, 13);
  return (Number(user) + Number(system)) * TICK_MS;
}

/** Memory of the process, which has no child when it has nothing to do. */
function memoryOf(pid: number): Pick<Started, "rssMb" | "pssMb"> {
  const text = Deno.readTextFileSync(`/proc/${pid}/smaps_rollup`);
  const mb = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(text)![1]) / 1024;
  return { rssMb: mb("Rss"), pssMb: mb("Pss") };
}

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}
