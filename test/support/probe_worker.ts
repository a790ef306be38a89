/** Stands in for the service's Worker entry: opens the real service, then tries from the same isolate what it may do. */

import { quietLog } from "../../src/base/log.ts";
import { realWorld } from "../../src/base/world.ts";
import type { ServiceOrder, Start } from "../../src/sandbox.ts";
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
  if (order.type === "start") scope.postMessage(await probeAll(order.start));
};

async function probeAll(start: Start): Promise<Record<string, Probe>> {
  // For the guard this name is public. Its server is in this isolate, which may listen.
  await using film = serveFilm(start);
  const outbound = {
    resolve: () => Promise.resolve(["93.184.216.34"]),
    reroute: () => "127.0.0.1",
  };
  const service = await openService({ ...start, world: realWorld(quietLog()), outbound });
  try {
    return { ...await probeSystem(start), ...await probeIngest(service, start, film.port) };
  } finally {
    await service[Symbol.asyncDispose]();
  }
}

function serveFilm({ places, tools }: Start): AsyncDisposable & { port: number } {
  const path = `${places.ingestRoots[0]}/film.mp4`;
  const film = Deno.readFileSync(path);
  const args = ["-v", "error", "-i", path, "-c", "copy", "-t", "1", "-f", "mpegts", "-"];
  const part = new Deno.Command(tools.ffmpeg, { args, stdin: "null", clearEnv: true }).outputSync().stdout;
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
    "refused: run sh": () => new Deno.Command("/bin/sh", { args: ["-c", "true"] }).outputSync(),
    "refused: run ls": () => new Deno.Command("ls").outputSync(),
    "refused: run deno": () => new Deno.Command(Deno.execPath()).outputSync(),
    "refused: environment": () => Deno.env.get("PATH"),
    "refused: whole environment": () => Deno.env.toObject(),
    "refused: set the environment": () => Deno.env.set("X", "1"),
    "refused: host name": () => Deno.hostname(),
    "refused: native code": () => Deno.dlopen("libc.so.6", {}),
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
    "allowed: run ffprobe": () => new Deno.Command(tools.ffprobe, { args: ["-version"] }).outputSync(),
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
