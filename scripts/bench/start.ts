/**
 * Time from the start of the process to the first healthy answer, with and without the replacement of the environment
 * (docs/security.md#secrets), which starts Deno twice, beside a bare `Deno.serve`. All alternate, so that other load on the machine affects both.
 *
 *     ./scripts/deno run -A scripts/bench/start.ts [--rounds 15]
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { median, pause, report, TemporaryFolder } from "./support.ts";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
const CONFIG = fileURLToPath(new URL("../../deno.json", import.meta.url));
/** Everything but foreign functions, without which the process cannot replace itself. */
const WITHOUT_FFI = ["read", "write", "run", "net", "env", "sys"].map((name) => `--allow-${name}`);

const { values } = parseArgs({ args: Deno.args, options: { rounds: { type: "string", default: "15" } } });

using folder = new TemporaryFolder();
const replaced: number[] = [];
const kept: number[] = [];
const bare: number[] = [];
const bareFile = join(folder.path, "bare.ts");
Deno.writeTextFileSync(
  bareFile,
  `Deno.serve({ hostname: "127.0.0.1", port: Number(Deno.args[0]), onListen() {} }, () => new Response("ok"));`,
);
for (let round = 0; round < Number(values.rounds); round++) {
  replaced.push(await serviceToHealthy(["--allow-all"], `replaced-${round}`));
  kept.push(await serviceToHealthy(WITHOUT_FFI, `kept-${round}`));
  bare.push(await startToHealthy((port) => ({ args: ["run", "--allow-net", bareFile, String(port)] })));
}
console.log(`start to healthy, environment replaced: ${figures(replaced)}`);
console.log(`start to healthy, environment kept:     ${figures(kept)}`);
const limit = { name: "bare Deno.serve", values: bare };
report({
  name: "start: to healthy, environment replaced",
  unit: "ms",
  better: "less",
  ours: replaced,
  limit,
});
report({ name: "start: to healthy, environment kept", unit: "ms", better: "less", ours: kept, limit });
console.log(`difference: ${figures(replaced.map((ms, round) => ms - kept[round]!))}`);

function serviceToHealthy(permissions: readonly string[], name: string): Promise<number> {
  return startToHealthy((port) => ({
    args: ["run", "--quiet", "--no-prompt", ...permissions, "--config", CONFIG, MAIN],
    env: {
      SERVICE_API_KEYS: "bench-key",
      SERVICE_BIND_ADDR: `127.0.0.1:${port}`,
      SERVICE_DATA_DIR: join(folder.path, name),
    },
  }));
}

async function startToHealthy(
  command: (port: number) => Pick<Deno.CommandOptions, "args" | "env">,
): Promise<number> {
  const port = freePort();
  const startMs = performance.now();
  const child = new Deno.Command(Deno.execPath(), {
    ...command(port),
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  while (!await isHealthy(port)) await pause(2);
  const tookMs = performance.now() - startMs;
  child.kill("SIGTERM");
  await child.status;
  return tookMs;
}

function isHealthy(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/v1/health`).then(async (answer) => {
    await answer.body?.cancel();
    return answer.ok;
  }, () => false);
}

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

function figures(ms: readonly number[]): string {
  return `median ${median(ms).toFixed(0)} ms, least ${Math.min(...ms).toFixed(0)} ms`;
}
