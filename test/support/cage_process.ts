/** A process of its own: prints which cage it finds (`find`), or starts a program in the cage of a level and stays (`hold`). */

import { start } from "../../src/media/process.ts";
import { type CageLevel, enclosureOf } from "../../src/media/tools/cage.ts";
import { cageOf, foundCage } from "./cages.ts";
import { NEVER, tools } from "./media.ts";

const [order, level, program, ...args] = Deno.args;
if (order === "find") console.log(JSON.stringify(await foundCage(tools())));
else {
  const touches = { reads: [], writes: [], makesIn: null, usesLoopback: false };
  const tool = start(program!, args, {
    ...{ signal: NEVER, hasStdout: true, maxStderrBytes: 1000 },
    enclosure: enclosureOf(await cageOf(level as CageLevel, tools()), program!, touches),
  });
  await tool.stdout!.getReader().read();
  console.log("it runs");
  await tool.ended;
}
