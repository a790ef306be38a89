/**
 * How fast a whole data directory is checked, beside reading the same files and hashing them with SHA-256, in
 * the same rounds. The directory has markers, decoded signals and pictures. `--drop-caches` (as root, on
 * Linux) empties the file cache before each.
 *
 *     ./scripts/deno run -A bench/verify.ts [--events 400000] [--pictures 4000] [--rounds 5] [--drop-caches]
 */

import { createHash } from "node:crypto";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { checkDirectory } from "../src/store/checks/directory_check.ts";
import { Blobs } from "../src/store/media/blobs.ts";
import { Timeline } from "../src/store/timeline/timeline.ts";
import { fillTimeline, runId } from "./filled_timeline.ts";
import { cpuMs, load, quietWorld, report, TemporaryFolder, timed } from "./support.ts";

const { values } = parseArgs({
  args: Deno.args,
  options: {
    events: { type: "string", default: "400000" },
    pictures: { type: "string", default: "4000" },
    rounds: { type: "string", default: "5" },
    "drop-caches": { type: "boolean", default: false },
  },
});
const PICTURE_BYTES = 60_000;
const SIGNALS = 400;
const SIGNAL_FRAMES = 600;

using folder = new TemporaryFolder();
const dataDir = folder.path;
const logBytes = await fillTimeline({
  dataDir,
  events: Number(values.events),
  runs: 500,
  principalOf: () => "api-key:a",
});
await addPictures();
const places = { dataDir, uploadRoot: join(dataDir, "uploads") };
const files = [...filesIn(join(dataDir, "timeline"), ".wal"), ...filesIn(join(dataDir, "keyframes"), ".jpg")];
const megabytes = files.reduce((sum, path) => sum + Deno.statSync(path).size, 0) / 1e6;
console.log(
  `${megabytes.toFixed(0)} MB, of which ${(logBytes / 1e6).toFixed(0)} MB are markers; load ${load()}`,
);

const [ours, bare, cpu]: number[][] = [[], [], []];
// The first round is a warm-up and is not counted.
for (let round = 0; round <= Number(values.rounds); round++) {
  dropCaches();
  const cpuBefore = cpuMs(Deno.pid);
  const checkMs = await timed(async () => {
    const { findings } = await checkDirectory(places);
    if (!findings.isSound) throw new Error(JSON.stringify(findings.damage));
  });
  const checkCpuMs = cpuMs(Deno.pid) - cpuBefore;
  dropCaches();
  const bareMs = await timed(() => files.forEach(readAndHash));
  if (round > 0) ours!.push(megabytes / checkMs * 1000);
  if (round > 0) cpu!.push(megabytes / checkCpuMs * 1000);
  if (round > 0) bare!.push(megabytes / bareMs * 1000);
}
report({
  ...{ name: "verify: records, blobs and references", unit: "MB/s", better: "more", ours: ours! },
  limit: { name: "reading and hashing the same files", values: bare! },
});
report({
  ...{ name: "verify: for a second of processor time", unit: "MB/s", better: "more", ours: cpu! },
  limit: null,
});

async function addPictures(): Promise<void> {
  await using timeline = await Timeline.open({ dataDir, world: quietWorld(), sync: "none" });
  const blobs = Blobs.open(dataDir, quietWorld());
  const bytes = crypto.getRandomValues(new Uint8Array(PICTURE_BYTES));
  for (let number = 0; number < Number(values.pictures); number++) {
    new DataView(bytes.buffer).setUint32(0, number);
    const { ref, sha256, mediaType, sizeBytes } = await blobs.put(bytes, "jpeg");
    const payload = {
      image_ref: ref,
      image_sha256: sha256,
      image_media_type: mediaType,
      image_bytes: sizeBytes,
    };
    timeline.commit(() => [{ kind: "keyframe_stored", runId: runId(number % 500), payload }]);
  }
  const rows = Array.from({ length: SIGNAL_FRAMES }, (_, at) => [at, at * 33, Math.sin(at), Math.cos(at)]);
  for (let number = 0; number < SIGNALS; number++) {
    timeline.commit(() => [{ kind: "frames_decoded", runId: runId(number), payload: { number, rows } }]);
  }
}

function readAndHash(path: string): void {
  const buffer = new Uint8Array(1024 * 1024);
  const hash = createHash("sha256");
  using file = Deno.openSync(path, { read: true });
  for (let read = file.readSync(buffer); read; read = file.readSync(buffer)) {
    hash.update(buffer.subarray(0, read));
  }
  hash.digest("hex");
}

function* filesIn(path: string, extension: string): Iterable<string> {
  for (const { name, isDirectory } of Deno.readDirSync(path)) {
    if (isDirectory) yield* filesIn(join(path, name), extension);
    else if (name.endsWith(extension)) yield join(path, name);
  }
}

function dropCaches(): void {
  if (values["drop-caches"]) Deno.writeTextFileSync("/proc/sys/vm/drop_caches", "3");
}
