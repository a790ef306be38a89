/** The single files of `scripts/build`: each runs where neither Deno nor Node is, and starts nothing that it
 * has not checked.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { buildSingleFile } from "../../scripts/single_file/build.ts";
import { TemporaryFolder } from "../support/folders.ts";
import { needing, NODE, programOnPath } from "../support/needs.ts";
import { TraceCollector } from "../support/otlp_collector.ts";
import { CLIPS } from "../support/service.ts";
import { until } from "../support/until.ts";

const KEY = "single-file-key";
/** Options of a build that is quick: only the size of the files is another. */
const QUICK = { isQuick: true };
/** All that the files may use; `bwrap` and the like make the cage, where they are there. */
const PROGRAMS = [
  ...[
    "sh",
    "cat",
    "chmod",
    "gzip",
    "head",
    "id",
    "mkdir",
    "mktemp",
    "mv",
    "readlink",
    "rm",
    "sha256sum",
    "xz",
  ],
  ...[
    "stat",
    "tail",
    "tar",
    "ffmpeg",
    "ffprobe",
    "mkfifo",
    "prlimit",
    "bwrap",
    "unshare",
    "nsenter",
    "setpriv",
  ],
  ...["mount", "umount", "b2sum"],
];

// The tests go on with what the first one has built.
const folder = new TemporaryFolder();
const inFolder = (...names: string[]) => join(folder.path, ...names);
const service = inFolder("service");
const cache = inFolder("home", ".cache", "service");
Deno.mkdirSync(inFolder("home"));
Deno.mkdirSync(inFolder("bin"));
for (const name of PROGRAMS) {
  const path = programOnPath(name);
  if (path !== null) Deno.symlinkSync(path, inFolder("bin", name));
}
addEventListener("unload", () => folder[Symbol.dispose]());

const env = {
  PATH: inFolder("bin"),
  HOME: inFolder("home"),
  SERVICE_API_KEYS: KEY,
  SERVICE_BIND_ADDR: "127.0.0.1:0",
  SERVICE_DATA_DIR: inFolder("data"),
  SERVICE_INGEST_FILE_ROOTS: CLIPS,
};
const run = async (program: string, args: string[], more: Record<string, string> = {}) => {
  const { code, stdout, stderr } = await new Deno.Command(program, {
    args,
    clearEnv: true,
    env: { ...env, ...more },
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, stdout: text(stdout), stderr: text(stderr) };
};
const entries = () => [...Deno.readDirSync(cache)].map(({ name }) => name).sort();
const entry = (start: string) => join(cache, entries().find((name) => name.startsWith(start))!);

Deno.test("two builds are equal, byte for byte, and so are the lists of their parts", async () => {
  await buildSingleFile("service", folder.path, QUICK);
  const umask = Deno.umask(0o077); // of another user who builds it
  await buildSingleFile("service", inFolder("again"), QUICK);
  Deno.umask(umask);
  for (const name of ["service", "service.cdx.json"]) {
    assert.ok(
      equal(Deno.readFileSync(inFolder(name)), Deno.readFileSync(inFolder("again", name))),
      name,
    );
  }
  const { bomFormat, components } = JSON.parse(Deno.readTextFileSync(inFolder("service.cdx.json")));
  assert.equal(bomFormat, "CycloneDX");
  const names = components.map(({ name }: { name: string }) => name);
  for (const name of ["deno", "werift", "zod", "preact"]) assert.ok(names.includes(name), name);
  assert.ok(!names.includes("typescript"));
  for (const { purl, hashes: [{ content }] } of components) {
    assert.match(purl, /^pkg:(npm|github)\/.+@v?\d/);
    assert.match(content, /^[0-9a-f]{64,128}$/);
  }
});

Deno.test("two first starts at once leave one whole cache", async () => {
  const both = await Promise.all([run(service, ["--version"]), run(service, ["--version"])]);
  for (const { code, stdout, stderr } of both) {
    assert.deepEqual([code, stderr], [0, ""]);
    assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
  }
  assert.deepEqual(entries().map((name) => name.replace(/-.*?(\.notes)?$/, "$1")), [
    "deno",
    "deno.notes",
    "service",
  ]);
  for (const name of entries()) assert.equal(Deno.statSync(join(cache, name)).mode! & 0o777, 0o700, name);
});

Deno.test("it serves, takes uploads, decodes, and has its pages; its settings are not in its environment", async () => {
  await using server = await startService(service, env);
  const call = async (path: string, body?: unknown) => {
    const response = await fetch(`${server.url}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { "x-api-key": KEY, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return text;
  };
  await call("/v1/health");
  const { run_id } = JSON.parse(await call("/v1/runs", {}));
  const source_uri = join(CLIPS, "intel_bottle.mp4");
  assert.equal(JSON.parse(await call(`/v1/runs/${run_id}/ingest`, { source_uri })).decoded_frames, 512);
  const upload = new FormData();
  upload.set("file", new Blob([Deno.readFileSync(join(CLIPS, "bbb120.mp4"))]), "film.mp4");
  const uploaded = await fetch(`${server.url}/v1/upload`, {
    method: "POST",
    headers: { "x-api-key": KEY },
    body: upload,
  });
  assert.match(await uploaded.text(), /"file_path":".*__film\.mp4"/);
  assert.match(await call("/console/"), /<html/);
  const environment = Deno.readTextFileSync(`/proc/${server.pid}/environ`);
  assert.match(Deno.readTextFileSync(`/proc/${server.pid}/status`), /^Seccomp:\t2$/m);
  assert.doesNotMatch(environment, new RegExp(`${KEY}|SERVICE_`));
  assert.equal(Deno.readLinkSync(`/proc/${server.pid}/exe`), join(entry("deno-"), "deno"));
  if (programOnPath("bwrap") !== null) {
    assert.match(await call("/v1/metrics"), /service_decoder_cage\{level="(bubblewrap|unshare)"\} 1/);
  }
});

Deno.test({
  ...needing(NODE, "it has the packages for a mirror database and a trace collector"),
  async fn() {
    await using collector = await TraceCollector.start();
    using database = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const first = database.accept();
    await using server = await startService(service, {
      ...env,
      SERVICE_MIRROR_URL: `postgres://user:secret@127.0.0.1:${database.addr.port}/db?sslmode=disable`,
      SERVICE_TRACES_ENDPOINT: collector.endpoint,
    });
    using connection = await first;
    const message = new Uint8Array(256);
    const got = await connection.read(message);
    assert.match(new TextDecoder().decode(message.subarray(0, got!)), /user\0user\0database\0db\0/);
    await (await fetch(`${server.url}/v1/health`)).body?.cancel();
    await until("a span", () => collector.named("GET /v1/health").length === 1);
  },
});

Deno.test("the command line shares the unpacked Deno, and does without b2sum", async () => {
  await buildSingleFile("service-cli", folder.path, QUICK);
  Deno.removeSync(inFolder("bin", "b2sum"));
  const version = await run(inFolder("service-cli"), ["--version"]);
  assert.deepEqual([version.code, version.stderr], [0, ""]);
  assert.equal(entries().filter((name) => /^deno-.*[0-9a-f]$/.test(name)).length, 1);
});

Deno.test("the command line lists runs and publishes a live session", async () => {
  await using server = await startService(service, env);
  const listed = await run(inFolder("service-cli"), ["runs", "list", "--json", "--url", server.url], {
    SERVICE_API_KEY: KEY,
  });
  assert.match(listed.stdout, /"run_id"/, listed.stderr);
  const clip = inFolder("clip.mp4");
  const cut = await run(inFolder("bin", "ffmpeg"), [
    ...["-v", "error", "-i", join(CLIPS, "bbb120.mp4"), "-t", "1", "-c", "copy", clip],
  ]);
  assert.equal(cut.code, 0, cut.stderr);
  const live = await run(inFolder("service-cli"), ["live", clip, "--url", server.url], {
    SERVICE_API_KEY: KEY,
  });
  assert.match(live.stdout, /run_completed +\{"source":"whip"/, live.stderr);
});

Deno.test("Deno in it has time zones, English and every way of taking text apart; the whole one has its languages", async () => {
  const source = `console.log(JSON.stringify([
    new Intl.DateTimeFormat("en", { timeZone: "Europe/Berlin", dateStyle: "full", timeStyle: "short" }).format(0),
    Temporal.Instant.from("2026-07-01T00:00:00Z").toZonedDateTimeISO("America/New_York").toString(),
    [...new Intl.Segmenter("en").segment("a\u{1F468}\u200D\u{1F469}e\u0301")].length,
    ["z", "\u00e4", "a"].toSorted((one, other) => one.localeCompare(other)).join(""),
    (1234.5).toLocaleString("en"),
    new TextDecoder("gb18030").decode(Uint8Array.of(0xc4, 0xe3)),
  ]))`;
  const ask = (deno: string) => run(deno, ["eval", source], { DENO_DIR: inFolder("notes") });
  const small = await ask(join(entry("deno-"), "deno"));
  assert.deepEqual(small, await ask(Deno.execPath()));
  assert.match(
    small.stdout,
    /Thursday, January 1, 1970 at 1:00.*-04:00\[America\/New_York\]",3,"aäz","1,234.5"/,
  );
  const german = 'console.log(new Date(0).toLocaleDateString("de", { weekday: "long" }))';
  for (
    const [deno, day] of [[join(entry("deno-"), "deno"), "Thursday\n"], [Deno.execPath(), "Donnerstag\n"]]
  ) {
    assert.equal((await run(deno!, ["eval", german], { DENO_DIR: inFolder("notes") })).stdout, day);
  }
});

Deno.test("without xz the command line unpacks itself with dpkg-deb, and without both it says what is missing", async () => {
  const xz = inFolder("bin", "xz");
  Deno.removeSync(xz);
  const more = { XDG_CACHE_HOME: inFolder("without-xz") };
  const refused = await run(inFolder("service-cli"), ["--version"], more);
  assert.deepEqual([refused.code, refused.stdout], [1, ""]);
  assert.match(refused.stderr, /it needs xz to unpack itself; install xz-utils/);
  const dpkg = programOnPath("dpkg-deb");
  if (dpkg !== null) {
    Deno.symlinkSync(dpkg, inFolder("bin", "dpkg-deb"));
    const unpacked = await run(inFolder("service-cli"), ["--version"], more);
    assert.deepEqual([unpacked.code, unpacked.stderr], [0, ""]);
  }
  Deno.symlinkSync(programOnPath("xz")!, xz);
});

Deno.test("a changed byte, of the code or of Deno, ends the start with the way out", async () => {
  const deno = join(entry("deno-"), "deno");
  const { size } = Deno.statSync(deno);
  for (
    const [path, at] of [[join(entry("service-0"), "wasm", "gate.wasm"), 0], [deno, 1000], [
      deno,
      size - 1,
    ]] as const
  ) {
    const { mode } = Deno.statSync(path);
    Deno.chmodSync(path, 0o600);
    const restore = changeByte(path, at);
    const refused = await run(service, ["--version"]);
    assert.deepEqual([refused.code, refused.stdout], [1, ""]);
    assert.match(refused.stderr, /was changed or damaged: .*; remove it: rm -r /);
    restore();
    Deno.chmodSync(path, mode! & 0o777);
    assert.equal((await run(service, ["--version"])).code, 0);
  }
});

Deno.test("a folder of the cache that is open to others, or a link, is refused", async () => {
  for (const path of [cache, entry("service-0"), entry("deno-")]) {
    Deno.chmodSync(path, 0o777);
    const refused = await run(service, ["--version"]);
    assert.deepEqual([refused.code, refused.stdout], [1, ""]);
    assert.match(refused.stderr, /is open to others/);
    Deno.chmodSync(path, 0o700);
  }
  Deno.chmodSync(join(cache, ".."), 0o777);
  assert.match((await run(service, ["--version"])).stderr, /others may write to .*chmod go-w/);
  Deno.chmodSync(join(cache, ".."), 0o700);
  Deno.renameSync(cache, `${cache}-moved`);
  Deno.symlinkSync(`${cache}-moved`, cache);
  assert.match((await run(service, ["--version"])).stderr, /is a link/);
  Deno.removeSync(cache);
  Deno.renameSync(`${cache}-moved`, cache);
});

Deno.test("a cache below a folder of others is refused, through a link too, and nothing is made there", async () => {
  const shared = inFolder("shared");
  const mine = join(shared, "mine");
  const more = { XDG_CACHE_HOME: mine };
  Deno.mkdirSync(mine, { recursive: true });
  const refuse = async (why: RegExp) => {
    const refused = await run(service, ["--version"], more);
    assert.deepEqual([refused.code, refused.stdout], [1, ""]);
    assert.match(refused.stderr, why);
    assert.deepEqual([...Deno.readDirSync(mine)], []);
  };
  Deno.chmodSync(shared, 0o777);
  await refuse(/^service: others may write to \S+\/shared; take that away: chmod go-w/);
  // Only root can give a folder away.
  if (Deno.uid() === 0) {
    Deno.chmodSync(shared, 0o755);
    for (const folder of [shared, mine]) {
      Deno.chownSync(folder, 65534, 65534);
      await refuse(/^service: \S+ belongs to another user/);
      Deno.chownSync(folder, 0, 0);
    }
    Deno.chmodSync(shared, 0o777);
  }
  await startAlone(mine);
  // The folder to which a link leads is the one that counts, as the link may change.
  Deno.removeSync(mine);
  Deno.symlinkSync(join(cache, ".."), mine);
  assert.equal((await run(service, ["--print-config"], more)).code, 0);
  await using server = await startService(service, { ...env, ...more });
  assert.equal(Deno.readLinkSync(`/proc/${server.pid}/exe`), join(entry("deno-"), "deno"));
  assert.ok(Deno.readTextFileSync(`/proc/${server.pid}/cmdline`).includes(cache));
  assert.ok(!Deno.readTextFileSync(`/proc/${server.pid}/cmdline`).includes(mine));
});

Deno.test("variables of tar, gzip and xz change nothing, and neither does a start by sh from its own folder", async () => {
  const { stdout, stderr } = await run(service, ["--version"], {
    ...{ XDG_CACHE_HOME: inFolder("options"), CDPATH: inFolder("."), GZIP: "-v" },
    ...{ TAR_OPTIONS: "-v --strip-components=1", XZ_OPT: "-v", XZ_DEFAULTS: "--memlimit=1MiB" },
  });
  assert.match(stdout, /^\d+\.\d+\.\d+\n$/, stderr);
  assert.equal(stderr, "");
  for (const script of ["sh service", "sh ./service"]) {
    const { code } = await run(inFolder("bin", "sh"), [
      ...["-c", `cd "$1" && exec ${script} --version`, "sh", folder.path],
    ], { XDG_CACHE_HOME: inFolder(`by-${script.length}`) });
    assert.equal(code, 0, script);
  }
});

Deno.test("a missing file of the code is named by one line, and so is a disk that starts no programs", async () => {
  const path = join(entry("service-0"), "wasm", "gate.wasm");
  Deno.renameSync(path, inFolder("gate.wasm"));
  const missing = await run(service, ["--version"]);
  assert.match(missing.stderr, /^service: \S+ was changed or damaged: .*\n$/);
  Deno.renameSync(inFolder("gate.wasm"), path);
  // What access(2) answers on a disk that is mounted with noexec.
  const deno = join(entry("deno-"), "deno");
  Deno.chmodSync(deno, 0o400);
  const refused = await run(service, ["--version"]);
  Deno.chmodSync(deno, 0o500);
  assert.deepEqual([refused.code, refused.stdout], [1, ""]);
  assert.match(refused.stderr, /^service: the system does not start programs in .*noexec.*\n$/);
});

Deno.test("what a killed first start has left goes with a later start, and what is being unpacked stays", async () => {
  const [gone, young, living] = ["new.4194305.aaaa", "new.4194305.bbbb", `new.${Deno.pid}.cccc`].map((name) =>
    join(cache, name)
  );
  for (const path of [gone!, young!, living!]) {
    Deno.mkdirSync(path, { mode: 0o700 });
    Deno.writeTextFileSync(join(path, "deno"), "a part of it");
  }
  const anHourAgo = Date.now() / 1000 - 3600;
  for (const path of [gone!, living!]) Deno.utimeSync(path, anHourAgo, anHourAgo);
  assert.equal((await run(service, ["--version"])).code, 0);
  const isThere = [gone, young, living].map((path) => entries().includes(path!.split("/").at(-1)!));
  assert.deepEqual(isThere, [false, true, true]);
  for (const path of [young!, living!]) Deno.removeSync(path, { recursive: true });
});

Deno.test("--clean-cache leaves what this file needs; a truncated file unpacks nothing", async () => {
  Deno.mkdirSync(join(cache, "service-0.0.1-0000000000000000"));
  assert.equal((await run(service, ["--clean-cache"])).code, 0);
  assert.equal(entries().length, 3);
  const bytes = Deno.readFileSync(service);
  Deno.writeFileSync(inFolder("short"), bytes.subarray(0, bytes.length - 1e6), { mode: 0o755 });
  const other = inFolder("other");
  const refused = await run(inFolder("short"), ["--version"], { XDG_CACHE_HOME: other });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /cannot be unpacked into/);
  assert.deepEqual([...Deno.readDirSync(join(other, "service"))].map(({ name }) => name), []);
});
/**
 * Starts a single file in a namespace of users with one user alone, to whom the folders of root belong to
 * nobody. Needs root, to be another user.
 */
async function startAlone(cache: string) {
  const alone = ["--reuid=1234", "--regid=1234", "--clear-groups", "unshare", "--user", "--map-root-user"];
  const by = (program: string, ...args: string[]) =>
    run(inFolder("bin", "setpriv"), [...alone, program, ...args], { XDG_CACHE_HOME: cache });
  if (Deno.uid() !== 0 || (await by(inFolder("bin", "id"))).code !== 0) return;
  Deno.chmodSync(folder.path, 0o711);
  Deno.chmodSync(join(cache, ".."), 0o755);
  Deno.chownSync(cache, 1234, 1234);
  const { code, stderr } = await by(service, "--version");
  assert.equal(code, 0, stderr);
  Deno.removeSync(join(cache, "service"), { recursive: true });
  Deno.chmodSync(folder.path, 0o700);
  Deno.chmodSync(join(cache, ".."), 0o777);
}

async function startService(program: string, env: Record<string, string>) {
  const child = new Deno.Command(program, { clearEnv: true, env, stdout: "piped", stderr: "null" }).spawn();
  const listening = Promise.withResolvers<string>();
  const reading = (async () => {
    let text = "";
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      const url = /listening on (http:\S+)\n/.exec(text)?.[1];
      if (url) listening.resolve(url);
    }
    listening.reject(new Error(`the service did not start:\n${text}`));
  })();
  return {
    url: await listening.promise,
    pid: child.pid,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await Promise.all([child.status, reading]);
    },
  };
}

/** Changes a byte of a file; returns what changes it back. */
function changeByte(path: string, at: number): () => void {
  using file = Deno.openSync(path, { read: true, write: true });
  file.seekSync(at, Deno.SeekMode.Start);
  const byte = new Uint8Array(1);
  file.readSync(byte);
  const write = (value: number) => {
    using again = Deno.openSync(path, { write: true });
    again.seekSync(at, Deno.SeekMode.Start);
    again.writeSync(Uint8Array.of(value));
  };
  write(byte[0]! ^ 1);
  return () => write(byte[0]!);
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}
