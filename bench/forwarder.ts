/** What the forwarder of streams costs: its memory, its processor time at the rate of a stream, and how much
 * it passes on at most.
 */

import { realWorld } from "../src/base/world.ts";
import { quietLog } from "../src/base/log.ts";
import { findTools } from "../src/process/environment.ts";
import { cageOf, forwarderOf } from "../test/support/cages.ts";
import { TempFolder } from "../test/support/media.ts";
import { programOnPath } from "../test/support/needs.ts";
import { childProcesses } from "../test/support/own_process.ts";
import { report } from "./support.ts";

const CURL = programOnPath("curl");
if (CURL === null) throw new Error("curl is not installed");
const world = realWorld(quietLog());
const NEVER = new AbortController().signal;
const MEGABYTE = new Uint8Array(1 << 20);
const MEGABYTES = 1000;
/** Seconds of the stream, which has 8 Mbit/s in ten pieces a second. */
const STREAM_SECONDS = 20;
const PIECE = new Uint8Array(100_000);
const TICKS_PER_SECOND = 100;

using folder = new TempFolder();
const socket = `${folder.path}/m-0123456789abcdef.s`;
/** Answers as fast as it is read, or at the rate of a stream. */
function relay(request: Request): Response {
  const isFast = new URL(request.url).pathname === "/fast";
  let sent = 0;
  return new Response(
    new ReadableStream({
      async pull(controller) {
        if (sent++ === (isFast ? MEGABYTES : STREAM_SECONDS * 10)) return controller.close();
        if (!isFast) await world.sleep(100);
        controller.enqueue(isFast ? MEGABYTE : PIECE);
      },
    }),
  );
}
await using _onSocket = Deno.serve({ path: socket, onListen: () => {} }, relay);
await using onLoopback = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, relay);

const cage = await cageOf("unshare", findTools({ ffmpegPath: "ffmpeg", ffprobePath: "ffprobe" }, []));
await using forwarder = forwarderOf(cage, folder.path);
const from = performance.now();
using passage = await forwarder.open({ socket, port: 8000 }, NEVER);
console.log(`first network: ${(performance.now() - from).toFixed(0)} ms`);
const next = [];
for (let round = 0; round < 20; round++) {
  const begun = performance.now();
  using _passage = await forwarder.open({ socket, port: 8000 }, NEVER);
  next.push(performance.now() - begun);
}
console.log(`each further one: ${next.toSorted((a, b) => a - b)[10]!.toFixed(1)} ms (median of 20)`);

const pid = childProcesses("process/forwarder_process.ts")[0]!.pid;
const cpuSeconds = () => {
  const fields = Deno.readTextFileSync(`/proc/${pid}/stat`).split(") ").at(-1)!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
};
const memory = () => {
  const rollup = Deno.readTextFileSync(`/proc/${pid}/smaps_rollup`);
  const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(rollup)![1]);
  return `${(kilobytes("Rss") / 1024).toFixed(0)} MiB resident, ${
    (kilobytes("Private_Dirty") / 1024).toFixed(0)
  } MiB of its own`;
};

async function fetched(words: readonly string[], url: string): Promise<number> {
  const [program, ...args] = [...words, CURL!, "-s", "-o", "/dev/null", url];
  const begun = performance.now();
  const { success } = await new Deno.Command(program!, { args }).output();
  if (!success) throw new Error(`${url} was not read`);
  return (performance.now() - begun) / 1000;
}

const direct = `http://127.0.0.1:${onLoopback.addr.port}`;
const through = "http://127.0.0.1:8000";
console.log(`at rest: ${memory()}`);
const rates: Record<"direct" | "through", number[]> = { direct: [], through: [] };
for (let round = 0; round < 3; round++) {
  rates.direct.push(MEGABYTES / await fetched([], `${direct}/fast`));
  console.log(`direct: ${rates.direct.at(-1)!.toFixed(0)} MiB/s`);
  const cpu = cpuSeconds();
  const seconds = await fetched(passage.words, `${through}/fast`);
  rates.through.push(MEGABYTES / seconds);
  console.log(
    `through it: ${(MEGABYTES / seconds).toFixed(0)} MiB/s, ${
      (cpuSeconds() - cpu).toFixed(2)
    } s of processor`,
  );
}
const cpu = cpuSeconds();
const seconds = await fetched(passage.words, `${through}/slow`);
console.log(
  `8 Mbit/s: ${((cpuSeconds() - cpu) / seconds * 100).toFixed(2)} % of a processor over ${
    seconds.toFixed(1)
  } s`,
);
report({
  ...{ name: "forwarder: most that it passes on", unit: "MiB/s", better: "more", ours: rates.through },
  limit: { name: "direct", values: rates.direct },
});
console.log(`after it: ${memory()}; load ${Deno.loadavg()[0]!.toFixed(1)}`);
