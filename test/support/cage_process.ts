/** A process of its own: prints which cage it finds (`find`), starts a program in the cage of a level and
 * stays (`hold`), or a job on a stream (`forward`).
 */

import { join } from "node:path";
import { hlsInput } from "../../src/media/input.ts";
import { start } from "../../src/media/process.ts";
import { type CageLevel, enclosureOf } from "../../src/media/broker/cage.ts";
import { cageOf, foundCage } from "./cages.ts";
import { NEVER, tools, world } from "./media.ts";
import { TestBroker } from "./test_broker.ts";

const [order, level, program, ...args] = Deno.args;
if (order === "find") console.log(JSON.stringify(await foundCage(tools())));
else if (order === "forward") {
  const folder = Deno.makeTempDirSync();
  const socket = join(folder, "m-0123456789abcdef.s");
  const places = { tempDir: folder, uploadRoot: folder, ingestRoots: [] };
  const broker = new TestBroker(tools(), places, await cageOf("unshare", tools()));
  const relay = Deno.listen({ transport: "unix", path: socket });
  const input = hlsInput("http://127.0.0.1:8000/x.m3u8", socket);
  const bounds = { deadlineMs: 600_000, maxStdoutBytes: 1000, maxStderrBytes: 1000 };
  void broker.client.run({ kind: "probe", input }, { world: world(), signal: NEVER, ...bounds });
  await relay.accept();
  Deno.removeSync(folder, { recursive: true });
  console.log("it reads");
  await new Promise(() => setInterval(() => {}, 60_000));
} else {
  const touches = { reads: [], writes: [], devices: [], isCaged: true, makesIn: null, usesLoopback: false };
  const tool = start(program!, args, {
    ...{ signal: NEVER, hasStdout: true, maxStderrBytes: 1000 },
    enclosure: enclosureOf(await cageOf(level as CageLevel, tools()), program!, touches),
  });
  await tool.stdout!.getReader().read();
  console.log("it runs");
  await tool.ended;
}
