/**
 * The single file of the service (docs/deployment/single-file.md): its size, and its first start, which
 * unpacks it, and its second, until the first healthy answer. Processor time, of the shell and what it starts
 * as well, hardly depends on other work of the machine.
 *
 *     ./scripts/deno run -A bench/single_file.ts [--rounds 5]
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { buildSingleFile } from "../scripts/single_file/build.ts";
import { pause, report, TemporaryFolder } from "./support.ts";

const PROGRAM = fileURLToPath(new URL("../dist/service", import.meta.url));
/** Milliseconds of a clock tick, in which the kernel counts processor time. */
const TICK_MS = 10;

const { values } = parseArgs({ args: Deno.args, options: { rounds: { type: "string", default: "5" } } });

interface Started {
  readonly tookMs: number;
  readonly cpuMs: number;
}

await buildSingleFile("service");
using folder = new TemporaryFolder();
const firsts: Started[] = [];
const seconds: Started[] = [];
for (let round = 0; round < Number(values.rounds); round++) {
  const home = join(folder.path, `home-${round}`);
  Deno.mkdirSync(home);
  firsts.push(await start(home));
  seconds.push(await start(home));
  Deno.removeSync(home, { recursive: true });
}
report({
  name: "single file: size",
  unit: "MB",
  better: "less",
  ours: [Deno.statSync(PROGRAM).size / 1e6],
  limit: null,
});
for (const [name, field] of [["to healthy", "tookMs"], ["processor time", "cpuMs"]] as const) {
  report({
    name: `single file: first start, ${name}`,
    unit: "ms",
    better: "less",
    ours: firsts.map((one) => one[field]),
    limit: { name: "second start", values: seconds.map((one) => one[field]) },
  });
}

async function start(home: string): Promise<Started> {
  const port = freePort();
  const startMs = performance.now();
  const child = new Deno.Command(PROGRAM, {
    clearEnv: true,
    env: {
      PATH: Deno.env.get("PATH")!,
      HOME: home,
      SERVICE_REQUIRE_API_KEY: "false",
      SERVICE_BIND_ADDR: `127.0.0.1:${port}`,
      SERVICE_DATA_DIR: join(home, "data"),
    },
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  while (!await isHealthy(port)) await pause(2);
  const tookMs = performance.now() - startMs;
  const cpuMs = processorMs(child.pid);
  child.kill("SIGTERM");
  await child.status;
  return { tookMs, cpuMs };
}

async function isHealthy(port: number): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/health`).catch(() => null);
  await response?.body?.cancel();
  return response?.ok ?? false;
}

/** Processor time of the process, and of its children that have ended, milliseconds. */
function processorMs(pid: number): number {
  const stat = Deno.readTextFileSync(`/proc/${pid}/stat`);
  const ticks = stat.slice(stat.lastIndexOf(")") + 2).split(" ").slice(11, 15);
  return ticks.reduce((sum, one) => sum + Number(one), 0) * TICK_MS;
}

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}
