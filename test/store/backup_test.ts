/** Backups of a data directory: consistent beside a writer, incremental, never half, and the same after a
 * restore.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import type { BackupStorage } from "../../src/model/backup_storage.ts";
import { makeBackup } from "../../src/store/backup/backup.ts";
import { backupIds, headName, readHead, readHeads, readList } from "../../src/store/backup/backup_list.ts";
import { FolderStorage } from "../../src/store/backup/folder_storage.ts";
import { pruneBackups } from "../../src/store/backup/prune.ts";
import { restoreBackup } from "../../src/store/backup/restore.ts";
import { checkDirectory } from "../../src/store/checks/directory_check.ts";
import { blobPath, Blobs } from "../../src/store/media/blobs.ts";
import { S3Storage } from "../../src/remote/s3_storage.ts";
import type { SleepSignal } from "../../src/base/world.ts";
import { Timeline } from "../../src/store/timeline/timeline.ts";
import { DataDirectory, world } from "../support/data_directory.ts";
import { serveRaw } from "../support/http/tls_server.ts";
import { S3_KEYS, S3Server } from "../support/s3_server.ts";
import { TempFolder } from "../support/media.ts";
import { event, RUN } from "../support/timeline.ts";

function storageIn(folder: TempFolder): BackupStorage {
  return new FolderStorage(join(folder.path, "backups"), world);
}

/** Restores into a new folder, checks it, and opens its timeline. */
async function restored(storage: BackupStorage, folder: TempFolder, id?: string): Promise<Timeline> {
  const dataDir = join(folder.path, `restored-${crypto.randomUUID()}`);
  const places = { dataDir, uploadRoot: join(dataDir, "uploads") };
  await restoreBackup({ storage, places, id, world });
  const { findings } = await checkDirectory(places);
  assert.ok(findings.isSound, JSON.stringify(findings.damage));
  assert.equal(Deno.readTextFileSync(join(places.uploadRoot, "public__film.mp4")), "an upload");
  return await Timeline.open({ dataDir, world, sync: "none" });
}

Deno.test("a backup is restored as it was, a second one has only what is new, and an earlier one can still be restored", async () => {
  using directory = await DataDirectory.make();
  using folder = new TempFolder();
  const storage = storageIn(folder);
  const first = await makeBackup(directory.places, storage, world);
  assert.deepEqual([first.head.last_seq, first.damagedBlobs], [13, []]);
  const again = await makeBackup(directory.places, storage, world);
  assert.deepEqual([again.newObjects, again.newBytes], [0, 0], "nothing is new");
  {
    await using timeline = await directory.open();
    timeline.commit(() => [event("keepalive_refreshed", { request_id: "later" })]);
  }
  const grown = await makeBackup(directory.places, storage, world);
  assert.equal(grown.head.last_seq, 14);
  assert.ok(
    grown.newObjects === 2 && grown.newBytes < 1500,
    `${grown.newObjects} objects, ${grown.newBytes} bytes`,
  );
  {
    await using timeline = await restored(storage, folder);
    assert.equal(timeline.view.run(RUN)!.eventCount, 14);
    const [last] = [...timeline.read(RUN, { fromSeq: 14 })].flat();
    assert.equal(last!.payload, '{"request_id":"later"}');
  }
  await using earlier = await restored(storage, folder, first.head.id);
  assert.equal(earlier.view.run(RUN)!.eventCount, 13);
});

Deno.test("restored files have the times that they had, so that the age of uploads goes on", async () => {
  using directory = await DataDirectory.make();
  using folder = new TempFolder();
  const storage = storageIn(folder);
  const film = join(directory.places.uploadRoot, "public__film.mp4");
  const then = new Date("2026-11-01T10:00:00.123Z");
  Deno.utimeSync(film, then, then);
  await makeBackup(directory.places, storage, world);
  const dataDir = join(folder.path, "restored");
  const places = { dataDir, uploadRoot: join(dataDir, "uploads") };
  await restoreBackup({ storage, places, world });
  assert.deepEqual(Deno.statSync(join(places.uploadRoot, "public__film.mp4")).mtime, then);
  const again = await makeBackup(places, storage, world);
  assert.equal(again.newObjects, 0, "nothing is new in what was restored");
});

Deno.test("a backup has what lies behind links to other disks, and none is made of a blob that is a pipe", async () => {
  using directory = await DataDirectory.make();
  using folder = new TempFolder();
  const far = join(folder.path, "far");
  Deno.mkdirSync(far);
  for (const name of ["keyframes", "media/blobs"]) {
    const to = join(far, name.replace("/", "-"));
    Deno.renameSync(directory.path(name), to);
    Deno.symlinkSync(to, directory.path(name));
  }
  const file = directory.path(blobPath("video/mp4", directory.blobs[1]!.sha256)!);
  Deno.renameSync(file, join(far, "clip"));
  Deno.symlinkSync(join(far, "clip"), file);
  Deno.symlinkSync(directory.dataDir, directory.path("media/around"));
  Deno.symlinkSync(far, join(directory.uploadRoot, "public__link.mp4"));
  const storage = storageIn(folder);
  const { head } = await makeBackup(directory.places, storage, world);
  {
    await using timeline = await restored(storage, folder);
    assert.equal(timeline.view.run(RUN)!.eventCount, 13);
  }
  const paths = (await readList(storage, head)).map(({ path }) => path);
  assert.deepEqual(paths.filter((path) => /around|link/.test(path)), []);
  Deno.removeSync(file);
  assert.ok((await new Deno.Command("mkfifo", { args: [file] }).output()).success);
  await assert.rejects(makeBackup(directory.places, storage, world), /mp4 is no regular file; run repair$/);
});

Deno.test("a backup beside a writer ends with a whole commit, and has every blob that its events name", async () => {
  using directory = await DataDirectory.make();
  using folder = new TempFolder();
  const storage = storageIn(folder);
  let isWriting = true;
  await using timeline = await directory.open();
  const writing = (async () => {
    const blobs = Blobs.open(directory.dataDir, world);
    for (let number = 0; isWriting; number++) {
      const { sha256, mediaType } = await blobs.put(new TextEncoder().encode(`picture ${number}`), "jpeg");
      timeline.commit(() => [
        event("keyframe_stored", { image_sha256: sha256, image_media_type: mediaType }),
        event("marker_emitted", { number }),
      ]);
    }
  })();
  for (let round = 0; round < 3; round++) {
    const { head } = await makeBackup(directory.places, storage, world);
    await using copy = await restored(storage, folder);
    assert.equal(copy.view.lastSeq, head.last_seq);
    assert.equal(head.last_seq % 2, 1, "events come in pairs after the first thirteen");
    assert.equal(copy.stats.damagedRecords, 0);
  }
  isWriting = false;
  await writing;
});

Deno.test("a backup during which events are removed is planned again, so that it has what its events name", async () => {
  using directory = await DataDirectory.make();
  using folder = new TempFolder();
  const storage = storageIn(folder);
  await using timeline = await directory.open();
  let isRemoved = false;
  const removing: BackupStorage = {
    remove: (name) => storage.remove(name),
    ...{ name: "removing", list: (prefix) => storage.list(prefix), get: (name) => storage.get(name) },
    put: async (name, bytes) => {
      await storage.put(name, bytes);
      if (isRemoved) return;
      isRemoved = true; // the log is being copied
      timeline.commit(() => [event("events_removed", {})]);
      for (const { ref } of directory.blobs) Deno.removeSync(directory.path(ref));
    },
  };
  const { head } = await makeBackup(directory.places, removing, world);
  assert.equal(head.last_seq, 14);
  await using copy = await restored(storage, folder);
  assert.equal(copy.view.lastSeq, 14);
});

Deno.test("a backup that is broken off at any object leaves the one before, and the next one goes on with what is there", async () => {
  using directory = await DataDirectory.make();
  using folder = new TempFolder();
  const storage = storageIn(folder);
  using counted = new TempFolder();
  const objects = await countObjects(directory, storageIn(counted));
  for (let most = 0; most < objects; most++) {
    using broken = new TempFolder();
    let left = most;
    const breaking: BackupStorage = {
      remove: (name) => storage.remove(name),
      ...{ name: "breaking", list: (prefix) => storageIn(broken).list(prefix) },
      get: (name) => storageIn(broken).get(name),
      put: (name, bytes) =>
        left-- > 0 ? storageIn(broken).put(name, bytes) : Promise.reject(new Error("power off")),
    };
    await assert.rejects(makeBackup(directory.places, breaking, world), /power off/);
    assert.deepEqual(await backupIds(storageIn(broken)), []);
    const rest = await makeBackup(directory.places, storageIn(broken), world);
    assert.equal(rest.newObjects, objects - 1 - most, "what was stored is used");
  }
  await makeBackup(directory.places, storage, world);
  assert.equal((await backupIds(storage)).length, 1);
});

/** The objects of a first backup, its head included. */
async function countObjects(directory: DataDirectory, storage: BackupStorage): Promise<number> {
  return (await makeBackup(directory.places, storage, world)).newObjects + 1;
}

Deno.test("what is not whole is not restored: no backup, a lost or damaged object, a directory in use, one that was broken off", async () => {
  using directory = await DataDirectory.make();
  using folder = new TempFolder();
  const storage = storageIn(folder);
  const into = (name: string) => {
    const dataDir = join(folder.path, name);
    return { storage, world, places: { dataDir, uploadRoot: join(dataDir, "uploads") } };
  };
  await assert.rejects(restoreBackup(into("none")), /has no whole backup/);
  const { head } = await makeBackup(directory.places, storage, world);
  await assert.rejects(restoreBackup({ storage, world, places: directory.places }), /is not empty, it has /);
  await assert.rejects(restoreBackup({ ...into("none"), id: "2020" }), /has no backup 2020/);
  const outside = "../backups/" + head.id;
  await assert.rejects(restoreBackup({ ...into("none"), id: outside }), /has no backup \.\.\/backups\//);

  const [clip] = directory.blobs.filter(({ mediaType }) => mediaType === "video/mp4");
  const object = join(folder.path, "backups", "objects", clip!.sha256.slice(0, 2), clip!.sha256);
  Deno.writeTextFileSync(object, "a clap");
  await assert.rejects(restoreBackup(into("damaged")), /is damaged: its bytes have another hash/);
  await assert.rejects(restoreBackup(into("damaged")), /is not empty/);
  const { places: { dataDir } } = into("damaged");
  await assert.rejects(
    Timeline.open({ dataDir, world, sync: "none" }),
    /the restore of a backup .* was broken off/,
  );
  await assert.rejects(checkDirectory(into("damaged").places), /was broken off/);
  Deno.removeSync(object);
  await assert.rejects(restoreBackup(into("lost")), /has lost objects/);
  const repaired = await makeBackup(directory.places, storage, world);
  assert.equal(repaired.newObjects, 1, "a lost object comes again, as its file has not changed");
  await using _timeline = await restored(storage, folder, head.id);
});

Deno.test("a damaged blob is said, the head of another format is refused, and temporary files stay away", async () => {
  using directory = await DataDirectory.make();
  using folder = new TempFolder();
  const storage = storageIn(folder);
  directory.edit(directory.blobs[0]!.ref, (bytes) => bytes.map((byte) => byte ^ 1));
  for (
    const path of [
      "tmp/x",
      "reserve",
      "search-index",
      "set-aside/1/x",
      "keyframes/blobs/.part__1",
      "timeline/x.wal.new",
    ]
  ) {
    Deno.mkdirSync(join(directory.path(path), ".."), { recursive: true });
    Deno.writeTextFileSync(directory.path(path), "temporary");
  }
  const { head, damagedBlobs } = await makeBackup(directory.places, storage, world);
  assert.deepEqual(damagedBlobs, [directory.blobs[0]!.ref]);
  const text =
    (await Promise.all(head.list.map(([sha256]) => storage.get(`objects/${sha256.slice(0, 2)}/${sha256}`))))
      .map((bytes) => new TextDecoder().decode(bytes!)).join("");
  assert.deepEqual(
    text.trimEnd().split("\n").map((line) =>
      JSON.parse(line).path.replace(/\/[0-9a-f]{2}\/[0-9a-f]{64}|\d{15,}/, "")
    ).sort(),
    [
      "format",
      "keyframes/blobs.jpg",
      "media/blobs.mp4",
      "timeline/.wal",
      "timeline/.wal",
      "uploads/public__film.mp4",
      "webhook-delivery.wal",
    ],
  );
  const later = { ...head, id: "2100-01-01T00-00-00.000Z", format: 2 };
  await putHead(storage, later);
  await assert.rejects(readHead(storage, later.id), /has format 2, and this version reads 1/);
});

Deno.test("a backup in S3-compatible storage: signed, listed by pages, repeated after faults, refused with a wrong key that no message has", async () => {
  using directory = await DataDirectory.make();
  using folder = new TempFolder();
  await using server = new S3Server();
  const quick = {
    ...world,
    sleep: (ms: number, signal?: SleepSignal) => world.sleep(ms < 60_000 ? 0 : ms, signal),
  };
  const storage = new S3Storage(server.place, quick);
  server.faults = 2;
  const { head, newObjects } = await makeBackup(directory.places, storage, world);
  assert.ok(
    newObjects > server.pageKeys && [...server.objects.keys()].every((key) => key.startsWith("site a/")),
  );
  assert.equal((await makeBackup(directory.places, storage, world)).newObjects, 0);
  {
    await using timeline = await restored(storage, folder, head.id);
    assert.equal(timeline.view.run(RUN)!.eventCount, 13);
  }
  const wrong = new S3Storage({ ...server.place, secretAccessKey: "another-secret" }, quick);
  await assert.rejects(makeBackup(directory.places, wrong, world), ({ message }: Error) => {
    assert.match(
      message,
      /^s3:\/\/backups\/site a\/ did not list an object: status 403 SignatureDoesNotMatch$/,
    );
    return true;
  });
  server.faults = 100;
  await assert.rejects(makeBackup(directory.places, storage, world), /status 503 SlowDown/);
  assert.equal(server.faults, 95, "five attempts");
  const away = new S3Storage({ ...server.place, endpoint: "http://127.0.0.1:1" }, quick);
  await assert.rejects(makeBackup(directory.places, away, world), ({ message }: Error) => {
    assert.match(message, /^http:\/\/127.0.0.1:1 cannot be reached: /);
    assert.ok(!message.includes(S3_KEYS.secretAccessKey) && !/Signature=/.test(message));
    return true;
  });
});

Deno.test("an answer that is no whole listing is an error, before anything is stored: no storage, a page that is cut, the same page for ever", async () => {
  using directory = await DataDirectory.make();
  await using server = new S3Server();
  const storage = new S3Storage(server.place, world);
  const object = (key: string, size = "1") => `<Contents><Key>${key}</Key><Size>${size}</Size></Contents>`;
  const page = (content: string) => `<ListBucketResult>${content}</ListBucketResult>`;
  const more = "<IsTruncated>true</IsTruncated>";
  const below = "names an object that is not below site a/objects/, or has no size";
  const answers: [body: string, why: string, requests: number][] = [
    ["<!doctype html><title>Welcome</title>", "is no whole ListBucketResult", 1],
    ["", "is no whole ListBucketResult", 1],
    ["<html><ListBucketResult></ListBucketResult></html>", "is no whole ListBucketResult", 1],
    [`<ListBucketResult>${object("site%20a/objects/x")}`, "is no whole ListBucketResult", 1],
    [page(object("another/objects/x")), below, 1],
    [page(object("site%20a/objects/%")), below, 1],
    [page(object("site%20a/objects/x", "")), below, 1],
    [page(more), "has no NextContinuationToken, and is not the last one", 1],
    [
      page(`${more}<NextContinuationToken>again</NextContinuationToken>`),
      "has the same NextContinuationToken as one before",
      2,
    ],
  ];
  for (const [body, why, requests] of answers) {
    [server.body, server.requests] = [body, 0];
    const message =
      `${server.endpoint} is no S3-compatible storage: its answer to a listing of s3://backups/site a/ ${why}`;
    await assert.rejects(makeBackup(directory.places, storage, world), { message });
    assert.equal(server.requests, requests, "nothing is stored");
    await assert.rejects(backupIds(storage), {
      message: message.replace("site a/objects/", "site a/backups/"),
    });
  }
  server.body =
    '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">' +
    `${object("site+a/objects/x")}<IsTruncated>false</IsTruncated></ListBucketResult>\n`;
  assert.deepEqual(await Array.fromAsync(storage.list("objects/")), [{ name: "objects/x", bytes: 1 }]);
  server.body = "<ListBucketResult/>";
  assert.deepEqual(await backupIds(storage), []);
});

Deno.test("a storage that answers absurdly is an error soon, and fills no memory: without end, too long a token, names that never end", async () => {
  let answer: () => Response = () => new Response();
  let requests = 0;
  await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, () => {
    requests++;
    return answer();
  });
  const endpoint = `http://127.0.0.1:${server.addr.port}`;
  const place = { endpoint, region: "r", bucket: "b", prefix: "", ...S3_KEYS };
  const storage = new S3Storage(place, world);
  const listed = () => Array.fromAsync(storage.list("x"));
  const tooLong = { message: `${endpoint} answers with more than 16777216 bytes` };
  const page = (content: string) => () => new Response(`<ListBucketResult>${content}</ListBucketResult>`);
  let sent = 0;
  const endless = new Uint8Array(2 ** 20).fill(97);
  answer = () =>
    new Response(
      new ReadableStream({
        pull(controller) {
          sent += endless.length;
          controller.enqueue(endless);
        },
      }),
    );
  await assert.rejects(storage.get("x"), tooLong);
  await assert.rejects(storage.put("x", new Uint8Array(1)), tooLong);
  await assert.rejects(listed(), tooLong);
  assert.equal(requests, 3, "none is repeated");
  assert.ok(sent < 3 * 40 * 2 ** 20, `${sent} bytes`);

  const bomb = await new Response(
    new Blob([new Uint8Array(2 ** 25)]).stream().pipeThrough(new CompressionStream("gzip")),
  ).bytes();
  answer = () => new Response(bomb, { headers: { "content-encoding": "gzip" } });
  await assert.rejects(storage.get("x"), tooLong);

  answer = page("<Contents>".repeat(1_600_000));
  await assert.rejects(listed(), /names an object that is not below x, or has no size/);
  answer = page(
    `<IsTruncated>true</IsTruncated><NextContinuationToken>${"t".repeat(5000)}</NextContinuationToken>`,
  );
  await assert.rejects(listed(), /has a NextContinuationToken of more than 4096 characters/);
  answer = () => new Response(null, { status: 302, headers: { location: "http://169.254.169.254/" } });
  await assert.rejects(storage.get("x"), /did not read an object: status 302/);

  await using silent = serveRaw("", () => new Promise(() => {}));
  await using dribbling = serveRaw(
    "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\na",
    () => new Promise(() => {}),
  );
  await using short = serveRaw("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nabc");
  await using endlessHead = serveRaw(
    `HTTP/1.1 200 OK\r\nx: ${"y".repeat(8 * 2 ** 20)}`,
    () => new Promise(() => {}),
  );
  const hasty = { ...world, sleep: (ms: number, signal?: SleepSignal) => world.sleep(ms / 1000, signal) };
  for (const { port } of [silent, dribbling, short, endlessHead]) {
    const at = new S3Storage({ ...place, endpoint: `http://127.0.0.1:${port}` }, hasty);
    await assert.rejects(at.get("x"), /^Error: http:.* cannot be reached: /);
  }
});

Deno.test("backups that are dropped take with them what only they had, and whatever is broken off leaves the others whole", async () => {
  using directory = await DataDirectory.make();
  using folder = new TempFolder();
  await using server = new S3Server();
  for (const storage of [storageIn(folder), new S3Storage(server.place, world)]) {
    const upload = join(directory.places.uploadRoot, "public__other.bin");
    const ids: string[] = [];
    for (let number = 0; number < 4; number++) {
      Deno.writeTextFileSync(upload, `only in the backup ${number} of ${storage.name}`);
      ids.push((await makeBackup(directory.places, storage, world)).head.id);
    }
    const lefts = await objectsOf(storage);
    assert.deepEqual((await pruneBackups(storage, 9, ids.at(-1)!)).dropped, []);
    assert.deepEqual(await objectsOf(storage), lefts, "nothing goes while all are kept");
    // Broken off at each removal in turn.
    let removals = 0;
    for (let isWhole = false; !isWhole; removals++) {
      let left = removals;
      const failing: BackupStorage = {
        name: storage.name,
        list: (prefix) => storage.list(prefix),
        get: (name) => storage.get(name),
        put: (name, bytes) => storage.put(name, bytes),
        remove: (name) => left-- > 0 ? storage.remove(name) : Promise.reject(new Error("broken off")),
      };
      isWhole = await pruneBackups(failing, 2, ids.at(-1)!).then(() => true, () => false);
      for (const id of (await backupIds(storage)).slice(-2)) {
        await using _ = await restored(storage, folder, id);
      }
      if (removals > 20) throw new Error("never whole");
    }
    assert.ok(removals > 2, `${removals} times`);
    assert.deepEqual(await backupIds(storage), ids.slice(-2));
    assert.ok((await objectsOf(storage)).length < lefts.length);
    const { dropped, objects } = await pruneBackups(storage, 2, ids.at(-1)!);
    assert.deepEqual([dropped, objects], [[], 0]);
    assert.equal((await makeBackup(directory.places, storage, world)).newObjects, 0, "what is kept is there");
  }
});

Deno.test("a backup counts as the newest though another is of a time to come: it is not dropped, and is what is restored", async () => {
  using directory = await DataDirectory.make();
  using folder = new TempFolder();
  const storage = storageIn(folder);
  const ahead = { ...world, now: () => Date.parse("2100-01-01T00:00:00Z") };
  const early = await makeBackup(directory.places, storage, ahead);
  assert.deepEqual([early.head.id, early.namedBehind], ["2100-01-01T00-00-00.000Z", null]);
  const untold = join(folder.path, "untold");
  await assert.rejects(
    restoreBackup({ storage, world, places: { dataDir: untold, uploadRoot: join(untold, "uploads") } }),
    /^Error: which backup is the newest cannot be told: 2100-01-01T00-00-00.000Z began at 2100-01-01T00:00:00.000Z, /,
  );
  assert.throws(() => Deno.statSync(untold), Deno.errors.NotFound, "nothing was done");
  {
    await using timeline = await directory.open();
    timeline.commit(() => [event("keepalive_refreshed", { request_id: "later" })]);
  }
  const late = await makeBackup(directory.places, storage, world);
  assert.deepEqual([late.head.id, late.namedBehind], ["2100-01-01T00-00-00.001Z", early.head.id]);
  assert.ok(Date.parse(late.head.begun_at) <= world.now() && late.newObjects === 2, "only what is new");
  {
    await using timeline = await restored(storage, folder);
    assert.equal(timeline.view.run(RUN)!.eventCount, 14);
  }
  assert.deepEqual((await pruneBackups(storage, 1, late.head.id)).dropped, [early.head.id]);
  {
    await using timeline = await restored(storage, folder);
    assert.equal(timeline.view.run(RUN)!.eventCount, 14);
  }
  // One that another program names so: what was just made stays even then.
  await putHead(storage, { ...late.head, id: "2101-01-01T00-00-00.000Z" });
  await pruneBackups(storage, 1, late.head.id);
  assert.deepEqual(await backupIds(storage), [late.head.id]);
  await putHead(storage, { ...late.head, id: "9999-12-31T23-59-59.999Z" });
  await assert.rejects(
    makeBackup(directory.places, storage, world),
    /^Error: no backup can be named behind backups\/9999-.*json; move that file away$/,
  );
});

Deno.test("a head that cannot be read is named with what is wrong, hides no other, and lets nothing be dropped", async () => {
  using directory = await DataDirectory.make();
  using folder = new TempFolder();
  const storage = storageIn(folder);
  const { head: first } = await makeBackup(directory.places, storage, world);
  const upload = join(directory.places.uploadRoot, "public__other.bin");
  Deno.writeTextFileSync(upload, "only in the second backup");
  const { head: second } = await makeBackup(directory.places, storage, world);
  Deno.removeSync(upload);
  const whole = (await storage.get(headName(second.id)))!;
  const faults: [text: string, fault: RegExp][] = [
    ["{", /^it is no JSON: Expected property name/],
    ["", /^it is no JSON: /],
    ["[]", /^it must be an object, got a list$/],
    ["null", /^it must be an object, got null$/],
    ['{"format":1}', /^id is required$/],
    ['{"format":2}', /^it has format 2, and this version reads 1$/],
    [JSON.stringify({ ...second, format: "1" }), /^format must be 1$/],
    [JSON.stringify({ ...second, id: first.id }), /^it is the head of the backup "\d{4}-/],
    [JSON.stringify({ ...second, begun_at: "soon" }), /^begun_at must be a time$/],
    [JSON.stringify({ ...second, list: {} }), /^list must be a list, got an object$/],
    [JSON.stringify({ ...second, list: [["../x", 1]] }), /^list\.0\.0 must be a SHA-256$/],
  ];
  for (const [text, fault] of faults) {
    await storage.put(headName(second.id), new TextEncoder().encode(text));
    const heads = await readHeads(storage);
    assert.deepEqual(heads.whole.map(({ id }) => id), [first.id]);
    assert.deepEqual(heads.unreadable.map(({ object }) => object), [headName(second.id)]);
    assert.match(heads.unreadable[0]!.fault, fault);
    const dataDir = join(folder.path, "restored-not");
    await assert.rejects(
      restoreBackup({ storage, world, places: { dataDir, uploadRoot: join(dataDir, "uploads") } }),
      /^Error: the newest backup is none to restore: backups\/.* cannot be read: .*; name another one with --backup$/,
    );
  }
  const third = await makeBackup(directory.places, storage, world);
  assert.equal(third.newObjects, 0, "a backup is made beside it");
  const objects = await objectsOf(storage);
  const refused = await pruneBackups(storage, 1, third.head.id);
  assert.deepEqual([refused.dropped, refused.unreadable.map(({ object }) => object)], [[], [
    headName(second.id),
  ]]);
  assert.deepEqual(await objectsOf(storage), objects, "nothing goes that it may need");
  await storage.put(headName(second.id), whole);
  {
    await using timeline = await restored(storage, folder, second.id);
    assert.equal(timeline.view.run(RUN)!.eventCount, 13);
  }
  assert.deepEqual((await pruneBackups(storage, 1, third.head.id)).dropped, [first.id, second.id]);
});

async function putHead(storage: BackupStorage, head: { readonly id: string }): Promise<void> {
  await storage.put(headName(head.id), new TextEncoder().encode(JSON.stringify(head)));
}

async function objectsOf(storage: BackupStorage): Promise<string[]> {
  return (await Array.fromAsync(storage.list("objects/"))).map(({ name }) => name).sort();
}
