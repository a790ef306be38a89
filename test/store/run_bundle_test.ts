/** Evidence bundles: the same files each time, verified with the bundle and the public key alone, refused
 * when anything was changed.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { publicKeyReport } from "../../src/data_tools/bundle_report.ts";
import { InstanceKey } from "../../src/store/bundle/instance_key.ts";
import { type BundleManifest, writeBundle } from "../../src/store/bundle/run_bundle.ts";
import { findRun, readRun } from "../../src/store/bundle/run_events.ts";
import { EVENTS_REMOVED, summaryOf } from "../../src/model/runs/run.ts";
import { GAP_BYTES_MAX, writeGapRecord } from "../../src/store/timeline/gap_record.ts";
import { DataDirectory, flipInLine, world } from "../support/data_directory.ts";
import { TempFolder } from "../support/media.ts";
import { needing, NODE, programOnPath } from "../support/needs.ts";
import { created, event, RUN } from "../support/timeline.ts";

const OTHER = "run-00000000000000000000000000000002";

async function bundled(folder: TempFolder, name = "bundle") {
  const directory = await DataDirectory.make();
  {
    await using timeline = await directory.open();
    timeline.commit(() => [created(OTHER), event("marker_emitted", { of: "another run" }, OTHER)]);
  }
  const target = join(folder.path, name);
  Deno.mkdirSync(target);
  const manifest = writeBundle({ dataDir: directory.dataDir, runId: RUN, target, world });
  return { directory, target, manifest };
}

async function verify(target: string, ...args: string[]): Promise<{ code: number; text: string }> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-config", "--allow-read", join(target, "verify.mjs"), ...args],
  }).output();
  return { code, text: new TextDecoder().decode(code === 0 ? stdout : stderr) };
}

Deno.test("a bundle has the run's events, markers and blobs, is the same each time, and is verified by its own program", async () => {
  using folder = new TempFolder();
  const { directory, target, manifest } = await bundled(folder);
  using _directory = directory;
  assert.deepEqual([manifest.events, manifest.first_seq, manifest.last_seq, manifest.markers], [
    13,
    1,
    13,
    10,
  ]);
  const [picture, clip] = directory.blobs;
  assert.deepEqual(manifest.files.map(({ path }) => path), [
    "SHA256SUMS",
    `clips/${clip!.sha256}.mp4`,
    "events.jsonl",
    "markers.json",
    `pictures/${picture!.sha256}.jpg`,
    "public-key.pem",
    "verify.mjs",
  ]);
  const events = Deno.readTextFileSync(join(target, "events.jsonl")).trimEnd().split("\n").map((line) =>
    JSON.parse(line)
  );
  assert.deepEqual(events.map(({ sequence }) => sequence), Array.from({ length: 13 }, (_, at) => at + 1));
  assert.equal(events[0].source, `/v1/runs/${RUN}`);
  const { markers } = JSON.parse(Deno.readTextFileSync(join(target, "markers.json")));
  assert.deepEqual(markers.map(({ start_frame }: { start_frame: number }) => start_frame), [
    90,
    91,
    92,
    93,
    94,
    95,
    96,
    97,
    98,
    99,
  ]);

  const again = join(folder.path, "again");
  Deno.mkdirSync(again);
  const second = writeBundle({ dataDir: directory.dataDir, runId: RUN, target: again, world });
  assert.deepEqual({ ...second, made_at: "" }, { ...manifest, made_at: "" });

  const key = InstanceKey.open(directory.dataDir);
  const keyFile = folder.file("public.pem", key.publicKey);
  const whole = await verify(target, "--key", keyFile);
  assert.equal(whole.code, 0, whole.text);
  assert.match(
    whole.text,
    new RegExp(
      `^whole: 13 events of ${RUN} \\(1 to 13\\), 10 markers, 7 files, made .*\nsigned by key ${key.keyId}\n$`,
    ),
  );
  const printed = folder.file("printed.pem", `${publicKeyReport(key).lines.join("\n")}\n`);
  assert.deepEqual(await verify(target, "--key", printed), whole, "the key as service public-key prints it");
  assert.match((await verify(target)).text, /this is the key in the bundle/);
  if (programOnPath("openssl")) {
    const { code, stderr } = await new Deno.Command("sh", {
      args: [
        "-ec",
        "openssl pkeyutl -verify -pubin -inkey public-key.pem -rawin -in manifest.json -sigfile manifest.sig\n" +
        'grep -q "$(sha256sum SHA256SUMS | cut -c 1-64)" manifest.json\nsha256sum --check --strict SHA256SUMS',
      ],
      cwd: target,
    }).output();
    assert.equal(code, 0, new TextDecoder().decode(stderr));
  }
});

Deno.test({
  ...needing(NODE, "a changed bundle is refused, whatever was changed, by node as well"),
  async fn() {
    using folder = new TempFolder();
    const { directory, target } = await bundled(folder);
    using _directory = directory;
    const changes: [what: string, change: (path: (name: string) => string) => void, message: RegExp][] = [
      ["an event", (path) => append(path("events.jsonl"), "{}\n"), /events.jsonl was changed/],
      ["a picture", (path) => {
        const [{ name }] = [...Deno.readDirSync(path("pictures"))] as [Deno.DirEntry];
        Deno.writeTextFileSync(path(`pictures/${name}`), "a pictury");
      }, /pictures\/.*\.jpg was changed/],
      [
        "a file more",
        (path) => append(path("clips/more.mp4"), "x"),
        /clips\/more.mp4 is not in the manifest/,
      ],
      ["a file less", (path) => Deno.removeSync(path("markers.json")), /markers.json is missing/],
      ["the manifest", (path) => append(path("manifest.json"), " "), /the signature does not fit/],
      ["no signature", (path) => Deno.removeSync(path("manifest.sig")), /manifest.sig/],
    ];
    for (const [what, change, message] of changes) {
      const copy = join(folder.path, what);
      await new Deno.Command("cp", { args: ["-r", target, copy] }).output();
      change((name) => join(copy, name));
      const { code, stderr } = await new Deno.Command("node", { args: ["verify.mjs"], cwd: copy }).output();
      assert.equal(code, 1, what);
      assert.match(new TextDecoder().decode(stderr), message, what);
    }
    using others = await DataDirectory.make();
    const otherKey = folder.file("other.pem", InstanceKey.open(others.dataDir).publicKey);
    const { code, stderr } = await new Deno.Command("node", {
      args: ["verify.mjs", "--key", otherKey],
      cwd: target,
    }).output();
    assert.deepEqual([code, new TextDecoder().decode(stderr)], [
      1,
      "REFUSED: the signature does not fit the manifest and the key\n",
    ]);
  },
});

Deno.test("a bundle says which blobs are missing; a run that is not there or was deleted has none, and a key open to others is refused", async () => {
  using folder = new TempFolder();
  using directory = await DataDirectory.make();
  const [picture, clip] = directory.blobs;
  Deno.removeSync(directory.path(picture!.ref));
  directory.edit(clip!.ref, () => new TextEncoder().encode("a clap"));
  directory.edit(directory.segments[0]!, flipInLine(2));
  directory.edit(directory.segments[0]!, (bytes) => { // event 5 was removed on purpose
    const lines = new TextDecoder().decode(bytes).split("\n");
    const gap = new Uint8Array(GAP_BYTES_MAX);
    lines[4] = new TextDecoder().decode(gap.subarray(0, writeGapRecord(5, 5, gap, 0))).trimEnd();
    return new TextEncoder().encode(lines.join("\n"));
  });
  const target = (name: string) => {
    const path = join(folder.path, name);
    Deno.mkdirSync(path);
    return path;
  };
  const bundle = (name: string, runId = RUN): BundleManifest =>
    writeBundle({ dataDir: directory.dataDir, runId, target: target(name), world });
  const { missing, lost_seqs } = bundle("missing");
  assert.deepEqual(lost_seqs, [[3, 3]]);
  assert.deepEqual(missing, [
    { sha256: picture!.sha256, media_type: "image/jpeg", seq: 12, reason: "not there" },
    { sha256: clip!.sha256, media_type: "video/mp4", seq: 13, reason: "other bytes" },
  ]);
  assert.throws(
    () => writeBundle({ dataDir: directory.dataDir, runId: RUN, target: folder.path, world }),
    /is not empty/,
  );
  assert.throws(() => bundle("none", OTHER), /there is no run/);
  const key = directory.path("instance-key.pem");
  assert.equal(Deno.statSync(key).mode! & 0o777, 0o600);
  Deno.chmodSync(key, 0o640);
  assert.throws(() => bundle("open"), /must be closed to other users/);
  Deno.chmodSync(key, 0o600);
  Deno.writeTextFileSync(key, "no key");
  assert.throws(() => bundle("broken"), /holds no Ed25519 key in PEM/);
  {
    await using timeline = await directory.open();
    timeline.commit(() => [created(OTHER), event("events_removed", {}, OTHER)]);
    timeline.commit(() => [event("run_deleted", { request_id: "r" })]);
  }
  assert.throws(() => bundle("deleted"), /was deleted/);
  assert.throws(() => bundle("removed", OTHER), /were removed by retention/);
});

function append(path: string, text: string): void {
  Deno.writeTextFileSync(path, text, { append: true });
}

Deno.test("no bundle has a part of a run: one whose events are removed while it is read is refused, and another one is whole", async () => {
  using directory = await DataDirectory.make();
  {
    await using timeline = await directory.open();
    timeline.commit(() => [created(OTHER), event("marker_emitted", { of: "another run" }, OTHER)]);
  }
  const [own, other] = [RUN, OTHER].map((runId) => findRun(directory.dataDir, runId));
  {
    await using timeline = await directory.open();
    const run = timeline.view.run(RUN)!;
    const removal = event(EVENTS_REMOVED, {
      ...{ reason: "age", events: run.eventCount, bytes: run.logBytes, through_seq: run.lastSeq },
      run: summaryOf(run),
    });
    timeline.commit(() => [removal]);
    assert.ok((await timeline.removeRecords()).events > 5);
  }
  assert.throws(
    () => readRun(directory.dataDir, own!, () => {}),
    /were removed while it was read; try again$/,
  );
  const kinds: string[] = [];
  readRun(directory.dataDir, other!, ({ kind }) => kinds.push(kind));
  assert.deepEqual(kinds, ["run_created", "marker_emitted"]);
});
