/** Every kind of job gives the same bytes in a cage as without one. */

import { deepEqual, equal } from "node:assert/strict";
import { join } from "node:path";
import { fileInput, hlsInput } from "../../../src/media/input.ts";
import { probeMedia } from "../../../src/media/files/probe.ts";
import { Decoder } from "../../../src/media/files/decoder.ts";
import { type CageLevel, streamsOf } from "../../../src/media/broker/cage.ts";
import type { RunJob, StreamJob } from "../../../src/media/jobs/jobs.ts";
import { fullFrame } from "../../../src/model/frames/coordinates.ts";
import { planSampling } from "../../../src/model/frames/sampling.ts";
import { BUBBLEWRAP, cageOf, NAMESPACES } from "../../support/cages.ts";
import { LONG_TEST } from "../../support/long_tests.ts";
import { make, NEVER, TempFolder, tools, world } from "../../support/media.ts";
import { ffmpegEncoder, type Need, needing } from "../../support/needs.ts";
import { childProcesses } from "../../support/own_process.ts";
import { TestBroker } from "../../support/test_broker.ts";

/** Part of the command line of the forwarder's process, which stays for the next stream. */
const FORWARDER = "process/forwarder_process.ts";
const BOUNDS = { world: world(), signal: NEVER, maxStderrBytes: 8192 };
const MAX_FRAME = { width: 1920, height: 1080 };
const EXTENT = { width: 320, height: 240 };

/** What the jobs read, made once. */
class Media implements Disposable {
  readonly folder = new TempFolder();
  readonly tempDir = join(this.folder.path, "tmp");
  readonly film = this.#make("a film, it's \\long.mp4", "-c:v", "libx264", "-c:a", "aac");
  readonly sound = Deno.readFileSync(this.#make("sound.ogg", "-vn", "-c:a", "libopus"));
  readonly units = Deno.readFileSync(this.#make("units.ivf", "-an", "-c:v", "libvpx"));
  readonly frames = Deno.readFileSync(
    this.#make("frames.yuv", "-an", "-pix_fmt", "yuv420p", "-f", "rawvideo"),
  );
  readonly playlist = this.#make("list.m3u8", "-c:v", "libx264", "-g", "10", "-hls_time", "1", "-f", "hls");

  #make(name: string, ...args: string[]): string {
    Deno.mkdirSync(this.tempDir, { recursive: true });
    const input = [
      "-f",
      "lavfi",
      "-i",
      "testsrc2=s=320x240:r=10",
      "-f",
      "lavfi",
      "-i",
      "sine=r=48000",
      "-t",
      "2",
    ];
    return make(join(this.folder.path, name), ...input, ...args);
  }

  [Symbol.dispose](): void {
    this.folder[Symbol.dispose]();
  }
}

type Results = Record<string, { readonly bytes: number; readonly hash: string; readonly stderr?: string }>;

async function resultsIn(level: CageLevel, media: Media): Promise<Results> {
  const { tempDir, film } = media;
  const places = { tempDir, uploadRoot: tempDir, ingestRoots: [media.folder.path] };
  const cage = await cageOf(level, tools());
  await using broker = new TestBroker(tools(), places, cage);
  const { client } = broker;
  const results: Results = {};
  const add = async (name: string, bytes: Uint8Array<ArrayBuffer>) => {
    const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
    results[name] = { bytes: bytes.length, hash };
  };
  const run = async (
    job: RunJob,
    { name = job.kind as string, input }: { name?: string; input?: Uint8Array<ArrayBuffer> } = {},
  ) => {
    const outcome = await client.run(job, {
      ...{ ...BOUNDS, deadlineMs: 30_000, maxStdoutBytes: 2 ** 22 },
      ...(input && { input }),
    });
    equal(`${outcome.end} ${outcome.code}`, "exited 0", `${level} ${name}: ${outcome.stderr}`);
    await add(name, outcome.stdout as Uint8Array<ArrayBuffer>);
    results[name] = { ...results[name]!, stderr: outcome.stderr };
    return outcome;
  };
  const stream = async (
    job: StreamJob,
    { name = job.kind as string, input }: { name?: string; input?: Uint8Array<ArrayBuffer> } = {},
  ) => {
    const tool = client.start(job, BOUNDS);
    const writer = tool.stdin?.getWriter();
    const written = input && writer?.write(input).then(() => writer.close());
    const [bytes, ended] = await Promise.all([new Response(tool.stdout).bytes(), tool.ended, written]);
    equal(`${ended.end} ${ended.code}`, "exited 0", `${level} ${name}: ${ended.stderr}`);
    await add(name, bytes);
  };

  const input = fileInput(film);
  const info = await probeMedia(input, { runner: client, world: world(), signal: NEVER });
  const window = {
    input,
    info,
    deadlineMs: 30_000,
    seek: { seekMs: 500, beginMs: 500, counted: null },
    durationMs: 1000,
  };
  await run({ kind: "probe", input });
  await run({ kind: "list_decoders" });
  const { streamIndex, timeBase } = info.video!;
  await run({ kind: "first_frame", input, streamIndex, timeBase, deadlineMs: 30_000 });
  const part = { fromMs: 0, toMs: 1000 };
  await run({ kind: "list_packets", input, streamIndex, deadlineMs: 30_000, part });
  await run({ kind: "wav", ...window });
  await run({ kind: "opus_samples" }, { input: media.sound });
  const file = () => join(tempDir, `clip-${crypto.getRandomValues(new Uint8Array(12)).toHex()}.mp4`);
  const coordinates = fullFrame(EXTENT.width, EXTENT.height);
  const range = { seekMs: 0, packets: 10 };
  const clips = [
    {
      kind: "encode_clip" as const,
      ...window,
      coordinates,
      withAudio: true,
      file: file(),
      clipBytesMax: 2 ** 24,
    },
    {
      kind: "copy_clip" as const,
      input,
      info,
      deadlineMs: 30_000,
      range,
      file: file(),
      clipBytesMax: 2 ** 24,
    },
  ];
  for (const job of clips) {
    await run(job);
    await add(`${job.kind} file`, Deno.readFileSync(job.file));
    Deno.removeSync(job.file);
  }
  await stream({ kind: "live_decode", codec: "vp8", maxFrame: MAX_FRAME }, { input: media.units });
  await stream({ kind: "encode_jpegs", ...EXTENT, isFullRange: false }, { input: media.frames });
  const pull = {
    kind: "live_pull" as const,
    streamIndex: 0,
    isPaced: false,
    maxFrame: MAX_FRAME,
    soundSocket: null,
  };
  await stream({ ...pull, input }, { name: "live_pull of a file" });
  const socket = streamsOf(cage).by === "forwarder" ? join(tempDir, "m-0123456789abcdef.s") : null;
  const place = socket === null ? { hostname: "127.0.0.1", port: 0 } : { path: socket };
  await using server = Deno.serve({ ...place, onListen: () => {} }, async (request) => {
    const name = decodeURIComponent(new URL(request.url).pathname);
    return new Response(await Deno.readFile(join(media.folder.path, name)));
  });
  const port = "port" in server.addr ? server.addr.port : 8000;
  const relayed = hlsInput(`http://127.0.0.1:${port}/list.m3u8`, socket);
  await stream({ ...pull, input: relayed }, { name: "live_pull of a relay" });
  await run({ kind: "probe", input: relayed }, { name: "probe of a relay" });

  const decoder = new Decoder({ runner: client, tempDir, world: world(), maxConcurrent: 1 });
  const plan = planSampling({}, info.video!.averageFps, "ingest");
  const { signals } = await decoder.decodeSignals({ input, info, plan, maxFrames: 1000, signal: NEVER });
  await add(
    "decode",
    new TextEncoder().encode(
      JSON.stringify(signals, (_, value) => typeof value === "bigint" ? String(value) : value),
    ),
  );
  await decoder[Symbol.asyncDispose]();
  await server.shutdown();
  deepEqual(Array.from(Deno.readDirSync(tempDir)), []);
  const programs = childProcesses(media.folder.path).filter(({ command }) => !command.includes(FORWARDER));
  deepEqual(programs, []);
  return results;
}

const ENCODERS = ["libx264", "libopus", "libvpx"].map(ffmpegEncoder);
const READY: Need = {
  isMet: () => ENCODERS.every(({ isMet }) => isMet()),
  reason: "ffmpeg has not all of libx264, libopus and libvpx",
};
const LEVELS = { bubblewrap: BUBBLEWRAP, unshare: NAMESPACES, limits: READY } as const;

Deno.test({
  ...needing(READY, "every kind of job gives the same bytes in a cage as without one"),
  ...LONG_TEST,
  async fn(t) {
    using media = new Media();
    const bare = await resultsIn("off", media);
    equal(Object.keys(bare).length, 16);
    const empty = Object.keys(bare).filter((name) => bare[name]!.bytes === 0);
    deepEqual(empty, ["encode_clip"], "it writes its file only");
    for (const [level, need] of Object.entries(LEVELS)) {
      await t.step({
        ...needing(need, level),
        fn: async () => deepEqual(await resultsIn(level as CageLevel, media), bare),
      });
    }
  },
});
