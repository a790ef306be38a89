/** The log of a real ffmpeg through a named pipe: the same reports as from its error output, whoever waits
 * for them or does not.
 */

import { deepEqual, equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { Fifo } from "../../../src/media/jobs/fifo.ts";
import { start } from "../../../src/media/process.ts";
import { DecoderLog, REPORTING, REPORTING_TO_FILE, reportsTo } from "../../../src/media/jobs/decoder_log.ts";
import { newReports, ReportReader, ReportWriter } from "../../../src/media/frame_reports.ts";
import { LogPipe, nextPause } from "../../../src/media/broker/log_pipe.ts";
import { localRunner } from "../../support/local_runner.ts";
import { NEVER, TempFolder, tools, world } from "../../support/media.ts";

const FRAMES = 300;
const DECODE = [
  ...["-nostdin", "-f", "lavfi", "-i", `testsrc=size=64x64:rate=25,trim=end_frame=${FRAMES}`],
  ...["-f", "null", "-"],
];

/** All reports that are there; 0 behind the last one. */
function taken(reports: SharedArrayBuffer): number[] {
  const reader = new ReportReader(reports);
  const all: number[] = [];
  for (let report = reader.take(); report !== 0; report = reader.take()) all.push(report);
  return all;
}

async function decode(
  args: readonly string[],
  log: DecoderLog,
  environment: Readonly<Record<string, string>> = {},
) {
  const tool = start(tools().ffmpeg, [...args, ...DECODE], {
    ...{ signal: NEVER, hasStdout: false, maxStderrBytes: 1000, log, environment },
  });
  return await tool.ended;
}

Deno.test("the reports are those of the error output, in a folder of any name, and the pipe is removed", async () => {
  using folder = new TempFolder();
  const directory = join(folder.path, "it's 100%: a\\b");
  Deno.mkdirSync(directory);
  const byErrors = newReports();
  await decode(REPORTING, new DecoderLog(new ReportWriter(byErrors), { keepsInfo: false }));

  const runner = localRunner(tools());
  const byPipe = newReports();
  const fifo = await Fifo.make({ runner, directory, world: world(), signal: NEVER });
  const pipe = new LogPipe(fifo, byPipe, world());
  const ended = await decode(
    REPORTING_TO_FILE,
    new DecoderLog(null, { keepsInfo: false }),
    reportsTo(pipe.path),
  );
  await pipe[Symbol.asyncDispose]();

  deepEqual([ended.code, ended.stderr], [0, ""]);
  const reports = taken(byPipe);
  equal(reports.length, FRAMES);
  deepEqual(reports, taken(byErrors));
  deepEqual([...Deno.readDirSync(directory)], []);
});

Deno.test("errors come by the error output, without their levels", async () => {
  using folder = new TempFolder();
  const runner = localRunner(tools());
  const fifo = await Fifo.make({ runner, directory: folder.path, world: world(), signal: NEVER });
  const reports = newReports();
  await using pipe = new LogPipe(fifo, reports, world());
  const args = [...REPORTING_TO_FILE, "-i", folder.file("none.mp4", "no film")];
  const ended = await decode(args, new DecoderLog(null, { keepsInfo: false }), reportsTo(pipe.path));
  ok(ended.code !== 0);
  ok(ended.stderr.includes("Invalid data found when processing input"), ended.stderr);
  ok(!ended.stderr.includes("[error]"), ended.stderr);
});

Deno.test("a program that never opens the pipe leaves no reading behind", async () => {
  using folder = new TempFolder();
  const fifo = await Fifo.make({
    ...{ runner: localRunner(tools()), directory: folder.path, world: world(), signal: NEVER },
  });
  const reports = newReports();
  const pipe = new LogPipe(fifo, reports, world());
  await pipe[Symbol.asyncDispose]();
  equal(new ReportReader(reports).take(), 0);
  deepEqual([...Deno.readDirSync(folder.path)], []);
});

Deno.test("whoever waits for a report ends the pause of the writer", async () => {
  const reports = newReports();
  const writer = new ReportWriter(reports);
  const reader = `onmessage = ({ data }) => {
    const words = new Int32Array(data, 0, 2);
    Atomics.store(words, 1, 1);
    Atomics.notify(words, 1);
  };`;
  const worker = new Worker(URL.createObjectURL(new Blob([reader], { type: "text/javascript" })), {
    type: "module",
  });
  // The waiting itself does not keep a process running.
  const running = setTimeout(() => {}, 60_000);
  const startedMs = performance.now();
  const pausing = writer.wait(60_000);
  worker.postMessage(reports);
  await pausing;
  worker.terminate();
  await writer.wait(60_000);
  ok(performance.now() - startedMs < 30_000);
  writer.add(1);
  const before = performance.now();
  await writer.wait(20);
  clearTimeout(running);
  ok(performance.now() - before >= 15);
});

Deno.test("pauses are longer while little is logged, and short again as soon as much is", () => {
  const rows: [pauseMs: number, gotBytes: number, next: number][] = [
    [10, 1_000, 20],
    [20, 1_000, 40],
    [40, 1, 40],
    [20, 3_000, 20],
    [40, 4_096, 40],
    [40, 4_097, 10],
    [10, 65_536, 10],
  ];
  for (const [pauseMs, gotBytes, next] of rows) {
    equal(nextPause(pauseMs, gotBytes), next, `${pauseMs}, ${gotBytes}`);
  }
});

Deno.test("a writer that is told to stops waiting, and does not wait again", async () => {
  const writer = new ReportWriter(newReports());
  const pausing = writer.wait(60_000);
  writer.stopWaiting();
  await pausing;
  await writer.wait(60_000);
});
