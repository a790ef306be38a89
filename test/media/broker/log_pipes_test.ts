/** The pipes for logs: in a folder of their own, as many as leave threads for other files, and gone at the
 * end.
 */

import { deepEqual, equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { newReports } from "../../../src/media/frame_reports.ts";
import type { LogPipe } from "../../../src/media/broker/log_pipe.ts";
import { LogPipes } from "../../../src/media/broker/log_pipes.ts";
import { exists, NEVER, TempFolder, tools, world } from "../../support/media.ts";
import { until } from "../../support/until.ts";

Deno.test("sixteen logs have a pipe at once, and files can still be read; nothing is left of them", async () => {
  using folder = new TempFolder();
  const directory = join(folder.path, "log-pipes");
  Deno.mkdirSync(directory);
  Deno.writeTextFileSync(join(directory, "left"), "");
  const pipes = new LogPipes({
    tools: tools(),
    places: { tempDir: join(folder.path, "tmp") },
    world: world(),
    pipes: null,
  });
  const made: (LogPipe | null)[] = [];
  for (let n = 0; n < 17; n++) made.push(await pipes.make(newReports(), NEVER));
  deepEqual(made.map((pipe) => pipe !== null), [...Array(16).fill(true), false]);
  equal(Deno.statSync(directory).mode! & 0o777, 0o700);
  equal([...Deno.readDirSync(directory)].length, 16);
  ok((await Deno.stat(folder.path)).isDirectory);

  await made[0]![Symbol.asyncDispose]();
  let another: LogPipe | null = null;
  await until(async () => (another = await pipes.make(newReports(), NEVER)) !== null);
  await Promise.all([another, ...made.slice(1)].map((pipe) => pipe?.[Symbol.asyncDispose]()));
  await pipes[Symbol.asyncDispose]();
  ok(!exists(directory));
});
