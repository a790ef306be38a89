/** What code that has taken over a Worker could send to the broker: names, floods, and orders out of turn. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { quietLog } from "../../../src/base/log.ts";
import { realWorld, type World } from "../../../src/base/world.ts";
import { Broker } from "../../../src/media/broker/broker.ts";
import { NO_CAGE } from "../../../src/media/broker/cage.ts";
import { openNativePipes } from "../../../src/media/broker/native_pipes.ts";
import type { BrokerAnswer } from "../../../src/media/broker/broker_messages.ts";
import { fastWorld } from "../../support/live/live_units.ts";
import { makeClip, TempFolder, tools } from "../../support/media.ts";
import { childProcesses } from "../../support/own_process.ts";
import { until } from "../../support/until.ts";

const BOUNDS = { deadlineMs: 20_000, maxStdoutBytes: 1 << 20, maxStderrBytes: 4096, input: null };
const STREAM = { maxStderrBytes: 4096, wantsStderr: false, input: null, output: null };

/** A broker, its folders, and the port of a Worker that sends what it likes. */
class Attack implements AsyncDisposable {
  readonly #folder = new TempFolder();
  readonly root = this.#made("media");
  readonly tempDir = this.#made("tmp");
  readonly outside = this.#made("outside");
  readonly warnings: string[] = [];
  readonly #broker: Broker;
  readonly #answers = new Map<number, (answer: BrokerAnswer) => void>();
  readonly #ports: MessagePort[] = [];
  readonly port: MessagePort;
  #lastId = 0;

  /** Starts a broker; with `hangs` every ffmpeg and ffprobe runs until it is killed. */
  constructor({ hangs = false, programsMax, world = realWorld(quietLog()) }: {
    hangs?: boolean;
    programsMax?: number;
    world?: World;
  } = {}) {
    const hanging = this.#folder.script("hanging", `exec sleep 1000 # "$@"`);
    const log = { ...quietLog(), warn: (message: string) => void this.warnings.push(message) };
    this.#broker = new Broker({
      tools: hangs ? { ...tools(), ffmpeg: hanging, ffprobe: hanging, prlimit: null } : tools(),
      places: {
        ...{ tempDir: this.tempDir, socketDir: this.tempDir, uploadRoot: this.#made("uploads") },
        ingestRoots: [this.root],
      },
      cage: NO_CAGE,
      world: { ...world, log },
      pipes: openNativePipes(),
      ...(programsMax !== undefined && { programsMax }),
    });
    this.port = this.#opened((port) => void this.#broker.serve(port));
  }

  /** A port of a live Worker, connected as the service does it. */
  live(): { port: MessagePort; disconnect(): void } {
    const id = ++this.#lastId;
    const port = this.#opened((other) => this.port.postMessage({ type: "connect", id }, [other]));
    return { port, disconnect: () => this.port.postMessage({ type: "disconnect", id }) };
  }

  #opened(give: (port: MessagePort) => void): MessagePort {
    const { port1, port2 } = new MessageChannel();
    give(port1);
    port2.onmessage = ({ data }) => this.#answers.get(data.id)?.(data);
    this.#ports.push(port2);
    return port2;
  }

  /** Sends an order under a new number; `answer` is what comes at its end. */
  send(order: object, port = this.port): { id: number; answer: Promise<BrokerAnswer> } {
    const id = ++this.#lastId;
    const answer = Promise.withResolvers<BrokerAnswer>();
    this.#answers.set(id, answer.resolve);
    port.postMessage({ id, ...order });
    return { id, answer: answer.promise };
  }

  async ask(order: object, port = this.port): Promise<BrokerAnswer> {
    return await this.send(order, port).answer;
  }

  run(job: object, port = this.port): Promise<BrokerAnswer> {
    return this.ask({ type: "run", job, ...BOUNDS }, port);
  }

  /** What a probe of a file says, or how it was refused. */
  async probe(path: string, kind = "file"): Promise<string> {
    const answer = await this.run({ kind: "probe", input: { kind, path, url: null, socket: null } });
    if (answer.type !== "done") return answer.type;
    return answer.outcome.code === 0 ? new TextDecoder().decode(answer.outcome.stdout) : "not read";
  }

  get programs(): number {
    return childProcesses("sleep 1000").filter(({ isZombie }) => !isZombie).length;
  }

  #made(name: string): string {
    const path = join(this.#folder.path, name);
    Deno.mkdirSync(path);
    return path;
  }

  async close(): Promise<void> {
    await this.#broker[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
    for (const port of this.#ports) port.close();
    assert.deepEqual(childProcesses("sleep 1000"), []);
    this.#folder[Symbol.dispose]();
  }
}

Deno.test("a path that ffmpeg would read as a protocol, an option or a pattern is refused, and names a file where there is one", async () => {
  await using at = new Attack();
  const secret = makeClip(join(at.outside, "secret.mp4"), { frames: 2 });
  const film = makeClip(join(at.root, "film.mp4"), { frames: 2 });
  const names = [
    `concat:${film}|${secret}`,
    `file:${secret}`,
    `subfile,,start,0,end,0,,:${secret}`,
    "data:text/plain;base64,AAAA",
    "pipe:0",
    "fd:0",
    "async:cache:/etc/passwd",
    "-i",
    "-version",
    `movie=${secret}`,
    "film.mp4\n-i /etc/passwd",
    `film.mp4|${secret}`,
    "%02d.mp4",
    "*.mp4",
    "a:b.mp4",
    "film.mp4[a];amovie=x",
    "%{eif}",
  ];
  for (const name of names) {
    assert.equal(await at.probe(name), "refused", name);
    const path = join(at.root, name.replaceAll("/", "_"));
    assert.equal(await at.probe(path), "refused", path);
    Deno.copyFileSync(film, path);
    assert.match(await at.probe(path), /"codec_name": *"mpeg4"/, path);
    Deno.removeSync(path);
  }
  for (const path of [`${at.root}/../outside/secret.mp4`, `${at.root}/./../outside/secret.mp4`, secret]) {
    assert.equal(await at.probe(path), "refused", path);
  }
});

Deno.test("a link that is put in the place of a checked folder or file is seen by the next check", async () => {
  await using at = new Attack();
  makeClip(join(at.outside, "film.mp4"), { frames: 2 });
  Deno.mkdirSync(join(at.root, "folder"));
  Deno.copyFileSync(join(at.outside, "film.mp4"), join(at.root, "folder", "film.mp4"));
  const path = join(at.root, "folder", "film.mp4");
  assert.match(await at.probe(path), /mpeg4/);
  Deno.removeSync(path);
  Deno.symlinkSync(join(at.outside, "film.mp4"), path);
  assert.equal(await at.probe(path), "refused");
  Deno.removeSync(join(at.root, "folder"), { recursive: true });
  Deno.symlinkSync(at.outside, join(at.root, "folder"));
  assert.equal(await at.probe(path), "refused");
  // A pipe, a clip and a socket that are links are none.
  const random = "0123456789abcdef01234567";
  Deno.symlinkSync(join(at.outside, "new"), join(at.tempDir, `media-${random}.fifo`));
  Deno.symlinkSync(join(at.outside, "new"), join(at.tempDir, `clip-${random}.mp4`));
  const pipe = await at.run({ kind: "make_pipe", path: join(at.tempDir, `media-${random}.fifo`) });
  assert.equal(pipe.type, "refused");
  assert.deepEqual([...Deno.readDirSync(at.outside)].map(({ name }) => name), ["film.mp4"]);
});

Deno.test("a pipe is made in the temporary folder, under a whole name of its own, and over nothing that is there", async () => {
  await using at = new Attack();
  const name = "media-0123456789abcdef01234567.fifo";
  const path = join(at.tempDir, name);
  const odd = [
    ...[
      `${path}\0`,
      `${path}\0.fifo`,
      `${at.tempDir}/\0/${name}`,
      `${path}\n`,
      `${path}/`,
      `${at.tempDir}//${name}`,
    ],
    ...[`${at.tempDir}/../outside/${name}`, join(at.outside, name), join(at.root, name), name],
    ...[
      join(at.tempDir, `media-${"0".repeat(5000)}.fifo`),
      `${at.tempDir}/${"../tools/".repeat(3000)}${name}`,
    ],
  ];
  for (const path of odd) {
    assert.equal((await at.run({ kind: "make_pipe", path })).type, "refused", JSON.stringify(path));
  }
  for (const folder of [at.tempDir, at.outside, at.root]) assert.deepEqual([...Deno.readDirSync(folder)], []);
  assert.equal((await at.run({ kind: "make_pipe", path })).type, "done");
  assert.ok(Deno.lstatSync(path).isFifo);
  assert.equal((await at.run({ kind: "make_pipe", path })).type, "refused");
  assert.equal((await at.run({ kind: "make_pipe", path: `${path}2` }, at.live().port)).type, "refused");
});

Deno.test("a file or playlist of the Worker's own makes ffmpeg open nothing else", async () => {
  await using at = new Attack();
  const secret = makeClip(join(at.outside, "secret.mp4"), { frames: 5 });
  const asked: string[] = [];
  await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    const { pathname } = new URL(request.url);
    asked.push(pathname);
    const part = PARTS[Number(pathname.slice(1, 2))];
    return part === undefined ? new Response(null, { status: 404 }) : new Response(playlistOf(part));
  });
  const address = `http://127.0.0.1:${server.addr.port}`;
  const playlistOf = (part: string) =>
    `#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n${part}\n#EXT-X-ENDLIST\n`;
  const PARTS = [
    ...[secret, `file:${secret}`, `file://${secret}`, `concat:${secret}`, `crypto:${secret}`],
    ...[`subfile,,start,0,end,0,,:${secret}`, `unix:${secret}`, "data:video/mp4;base64,AAAA"],
  ];
  const texts = {
    "list.m3u8": playlistOf(`${address}/part.ts`),
    "local.m3u8": playlistOf(secret),
    "list.ffconcat": `ffconcat version 1.0\nfile '${secret}'\n`,
    "session.sdp":
      `v=0\nc=IN IP4 127.0.0.1\nm=video ${server.addr.port} RTP/AVP 96\na=rtpmap:96 H264/90000\n`,
    "manifest.mpd": `<?xml version="1.0"?><MPD><Period><AdaptationSet><Representation><BaseURL>${secret}` +
      "</BaseURL></Representation></AdaptationSet></Period></MPD>",
    "graph.svg": `<svg><image href="file://${secret}"/></svg>`,
  };
  for (const [name, text] of Object.entries(texts)) {
    for (const [kind, as] of [["file", name], ["fetched", `${name}.mp4`]] as const) {
      Deno.writeTextFileSync(join(at.tempDir, as), text);
      assert.equal(await at.probe(join(at.tempDir, as), kind), "not read", as);
    }
  }
  assert.deepEqual(asked, []);
  for (const [index, part] of PARTS.entries()) {
    const input = { kind: "hls", path: null, url: `${address}/${index}.m3u8`, socket: null };
    const answer = await at.run({ kind: "probe", input });
    assert.equal(answer.type, "done");
    const { stdout } = (answer as Extract<BrokerAnswer, { type: "done" }>).outcome;
    assert.doesNotMatch(new TextDecoder().decode(stdout), /codec_name/, part);
  }
  assert.ok(asked.length >= PARTS.length, "the playlists themselves were fetched");
});

Deno.test("an address that could lead elsewhere is refused", async () => {
  await using at = new Attack();
  const addresses = {
    hls: [
      "file:///etc/passwd",
      "http://127.0.0.1:1/x\nfile:/etc/passwd",
      "http://127.0.0.1:1/x|http://10.0.0.1/",
      "http://127.0.0.1:1/x?y",
      "http://127.0.0.1:1@10.0.0.1/x",
      "http://127.0.0.1.nip.io:1/x",
      "http://127.0.0.1/x",
      "http://localhost:1/x",
      "concat:http://127.0.0.1:1/x",
      "hls+file:///etc/passwd",
      " http://127.0.0.1:1/x",
      "-protocol_whitelist",
    ],
    rtsp: [
      "rtsp://127.0.0.1:1/x\0",
      "rtsp://127.0.0.1:1/x\r\nSETUP",
      "rtsp://user@127.0.0.1:1/x",
      "rtsp://127.0.0.1:1/x@10.0.0.1/",
      "rtsp://10.0.0.1:1/x",
      "rtsps://127.0.0.1:1/x",
      "rtp://127.0.0.1:1/x",
      "tcp://127.0.0.1:1",
    ],
  };
  for (const [kind, urls] of Object.entries(addresses)) {
    for (const url of urls) {
      const { type } = await at.run({ kind: "probe", input: { kind, path: null, url, socket: null } });
      assert.equal(type, "refused", url);
    }
  }
});

Deno.test("thousands of orders at once start as many programs as are allowed, and the log does not grow with them", async () => {
  await using at = new Attack({ hangs: true, programsMax: 8 });
  const order = { type: "run", job: { kind: "list_decoders" }, ...BOUNDS };
  const orders = Array.from({ length: 5000 }, () => at.send(order));
  const early = await Promise.all(orders.slice(8).map(({ answer }) => answer));
  assert.ok(early.every(({ type }) => type === "refused"));
  await until("eight run", () => at.programs === 8);
  assert.ok(at.warnings.length <= 100, `${at.warnings.length} lines`);
  for (const { id } of orders.slice(0, 8)) at.port.postMessage({ type: "kill", id, why: "killed" });
  for (const { answer } of orders.slice(0, 8)) assert.equal((await answer).type, "done");
  const { id, answer } = at.send(order);
  await until("another one runs", () => at.programs === 1);
  at.port.postMessage({ type: "kill", id, why: "killed" });
  assert.equal((await answer).type, "done");
});

Deno.test("an order that is larger than any order is refused without a close look", async () => {
  await using at = new Attack({ hangs: true });
  const deep: unknown[] = [];
  for (let level = 0, inner = deep; level < 500; level++) inner.push(inner = []);
  const frames = new Array(3_000_000).fill(1);
  const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`field${n}`, n]));
  const job = { kind: "list_decoders" };
  const bound = { ...BOUNDS, type: "run", job };
  const orders = [
    {
      ...bound,
      job: { kind: "probe", input: { kind: "file", path: "/x".repeat(10 << 20), url: null, socket: null } },
    },
    { ...bound, job: { kind: "decode", planes: { select: { by: "frames", frames } } } },
    { ...bound, job: deep },
    { ...bound, job: many },
    { ...bound, job: new Map([["kind", "list_decoders"]]) },
    { ...bound, input: new Uint8Array(5 << 20) },
    { ...bound, input: new Uint16Array(5) },
    { ...bound, maxStdoutBytes: 9 << 20 },
    { ...bound, maxStderrBytes: 1 << 20 },
    { ...bound, deadlineMs: 1_800_001 },
    { ...STREAM, type: "start", job, maxStderrBytes: 1 << 20 },
  ];
  for (const [index, order] of orders.entries()) {
    assert.equal((await at.ask(order)).type, "refused", `order ${index}`);
  }
  for (const message of [null, 1, "run", [], undefined, new Date(), new Uint8Array(9)]) {
    at.port.postMessage(message);
  }
  assert.equal(at.programs, 0);
  const { id } = at.send(bound);
  await until("the broker still works", () => at.programs === 1);
  at.port.postMessage({ type: "kill", id, why: "killed" });
  await until("it is gone", () => at.programs === 0);
});

Deno.test("an order with a number in use is refused, one for what has ended does nothing, and one after the end is not heard", async () => {
  await using at = new Attack({ hangs: true });
  const order = { type: "run", job: { kind: "list_decoders" }, ...BOUNDS };
  const first = at.send(order);
  await until("it runs", () => at.programs === 1);
  at.port.postMessage({ ...order, id: first.id });
  assert.equal((await first.answer).type, "refused");
  const live = at.live();
  // Numbers belong to a connection: a live Worker cannot kill what runs for another one.
  live.port.postMessage({ type: "kill", id: first.id, why: "killed" });
  at.port.postMessage({ type: "kill", id: 999_999, why: "killed" });
  at.port.postMessage({ type: "disconnect", id: 999_999 });
  const { answer: second } = at.send(order);
  await until("both run", () => at.programs === 2);
  live.disconnect();
  at.send({ type: "run", job: { kind: "make_pipe", path: "x" }, ...BOUNDS }, live.port);
  await at.close();
  assert.equal((await second).type, "done");
  assert.equal(at.programs, 0);
  at.send(order);
  // A message takes a turn or two of the loop; the broker would have started a program by then.
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setTimeout(resolve, 0));
  assert.equal(at.programs, 0);
});

Deno.test("a live Worker gets the jobs of live sessions, streams of relays only, and half of the programs", async () => {
  await using at = new Attack({ hangs: true, programsMax: 4 });
  const film = makeClip(join(at.root, "film.mp4"), { frames: 2 });
  const { port } = at.live();
  const input = { kind: "file", path: film, url: null, socket: null };
  const frame = { width: 16, height: 16 };
  const pull = {
    kind: "live_pull",
    input,
    streamIndex: 0,
    isPaced: false,
    maxFrame: frame,
    soundSocket: null,
  };
  const others = [
    { kind: "probe", input },
    { kind: "list_decoders" },
    { kind: "opus_samples" },
    { kind: "scale_picture", width: 160 },
    { kind: "first_frame", input, streamIndex: 0, timeBase: "1/25", deadlineMs: 1000 },
  ];
  for (const job of others) assert.equal((await at.run(job, port)).type, "refused", job.kind);
  assert.match(
    messageOf(await at.ask({ type: "start", job: pull, ...STREAM }, port)),
    /no live_pull for this/,
  );
  const { port1, port2 } = new MessageChannel();
  const answer = Promise.withResolvers<BrokerAnswer>();
  port.addEventListener("message", ({ data }) => data.id === 77 && answer.resolve(data));
  port.postMessage({ type: "connect", id: 77 }, [port2]);
  assert.equal((await answer.promise).type, "refused");
  port1.close();
  using sockets = new Sockets(at.tempDir);
  const jpegs = () => ({
    ...{ ...STREAM, type: "start", job: { kind: "encode_jpegs", ...frame, isFullRange: true } },
    ...{ input: sockets.next(), output: sockets.next() },
  });
  const [one, two, third] = [at.send(jpegs(), port), at.send(jpegs(), port), at.send(jpegs(), port)];
  assert.match(messageOf(await third.answer), /too many programs/);
  await until("two run", () => at.programs === 2);
  const own = at.send(jpegs());
  await until("the service still gets one", () => at.programs === 3);
  for (const { id } of [one, two]) port.postMessage({ type: "kill", id, why: "killed" });
  at.port.postMessage({ type: "kill", id: own.id, why: "killed" });
  await Promise.all([one.answer, two.answer, own.answer]);
});

Deno.test("what runs for a Worker that hangs ends with the Worker", async () => {
  await using at = new Attack({ hangs: true });
  using sockets = new Sockets(at.tempDir);
  const { port1, port2 } = new MessageChannel();
  at.port.postMessage({ type: "connect", id: 1_000 }, [port2]);
  const code = "onmessage = ({ data, ports: [port] }) => { port.postMessage(data); for (;;); }";
  const worker = new Worker(`data:text/javascript,${encodeURIComponent(code)}`, { type: "module" });
  worker.postMessage({
    ...{ ...STREAM, type: "start", id: 1, input: sockets.next(), output: sockets.next() },
    job: { kind: "encode_jpegs", width: 16, height: 16, isFullRange: true },
  }, [port1]);
  await until("its program runs", () => at.programs === 1);
  worker.terminate();
  at.port.postMessage({ type: "disconnect", id: 1_000 });
  await until("its program is gone", () => at.programs === 0);
});

Deno.test("frames go from the program to the Worker: the broker says once that the program has ended", async () => {
  await using at = new Attack();
  using sockets = new Sockets(at.tempDir);
  const frames = 200;
  const film = makeClip(join(at.root, "film.mp4"), { frames });
  let messages = 0;
  at.port.addEventListener("message", () => messages++);
  const output = sockets.next();
  const reading = sockets.read(0);
  const answer = await at.ask({
    ...{ ...STREAM, type: "start", output },
    job: {
      ...{
        kind: "live_pull",
        input: { kind: "file", path: film, url: null, socket: null },
        streamIndex: 0,
        isPaced: false,
      },
      ...{ maxFrame: { width: 320, height: 240 }, soundSocket: null },
    },
  });
  assert.equal(answer.type === "done" && answer.outcome.code, 0);
  assert.ok(await reading >= frames * 320 * 240 * 1.5);
  assert.equal(messages, 1);
});

Deno.test("a stream that nobody ends is ended by the broker", async () => {
  // Twenty days in a fifth of a second.
  await using at = new Attack({ hangs: true, world: fastWorld(20 * 24 * 3600 * 5) });
  using sockets = new Sockets(at.tempDir);
  const answer = await at.ask({
    ...{ ...STREAM, type: "start", job: { kind: "encode_jpegs", width: 16, height: 16, isFullRange: true } },
    ...{ input: sockets.next(), output: sockets.next() },
  });
  assert.equal(answer.type === "done" && answer.outcome.end, "out_of_time");
});

/** Sockets on which a Worker listens. */
class Sockets implements Disposable {
  readonly #listeners: Deno.UnixListener[] = [];

  constructor(readonly folder: string) {}

  next(): string {
    const path = join(this.folder, `m-${this.#listeners.length.toString().padStart(16, "0")}.s`);
    this.#listeners.push(Deno.listen({ transport: "unix", path }));
    return path;
  }

  /** The number of bytes that come on a socket. */
  async read(index: number): Promise<number> {
    using connection = await this.#listeners[index]!.accept();
    let bytes = 0;
    for await (const part of connection.readable) bytes += part.length;
    return bytes;
  }

  [Symbol.dispose](): void {
    for (const listener of this.#listeners) listener.close();
  }
}

function messageOf(answer: BrokerAnswer): string {
  return "message" in answer ? answer.message : answer.type;
}
