/** A service on a disk of 200 MB that fills: what goes on while it is full, what retention removes, and that
 * nothing is lost or torn.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { event } from "../../../src/model/events/event_table.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import { principalKeyOf } from "../../../src/model/identifiers.ts";
import { Blobs } from "../../../src/store/media/blobs.ts";
import { checkDirectory } from "../../../src/store/checks/directory_check.ts";
import { RESERVE_FILE } from "../../../src/store/space/disk_reserve.ts";
import { world } from "../../support/data_directory.ts";
import { Ballast, withSmallDisk } from "../../support/folders.ts";
import { BOUNDARY, filePart, form } from "../../support/http/multipart.ts";
import { metric } from "../../support/live/live.ts";
import { serveRtsp } from "../../support/live/rtsp_server.ts";
import { make, TempFolder } from "../../support/media.ts";
import { startReason } from "../../support/models/reason.ts";
import { needing, SMALL_DISK } from "../../support/needs.ts";
import { CLIPS, KEY_A, newRun, REACHES_IN, startService, type TestService } from "../../support/service.ts";
import { until } from "../../support/until.ts";

const DISK_MIB = 200;
const MIB = 1024 * 1024;
const HASH_A = principalKeyOf(KEY_A).slice("api-key:".length);
const FILM = withFreeBox(Deno.readFileSync(join(CLIPS, "bbb120.mp4")), 16 * MIB);
/** The floor of free room is looked at every second. */
const QUICK = {
  ...REACHES_IN,
  timerMs: (ms: number) => ms === LIMITS.retention.floorCheckMs ? 1_000 : ms,
};

/** The film with a box behind it that has nothing: a large file that is probed fast. */
function withFreeBox(film: Uint8Array, bytes: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(film.length + bytes);
  larger.set(film);
  new DataView(larger.buffer).setUint32(film.length, bytes);
  larger.set(new TextEncoder().encode("free"), film.length + 4);
  return larger;
}

function camera(name: string, port: number): string {
  return `[[sources]]\nname = "${name}"\nuri = "rtsp://camera.test:${port}/${name}"\nprincipals = ["${HASH_A}"]\n` +
    `live = true\nrecording = { hours = 48 }\n`;
}

/** A run that has ended, with a clip of that many MiB which is old enough to go. */
async function runWithClip(test: TestService, mebibytes: number): Promise<{ runId: string; sha256: string }> {
  const runId = await newRun(test);
  const bytes = new Uint8Array(mebibytes * MIB);
  bytes.set(new TextEncoder().encode(runId));
  const { sha256, ref, mediaType, sizeBytes } = await Blobs.open(test.dataDir, world).put(bytes, "mp4");
  const old = new Date(Date.now() - 2 * 3_600_000);
  Deno.utimeSync(join(test.dataDir, ref), old, old);
  test.service.timeline.commit(() => [
    event("clip_stored", runId, { sha256, media_ref: ref, media_type: mediaType, bytes: sizeBytes } as never),
  ]);
  assert.equal((await test.call("POST", `/v1/runs/${runId}/stop`)).status, 200);
  return { runId, sha256 };
}

/** Uploads one film under the given name; only bytes that nobody reads are others. */
function upload(test: TestService, name: string) {
  const film = FILM.slice();
  film.set(new TextEncoder().encode(name), film.length - 64);
  return test.send("/v1/upload", {
    method: "POST",
    headers: { "x-api-key": KEY_A, "content-type": `multipart/form-data; boundary=${BOUNDARY}` },
    body: form([filePart(film, name)]),
  });
}

// deno-lint-ignore no-explicit-any -- an answer of any shape
function assertDiskRefused({ status, json }: { status: number; json: any }): void {
  assert.deepEqual([status, json.error.code], [503, "storage_unavailable"]);
  assert.match(json.error.message, /the disk refused it/);
}

/** Runs that were answered until the disk took none any more. */
async function runsUntilRefused(test: TestService): Promise<string[]> {
  const runs: string[] = [];
  for (;;) {
    const answer = await test.call("POST", "/v1/runs", {});
    if (answer.status !== 200) {
      assertDiskRefused(answer);
      return runs;
    }
    runs.push(answer.json.run_id);
  }
}

async function assertSound(test: TestService, lastSeq: number): Promise<void> {
  const { findings, log } = await checkDirectory({ dataDir: test.dataDir, uploadRoot: test.uploadRoot });
  assert.deepEqual(findings.damage, []);
  assert.ok(log.nextSeq - 1 >= lastSeq, "an event that was committed is there");
}

/**
 * Leaves no room for a small event in what the log has of the disk. In one turn, so that retention makes no
 * room meanwhile.
 */
function fillLog({ service: { timeline } }: TestService, runId: string): void {
  assert.throws(() => {
    for (;;) timeline.commit(() => [event("keepalive_refreshed", runId, {} as never)]);
  }, { code: "storage_unavailable" });
}

function uploadsIn({ uploadRoot }: TestService): string[] {
  return [...Deno.readDirSync(uploadRoot)].map(({ name }) => name).filter((name) => name !== ".names");
}

function sizeOf(path: string): number {
  try {
    return Deno.statSync(path).size;
  } catch {
    return 0;
  }
}

async function isRemoved(test: TestService, runId: string): Promise<boolean> {
  return (await test.call("GET", `/v1/runs/${runId}`)).json.events_removed === true;
}

async function freeBytes(test: TestService): Promise<number> {
  return (await test.call("GET", "/v1/system")).json.disk.free_bytes;
}

Deno.test({
  ...needing(
    SMALL_DISK,
    "a disk that fills: reads go on, nothing is torn, and retention makes room when not a byte is free",
  ),
  fn: () =>
    withSmallDisk(async (disk) => {
      const ballast = new Ballast(join(disk, "other"));
      await using test = await startService({ SERVICE_ACTIVE_STREAM_LIMIT: "1000" }, {
        ...QUICK,
        root: disk,
      });
      const clips = [];
      for (let number = 0; number < 7; number++) clips.push(await runWithClip(test, 10));
      const [held, ...others] = clips.map(({ runId }) => runId);
      assert.equal((await test.call("POST", `/v1/runs/${held}/hold`)).status, 200);

      let uploads = 0;
      for (;; uploads++) {
        const answer = await upload(test, `film-${uploads}.mp4`);
        if (answer.status === 200) continue;
        assertDiskRefused(answer);
        break;
      }
      assert.ok(uploads > 2);
      assert.equal(
        uploadsIn(test).length,
        uploads,
        "nothing is left of the refused one",
      );
      ballast.fill();
      const answered = await runsUntilRefused(test);
      const { lastSeq } = test.service.timeline.view;
      for (const { runId, sha256 } of clips) {
        assert.equal((await test.call("GET", `/v1/runs/${runId}/events`)).status, 200);
        const path = `/v1/runs/${runId}/media/${sha256}`;
        assert.equal((await test.send(path, { headers: { "x-api-key": KEY_A } })).status, 200);
      }
      assert.equal((await test.call("GET", "/v1/runs")).json.length, clips.length + answered.length);

      // The ballast leaves the service what it needs to start and to take its reserve, then takes all again.
      await test.restart(async () => {
        await assertSound(test, lastSeq);
        ballast.remove();
        Deno.removeSync(join(test.uploadRoot, uploadsIn(test)[0]!));
      }, { SERVICE_RETENTION_FREE_BYTES: String(MIB) });
      const reserve = join(test.dataDir, RESERVE_FILE);
      await until("there is a reserve", () => sizeOf(reserve) === LIMITS.retention.reserveBytes);
      ballast.fill();
      fillLog(test, held!);
      const refused = test.service.timeline.stats.appendFailures;
      await until("one run is gone", () => isRemoved(test, others[0]!));
      assert.ok(
        test.service.timeline.stats.appendFailures > refused,
        "its event had no room without the reserve",
      );
      const removed = [];
      for (const runId of [held!, ...others]) removed.push(await isRemoved(test, runId));
      assert.deepEqual(
        removed,
        [false, true, false, false, false, false, false],
        "the oldest that is not on hold",
      );
      await until("the reserve is whole again", () => sizeOf(reserve) === LIMITS.retention.reserveBytes);
      answered.push(await newRun(test));

      // A floor that needs two more: it takes one, then two.
      ballast.fill();
      await test.restart(() => {}, { SERVICE_RETENTION_FREE_BYTES: String(15 * MIB) });
      await until("there is enough room", async () => await freeBytes(test) >= 15 * MIB);
      assert.deepEqual([await isRemoved(test, held!), await isRemoved(test, others.at(-1)!)], [false, false]);
      assert.equal((await upload(test, "later.mp4")).status, 200);
      answered.push(await newRun(test));
      const end = test.service.timeline.view.lastSeq;
      await test.restart(() => assertSound(test, end));
      for (const runId of answered) assert.equal((await test.call("GET", `/v1/runs/${runId}`)).status, 200);
    }, DISK_MIB),
});

Deno.test({
  ...needing(SMALL_DISK, "cameras stay live on a full disk, and record on when there is room"),
  fn: () =>
    withSmallDisk(async (disk) => {
      using folder = new TempFolder();
      const film = Deno.readFileSync(make(
        join(folder.path, "camera.ts"),
        ...["-f", "lavfi", "-i", "testsrc2=s=160x120:r=25", "-frames:v", "300", "-g", "50"],
        ...["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"],
      ));
      await using dock = serveRtsp(film, { isEndless: true, playsMs: 2_000 });
      await using gate = serveRtsp(film, { isEndless: true, playsMs: 2_000 });
      const ballast = new Ballast(join(disk, "other"));
      await using live = await startReason({ answer: () => "A picture." }, {
        SERVICE_ALLOW_UNENCRYPTED_RTSP: "true",
      }, {
        ...QUICK,
        root: disk,
        outbound: { resolve: () => Promise.resolve(["93.184.216.34"]), reroute: () => "127.0.0.1" },
        sourcesFile: camera("dock", dock.port) + camera("gate", gate.port),
      });
      const { test } = live;
      // deno-lint-ignore no-explicit-any -- as the answers of tests are
      const looks = async (): Promise<any[]> => (await test.call("GET", "/v1/sources")).json.sources;
      const recordedSince = (atMs: number) => async () =>
        (await looks()).every(({ state, recording }) =>
          state === "live" && recording.newest_end_at_ms > atMs
        );
      await until("both cameras are recorded", recordedSince(0));
      const before = await looks();
      ballast.fill();
      const refused = () => metric(test, "service_timeline_append_failures_total");
      await until("the disk refuses events", async () => {
        await runsUntilRefused(test);
        return await refused() > 0;
      });
      for (const { state, run_id } of await looks()) {
        assert.equal(state, "live");
        assert.ok(before.some((look) => look.run_id === run_id), "it goes on with its run");
        assert.equal((await test.call("GET", `/v1/runs/${run_id}/events`)).status, 200);
      }
      ballast.remove();
      await until("both are recorded again", recordedSince(Date.now()));
      const { lastSeq } = test.service.timeline.view;
      await test.restart(() => assertSound(test, lastSeq));
    }, DISK_MIB),
});
