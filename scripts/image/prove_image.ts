/** Builds the file system of the image from the Dockerfile, runs it as a runtime would, and ingests a clip.
 * See scripts/prove-image.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildImage, type Image, installInto, run } from "./build_root.ts";
import { readDockerfile } from "./dockerfile.ts";
import { proveUnit } from "./prove_unit.ts";

const PROJECT = fileURLToPath(new URL("../..", import.meta.url));
const CLIP = join(PROJECT, "fixtures/clips/bbb480.mp4");
const CLIP_FRAMES = 720;
const KEY = "the-key-of-the-proof";
const URL_INSIDE = "http://127.0.0.1:8080";
const START_MS = 30_000;
const STOP_MS = 20_000;

if (Deno.args[0] === "--run") {
  await prove(JSON.parse(Deno.args[1]!), Deno.args[2]!);
} else {
  const folder = Deno.makeTempDirSync({ dir: "/var/tmp", prefix: "service-image-" });
  const isKept = Deno.args.includes("--keep");
  try {
    const startedMs = Date.now();
    const stages = readDockerfile(Deno.readTextFileSync(join(PROJECT, "Dockerfile")));
    Deno.chmodSync(folder, 0o755);
    const image = await buildImage(stages, PROJECT, folder);
    console.log(`built in ${seconds(startedMs)}, ${await mebibytes(image.root)} MiB`);
    await inOwnNetwork(image, folder);
    if (Deno.args.includes("--systemd")) {
      await installInto(image, ["systemd", "systemd-sysv", "dbus", "curl"]);
      const unit = join(PROJECT, "deploy/systemd/video-analysis.service");
      console.log(await proveUnit(image.root, unit, CLIP));
    }
    console.log(`the image is proven${isKept ? `; its file system is ${image.root}` : ""}`);
  } finally {
    if (!isKept) await run(["rm", "-rf", "--one-file-system", folder]);
  }
}

/**
 * Does the proof in a network that has only loopback, so that the ports of the image are free and nothing
 * else is reached.
 */
async function inOwnNetwork(image: Image, folder: string): Promise<void> {
  const self = [
    Deno.execPath(),
    "run",
    "--allow-all",
    "--no-prompt",
    "--quiet",
    fileURLToPath(import.meta.url),
  ];
  const { success } = await new Deno.Command("bwrap", {
    args: [
      ...["--dev-bind", "/", "/", "--unshare-net", "--cap-add", "ALL", "--die-with-parent"],
      ...[...self, "--run", JSON.stringify(image), folder],
    ],
  }).output().then(({ success, stdout, stderr }) => {
    Deno.stdout.writeSync(stdout);
    Deno.stderr.writeSync(stderr);
    return { success };
  });
  if (!success) throw new Error("the image does not do what it should");
}

async function prove(image: Image, folder: string): Promise<void> {
  assert.equal(image.stopSignal, "SIGTERM");
  assert.deepEqual(image.ports, ["8080", "8443/udp"]);
  assert.deepEqual(image.volumes, ["/var/lib/service"]);
  assert.notEqual(image.user.split(":")[0], "0");
  const volume = join(folder, "volume");
  await run(["cp", "-a", join(image.root, image.volumes[0]!), volume]); // a new volume is a copy of the image's folder
  const before = await listing(image.root);

  const first = await start(image, volume);
  const runId = await ingest();
  const metrics = await text("/v1/metrics");
  const cage = /^service_decoder_cage\{level="(\w+)"\} 1$/m.exec(metrics)?.[1];
  assert.equal(cage, "bubblewrap");
  await run(containerCommand(image, volume, image.healthCheck));
  console.log(
    `started in ${first.startMs} ms; decoded ${CLIP_FRAMES} frames in the cage ${cage}; the health check passes`,
  );
  await stop(first);
  console.log(`${image.stopSignal} ended it with exit code 0`);
  await assert.rejects(run(containerCommand(image, volume, image.healthCheck)), /healthy|failed/);

  const second = await start(image, volume);
  const events = JSON.parse(await text(`/v1/runs/${runId}/events`)).events;
  assert.ok(events.some(({ kind }: { kind: string }) => kind === "frames_decoded"));
  await stop(second);
  assert.equal(await listing(image.root), before, "the root file system has changed");
  console.log("after a restart on the same volume the run is there; nothing else was written");
}

interface Running {
  readonly child: Deno.ChildProcess;
  readonly startMs: number;
  readonly log: Promise<string>;
}

async function start(image: Image, volume: string): Promise<Running> {
  const startedMs = Date.now();
  const [program, ...args] = containerCommand(image, volume, image.entrypoint);
  const child = new Deno.Command(program!, { args, stdout: "null", stderr: "piped" }).spawn();
  const log = new Response(child.stderr).text();
  let hasEnded = false;
  void child.status.then(() => void (hasEnded = true));
  while (Date.now() - startedMs < START_MS && !hasEnded) {
    const isUp = await fetch(`${URL_INSIDE}/v1/health`).then((answer) => answer.text()).then(
      () => true,
      () => false,
    );
    if (isUp) return { child, startMs: Date.now() - startedMs, log };
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  if (!hasEnded) child.kill("SIGKILL");
  throw new Error(`the image does not start:\n${await log}`);
}

/**
 * The command line of the image, as a runtime runs it: its user without any capability, a read-only root,
 * `/tmp` in memory, a volume, and process 1 of its own namespace.
 */
function containerCommand(
  { root, env, workingDir, user, volumes }: Image,
  volume: string,
  command: readonly string[],
): string[] {
  const [uid, gid] = user.split(":") as [string, string];
  return [
    ...["bwrap", "--ro-bind", root, "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"],
    ...["--bind", volume, volumes[0]!, "--unshare-pid", "--unshare-ipc", "--as-pid-1", "--die-with-parent"],
    ...["--cap-add", "ALL", "--clearenv", "--chdir", workingDir],
    ...Object.entries({ ...env, SERVICE_API_KEYS: KEY }).flatMap((
      [name, value],
    ) => ["--setenv", name, value]),
    ...[
      "setpriv",
      "--reuid",
      uid,
      "--regid",
      gid,
      "--clear-groups",
      "--no-new-privs",
      "--bounding-set",
      "-all",
    ],
    ...command,
  ];
}

async function stop({ child, log }: Running): Promise<void> {
  const inner = Deno.readTextFileSync(`/proc/${child.pid}/task/${child.pid}/children`).trim().split(" ");
  assert.equal(inner.length, 1);
  Deno.kill(Number(inner[0]), "SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
  const { code } = await child.status;
  clearTimeout(timer);
  assert.equal(code, 0, await log);
}

async function ingest(): Promise<string> {
  const body = new FormData();
  body.append("file", new File([Deno.readFileSync(CLIP)], "clip.mp4", { type: "video/mp4" }));
  const upload = await fetch(`${URL_INSIDE}/v1/upload`, {
    method: "POST",
    headers: { "x-api-key": KEY },
    body,
  });
  const { file_path } = JSON.parse(await checked(upload));
  const { run_id } = JSON.parse(await text("/v1/runs", {}));
  const answer = JSON.parse(
    await text(`/v1/runs/${run_id}/ingest`, { source_uri: file_path, max_frames: 1000 }),
  );
  assert.equal(answer.decoded_frames, CLIP_FRAMES);
  return run_id;
}

async function text(path: string, body?: object): Promise<string> {
  return await checked(
    await fetch(`${URL_INSIDE}${path}`, {
      headers: { "x-api-key": KEY, "content-type": "application/json" },
      ...(body && { method: "POST", body: JSON.stringify(body) }),
    }),
  );
}

async function checked(answer: Response): Promise<string> {
  const text = await answer.text();
  assert.ok(answer.ok, `${answer.status}: ${text}`);
  return text;
}

/** Every path with size and time of its last change. */
async function listing(root: string): Promise<string> {
  const { stdout } = await new Deno.Command("find", { args: [root, "-printf", "%P %s %T@\n"] }).output();
  return new TextDecoder().decode(stdout);
}

async function mebibytes(folder: string): Promise<number> {
  const { stdout } = await new Deno.Command("du", { args: ["-sm", folder] }).output();
  return parseInt(new TextDecoder().decode(stdout));
}

function seconds(sinceMs: number): string {
  return `${Math.round((Date.now() - sinceMs) / 1000)} s`;
}
