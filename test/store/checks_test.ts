/** Damage of each kind in a data directory: the check names it, the repair sets it aside, and a service opens
 * what is left.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { checkDirectory } from "../../src/store/checks/directory_check.ts";
import { repairDirectory } from "../../src/store/checks/repair.ts";
import { DataDirectory, flipInLine, world } from "../support/data_directory.ts";
import { PROJECT_ROOT } from "../support/service.ts";
import { event } from "../support/timeline.ts";

interface DamageCase {
  readonly what: string;
  readonly harm: (directory: DataDirectory) => void | Promise<void>;
  /** The kinds of findings that follow from it: damage, then notes after a bar. */
  readonly found: string;
  /** What the check says after the repair. */
  readonly repaired: string;
  /** Events that the timeline has after it; all 13 unless given. */
  readonly events?: number;
}

const CASES: readonly DamageCase[] = [
  { what: "nothing", harm: () => {}, found: "|", repaired: "|" },
  {
    what: "a flipped bit in a record of the first segment",
    harm: (directory) => directory.edit(directory.segments[0]!, flipInLine(2)),
    found: "damaged_bytes|",
    repaired: "|accepted_loss",
    events: 12,
  },
  {
    what: "a flipped bit in the last record of the log",
    harm: (directory) => {
      const last = directory.segments.at(-1)!;
      const lines = Deno.readTextFileSync(directory.path(last)).trimEnd().split("\n").length;
      directory.edit(last, flipInLine(lines - 1));
    },
    found: "damaged_bytes|unreferenced_blob",
    repaired: "|accepted_loss",
    events: 12,
  },
  {
    what: "a torn tail",
    harm: (directory) =>
      Deno.writeTextFileSync(directory.path(directory.segments.at(-1)!), "1 5f0a12cd 0000", { append: true }),
    found: "|torn_write",
    repaired: "|",
  },
  {
    what: "a segment that is gone",
    harm: (directory) => Deno.removeSync(directory.path(directory.segments[0]!)),
    found: "missing_events|",
    repaired: "|accepted_loss",
    events: 6,
  },
  {
    what: "a lost event, and other bytes in the blob that only it named",
    harm: (directory) => {
      const last = directory.segments.at(-1)!;
      directory.edit(last, (bytes) => bytes.subarray(0, bytes.lastIndexOf(0x0a, -2) + 1));
      directory.edit(directory.blobs.at(-1)!.ref, (bytes) => bytes.map((byte) => byte ^ 1));
    },
    found: "damaged_blob missing_events|unreferenced_blob",
    repaired: "|accepted_loss",
    events: 12,
  },
  {
    what: "an end of the log that only the snapshot knows of",
    harm: (directory) => {
      const last = directory.segments.at(-1)!;
      directory.edit(last, (bytes) => bytes.subarray(0, bytes.lastIndexOf(0x0a, -2) + 1));
    },
    found: "missing_events|unreferenced_blob",
    repaired: "|accepted_loss",
    events: 12,
  },
  {
    what: "a missing blob",
    harm: (directory) => Deno.removeSync(directory.path(directory.blobs[0]!.ref)),
    found: "missing_blob|",
    repaired: "|accepted_loss",
  },
  {
    what: "a blob with other bytes of the same length",
    harm: (directory) => directory.edit(directory.blobs[1]!.ref, (bytes) => bytes.map((byte) => byte ^ 1)),
    found: "damaged_blob|",
    repaired: "|accepted_loss",
  },
  {
    what: "a reference to a blob that never was",
    harm: async (directory) => {
      await using timeline = await directory.open();
      timeline.commit(() => [
        event("keyframe_stored", { image_sha256: "0".repeat(64), image_media_type: "image/jpeg" }),
      ]);
    },
    found: "missing_blob|",
    repaired: "|accepted_loss",
    events: 14,
  },
  {
    what: "a blob that no event names, an unfinished one and a strange file",
    harm: (directory) => {
      const folder = directory.path("keyframes/blobs");
      const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"; // of "test"
      Deno.mkdirSync(join(folder, "9f"), { recursive: true });
      Deno.writeTextFileSync(join(folder, "9f", `${hash}.jpg`), "test");
      Deno.writeTextFileSync(join(folder, ".part__00"), "t");
      Deno.writeTextFileSync(join(folder, "note.txt"), "t");
    },
    found: "|leftover_file strange_file unreferenced_blob",
    repaired: "|leftover_file strange_file unreferenced_blob",
  },
  {
    what: "a damaged delivery log, kept answer, snapshot and format",
    harm: (directory) => {
      directory.edit("webhook-delivery.wal", flipInLine(0));
      Deno.mkdirSync(directory.path("idempotency"));
      const answer = '84fa37eb {"scope":"s"}\n';
      Deno.writeTextFileSync(directory.path("idempotency/0"), answer);
      directory.edit("timeline/snapshot", flipInLine(0));
      Deno.writeTextFileSync(directory.path("format"), "?");
    },
    found: "damaged_deliveries damaged_format|leftover_file unusable_snapshot",
    repaired: "|leftover_file",
  },
];

for (const { what, harm, found, repaired, events = 13 } of CASES) {
  Deno.test(`checked and repaired: ${what}`, async () => {
    using directory = await DataDirectory.make();
    await harm(directory);
    const before = namesAndBytes(directory.dataDir);
    assert.equal(await kindsIn(directory), found);
    assert.deepEqual(namesAndBytes(directory.dataDir), before, "a check writes nothing");

    const { after, setAside, steps } = await repairDirectory(directory.places, world);
    assert.equal(kinds(after.findings), repaired, steps.join("\n"));
    if (setAside !== null) assert.ok(Deno.statSync(directory.path(`${setAside}/report.json`)).isFile);
    const bytesOf = new Set(namesAndBytes(directory.dataDir).values());
    for (const [name, bytes] of before) {
      if (name !== "lock") assert.ok(bytesOf.has(bytes), `${name} is kept somewhere`);
    }
    {
      await using timeline = await directory.open();
      assert.equal(timeline.stats.events, events);
      const [committed] = timeline.commit(() => [event("keepalive_refreshed", { request_id: "r" })]);
      assert.ok(committed!.seq >= 14, "the number of a lost event is not used again");
    }
    // What was accepted is no damage: retention removes blobs, and nobody is called, from the log as from its
    // snapshot.
    await using timeline = await directory.open();
    const { isSound, damagedRecords } = timeline.stats;
    assert.deepEqual({ isSound, damagedRecords }, { isSound: true, damagedRecords: 0 });
  });
}

Deno.test("events that a start found missing are no damage once a repair has accepted them, and their blobs are kept aside", async () => {
  using directory = await DataDirectory.make();
  const last = directory.segments.at(-1)!;
  const lines = Deno.readTextFileSync(directory.path(last)).trimEnd().split("\n").length;
  directory.edit(last, flipInLine(lines - 1));
  const damaged = async () => {
    await using timeline = await directory.open();
    timeline.commit(() => [event("keepalive_refreshed", { request_id: "r" })]);
    return timeline.stats.damagedRecords;
  };
  assert.equal(await damaged(), 1);
  assert.equal(await damaged(), 1, "its snapshot counts it");
  const unnamed = (await checkDirectory(directory.places)).findings.notes
    .filter(({ kind }) => kind === "unreferenced_blob");
  assert.equal(unnamed.length, 1);
  const { setAside, steps } = await repairDirectory(directory.places, world);
  assert.ok(steps.includes("set 1 blobs aside that no event names: lost ones may have"), steps.join("\n"));
  assert.ok(Deno.statSync(directory.path(`${setAside}/${unnamed[0]!.path}`)).isFile);
  assert.equal(await damaged(), 0);
  assert.equal(await damaged(), 0);

  // A whole segment: nothing of the log is rewritten, and the snapshot stays.
  Deno.removeSync(directory.path(directory.segments[0]!));
  const missing = await damaged();
  assert.equal(missing, 7);
  assert.equal(await damaged(), missing);
  await repairDirectory(directory.places, world);
  assert.ok(Deno.statSync(directory.path("timeline/snapshot")).isFile);
  assert.equal(await damaged(), 0);
});

Deno.test("a pipe is not waited for: it is damage where a file is to be, and a repair sets it aside", async () => {
  using directory = await DataDirectory.make();
  const segment =
    "20261124T101500123Z_10040_751c79832c20087d332e351728791aeb_0_900_4_avc1.42e01f-9f86d081_none_1.mp4";
  const pipes = [
    `keyframes/blobs/ab/${"ab".repeat(32)}.jpg`,
    `recordings/dock/20261124/${segment}`,
    "uploads/public__pipe.mp4",
    "webhook-delivery.wal",
  ];
  for (const pipe of pipes) {
    const path = directory.path(pipe);
    Deno.mkdirSync(join(path, ".."), { recursive: true });
    await Deno.remove(path).catch(() => {});
    assert.ok((await new Deno.Command("mkfifo", { args: [path] }).output()).success);
  }
  const { findings } = await checkDirectory(directory.places);
  const unreadable = findings.damage.filter(({ kind }) => kind === "unreadable_file");
  assert.deepEqual(unreadable.map(({ path }) => path).sort(), pipes.toSorted());
  for (const { text } of unreadable) assert.match(text, /it is no regular file/);

  const { after, setAside } = await repairDirectory(directory.places, world);
  assert.ok(after.findings.isSound, JSON.stringify(after.findings.damage));
  for (const pipe of pipes) assert.ok(Deno.statSync(directory.path(`${setAside}/${pipe}`)).isFifo);
});

Deno.test("data directories that earlier versions wrote are sound", async () => {
  const folder = join(PROJECT_ROOT, "fixtures", "data_directories");
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    if (!isDirectory) continue;
    const dataDir = join(folder, name, "data");
    const { findings, log } = await checkDirectory({ dataDir, uploadRoot: join(dataDir, "uploads") });
    assert.ok(findings.isSound && log.records > 10, JSON.stringify(findings.damage));
  }
});

Deno.test("a check beside a writer sees no damage, and a repair is refused", async () => {
  using directory = await DataDirectory.make();
  await using timeline = await directory.open();
  let isWriting = true;
  const writing = (async () => {
    while (isWriting) {
      timeline.commit(() =>
        Array.from({ length: 20 }, () => event("marker_emitted", { text: "x".repeat(50) }))
      );
      await new Promise((resolve) => setTimeout(resolve));
    }
  })();
  for (let round = 0; round < 5; round++) assert.equal(await kindsIn(directory), "|");
  await assert.rejects(repairDirectory(directory.places, world), /another process \(pid \d+\) owns/);
  isWriting = false;
  await writing;
  assert.equal(timeline.stats.damagedRecords, 0);
});

async function kindsIn(directory: DataDirectory): Promise<string> {
  return kinds((await checkDirectory(directory.places)).findings);
}

function kinds({ damage, notes }: Awaited<ReturnType<typeof checkDirectory>>["findings"]): string {
  return [damage, notes].map((list) => [...new Set(list.map(({ kind }) => kind))].sort().join(" ")).join("|");
}

/** The bytes of each file as text, by its path. */
function namesAndBytes(folder: string, below = ""): Map<string, string> {
  const found = new Map<string, string>();
  for (const { name, isDirectory } of Deno.readDirSync(join(folder, below))) {
    const path = join(below, name);
    if (isDirectory) { for (const [inner, bytes] of namesAndBytes(folder, path)) found.set(inner, bytes); }
    else found.set(path, new TextDecoder("latin1").decode(Deno.readFileSync(join(folder, path))));
  }
  return found;
}
