/**
 * What one principal notices while another one floods the service: the slowest hundredth (p99) of its
 * uploads, ingests, reads of events and first messages of an event stream, alone and during the flood.
 *
 * The service, the flood and this client are processes of their own on one machine, so the flood's client
 * takes processor time too. Rounds alone and in the flood alternate. The flood, of one key: uploads that
 * dribble and uploads as fast as they go, fetches that hang, long ingests, reasoning without a model, and 500
 * event streams.
 *
 *     ./scripts/deno run -A bench/shares.ts [--rounds 3] [--calls 30] [--without ingests,fetches,…]
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startServer } from "../scripts/server.ts";
import { median, pause, percentile, report, TemporaryFolder, timed } from "./support.ts";

const [GREEDY, OTHER] = ["key-of-the-greedy", "key-of-the-other"];
const CLIP = fileURLToPath(new URL("../fixtures/clips/intel_bottle.mp4", import.meta.url));
const FILM = fileURLToPath(new URL("../fixtures/clips/bbb480.mp4", import.meta.url));
const KINDS = ["dribbles", "uploads", "fetches", "ingests", "reasons", "streams"] as const;

const { values } = parseArgs({
  args: Deno.args,
  options: {
    rounds: { type: "string", default: "3" },
    calls: { type: "string", default: "30" },
    without: { type: "string", default: "" },
    /** URL of the service, for the process that floods; empty for the other one. */
    flood: { type: "string", default: "" },
    film: { type: "string", default: "" },
  },
});
const kinds = KINDS.filter((kind) => !values.without.split(",").includes(kind));

if (values.flood === "") await compare();
else await flood(values.flood, values.film);

async function compare(): Promise<void> {
  using folder = new TemporaryFolder();
  const media = join(folder.path, "media");
  Deno.mkdirSync(media);
  Deno.copyFileSync(CLIP, join(media, "clip.mp4"));
  const film = join(media, "film.mp4");
  const { success } = await new Deno.Command("ffmpeg", {
    args: ["-v", "error", "-stream_loop", "20", "-i", FILM, "-map", "0:v", "-c", "copy", film],
  }).output();
  if (!success) throw new Error("cannot make the long film");
  await using service = await startServer({
    SERVICE_API_KEYS: `${GREEDY},${OTHER}`,
    SERVICE_DATA_DIR: join(folder.path, "data"),
    SERVICE_INGEST_FILE_ROOTS: media,
    SERVICE_ALLOW_INSECURE_HTTP: "true",
    SERVICE_MEDIA_ALLOWED_NETWORKS: "127.0.0.0/8",
    SERVICE_ACTIVE_STREAM_LIMIT: "100",
  });
  const alone: Round[] = [];
  const flooded: Round[] = [];
  const measured = () => measure(service.url, join(media, "clip.mp4"));
  const measuredInFlood = async () => {
    const flooding = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--quiet", import.meta.filename!, "--flood", service.url, "--film", film]
        .concat(["--without", values.without]),
      stdout: "piped",
    }).spawn();
    const output = flooding.stdout.getReader();
    await output.read(); // it says when every kind of flood has begun
    const round = await measured();
    flooding.kill("SIGKILL");
    await flooding.status;
    await output.cancel();
    await pause(5_000);
    return round;
  };
  // A warm-up of both: only a flood starts the further Workers for decodes, which takes the first of its
  // ingests longer.
  await measured();
  await measuredInFlood();
  for (let round = 0; round < Number(values.rounds); round++) {
    alone.push(await measured());
    flooded.push(await measuredInFlood());
  }
  console.log(`flood of ${kinds.join(", ")}; ${values.rounds} rounds of ${values.calls} calls, ms`);
  for (const name of Object.keys(alone[0]!)) {
    const of = (rounds: readonly Round[], share: number) =>
      median(rounds.map((round) => percentile(round[name]!, share)));
    const p99s = (rounds: readonly Round[]) => rounds.map((round) => percentile(round[name]!, 0.99));
    report({
      ...{ name: `shares: ${name} in a flood of another principal, p99`, unit: "ms", better: "less" },
      ...{ ours: p99s(flooded), limit: { name: "without it", values: p99s(alone) } },
    });
    const [before, during] = [of(alone, 0.99), of(flooded, 0.99)];
    const p50 = `p50 ${of(alone, 0.5).toFixed(1)} / ${of(flooded, 0.5).toFixed(1)}`;
    const p99 = `p99 ${before.toFixed(1)} / ${during.toFixed(1)}`;
    console.log(`${name.padEnd(24)} ${p50.padEnd(24)} ${p99.padEnd(24)} ${(during / before).toFixed(2)} x`);
  }
}

/** Milliseconds of each call, by what was called. */
type Round = Record<string, number[]>;

async function measure(url: string, clip: string): Promise<Round> {
  const headers = { "x-api-key": OTHER };
  const json = { ...headers, "content-type": "application/json" };
  const film = new Blob([Deno.readFileSync(clip)]);
  const ask = async (path: string, init: RequestInit): Promise<string> => {
    const response = await fetch(`${url}${path}`, init);
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
    return text;
  };
  const { run_id } = JSON.parse(await ask("/v1/runs", { method: "POST", headers: json, body: "{}" }));
  const round: Round = { "upload": [], "ingest": [], "GET events": [], "first streamed event": [] };
  for (let call = 0; call < Number(values.calls); call++) {
    round["upload"]!.push(
      await timed(async () => {
        const body = new FormData();
        body.append("file", film, "clip.mp4");
        await ask("/v1/upload", { method: "POST", headers, body });
      }),
    );
    const body = JSON.stringify({ source_uri: clip, max_frames: 48 });
    round["ingest"]!.push(
      await timed(async () =>
        void await ask(`/v1/runs/${run_id}/ingest`, { method: "POST", headers: json, body })
      ),
    );
    round["GET events"]!.push(
      await timed(async () => void await ask(`/v1/runs/${run_id}/events`, { headers })),
    );
    round["first streamed event"]!.push(
      await timed(async () => {
        const response = await fetch(`${url}/v1/runs/${run_id}/events/stream?kind=run_created`, { headers });
        for await (const _bytes of response.body!) break;
      }),
    );
  }
  await ask(`/v1/runs/${run_id}`, { method: "DELETE", headers });
  return round;
}

/** Floods until the process is killed. */
async function flood(url: string, film: string): Promise<void> {
  const { hostname, port, host } = new URL(url);
  const headers = { "x-api-key": GREEDY };
  const json = { ...headers, "content-type": "application/json" };
  const post = async (path: string, body: unknown) => {
    const response = await fetch(`${url}${path}`, {
      method: "POST",
      headers: json,
      body: JSON.stringify(body),
    });
    return await response.text();
  };
  const { run_id } = JSON.parse(await post("/v1/runs", {}));
  const forever = (count: number, work: () => Promise<unknown>) =>
    Array.from({ length: count }, async () => {
      for (;;) await work().catch(() => pause(10));
    });

  const hanging = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => {
    const body = new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(10)) });
    return new Response(body, { headers: { "content-length": "100000" } });
  });
  const slow = `http://127.0.0.1:${(hanging.addr as Deno.NetAddr).port}/film.mp4`;
  const small = new Blob([Deno.readFileSync(CLIP)]);
  const work: Record<typeof KINDS[number], () => unknown> = {
    dribbles: () =>
      forever(40, async () => {
        using connection = await Deno.connect({ hostname, port: Number(port) });
        const write = (text: string) => connection.write(new TextEncoder().encode(text));
        await write(
          `POST /v1/upload HTTP/1.1\r\nhost: ${host}\r\nx-api-key: ${GREEDY}\r\ncontent-length: 1000000\r\n` +
            `content-type: multipart/form-data; boundary=b\r\n\r\n--b\r\n` +
            `content-disposition: form-data; name="file"; filename="a.mp4"\r\n\r\n`,
        );
        for (;;) {
          await write("x".repeat(100));
          await pause(1_000);
        }
      }),
    uploads: () =>
      forever(4, async () => {
        const body = new FormData();
        body.append("file", small, "a.mp4");
        await (await fetch(`${url}/v1/upload`, { method: "POST", headers, body })).text();
      }),
    fetches: () => forever(40, () => post(`/v1/runs/${run_id}/ingest`, { source_uri: slow })),
    ingests: () =>
      forever(8, () => post(`/v1/runs/${run_id}/ingest`, { source_uri: film, max_frames: 500_000 })),
    reasons: () =>
      forever(16, async () => {
        const run = JSON.parse(await post("/v1/runs", {})).run_id;
        const model = "Qwen/Qwen3-VL-4B-Instruct";
        await post(`/v1/runs/${run}/reason`, { source_uri: film, model, semantic_inference: false });
      }),
    streams: () =>
      forever(500, async () => {
        const response = await fetch(`${url}/v1/runs/${run_id}/events/stream`, { headers });
        for await (const _bytes of response.body!) {
          // read as fast as they come
        }
      }),
  };
  for (const kind of kinds) work[kind]();
  await pause(5_000);
  console.log("flooding");
  await new Promise(() => {});
}
