import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { startServer } from "../scripts/server.ts";
import { recordSource } from "./support/live/recorded_source.ts";
import { serve } from "./support/http/tls_server.ts";
import { make, makeClip, TempFolder } from "./support/media.ts";
import { LONG_TEST } from "./support/long_tests.ts";
import { startModelServer } from "./support/models/model_server.ts";
import { programOnPath } from "./support/needs.ts";
import { sha256 } from "./support/principals.ts";
import { CLIPS, MODEL, PROJECT_ROOT } from "./support/service.ts";
import { until } from "./support/until.ts";

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** Starts `main.ts` as an operator would; `whenListening` gets its address, then a SIGTERM ends it. */
async function runMain(
  env: Record<string, string>,
  whenListening?: (url: string, pid: number) => Promise<void>,
): Promise<Ended> {
  const dataDir = env.SERVICE_DATA_DIR ?? Deno.makeTempDirSync({ prefix: "service-main-" });
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-prompt", "--quiet", join(PROJECT_ROOT, "src/main.ts")],
    env: { SERVICE_BIND_ADDR: "127.0.0.1:0", SERVICE_API_KEYS: "k", ...env, SERVICE_DATA_DIR: dataDir },
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const stderr = new Response(child.stderr).text();
  let stdout = "";
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    const before = stdout;
    stdout += chunk;
    const url = /listening on (http:\S+)\n/.exec(stdout)?.[1];
    if (url && !/listening on (http:\S+)\n/.test(before)) {
      await whenListening?.(url, child.pid);
      child.kill("SIGTERM");
    }
  }
  const { code } = await child.status;
  const ended = { code, stdout, stderr: await stderr };
  Deno.removeSync(dataDir, { recursive: true });
  return ended;
}

Deno.test("with both streams in one file, the lines of the process and of its Worker are there once", async () => {
  using folder = new TempFolder();
  const log = join(folder.path, "log");
  const child = new Deno.Command("sh", {
    args: [
      ...["-c", `exec "$0" "$@" >${log} 2>&1`, Deno.execPath()],
      ...["run", "-A", "--no-prompt", "--quiet", join(PROJECT_ROOT, "src/main.ts")],
    ],
    env: {
      SERVICE_DATA_DIR: join(folder.path, "data"),
      SERVICE_BIND_ADDR: "127.0.0.1:0",
      SERVICE_API_KEYS: "k",
    },
  }).spawn();
  const written = () => existsSync(log) ? Deno.readTextFileSync(log) : "";
  await until(() => /listening on /.test(written()) && /decoder cage/.test(written()));
  child.kill("SIGTERM");
  assert.equal((await child.status).code, 0);
  const lines = written().trimEnd().split("\n");
  for (const words of ["listening on http", "decoder cage", "closing"]) {
    assert.equal(lines.filter((line) => line.includes(words)).length, 1, `${words}\n${lines.join("\n")}`);
  }
  for (const line of lines) assert.match(line, /^\d{4}-/);
});

Deno.test("the process serves, logs that on both streams, and exits with 0 on SIGTERM", async () => {
  const ended = await runMain({ SERVICE_INGEST_FILE_ROOTS: CLIPS }, async (url) => {
    const call = async (path: string, body?: unknown) => {
      const response = await fetch(`${url}${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: { "x-api-key": "k", "content-type": "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      assert.equal(response.status, 200, path);
      return await response.json();
    };
    const { run_id } = await call("/v1/runs", {});
    const source_uri = join(CLIPS, "intel_bottle.mp4");
    assert.equal((await call(`/v1/runs/${run_id}/ingest`, { source_uri })).decoded_frames, 512);
    const { markers } = await call(`/v1/runs/${run_id}/analyze`, { model: MODEL });
    assert.deepEqual((await call(`/v1/runs/${run_id}/markers`)).markers.length, markers.length);
  });
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(ended.stdout, /INFO {2}service: listening on http:\/\/127\.0\.0\.1:\d+/);
  const lines = ended.stderr.trim().split("\n").map((line) => JSON.parse(line));
  assert.ok(lines.some(({ level, message }) => level === "info" && message.startsWith("listening on ")));
  assert.ok(!`${ended.stdout}${ended.stderr}`.includes(sha256("k")), "the hash of the key is in the log");
});

Deno.test("a film and an HLS source of a server are fetched by the process that serves, within its sandbox", async () => {
  using folder = new TempFolder();
  const clip = makeClip(join(folder.path, "clip.mp4"), { frames: 25 });
  make(
    join(folder.path, "a.m3u8"),
    "-i",
    clip,
    "-c:v",
    "mpeg2video",
    "-f",
    "hls",
    "-hls_playlist_type",
    "vod",
  );
  await using server = serve((request) => {
    const path = join(folder.path, new URL(request.url).pathname);
    return existsSync(path) ? new Response(Deno.readFileSync(path)) : new Response("no", { status: 404 });
  }, { isPlain: true });
  const settings = {
    SERVICE_ALLOW_INSECURE_HTTP: "1",
    SERVICE_ALLOW_REMOTE_HLS: "1",
    SERVICE_MEDIA_ALLOWED_NETWORKS: "127.0.0.0/8",
  };
  const ended = await runMain(settings, async (url) => {
    const post = (path: string, body: unknown) =>
      fetch(`${url}${path}`, {
        method: "POST",
        headers: { "x-api-key": "k", "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    for (const name of ["clip.mp4", "a.m3u8"]) {
      const { run_id } = await (await post("/v1/runs", {})).json();
      const source_uri = `http://127.0.0.1:${server.port}/${name}`;
      const answer = await (await post(`/v1/runs/${run_id}/ingest`, { source_uri })).json();
      assert.equal(answer.decoded_frames, 25, `${name}: ${JSON.stringify(answer)}`);
    }
  });
  assert.equal(ended.code, 0, ended.stderr);
});

Deno.test("a folder of the data directory that is a link to another disk is served from and checked", async () => {
  using folder = new TempFolder();
  const [dataDir, far] = [join(folder.path, "data"), join(folder.path, "far")];
  await recordSource(dataDir, "dock");
  Deno.renameSync(join(dataDir, "recordings", "dock"), far);
  Deno.symlinkSync(far, join(dataDir, "recordings", "dock"));
  const file = folder.file(
    "sources.toml",
    '[[sources]]\nname = "dock"\nuri = "/film.mp4"\nprincipals = ["*"]\n',
  );
  const ended = await runMain({ SERVICE_DATA_DIR: dataDir, SERVICE_SOURCES_CONFIG: file }, async (url) => {
    const get = async (path: string) =>
      await fetch(`${url}/v1/sources/dock/recordings${path}`, { headers: { "x-api-key": "k" } });
    const { segments } = await (await get("")).json();
    const segment = await get(`/${segments[0].segment_id}`);
    assert.equal(segment.status, 200, await segment.text());
    const { code, stdout } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--quiet", join(PROJECT_ROOT, "src/main.ts"), "verify", "--data-dir", dataDir],
    }).output();
    assert.equal(code, 0, new TextDecoder().decode(stdout));
    assert.match(new TextDecoder().decode(stdout), /recordings {2}1 segments?,/);
  });
  assert.equal(ended.code, 0, ended.stderr);
});

Deno.test("the file of sources is followed: a change by the watch, a fault by SIGHUP, and none of them ends the process", async () => {
  const folder = Deno.makeTempDirSync({ prefix: "service-main-" });
  const file = join(folder, "sources.toml");
  const write = (name: string, uri: string) =>
    Deno.writeTextFileSync(file, `[[sources]]\nname = "${name}"\nuri = "${uri}"\nprincipals = ["*"]\n`);
  const ended = await runMain({ SERVICE_SOURCES_CONFIG: file, CAM_PASSWORD: "s3cret" }, async (url, pid) => {
    const get = async (path: string) =>
      await (await fetch(`${url}${path}`, { headers: { "x-api-key": "k" } })).text();
    const names = async () =>
      JSON.parse(await get("/v1/sources")).sources.map(({ name }: { name: string }) => name);
    const isFaulty = async (count: number) =>
      (await get("/v1/metrics")).includes(`\nservice_sources_file_faulty ${count}\n`); // not that of the help
    assert.deepEqual(await names(), []);
    write("dock", "rtsps://u:${CAM_PASSWORD}@cam.test/1");
    await until("the watch has seen it", async () => (await names())[0] === "dock");
    Deno.writeTextFileSync(file, "[[sources]]\nname = 's3cret'");
    Deno.kill(pid, "SIGHUP");
    await until("the fault is known", async () => await isFaulty(1));
    assert.deepEqual(await names(), ["dock"]);
    write("gate", "rtsps://cam.test/1");
    Deno.kill(pid, "SIGHUP");
    await until("it is repaired", async () => (await names())[0] === "gate" && await isFaulty(0));
    Deno.symlinkSync("/dev/zero", `${file}.new`);
    Deno.renameSync(`${file}.new`, file);
    Deno.kill(pid, "SIGHUP");
    await until("what is no file is a fault", async () => await isFaulty(1));
    assert.deepEqual(await names(), ["gate"]);
    Deno.removeSync(file);
    write("yard", "rtsps://cam.test/1");
    await until("it is a file again", async () => (await names())[0] === "yard" && await isFaulty(0));
    Deno.removeSync(file);
    await until("a file that is gone is a fault", async () => await isFaulty(1));
    assert.deepEqual(await names(), ["yard"], "and ends no camera");
    Deno.writeTextFileSync(file, "");
    await until("an empty one means none", async () => (await names()).length === 0);
    assert.ok(await isFaulty(0));
    Deno.removeSync(file);
    Deno.kill(pid, "SIGHUP");
    await get("/v1/sources");
    assert.ok(await isFaulty(0), "where there is none to lose it may be missing");
  });
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(
    ended.stdout,
    /WARN {2}service::main: SERVICE_SOURCES_CONFIG names a file that is not there: ".*sources\.toml"/,
  );
  assert.match(
    ended.stdout,
    /the sources stay as they are: SERVICE_SOURCES_CONFIG ".*" is gone; an empty file means none/,
  );
  assert.match(
    ended.stdout,
    /ERROR service::main: the sources stay as they are: .*sources\[s3cret\]\.uri must be/,
  );
  assert.doesNotMatch(ended.stdout, /cam\.test/);
  Deno.writeTextFileSync(file, "sources = 1");
  const refused = await runMain({ SERVICE_SOURCES_CONFIG: file });
  assert.equal(refused.code, 1);
  assert.match(
    refused.stderr,
    /SERVICE_SOURCES_CONFIG ".*": sources must be written as \[\[sources\]\], got 1; correct the file/,
  );
  Deno.removeSync(folder, { recursive: true });
});

Deno.test("the log says how decoders are caged, and a cage that is required and not possible ends the start", async () => {
  const off = await runMain({ SERVICE_DECODER_CAGE: "off" }, async () => {});
  assert.match(
    off.stdout,
    /WARN {2}service::main: decoder cage: off, ffmpeg may open what the service's user may open\n/,
  );
  const folder = Deno.makeTempDirSync({ prefix: "service-main-" });
  const ffmpeg = join(folder, "ffmpeg");
  Deno.writeTextFileSync(ffmpeg, '#!/bin/sh\nexec ffmpeg "$@"\n', { mode: 0o755 });
  const script = { SERVICE_FFMPEG_PATH: ffmpeg };
  const weak = await runMain(script, async (url) => {
    const metrics = await (await fetch(`${url}/v1/metrics`, { headers: { "x-api-key": "k" } })).text();
    assert.match(metrics, /service_decoder_cage\{level="limits"\} 1/);
    assert.match(metrics, /service_decoder_cage\{level="bubblewrap"\} 0/);
  });
  assert.match(
    weak.stdout,
    /WARN {2}service::main: decoder cage: limits only, .*; bubblewrap: .*; unshare: .* a script/,
  );
  const { code, stdout, stderr } = await runMain({ ...script, SERVICE_DECODER_CAGE: "required" });
  Deno.removeSync(folder, { recursive: true });
  assert.equal(code, 1);
  assert.equal(stdout, "");
  assert.match(
    stderr,
    /SERVICE_DECODER_CAGE must not be required .*bubblewrap: .*; unshare: .*or set it to auto/,
  );
});

/**
 * A folder whose `bwrap`, with which the trials of the cage begin, waits until `open` is called. It is the
 * machine's own, or one that does not work where the machine has none.
 */
class SlowCage implements Disposable {
  readonly #folder = Deno.makeTempDirSync({ prefix: "service-main-" });
  readonly env: Record<string, string>;

  constructor() {
    const bwrap = programOnPath("bwrap") ?? "false";
    const begun = join(this.#folder, "begun");
    const wait = `touch ${begun}\nwhile [ ! -e ${this.#folder}/open ]; do sleep 0.02; done`;
    const path = join(this.#folder, "bwrap");
    Deno.writeTextFileSync(path, `#!/bin/sh\n${wait}\nexec ${bwrap} "$@"\n`, { mode: 0o755 });
    this.env = { PATH: `${this.#folder}:${Deno.env.get("PATH")}` };
  }

  open(): void {
    Deno.writeTextFileSync(join(this.#folder, "open"), "");
  }

  async begun(): Promise<void> {
    await until("the trials have begun", () => namesIn(this.#folder).includes("begun"));
  }

  [Symbol.dispose](): void {
    this.open();
    Deno.removeSync(this.#folder, { recursive: true });
  }
}

const namesIn = (folder: string) => Array.from(Deno.readDirSync(folder), ({ name }) => name);

Deno.test("the service answers before its cage is known, and the first job waits for that", async () => {
  using cage = new SlowCage();
  const env = { ...cage.env, SERVICE_INGEST_FILE_ROOTS: CLIPS };
  const ended = await runMain(env, async (url) => {
    const headers = { "x-api-key": "k", "content-type": "application/json" };
    const post = async (path: string, body: unknown) => {
      const response = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
      assert.equal(response.status, 200, path);
      return await response.json();
    };
    await cage.begun();
    const { run_id } = await post("/v1/runs", {});
    let hasDecoded = false;
    const ingest = post(`/v1/runs/${run_id}/ingest`, { source_uri: join(CLIPS, "intel_bottle.mp4") })
      .then((answer) => {
        hasDecoded = true;
        return answer;
      });
    for (let asked = 0; asked < 20; asked++) {
      assert.equal((await (await fetch(`${url}/v1/health`)).json()).status, "ok");
    }
    assert.equal(hasDecoded, false);
    cage.open();
    assert.equal((await ingest).decoded_frames, 512);
  });
  assert.equal(ended.code, 0, ended.stderr);
  const lines = ended.stdout.trim().split("\n");
  const lineOf = (text: string) => lines.findIndex((line) => line.includes(text));
  assert.ok(lineOf("listening on ") < lineOf("decoder cage: "), ended.stdout);
});

Deno.test("a service that is closed while its cage is tried ends, with what it has started for that", async () => {
  using cage = new SlowCage();
  const { code, stdout, stderr } = await runMain(cage.env, () => cage.begun());
  assert.equal(code, 0, stderr);
  assert.doesNotMatch(stdout, /decoder cage|ERROR/);
});

Deno.test("faults of variables, programs, folders and files are reported at once, and no secret with them", async () => {
  const { code, stdout, stderr } = await runMain({
    SERVICE_BIND_ADDR: "nowhere",
    SERVICE_STREAM_TTL_SECS: "5",
    SERVICE_TRANSPORT: "h3",
    SERVICE_H3_TLS_CERT_PATH: "/nonexistent/service.crt",
    SERVICE_H3_TLS_KEY_PATH: "fixtures/clips/README.md",
    SERVICE_API_KEYS: "",
    SERVICE_MIRROR_URL: "mysql://user:hunter2@db/x",
    SERVICE_TRACES_ENDPOINT: "http://collector:4317/?key=hunter2",
    SERVICE_FFMPEG_PATH: "/nonexistent/ffmpeg",
    SERVICE_INGEST_FILE_ROOTS: "/nonexistent/media",
    SERVICE_CONFIG: "/",
    SERVICE_WEBHOOK_SECRET_FILE: "/nonexistent/secret",
  });
  assert.equal(code, 1);
  assert.equal(stdout, "");
  for (
    const name of [
      "SERVICE_BIND_ADDR",
      "SERVICE_STREAM_TTL_SECS",
      "SERVICE_H3_TLS_CERT_PATH",
      "SERVICE_H3_TLS_KEY_PATH",
      "SERVICE_API_KEYS",
      "SERVICE_MIRROR_URL",
      "SERVICE_TRACES_ENDPOINT",
      "SERVICE_FFMPEG_PATH",
      "SERVICE_INGEST_FILE_ROOTS",
      'SERVICE_CONFIG "/"',
      "SERVICE_WEBHOOK_SECRET_FILE",
    ]
  ) assert.match(stderr, new RegExp(`^${name} must `, "m"));
  assert.match(stderr, /has 11 fault\(s\)/);
  assert.match(stderr, /KEY_PATH must name a file that can be used, .*: it has no private key in PEM; /);
  assert.doesNotMatch(stderr, /hunter2|OPENSSL|routines/);
});

Deno.test("a missing program, ingest root or data directory is a fault of the start", async () => {
  const { code, stderr } = await runMain({
    SERVICE_FFMPEG_PATH: "/nonexistent/ffmpeg",
    SERVICE_INGEST_FILE_ROOTS: "/nonexistent/media",
  });
  assert.equal(code, 1);
  assert.match(
    stderr,
    /^SERVICE_FFMPEG_PATH must name an executable program, got "\/nonexistent\/ffmpeg"; install it, or set SERVICE_FFMPEG_PATH/m,
  );
  assert.match(
    stderr,
    /^SERVICE_INGEST_FILE_ROOTS must name existing folders, got "\/nonexistent\/media"; make the folder, or take/m,
  );
});

Deno.test("the upload root is in the data directory, and one that is a link ends the start with the way out", async () => {
  const dataDir = Deno.makeTempDirSync({ prefix: "service-main-" });
  const former = Deno.makeTempDirSync({ prefix: "service-former-" });
  Deno.mkdirSync(join(dataDir, "timeline"));
  Deno.mkdirSync(join(former, "service-uploads"));
  Deno.writeTextFileSync(join(former, "service-uploads", "public__old.mp4"), "old");
  const { stdout } = await runMain({ SERVICE_DATA_DIR: dataDir, TMPDIR: former }, () => {
    assert.equal(Deno.readTextFileSync(join(dataDir, "uploads", "public__old.mp4")), "old");
    assert.equal(Deno.statSync(join(dataDir, "uploads")).mode! & 0o777, 0o700);
    assert.deepEqual([...Deno.readDirSync(former)], [], "nothing is left, and nothing new is made there");
    return Promise.resolve();
  });
  assert.match(stdout, /uploads of an earlier version were moved uploads=1/);

  Deno.mkdirSync(dataDir);
  Deno.symlinkSync(former, join(dataDir, "uploads"));
  const refused = await runMain({ SERVICE_DATA_DIR: dataDir });
  assert.equal(refused.code, 1);
  assert.match(
    refused.stderr,
    /^the upload root ".*uploads" must be a folder and not a link; .*SERVICE_UPLOAD_ROOT/m,
  );
  Deno.removeSync(former, { recursive: true });
});

Deno.test("a data directory with a long path gets a folder for its sockets elsewhere, which the end removes", async () => {
  await using model = startModelServer();
  const short = Deno.makeTempDirSync({ prefix: "service-short-" });
  using long = new TempFolder();
  const SERVICE_DATA_DIR = join(long.path, "x".repeat(200));
  const settings = { SERVICE_INGEST_FILE_ROOTS: CLIPS, SERVICE_VLLM_BASE_URL: model.url };
  const { code, stderr } = await runMain({ ...settings, SERVICE_DATA_DIR, TMPDIR: short }, async (url) => {
    const [made, ...others] = [...Deno.readDirSync(short)];
    assert.deepEqual(others, []);
    assert.equal(Deno.statSync(join(short, made!.name)).mode! & 0o777, 0o700);
    const call = async (path: string, body: unknown) => {
      const headers = { "x-api-key": "k", "content-type": "application/json" };
      const response = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
      assert.equal(response.status, 200, path);
      return await response.json();
    };
    const { run_id } = await call("/v1/runs", {});
    const sampling = { sampling_policy: "fixed", fixed_fps: 2, max_frames: 4, model: MODEL };
    await call(`/v1/runs/${run_id}/reason`, { source_uri: join(CLIPS, "intel_bottle.mp4"), ...sampling });
  });
  assert.equal(code, 0, stderr);
  assert.ok(model.requests.length > 0);
  assert.deepEqual([...Deno.readDirSync(short)], []);

  const TMPDIR = join(short, "x".repeat(100));
  Deno.mkdirSync(TMPDIR);
  const refused = await runMain({ SERVICE_DATA_DIR, TMPDIR });
  assert.equal(refused.code, 1);
  assert.match(
    refused.stderr,
    /^SERVICE_DATA_DIR must have a real path of at most 82 bytes .*; set it, or TMPDIR, to a folder with a shorter path$/m,
  );
  assert.deepEqual([...Deno.readDirSync(TMPDIR)], []);
  Deno.removeSync(short, { recursive: true });
});

Deno.test("a second process on the same data directory refuses to start and names the owner", async () => {
  const dataDir = Deno.makeTempDirSync({ prefix: "service-owned-" });
  let second: Ended | undefined;
  await runMain({ SERVICE_DATA_DIR: dataDir }, async () => {
    const child = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-prompt", "--quiet", join(PROJECT_ROOT, "src/main.ts")],
      env: { SERVICE_DATA_DIR: dataDir, SERVICE_BIND_ADDR: "127.0.0.1:0", SERVICE_API_KEYS: "k" },
    }).output();
    second = { code: child.code, stdout: "", stderr: new TextDecoder().decode(child.stderr) };
  });
  assert.equal(second?.code, 1);
  assert.match(second!.stderr, /owns|owned|another process/);
});

Deno.test("an address that is taken ends the process with an error that names the address and its setting", async () => {
  using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { code, stderr } = await runMain({ SERVICE_BIND_ADDR: `127.0.0.1:${taken.addr.port}` });
  assert.equal(code, 1);
  assert.match(
    stderr,
    new RegExp(
      `SERVICE_BIND_ADDR must be an address that is free, got 127.0.0.1:${taken.addr.port}: another program`,
    ),
  );
});

Deno.test("a client that does not read its answer cannot keep the process from ending", async () => {
  let connection: Deno.Conn | undefined;
  const { code, stdout } = await runMain({}, async (url) => {
    const post = async (path: string, body: unknown) => {
      const response = await fetch(`${url}${path}`, {
        method: "POST",
        headers: { "x-api-key": "k", "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      return JSON.parse(await response.text());
    };
    const { run_id } = await post("/v1/runs", {});
    // Every other frame flickers, so each frame is a marker of its own: 20 MB of events in all.
    const frames = Array.from({ length: 4096 }, (_, frame_index) => ({
      frame_index,
      pts_ms: frame_index * 40,
      perceptual_hash: 0,
      luma_mean: 0.5,
      flicker_score: frame_index % 2,
      ghosting_score: 0,
      noise_variance_score: 0,
    }));
    for (let pass = 0; pass < 12; pass++) await post(`/v1/runs/${run_id}/analyze`, { model: MODEL, frames });
    const { hostname, port } = new URL(url);
    connection = await Deno.connect({ hostname, port: Number(port) });
    const request = `GET /v1/runs/${run_id}/events HTTP/1.1\r\nhost: x\r\nx-api-key: k\r\n\r\n`;
    await connection.write(new TextEncoder().encode(request));
    // The response has started, is longer than the buffers on the way, and is not read any further.
    await connection.read(new Uint8Array(16));
  });
  connection?.close();
  assert.equal(code, 0);
  assert.match(stdout, /responses under way did not end/);
});

Deno.test("an answer that cannot be sent whole is cut, and the log says so in a line of its own", async () => {
  using films = new TempFolder();
  const sizeBytes = 64 * 1024 * 1024;
  const film = films.file("film.mp4", new Uint8Array(sizeBytes));
  const { code, stderr } = await runMain({ SERVICE_INGEST_FILE_ROOTS: films.path }, async (url) => {
    const response = await fetch(`${url}/v1/files/film.mp4`, {
      headers: { "x-api-key": "k", range: `bytes=0-${sizeBytes - 2}` },
    });
    assert.equal(response.status, 206);
    const reader = response.body!.getReader();
    await reader.read();
    Deno.truncateSync(film, 1024);
    await assert.rejects(async () => {
      while (!(await reader.read()).done) { /* the next piece */ }
    });
  });
  assert.equal(code, 0, stderr);
  const lines = stderr.trim().split("\n").map((line) => JSON.parse(line));
  const [cut] = lines.filter(({ message }) => message === "an answer was cut short");
  assert.match(cut.fields.error, /the file became shorter while it was sent/);
});

Deno.test("the process is started with bounds for its memory, after which an operator's own come", async () => {
  let seen = "";
  const own = { DENO_V8_FLAGS: "--max-semi-space-size=4", GLIBC_TUNABLES: "glibc.malloc.arena_max=3" };
  const ended = await runMain({ ...own, SERVICE_REQUIRE_API_KEY: "false" }, (_url, pid) => {
    seen = Deno.readTextFileSync(`/proc/${pid}/environ`);
    return Promise.resolve();
  });
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(seen, /DENO_V8_FLAGS=[^\0]*--max-semi-space-size=8,[^\0]*,--max-semi-space-size=4\0/);
  // The C library takes the list apart where it lies.
  assert.match(seen, /GLIBC_TUNABLES=(glibc\.malloc\.\w+=\d+[:\0])+glibc\.malloc\.arena_max=3\0/);
  assert.match(seen, /GLIBC_TUNABLES=glibc\.malloc\.arena_max=2[:\0]/);
});

Deno.test("the service has a filter of system calls, and decoders under it their full cage", async () => {
  let status = "";
  const ended = await runMain({ SERVICE_DECODER_CAGE: "required" }, (_url, pid) => {
    status = Deno.readTextFileSync(`/proc/${pid}/status`);
    return Promise.resolve();
  });
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(status, /^NoNewPrivs:\t1$/m);
  assert.match(status, /^Seccomp:\t2$/m);
  assert.doesNotMatch(ended.stderr, /without a filter/);
  assert.match(ended.stdout, /decoder cage: bubblewrap/);
  assert.doesNotMatch(ended.stdout, /no forwarder/);
});

Deno.test("a request and its model call that are under way at SIGTERM are answered; one that takes longer is cancelled", async () => {
  const asked = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const answer = Promise.withResolvers<string>();
  await using model = startModelServer({
    answer: ({ prompt, signal }) => {
      asked[prompt.includes("for ever") ? 1 : 0]!.resolve();
      if (!prompt.includes("for ever")) return answer.promise;
      return new Promise((resolve) => signal.addEventListener("abort", () => resolve("too late")));
    },
  });
  const statuses = Promise.withResolvers<(number | null)[]>();
  const ended = await runMain({ SERVICE_VLLM_BASE_URL: model.url }, async (url) => {
    const ask = (prompt: string) =>
      fetch(`${url}/v1/infer`, {
        method: "POST",
        headers: { "x-api-key": "k", "content-type": "application/json" },
        body: JSON.stringify({ model: MODEL, prompt, timeout_ms: 60_000 }),
      }).then((response) => response.text().then(() => response.status), () => null);
    const answered = Promise.all(["Say something.", "Think for ever."].map(ask));
    await Promise.all(asked.map(({ promise }) => promise));
    // After the signal, which comes when this returns.
    const isGone = () =>
      fetch(`${url}/v1/health`).then(async (response) => !await response.text(), () => true);
    until("the service takes no more requests", isGone).then(() => answer.resolve("something"));
    statuses.resolve(answered);
  });
  assert.equal(ended.code, 0, ended.stderr);
  const [first, second] = await statuses.promise;
  assert.equal(first, 200);
  assert.notEqual(second, 200);
});

Deno.test("the environment of a running service tells no setting, whoever may read it", async () => {
  const folder = Deno.makeTempDirSync({ prefix: "service-secrets-" });
  Deno.writeTextFileSync(join(folder, "webhook"), "hunter2".repeat(6));
  // Longer than a pipe is by default: a machine may have a large environment.
  const env = {
    OTHER_TOKEN: "hunter2".repeat(16_000),
    SERVICE_API_KEYS: "hunter2",
    SERVICE_ALLOW_PRIVATE_WEBHOOKS: "1",
  };
  let seen = "";
  const ended = await runMain(
    { ...env, SERVICE_WEBHOOK_SECRET_FILE: join(folder, "webhook") },
    async (url, pid) => {
      seen = Deno.readTextFileSync(`/proc/${pid}/environ`) + Deno.readTextFileSync(`/proc/${pid}/cmdline`);
      const post = (path: string, body: unknown) =>
        fetch(`${url}${path}`, {
          method: "POST",
          headers: { "x-api-key": "hunter2", "content-type": "application/json" },
          body: JSON.stringify(body),
        });
      const { run_id } = await (await post("/v1/runs", {})).json();
      // 503 without the secret.
      const hook = await post(`/v1/runs/${run_id}/webhooks`, { url: "http://127.0.0.1:9/" });
      assert.equal(hook.status, 201, await hook.text());
    },
  );
  Deno.removeSync(folder, { recursive: true });
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(seen, /(^|\0)PATH=/);
  assert.doesNotMatch(seen, /hunter2|SERVICE_/);
  assert.doesNotMatch(ended.stdout + ended.stderr, /hunter2|keeps the settings/);
});

Deno.test(
  "a caller who sends the largest batch again and again hardly makes the process grow",
  LONG_TEST,
  async () => {
    const prompt = "x".repeat(16_000);
    const body = JSON.stringify({ requests: Array(256).fill({ model: MODEL, prompt, timeout_ms: 50 }) });
    const headers = { "x-api-key": "k", "content-type": "application/json" };
    const dataDir = Deno.makeTempDirSync({ prefix: "service-main-" });
    const env = {
      SERVICE_DATA_DIR: dataDir,
      SERVICE_API_KEYS: "k",
      SERVICE_VLLM_BASE_URL: "http://127.0.0.1:9",
    };
    await using service = await startServer(env);
    const peakMb = () =>
      Number(/^VmHWM:\s+(\d+) kB/m.exec(Deno.readTextFileSync(`/proc/${service.pid}/status`))![1]) / 1024;
    const atStartMb = peakMb();
    for (let round = 0; round < 40; round++) {
      const answer = await fetch(`${service.url}/v1/infer/batch`, { method: "POST", headers, body });
      assert.equal((await answer.json()).processed, 256);
    }
    const grownMb = peakMb() - atStartMb;
    await service[Symbol.asyncDispose]();
    Deno.removeSync(dataDir, { recursive: true });
    // It holds a few of these bodies at a time, of 4 MB each.
    assert.ok(grownMb < 120, `it grew by ${Math.round(grownMb)} MB`);
  },
);

Deno.test("a service whose log nobody reads answers, closes, and has kept the first lines whole", async () => {
  const dataDir = Deno.makeTempDirSync({ prefix: "service-main-" });
  const refusing = () => new Response("no", { status: 400 });
  await using model = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, refusing);
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-prompt", "--quiet", join(PROJECT_ROOT, "src/main.ts")],
    env: {
      ...{ SERVICE_DATA_DIR: dataDir, SERVICE_BIND_ADDR: "127.0.0.1:0", SERVICE_API_KEYS: "k" },
      SERVICE_VLLM_BASE_URL: `http://127.0.0.1:${model.addr.port}`,
    },
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  using _ending = {
    [Symbol.dispose]: () => {
      try {
        child.kill("SIGKILL");
      } catch {
        // it has ended
      }
    },
  };
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  let url: string | undefined;
  while (url === undefined) {
    text += (await reader.read()).value;
    url = /listening on (http:\S+)\n/.exec(text)?.[1];
  }
  // From now on nobody reads. Each call logs a line of more than 150 bytes, and a pipe has 64 KiB.
  const failing = async () => {
    const response = await fetch(`${url}/v1/infer`, {
      method: "POST",
      headers: { "x-api-key": "k", "content-type": "application/json" },
      body: JSON.stringify({ model: MODEL, prompt: "x", timeout_ms: 5000 }),
      signal: AbortSignal.timeout(30_000),
    });
    await response.body?.cancel();
    return response.status;
  };
  const calls = 30 * 16;
  const statuses = new Set<number>();
  for (let round = 0; round < calls / 16; round++) {
    for (const status of await Promise.all(Array.from({ length: 16 }, failing))) statuses.add(status);
  }
  assert.ok([...statuses].every((status) => status >= 500), [...statuses].join());
  child.kill("SIGTERM");
  const rest = (async () => {
    await child.status;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += value;
    }
  })();
  const [{ code }, stderr] = await Promise.all([
    child.status,
    child.status.then(() => new Response(child.stderr).text()),
    rest,
  ]);
  Deno.removeSync(dataDir, { recursive: true });
  assert.equal(code, 0);
  // A pipe holds less than 64 KiB where a write does not fit into the rest of a page, and so begins another.
  const told = text.split(" inference failed ").length - 1;
  assert.ok(told < calls, `the pipe was never full: ${told} lines`);
  assert.ok(text.length > 30_000, `the first lines are kept, not ${told}: ${text.slice(-2000)}`);
  for (const line of text.split("\n").slice(0, -1)) assert.match(line, /^\d{4}-\S+ [A-Z]+ +service/);
  for (const line of stderr.split("\n").slice(0, -1)) JSON.parse(line);
});

Deno.test("options tell what the configuration would be, without secrets and without a start", async () => {
  const folder = Deno.makeTempDirSync({ prefix: "service-main-" });
  const dataDir = join(folder, "data");
  const run = async (option: string, env: Record<string, string>) => {
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-prompt", "--quiet", join(PROJECT_ROOT, "src/main.ts"), option],
      env: { SERVICE_DATA_DIR: dataDir, SERVICE_API_KEYS: "secret-key", ...env },
    }).output();
    return { code, stdout: new TextDecoder().decode(stdout), stderr: new TextDecoder().decode(stderr) };
  };
  const [right, wrong, printed, version, help, unknown] = await Promise.all([
    run("--check-config", {}),
    run("--check-config", { SERVICE_BIND_ADDR: "nowhere", SERVICE_FFMPEG_PATH: "/nonexistent/ffmpeg" }),
    run("--print-config", {
      SERVICE_BIND_ADDR: "127.0.0.1:1",
      SERVICE_WEBHOOK_SECRET_FILE: "/run/secret",
      SERVICE_VLLM_BASE_URL: "http://user:word@models",
      SERVICE_SGLANG_BASE_URL: "http://models/v1?key=word-in-query",
    }),
    run("--version", {}),
    run("--help", {}),
    run("--unheard-of", {}),
  ]);
  assert.deepEqual([right.code, right.stdout], [0, "the configuration has no faults\n"], right.stderr);
  assert.equal(wrong.code, 1);
  assert.match(wrong.stderr, /SERVICE_BIND_ADDR must be/);
  assert.match(wrong.stderr, /SERVICE_FFMPEG_PATH must/);
  const lines = printed.stdout.split("\n");
  for (
    const line of [
      'SERVICE_BIND_ADDR = "127.0.0.1:1"  (environment; default "127.0.0.1:8080")',
      'SERVICE_API_KEYS = (not shown)  (environment; default "")',
      'SERVICE_WEBHOOK_SECRET = (not shown)  (file "/run/secret"; default unset)',
      "SERVICE_VLLM_BASE_URL = (not shown)  (environment; default unset)",
      "SERVICE_SGLANG_BASE_URL = (not shown)  (environment; default unset)",
      'SERVICE_WAL_SYNC = "none"  (default)',
    ]
  ) assert.ok(lines.includes(line), `${line}\n\n${printed.stdout}`);
  assert.doesNotMatch(printed.stdout, /secret-key|user:word/);
  assert.match(version.stdout, /^\d+\.\d+\.\d+\n$/);
  assert.match(help.stdout, /--check-config/);
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /unknown argument '--unheard-of'/);
  Deno.removeSync(folder, { recursive: true });
});
