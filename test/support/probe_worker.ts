/** Stands in for the service's Worker entry: opens the real service, then tries from the same isolate what it
 * may do.
 */

import "../../src/base/worker_globals.ts";
import { quietLog } from "../../src/base/log.ts";
import { realWorld } from "../../src/base/world.ts";
import type { BrokerAnswer } from "../../src/media/broker/broker_messages.ts";
import { BrokerClient } from "../../src/media/broker/broker_client.ts";
import { NO_CAGE, streamsOf } from "../../src/media/broker/cage.ts";
import type { ServiceOrder, Start, StartOrder } from "../../src/process/sandbox.ts";
import { checkedAddresses } from "../../src/remote/guard/address_guard.ts";
import { trustedRoots } from "../../src/remote/guard/trusted_roots.ts";
import { openService } from "../../src/service/service.ts";

/** What became of one attempt: `ok`, the name of the error, or the HTTP status with the field at fault. */
export interface Probe {
  readonly outcome: string;
  readonly detail?: string;
}

interface WorkerScope {
  onmessage: ((message: MessageEvent<ServiceOrder>) => void) | null;
  postMessage(probes: Record<string, Probe>): void;
}

const scope = globalThis as unknown as WorkerScope;

scope.onmessage = async ({ data: order }) => {
  if (order.type === "start") scope.postMessage(await probeAll(order));
};

async function probeAll({ start, broker: port }: StartOrder): Promise<Record<string, Probe>> {
  // For the guard this name is public. Its server is in this isolate, which may listen.
  await using film = serveFilm(start);
  const outbound = {
    resolve: () => Promise.resolve(["93.184.216.34"]),
    reroute: () => "127.0.0.1",
  };
  const world = realWorld(quietLog());
  const broker = new BrokerClient({ port, socketDir: start.places.socketDir, world });
  const service = await openService({
    ...{ ...start, streams: streamsOf(start.cage ?? NO_CAGE).by, broker, world, outbound },
  });
  try {
    return {
      ...await probeSystem(start),
      ...await probeBroker(port, start),
      ...await probeIngest(service, start, film.port),
    };
  } finally {
    await service[Symbol.asyncDispose]();
  }
}

function serveFilm({ places }: Start): AsyncDisposable & { port: number } {
  const path = `${places.ingestRoots[0]}/film.mp4`;
  const film = Deno.readFileSync(path);
  const part = Deno.readFileSync(`${places.ingestRoots[0]}/part.ts`);
  const playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\npart.ts\n#EXT-X-ENDLIST\n";
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, ({ url }) => {
    return new Response(url.endsWith(".m3u8") ? playlist : url.endsWith(".ts") ? part : film);
  });
  return { port: server.addr.port, [Symbol.asyncDispose]: () => server.shutdown() };
}

async function probeSystem({ places, tools }: Start): Promise<Record<string, Probe>> {
  const outside = `${places.dataDir}/../outside`;
  const attempts: Record<string, () => unknown> = {
    "refused: read /etc/passwd": () => Deno.readTextFileSync("/etc/passwd"),
    "refused: read by ..": () => Deno.readTextFileSync(`${outside}/secret.txt`),
    "refused: list /": () => [...Deno.readDirSync("/")],
    "refused: stat outside": () => Deno.statSync(`${outside}/secret.txt`),
    "refused: write into a root": () => Deno.writeTextFileSync(`${places.ingestRoots[0]}/new.txt`, "x"),
    "refused: write into the code": () => Deno.writeTextFileSync(`${places.codeDirs[0]}/new.txt`, "x"),
    "refused: remove a file of a root": () => Deno.removeSync(`${places.ingestRoots[0]}/film.mp4`),
    "refused: write outside": () => Deno.writeTextFileSync(`${outside}/new.txt`, "x"),
    "refused: make a symlink": () => Deno.symlinkSync("/etc/passwd", `${places.dataDir}/link`),
    "refused: make a hard link": () =>
      Deno.linkSync(`${places.ingestRoots[0]}/film.mp4`, `${places.tempDir}/link.mp4`),
    "refused: move a link out of a root": () =>
      Deno.renameSync(`${places.ingestRoots[0]}/leads_out.mp4`, `${places.tempDir}/link.mp4`),
    "refused: run sh": () => new Deno.Command("/bin/sh", { args: ["-c", "true"] }).outputSync(),
    "refused: run ls": () => new Deno.Command("ls").outputSync(),
    "refused: run deno": () => new Deno.Command(Deno.execPath()).outputSync(),
    "refused: run ffprobe": () => new Deno.Command(tools.ffprobe, { args: ["-version"] }).outputSync(),
    "refused: run sh by prlimit": () =>
      new Deno.Command(tools.prlimit ?? "prlimit", { args: ["--", "sh", "-c", "true"] }).outputSync(),
    "refused: write outside by ffmpeg": () =>
      new Deno.Command(tools.ffmpeg, {
        args: ["-f", "lavfi", "-i", "testsrc", "-frames:v", "1", `${outside}/new.mp4`],
      }).outputSync(),
    "refused: read /etc/passwd by ffmpeg": () =>
      new Deno.Command(tools.ffmpeg, { args: ["-f", "rawvideo", "-i", "/etc/passwd", "-"] }).outputSync(),
    "refused: make a pipe outside": () =>
      new Deno.Command(tools.mkfifo, { args: [`${outside}/pipe`] }).outputSync(),
    "refused: a Worker that may run programs": () =>
      new Worker("data:text/javascript,", { type: "module", deno: { permissions: { run: true } } }),
    "refused: a Worker of its own text, which would have the Cache API": () =>
      new Worker("data:text/javascript,caches.open('x')", { type: "module" }),
    "refused: the same by the constructor of all Workers": () =>
      new (Worker.prototype.constructor as typeof Worker)("data:text/javascript,", { type: "module" }),
    "refused: environment": () => Deno.env.get("PATH"),
    "refused: whole environment": () => Deno.env.toObject(),
    "refused: set the environment": () => Deno.env.set("X", "1"),
    "refused: host name": () => Deno.hostname(),
    "refused: native code": () => Deno.dlopen("libc.so.6", {}),
    "gone: the Cache API": () => caches.open("x"),
    "allowed: read the data directory": () => [...Deno.readDirSync(places.dataDir)],
    "allowed: read a root": () => [...Deno.readDirSync(places.ingestRoots[0]!)],
    "allowed: read the code": () => Deno.readTextFileSync(`${places.codeDirs[0]}/main.ts`),
    "allowed: write the temp folder": () => {
      Deno.writeTextFileSync(`${places.tempDir}/probe`, "x");
      Deno.removeSync(`${places.tempDir}/probe`);
    },
    "allowed: write the upload root": () => {
      Deno.writeTextFileSync(`${places.uploadRoot}/probe`, "x");
      Deno.removeSync(`${places.uploadRoot}/probe`);
    },
    // What a pinned connection needs: the authorities to trust, and a look-up.
    "allowed: read the trusted authorities": () => {
      if (trustedRoots().length < 50) throw new Error("too few");
    },
    "allowed: look a name up": () =>
      checkedAddresses("localhost", {
        world: realWorld(quietLog()),
        allowPrivate: true,
        timeoutMs: 10_000,
        signal: new AbortController().signal,
      }),
  };
  const probes: Record<string, Probe> = {};
  for (const [name, attempt] of Object.entries(attempts)) {
    try {
      await attempt();
      probes[name] = { outcome: "ok" };
    } catch (error) {
      const { name: outcome, message: detail } = error as Error;
      probes[name] = { outcome, detail };
    }
  }
  return probes;
}

/** What code in the sandbox could send to the broker, past the client that the media code uses. */
async function probeBroker(port: MessagePort, { places }: Start): Promise<Record<string, Probe>> {
  const { tempDir, dataDir, ingestRoots: [root], uploadRoot } = places;
  let id = 1_000_000;
  const answers = new Map<number, (answer: BrokerAnswer) => void>();
  port.addEventListener("message", ({ data }: MessageEvent<BrokerAnswer>) => answers.get(data.id)?.(data));
  const ask = async (order: object): Promise<Probe> => {
    const answer = Promise.withResolvers<BrokerAnswer>();
    const numbered = { id: ++id, ...order };
    answers.set(id, answer.resolve);
    // An order whose own number has another form is answered with the number 0.
    if (numbered.id !== id) answers.set(0, answer.resolve);
    port.postMessage(numbered);
    const got = await answer.promise;
    if (got.type !== "done") return { outcome: got.type, ...("message" in got && { detail: got.message }) };
    const { end, code, stderr } = got.outcome;
    return { outcome: end === "exited" && code === 0 ? "ok" : end, detail: stderr };
  };
  const bounds = { deadlineMs: 10_000, maxStdoutBytes: 1 << 20, maxStderrBytes: 1000, input: null };
  const run = (job: object, changes: object = {}) => ask({ type: "run", job, ...bounds, ...changes });
  const start = (job: object, changes: object = {}) =>
    ask({
      type: "start",
      job,
      maxStderrBytes: 1000,
      wantsStderr: false,
      input: null,
      output: null,
      ...changes,
    });
  const file = (path: string) => ({ kind: "file", path, url: null, socket: null });
  const stream = (kind: string, url: string) => ({ kind, path: null, url, socket: null });
  const probe = (input: object) => run({ kind: "probe", input });
  const film = file(`${root}/film.mp4`);
  const random = "0123456789abcdef01234567";
  const socket = `${tempDir}/m-0123456789abcdef.s`;
  const frames = { width: 64, height: 64 };
  const pull = {
    kind: "live_pull",
    input: film,
    streamIndex: 0,
    isPaced: false,
    maxFrame: frames,
    soundSocket: null,
  };
  const info = {
    ...{
      formatName: "mov",
      durationMs: 1000,
      sizeBytes: 1,
      videoStreams: 1,
      audioStreams: 0,
      audioChannels: 0,
    },
    video: null,
  };
  const clip = {
    ...{ kind: "copy_clip", input: film, info, deadlineMs: 1000, clipBytesMax: 1000 },
    ...{ file: `${tempDir}/clip-${random}.mp4`, range: { seekMs: 0, packets: 1 } },
  };
  Deno.writeTextFileSync(`${tempDir}/clip-${random}.mp4`, "x");
  Deno.writeTextFileSync(`${tempDir}/media-${random}.fifo`, "x");
  const first = { kind: "first_frame", input: film, streamIndex: 0, timeBase: "1/25", deadlineMs: 1000 };
  const attempts: Record<string, Promise<Probe>> = {
    "allowed by the broker: a probe": probe(film),
    "allowed by the broker: a pipe": run({
      kind: "make_pipe",
      path: `${tempDir}/media-${"a".repeat(24)}.fifo`,
    }),
    "forged: a file outside": probe(file("/etc/passwd")),
    "forged: a file outside by ..": probe(file(`${root}/../outside/film.mp4`)),
    "forged: a link that leads out": probe(file(`${root}/leads_out.mp4`)),
    "forged: a folder link that leads out": probe(file(`${root}/folder_out/film.mp4`)),
    "forged: the timeline": probe(file(`${dataDir}/timeline`)),
    "forged: a folder": probe(file(root!)),
    "forged: a root itself": probe(file(uploadRoot)),
    "forged: a root's name as the start of another": probe(file(`${root}2/film.mp4`)),
    "forged: a relative path": probe(file("film.mp4")),
    "forged: an option as a file": probe(file("-version")),
    "forged: a protocol as a file": probe(file("concat:/etc/passwd")),
    "forged: an empty path": probe(file("")),
    "forged: a NUL in a path": probe(file(`${root}/film.mp4\0`)),
    "forged: a path of 1 MB": probe(file(`/${"x".repeat(1 << 20)}`)),
    "forged: a path and an address": probe({
      kind: "file",
      path: `${root}/film.mp4`,
      url: "http://127.0.0.1:1/x",
    }),
    "forged: an address as a file": probe({
      kind: "file",
      path: null,
      url: "http://127.0.0.1:1/x",
      socket: null,
    }),
    "forged: file: as an address": probe(stream("hls", "file:///etc/passwd")),
    "forged: another host": probe(stream("hls", "http://10.0.0.1:80/x.m3u8")),
    "forged: another host by a user name": probe(stream("hls", "http://127.0.0.1:80@10.0.0.1/x.m3u8")),
    "forged: rtsp to another host": probe(stream("rtsp", "rtsp://10.0.0.1:554/x")),
    "forged: rtp": probe(stream("rtsp", "rtp://127.0.0.1:5004/x")),
    "forged: another protocol": probe(stream("concat", "concat:/etc/passwd")),
    "forged: an unknown kind": run({ kind: "sh", args: ["-c", "true"] }),
    "forged: no kind": run({}),
    "forged: a stream job to be run": run(pull),
    "forged: more fields": run({ kind: "probe", input: film, args: ["-f", "lavfi"] }),
    "forged: a program": run({ kind: "probe", input: film, program: "/bin/sh" }),
    "forged: a huge number": run({ ...first, streamIndex: 1e300 }),
    "forged: a fraction": run({ ...first, streamIndex: 0.5 }),
    "forged: a text for a number": run({ ...first, streamIndex: "0 -f x" }),
    "forged: not a number": run({ ...first, streamIndex: NaN }),
    "forged: an option as a time base": run({ ...first, timeBase: "1/25 -f x" }),
    "forged: a deadline of a year": run({ kind: "probe", input: film }, { deadlineMs: 3e10 }),
    "forged: endless output": run({ kind: "probe", input: film }, { maxStdoutBytes: 2 ** 40 }),
    "forged: a pipe outside": run({ kind: "make_pipe", path: `${dataDir}/../outside/media-${random}.fifo` }),
    "forged: a pipe outside by ..": run({ kind: "make_pipe", path: `${tempDir}/../media-${random}.fifo` }),
    "forged: a pipe of another name": run({ kind: "make_pipe", path: `${tempDir}/x` }),
    "forged: a pipe over a file": run({ kind: "make_pipe", path: `${tempDir}/media-${random}.fifo` }),
    "forged: an option as a pipe": run({ kind: "make_pipe", path: "--help" }),
    "forged: a clip outside": run({ ...clip, file: `${root}/clip-${random}.mp4` }),
    "forged: a clip over a file": run(clip),
    "forged: planes into a file": start({
      ...{ kind: "decode", seekS: 0, cpuSeconds: 1, jpegs: null },
      subject: {
        ...{ input: film, info, plan: { policy: "fixed", sampleFps: 1, sourceFps: null } },
        coordinates: {
          ...{ source_extent: frames, analysis_extent: frames, resolved_region: { x: 0, y: 0, ...frames } },
          requested_region: { x: 0, y: 0, width: 1, height: 1 },
        },
      },
      planes: { pipe: `${tempDir}/media-${random}.fifo`, maxFrames: 1, select: null },
    }),
    "forged: no socket": start(pull),
    "forged: sound into a file": start({ ...pull, soundSocket: `${tempDir}/media-${random}.fifo` }),
    "forged: sound elsewhere": start({ ...pull, soundSocket: `${dataDir}/../outside/new.wav` }),
    "forged: a socket that is none": start(pull, { output: `${tempDir}/clip-${random}.mp4` }),
    "forged: a socket that is not there": start(pull, { output: socket }),
    "forged: a socket elsewhere": start(pull, { output: "/run/docker.sock" }),
    "forged: an output file": start(pull, { output: `${dataDir}/../outside/new.nut` }),
    "forged: no order": ask({ type: "exec", command: "sh" }),
    "forged: a number of no form": ask({ id: "x", type: "run" }),
    "forged: a connection without a port": ask({ type: "connect" }),
  };
  const probes: Record<string, Probe> = {};
  for (const [name, attempt] of Object.entries(attempts)) probes[name] = await attempt;
  probes["refused to a live Worker: a probe"] = await asLiveWorker(port, ++id, {
    ...{ type: "run", job: { kind: "probe", input: film }, ...bounds, id: 1 },
  });
  for (const name of [`clip-${random}.mp4`, `media-${random}.fifo`, `media-${"a".repeat(24)}.fifo`]) {
    Deno.removeSync(`${tempDir}/${name}`);
  }
  return probes;
}

async function asLiveWorker(port: MessagePort, id: number, order: object): Promise<Probe> {
  const { port1, port2 } = new MessageChannel();
  const answer = Promise.withResolvers<BrokerAnswer>();
  port1.onmessage = ({ data }) => answer.resolve(data);
  port.postMessage({ type: "connect", id }, [port2]);
  port1.postMessage(order);
  const { type } = await answer.promise;
  port1.close();
  return { outcome: type };
}

/** The network is open to the service, so its own guard has to keep it from itself and its neighbours. */
async function probeIngest(
  service: Awaited<ReturnType<typeof openService>>,
  { places, config }: Start,
  filmPort: number,
): Promise<Record<string, Probe>> {
  const request = async (path: string, body: unknown) => {
    const response = await service.respond(
      new Request(`http://localhost${path}`, {
        method: "POST",
        headers: { "x-api-key": config.apiKeys[0]!, "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    );
    return { status: response.status, json: await response.json() };
  };
  const { json: run } = await request("/v1/runs", {});
  const [root] = places.ingestRoots;
  const sources: Record<string, string> = {
    "a file inside a root": `${root}/film.mp4`,
    "a symlink that leads out": `${root}/leads_out.mp4`,
    "a folder symlink that leads out": `${root}/folder_out/film.mp4`,
    "a file outside": `${places.dataDir}/../outside/film.mp4`,
    "the service itself": `https://127.0.0.1:${service.port}/film.mp4`,
    "the service by name": `https://localhost:${service.port}/film.mp4`,
    "a cloud's metadata": "https://169.254.169.254/latest/meta-data/",
    "a neighbour": "https://10.0.0.1/film.mp4",
    "a neighbour's camera": "rtsps://[fd00::1]/film",
    "a remote film": `http://media.test:${filmPort}/film.mp4`,
    "a remote playlist": `hls://media.test:${filmPort}/film.m3u8`,
    "plain rtsp": "rtsp://media.test/film",
  };
  const probes: Record<string, Probe> = {};
  for (const [name, source] of Object.entries(sources)) {
    const { status, json } = await request(`/v1/runs/${run.run_id}/ingest`, {
      source_uri: source,
      max_frames: 2,
    });
    const field = json.error?.details?.[0]?.field;
    probes[`ingest of ${name}`] = { outcome: field ? `${status} ${field}` : `${status}` };
  }
  return probes;
}
