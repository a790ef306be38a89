/** The commands on a data directory as an operator starts them: arguments, exit codes, a backup beside a real
 * service.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { makeBackup } from "../../src/store/backup/backup.ts";
import { FolderStorage } from "../../src/store/backup/folder_storage.ts";
import { BackupLock } from "../../src/store/backup/backup_lock.ts";
import { DataDirectory, world } from "../support/data_directory.ts";
import { TempFolder } from "../support/media.ts";
import { S3_KEYS, S3Server } from "../support/s3_server.ts";
import { PROJECT_ROOT, startService } from "../support/service.ts";
import { RUN } from "../support/timeline.ts";
import { until } from "../support/until.ts";

function command(args: readonly string[], env: Record<string, string> = {}): Deno.Command {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", "--no-prompt", join(PROJECT_ROOT, "src/main.ts"), ...args],
    env,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
}

async function tool(args: readonly string[], env: Record<string, string> = {}) {
  const { code, stdout, stderr } = await command(args, env).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, stdout: text(stdout), stderr: text(stderr) };
}

Deno.test("a backup of a running service is restored into an empty directory, and a service answers from it as before", async () => {
  await using service = await startService();
  using folder = new TempFolder();
  const target = join(folder.path, "backups");
  const env = { SERVICE_DATA_DIR: service.dataDir, SERVICE_UPLOAD_ROOT: service.uploadRoot };
  const { json: { run_id } } = await service.call("POST", "/v1/runs", {});
  await service.call("POST", `/v1/runs/${run_id}/keepalive`);
  Deno.writeTextFileSync(join(service.uploadRoot, "public__film.mp4"), "an upload");
  const answers = async () => {
    const paths = [
      "/v1/runs",
      `/v1/runs/${run_id}`,
      `/v1/runs/${run_id}/events`,
      `/v1/runs/${run_id}/markers`,
    ];
    const texts = await Promise.all(paths.map((path) => service.call("GET", path)));
    return texts.map(({ text }) => text.replace(/"request_id":"req-[0-9a-f]+"/, ""));
  };
  const before = await answers();
  const made = await tool(["backup", target], env);
  assert.equal(made.code, 0, made.stderr);
  const busy = await tool(["repair"], env);
  assert.deepEqual([busy.code, busy.stdout], [3, ""]);
  assert.match(
    busy.stderr,
    /^cannot repair the data directory: Cannot open the data directory: another process \(pid \d+\) owns/,
  );
  await service.restart(async () => {
    for (const place of [service.dataDir, service.uploadRoot]) {
      for (const { name } of Deno.readDirSync(place)) Deno.removeSync(join(place, name), { recursive: true });
    }
    const restored = await tool(["restore", target, "--json"], env);
    assert.equal(restored.code, 0, restored.stderr);
    assert.equal(JSON.parse(restored.stdout).last_seq, 2);
  });
  assert.deepEqual(await answers(), before);
  assert.equal(Deno.readTextFileSync(join(service.uploadRoot, "public__film.mp4")), "an upload");
});

Deno.test("a backup that is killed in the middle is no backup, one that drops others runs alone, and arguments that are wrong say what is right", async () => {
  using directory = await DataDirectory.make();
  using folder = new TempFolder();
  const target = join(folder.path, "backups");
  const options = ["--data-dir", directory.dataDir];
  using film = Deno.openSync(join(directory.uploadRoot, "public__long.mp4"), {
    createNew: true,
    write: true,
  });
  for (let piece = 0; piece < 40; piece++) film.writeSync(crypto.getRandomValues(new Uint8Array(65536)));
  film.truncateSync(2 * 2 ** 30); // it takes long
  const child = command(["backup", target, ...options]).spawn();
  await until("an object is stored", () => {
    try {
      return [...Deno.readDirSync(join(target, "objects"))].length > 4;
    } catch {
      return false;
    }
  });
  const dropping = await tool(["backup", target, "--keep", "1", ...options]);
  assert.deepEqual([dropping.code, dropping.stdout], [3, ""]);
  assert.match(
    dropping.stderr,
    /^cannot make the backup: another backup runs into .*backups, and --keep could remove/,
  );
  child.kill("SIGKILL");
  assert.equal((await child.output()).code, 137);
  const listed = await tool(["backups", target, "--json", ...options]);
  assert.deepEqual(JSON.parse(listed.stdout).backups, [], listed.stderr);
  {
    using _lock = BackupLock.acquire(target, { dropsOthers: true });
    const second = await tool(["backup", target, ...options]);
    assert.deepEqual([second.code, second.stdout], [3, ""]);
    assert.match(
      second.stderr,
      /^cannot make the backup: a backup with --keep runs into .*backups, and could remove/,
    );
  }

  const wrong: [args: string[], message: RegExp][] = [
    [["verify", "x"], /service verify: it takes no argument 'x'/],
    [["backup"], /service backup: it takes TARGET/],
    [["backup", ""], /service backup: TARGET is empty/],
    [["export", "", target], /service export: RUN is empty/],
    [["backup", "S3://bucket"], /^S3:\/\/bucket must be a folder, or s3:\/\/BUCKET or s3:\/\/BUCKET\/PREFIX/],
    [["restore", "gs://bucket/site"], /must be a folder, or s3:/],
    [["export", RUN, "s3://bucket/case"], /^s3:\/\/bucket\/case must be a folder$/m],
    [["backup", join(directory.dataDir, "b")], /must lie outside of/],
    [["export", RUN, join(directory.uploadRoot, "c", "d")], /must lie outside of/],
    [["backup", target, "--keep", "0"], /--keep must be a whole number of at least 1, got '0'/],
    [["restore", join(folder.path, "none")], /is no folder with backups/],
    [["verify", "--data-dir", folder.path], /is no data directory of this service/],
  ];
  for (const [args, message] of wrong) {
    const ended = await tool(args.includes("--data-dir") ? args : [...args, ...options]);
    assert.equal(ended.code, 2, ended.stdout);
    assert.match(ended.stderr, message);
  }

  const [evidence, empty] = [join(folder.path, "case", "7"), join(folder.path, "empty")];
  const unknown = await tool(["export", "run-x", evidence, ...options]);
  assert.deepEqual([unknown.code, unknown.stderr], [3, "cannot export the run: there is no run run-x\n"]);
  Deno.writeTextFileSync(directory.path("instance-key.pem"), "no key", { mode: 0o600 });
  const unsigned = await tool(["export", RUN, evidence, ...options]);
  assert.deepEqual([unsigned.code, unsigned.stdout], [3, ""]);
  const absent = await tool(["restore", target, "--backup", "2020", "--data-dir", empty]);
  assert.deepEqual([absent.code, absent.stdout], [3, ""]);
  assert.match(absent.stderr, /^cannot restore the backup: .*backups has no backup 2020/);
  for (
    const made of [directory.path("b"), join(directory.uploadRoot, "c"), join(folder.path, "case"), empty]
  ) {
    assert.throws(() => Deno.statSync(made), Deno.errors.NotFound, "nothing was done");
  }
});

Deno.test("a head that cannot be read hides no backup: it is named with exit code 1, and keeps all where others would be dropped", async () => {
  using directory = await DataDirectory.make();
  using folder = new TempFolder();
  const target = join(folder.path, "backups");
  const options = ["--data-dir", directory.dataDir];
  const made: string[] = [];
  for (let number = 0; number < 2; number++) {
    made.push(JSON.parse((await tool(["backup", target, "--json", ...options])).stdout).backup);
  }
  const name = "backups/2026-11-01T00-00-00.000Z.json";
  Deno.writeTextFileSync(join(target, name), "{");
  const damage = `damage: unreadable_head: ${name}: it is no JSON: `;
  const listed = await tool(["backups", target, ...options]);
  assert.deepEqual([listed.code, listed.stderr], [1, ""]);
  const lines = listed.stdout.trimEnd().split("\n");
  assert.ok(
    made.every((id, number) => lines[number]!.startsWith(`backup ${id}: events up to 13, `)),
    lines[0],
  );
  assert.ok(lines.length === 3 && lines[2]!.startsWith(damage), listed.stdout);
  const json = JSON.parse((await tool(["backups", target, "--json", ...options])).stdout);
  assert.deepEqual(json.unreadable_heads.map((head: { name: string }) => head.name), [name]);
  const kept = await tool(["backup", target, "--keep", "1", ...options]);
  assert.deepEqual([kept.code, kept.stderr], [1, ""]);
  assert.match(kept.stdout, /^backup .*\n.*\ndropped 0 backups: 0 objects, /);
  assert.ok(kept.stdout.includes(damage) && kept.stdout.includes("nothing is dropped while a head"));
  Deno.removeSync(join(target, name));

  // The list of a backup that is to be kept is lost: the new one is reported all the same.
  const newest = JSON.parse(Deno.readTextFileSync(join(target, "backups", `${made[1]}.json`)));
  const [[sha256]] = newest.list;
  Deno.writeTextFileSync(join(directory.uploadRoot, "public__new.bin"), "new");
  await tool(["backup", target, ...options]);
  Deno.removeSync(join(target, "objects", sha256.slice(0, 2), sha256));
  const failed = await tool(["backup", target, "--keep", "4", ...options]);
  assert.equal(failed.code, 3);
  assert.match(failed.stdout, /^backup .*: events up to 13, /);
  assert.match(
    failed.stderr,
    /^the backup is whole, but not all that --keep drops is dropped: .* has lost objects\//,
  );
});

Deno.test("a backup of a time to come is noted, the next one says behind which it is named, and --keep leaves the next one", async () => {
  using directory = await DataDirectory.make();
  using folder = new TempFolder();
  const target = join(folder.path, "backups");
  const options = ["--data-dir", directory.dataDir];
  const ahead = { ...world, now: () => Date.parse("2100-01-01T00:00:00Z") };
  const early = (await makeBackup(directory.places, new FolderStorage(target, world), ahead)).head.id;
  const listed = await tool(["backups", target, ...options]);
  assert.deepEqual([listed.code, listed.stderr], [0, ""]);
  assert.match(
    listed.stdout,
    /^note: backup 2100-\S+ began at 2100-01-01T00:00:00.000Z, which the clock has not reached: /m,
  );
  const untold = await tool(["restore", target, "--data-dir", join(folder.path, "restored")]);
  assert.equal(untold.code, 3);
  assert.match(untold.stderr, /^cannot restore the backup: which backup is the newest cannot be told: 2100-/);

  const made = await tool(["backup", target, "--keep", "1", ...options]);
  assert.deepEqual([made.code, made.stderr], [0, ""]);
  assert.match(made.stdout, /^backup 2100-01-01T00-00-00\.001Z \(begun 20\d\d-\S+Z\): events up to 13, /);
  assert.match(made.stdout, new RegExp(`^note: it is named right behind ${early}, `, "m"));
  const { backups, ahead_of_clock } = JSON.parse(
    (await tool(["backups", target, "--json", ...options])).stdout,
  );
  assert.deepEqual([backups.map((one: { backup: string }) => one.backup), ahead_of_clock], [
    ["2100-01-01T00-00-00.001Z"],
    [],
  ]);
  const restored = await tool(["restore", target, "--data-dir", join(folder.path, "restored")]);
  assert.deepEqual([restored.code, restored.stderr], [0, ""]);
});

Deno.test("what a tool cannot do is said in a sentence", async () => {
  using folder = new TempFolder();
  await using server = new S3Server();
  const options = ["--data-dir", folder.path];
  const listed = await tool(["backups", "s3://another", ...options], storageSettings(server.endpoint));
  assert.deepEqual([listed.code, listed.stdout, listed.stderr], [
    3,
    "",
    "cannot list the backups: s3://another/ did not list an object: status 404 NoSuchBucket\n",
  ]);
  server.body = "<!doctype html><title>Welcome</title>";
  const page = await tool(["backups", "s3://backups", ...options], storageSettings(server.endpoint));
  assert.deepEqual([page.code, page.stdout], [3, ""]);
  assert.match(page.stderr, /^cannot list the backups: http:.* is no S3-compatible storage: its answer to /);
  Deno.mkdirSync(join(folder.path, "timeline"));
  Deno.writeTextFileSync(join(folder.path, "restoring"), "2026-11-01T00-00-00.000Z\n");
  const verified = await tool(["verify", ...options]);
  assert.equal(verified.code, 3);
  assert.match(verified.stderr, /^cannot verify the data directory: /);
});

function storageSettings(endpoint: string): Record<string, string> {
  return {
    SERVICE_BACKUP_S3_ENDPOINT: endpoint,
    SERVICE_BACKUP_S3_REGION: "eu-test-1",
    SERVICE_BACKUP_S3_ACCESS_KEY_ID: S3_KEYS.accessKeyId,
    SERVICE_BACKUP_S3_SECRET_ACCESS_KEY: S3_KEYS.secretAccessKey,
  };
}

Deno.test("a link to a file outside of the directory is never followed into a backup, and is named", async () => {
  using directory = await DataDirectory.make();
  using folder = new TempFolder();
  const [target, outside] = [join(folder.path, "backups"), join(folder.path, "outside")];
  const options = ["--data-dir", directory.dataDir];
  Deno.writeTextFileSync(outside, "another's secret");
  const { ref } = directory.blobs[0]!;
  Deno.removeSync(directory.path(ref));
  Deno.symlinkSync(outside, directory.path(ref));
  const { code, stderr } = await tool(["backup", target, ...options]);
  assert.deepEqual(
    [code, stderr],
    [
      3,
      `cannot make the backup: ${ref} is a link to a file elsewhere; put the file in its place, or run repair\n`,
    ],
  );
  const repaired = await tool(["repair", ...options]);
  assert.equal(repaired.code, 0, repaired.stdout + repaired.stderr);
  const made = await tool(["backup", target, ...options]);
  assert.equal(made.code, 0, made.stderr);
});
