/** Files that are probed once: the same file is known again, and whatever changed, is young or is no file is
 * not.
 */

import { deepEqual, equal, notEqual, rejects } from "node:assert/strict";
import { join } from "node:path";
import { fetchedInput, fileInput } from "../../../src/media/input.ts";
import type { MediaInfo } from "../../../src/media/media_info.ts";
import { probeMedia } from "../../../src/media/files/probe.ts";
import { type IdentityFacts, ProbedFiles } from "../../../src/media/files/probed_files.ts";
import type { ToolRunner } from "../../../src/media/jobs/runner.ts";
import { localRunner } from "../../support/local_runner.ts";
import { makeClip, NEVER, TempFolder, tools, world } from "../../support/media.ts";

const HOUR_MS = 3_600_000;
const NOW_MS = 1_800_000_000_000;

function facts(changed: Partial<IdentityFacts> = {}): IdentityFacts {
  const before = new Date(NOW_MS - HOUR_MS);
  return { isFile: true, dev: 1, ino: 2, size: 3, mtime: before, ctime: before, ...changed };
}

const INFO: MediaInfo = {
  formatName: "avi",
  durationMs: 1,
  sizeBytes: 3,
  video: null,
  videoStreams: 0,
  audioStreams: 0,
  audioChannels: 0,
};

/** A memory, and the clock that the test moves. */
function memory() {
  const clock = { ms: 0 };
  const files = new ProbedFiles<MediaInfo>({ now: () => NOW_MS + clock.ms, monotonicMs: () => clock.ms });
  return { files, clock };
}

Deno.test("a file is known by all that the file system says of it", () => {
  const { files } = memory();
  files.keep(facts(), facts(), INFO);
  equal(files.find(facts()), INFO);
  const later = new Date(NOW_MS - HOUR_MS + 1);
  for (
    const changed of [{ dev: 9 }, { ino: 9 }, { size: 9 }, { mtime: later }, { ctime: later }, {
      isFile: false,
    }]
  ) {
    equal(files.find(facts(changed)), undefined, JSON.stringify(changed));
  }
  equal(files.find(facts()), INFO);
});

Deno.test("what changed during the probe, is young, is no file or has no times is not remembered", () => {
  const rows: [before: IdentityFacts, after: IdentityFacts][] = [
    [facts(), facts({ size: 4 })],
    [facts(), facts({ ctime: new Date(NOW_MS - 1) })],
    ...[{ mtime: new Date(NOW_MS - 1_000) }, { ctime: new Date(NOW_MS - 1_000) }, {
      ctime: new Date(NOW_MS + HOUR_MS),
    }]
      .map((young): [IdentityFacts, IdentityFacts] => [facts(young), facts(young)]),
    ...[{ isFile: false }, { ino: null }, { mtime: null }, { ctime: null }]
      .map((other): [IdentityFacts, IdentityFacts] => [facts(other), facts(other)]),
  ];
  for (const [before, after] of rows) {
    const { files } = memory();
    files.keep(before, after, INFO);
    equal(files.find(before), undefined, JSON.stringify([before, after]));
    equal(files.find(after), undefined, JSON.stringify([before, after]));
  }
});

Deno.test("a file is forgotten after ten minutes, and when 512 others were asked for since", () => {
  const { files, clock } = memory();
  files.keep(facts(), facts(), INFO);
  clock.ms = 10 * 60_000 - 1;
  equal(files.find(facts()), INFO);
  clock.ms++;
  equal(files.find(facts()), undefined);

  for (let ino = 0; ino < 512; ino++) files.keep(facts({ ino }), facts({ ino }), INFO);
  equal(files.find(facts({ ino: 0 })), INFO);
  files.keep(facts({ ino: 512 }), facts({ ino: 512 }), INFO);
  equal(files.find(facts({ ino: 1 })), undefined);
  deepEqual([0, 2, 512].map((ino) => files.find(facts({ ino }))), [INFO, INFO, INFO]);
});

/** Probes with the real ffprobe at a time when the files are old, and says how often it ran. */
function counted() {
  let runs = 0;
  const real = localRunner(tools());
  const runner: ToolRunner = {
    ...real,
    run: (job, options) => {
      runs++;
      return real.run(job, options);
    },
  };
  const later = { ...world(), now: () => Date.now() + 60_000 };
  const known = new ProbedFiles<MediaInfo>(later);
  const probe = (path: string, input = fileInput(path)) =>
    probeMedia(input, { runner, world: later, signal: NEVER, known });
  return { probe, runs: () => runs };
}

Deno.test("ffprobe looks into a file once, and again when it was written, replaced or touched", async () => {
  using folder = new TempFolder();
  const path = makeClip(join(folder.path, "a.avi"), { frames: 5 });
  const other = makeClip(join(folder.path, "b.avi"), { frames: 5, size: "160x120" });
  const { probe, runs } = counted();
  const first = await probe(path);
  deepEqual([await probe(path), runs()], [first, 1]);

  Deno.utimeSync(path, new Date(), new Date(Date.now() - HOUR_MS));
  deepEqual([await probe(path), runs()], [first, 2]);

  Deno.renameSync(other, path);
  const replaced = await probe(path);
  deepEqual([replaced.video!.width, runs()], [160, 3]);

  Deno.writeFileSync(path, new Uint8Array(100), { append: true });
  notEqual((await probe(path)).sizeBytes, replaced.sizeBytes);
  equal(runs(), 4);

  // A link to it is the same file.
  Deno.symlinkSync(path, join(folder.path, "link.avi"));
  await probe(join(folder.path, "link.avi"));
  equal(runs(), 4);
});

Deno.test("a file of the same times and the same size is still another file", async () => {
  using folder = new TempFolder();
  const path = makeClip(join(folder.path, "a.avi"), { frames: 5 });
  const other = join(folder.path, "b.avi");
  Deno.copyFileSync(path, other);
  const bytes = Deno.readFileSync(other);
  bytes.fill(0, 0, 64);
  Deno.writeFileSync(other, bytes);
  const then = new Date(Date.now() - HOUR_MS);
  for (const file of [path, other]) Deno.utimeSync(file, then, then);
  const { probe } = counted();
  const { formatName } = await probe(path);
  Deno.renameSync(other, path);
  notEqual((await probe(path)).formatName, formatName);
});

Deno.test("a refused file and a fetched one are looked into each time", async () => {
  using folder = new TempFolder();
  const path = makeClip(join(folder.path, "a.avi"), { frames: 5 });
  const broken = folder.file("broken.mp4", "no video at all, but some text of a certain length");
  const { probe, runs } = counted();
  for (const expected of [1, 2]) {
    await rejects(probe(broken));
    equal(runs(), expected);
  }
  for (const expected of [3, 4]) {
    await probe(path, fetchedInput(path));
    equal(runs(), expected);
  }
});
