/** What a job on a stream reaches: its own relay through the forwarder, and nothing else of any network. */

import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { FORWARD_STREAMS } from "../../../src/process/clean_process.ts";
import { hlsInput, type MediaInput } from "../../../src/media/input.ts";
import { run } from "../../../src/media/process.ts";
import { type Cage, enclosureOf, streamsOf } from "../../../src/media/broker/cage.ts";
import { Forwarder } from "../../../src/media/broker/forwarder.ts";
import { BUBBLEWRAP, cageOf, forwarderOf, foundCage, NAMESPACES } from "../../support/cages.ts";
import { make, NEVER, TempFolder, tools, world } from "../../support/media.ts";
import { type Need, needing, programOnPath } from "../../support/needs.ts";
import { childProcesses, descriptors } from "../../support/own_process.ts";
import { TestBroker } from "../../support/test_broker.ts";
import { until } from "../../support/until.ts";

const PERL = programOnPath("perl") ?? "";
const PROCESS = fileURLToPath(new URL("../../support/cage_process.ts", import.meta.url));
const ENV = programOnPath("env") ?? "";
const MAIN = fileURLToPath(new URL("../../../src/main.ts", import.meta.url));
const FORWARDER = "process/forwarder_process.ts";
const PORT = 8000;
const BOUNDS = {
  ...{ world: world(), signal: NEVER, deadlineMs: 30_000 },
  ...{ maxStdoutBytes: 4000, maxStderrBytes: 4000 },
};

/** Reads a line from, or fails to connect to, each address:port of its arguments. */
const DIAL = `
$SIG{ALRM} = sub { print "no answer\\n"; exit };
alarm 10;
for (@ARGV) {
  my ($a, $b, $c, $d, $port) = split /[.:]/;
  socket(my $s, 2, 1, 0) or die "no socket";
  my $to = pack("S n C C C C x8", 2, $port, $a, $b, $c, $d);
  if (!connect($s, $to)) { print 0 + $!, "\\n"; next }
  my $line = <$s>;
  print defined $line ? $line : "nothing\\n";
}`;
/** The kernel's numbers of errors. */
const NETWORK_UNREACHABLE = "101";
const CONNECTION_REFUSED = "111";

/** A relay that says its name to everybody. */
class NamedRelay implements Disposable {
  readonly #listener: Deno.UnixListener;

  constructor(readonly socket: string, name: string) {
    this.#listener = Deno.listen({ transport: "unix", path: socket });
    void this.#answer(new TextEncoder().encode(`${name}\n`));
  }

  [Symbol.dispose](): void {
    this.#listener.close();
  }

  async #answer(line: Uint8Array): Promise<void> {
    for await (const connection of this.#listener) {
      await connection.write(line).catch(() => {});
      connection.close();
    }
  }
}

/** What a program that was taken over gets from addresses. */
async function dialled(
  cage: Cage,
  words: readonly string[],
  addresses: readonly string[],
): Promise<string[]> {
  const touches = { reads: [], writes: [], devices: [], isCaged: true, makesIn: null, usesLoopback: true };
  const { stdout, stderr } = await run(PERL, ["-e", DIAL, ...addresses], {
    ...{ ...BOUNDS, enclosure: enclosureOf(cage, PERL, touches, words) },
  });
  const lines = new TextDecoder().decode(stdout).trim().split("\n");
  equal(lines.length, addresses.length, `${lines} ${stderr}`);
  return lines;
}

/** Addresses of this machine besides loopback, if it has any, and one of the internet. */
function otherAddresses(): string[] {
  const own = Deno.networkInterfaces().filter(({ family, address }) =>
    family === "IPv4" && !address.startsWith("127.")
  ).map(({ address }) => address);
  return [...own, "93.184.216.34", "169.254.169.254"];
}

const LEVELS: Record<"bubblewrap" | "unshare", Need> = { bubblewrap: BUBBLEWRAP, unshare: NAMESPACES };

for (const [level, need] of Object.entries(LEVELS) as ["bubblewrap" | "unshare", Need][]) {
  Deno.test({
    ...needing(need, `${level}: a job on a stream reaches its own relay, and nothing else of any network`),
    ignore: !need.isMet() || PERL === "",
    async fn() {
      using folder = new TempFolder();
      using one = new NamedRelay(join(folder.path, "m-0000000000000001.s"), "one");
      using two = new NamedRelay(join(folder.path, "m-0000000000000002.s"), "two");
      using machine = Deno.listen({ hostname: "0.0.0.0", port: 0 });
      const { port } = machine.addr as Deno.NetAddr;
      const cage = await cageOf(level, tools());
      await using forwarder = forwarderOf(cage, folder.path);
      using first = await forwarder.open({ socket: one.socket, port: PORT }, NEVER);
      using second = await forwarder.open({ socket: two.socket, port: PORT + 1 }, NEVER);
      const others = otherAddresses().map((address) => `${address}:${port}`);
      const addresses = [`127.0.0.1:${PORT}`, `127.0.0.1:${PORT + 1}`, `127.0.0.1:${port}`, ...others];
      const unreachable = others.map(() => NETWORK_UNREACHABLE);
      deepEqual(
        await dialled(cage, first.words, addresses),
        ["one", CONNECTION_REFUSED, CONNECTION_REFUSED, ...unreachable],
      );
      deepEqual(
        await dialled(cage, second.words, addresses),
        [CONNECTION_REFUSED, "two", CONNECTION_REFUSED, ...unreachable],
      );
      first[Symbol.dispose]();
      // The forwarder is another process, which is told and not waited for.
      await until(
        "the network is gone with the job",
        () => dialled(cage, first.words, addresses).then(() => false, () => true),
      );
    },
  });

  Deno.test({
    ...needing(need, `${level}: a job ends with the forwarder, and the next one starts another`),
    ignore: !need.isMet(),
    async fn() {
      await using at = await Streaming.open(level);
      const running = at.probe(at.endless);
      await until("ffprobe reads", () => at.isReading);
      const [holder] = at.holders;
      Deno.kill(holder!, "SIGKILL");
      await rejects(running, /the forwarder of streams has ended/);
      equal((await at.probe(at.film)).code, 0);
      const [next] = at.holders;
      ok(next !== undefined && next !== holder);
    },
  });

  Deno.test({
    ...needing(need, `${level}: the ends of jobs leave no namespace, and the end of the broker no forwarder`),
    ignore: !need.isMet(),
    async fn() {
      const at = await Streaming.open(level);
      equal((await at.probe(at.film)).code, 0);
      const [holder] = at.holders;
      const namespaces = () =>
        [...Deno.readDirSync(`/proc/${holder}/fd`)].filter(({ name }) => {
          try {
            return Deno.readLinkSync(`/proc/${holder}/fd/${name}`).startsWith("net:");
          } catch {
            return false;
          }
        }).length;
      const results = await Promise.all(Array.from({ length: 4 }, () => at.probe(at.film)));
      deepEqual(results.map(({ code }) => code), [0, 0, 0, 0]);
      await until("it holds its own namespace only", () => namespaces() === 1);
      await at[Symbol.asyncDispose]();
      deepEqual(childProcesses(FORWARDER), []);
    },
  });

  Deno.test({
    ...needing(need, `${level}: a stream without a socket is refused where there is a forwarder`),
    ignore: !need.isMet(),
    async fn() {
      await using at = await Streaming.open(level);
      const around = hlsInput("http://127.0.0.1:1/x.m3u8");
      await rejects(at.probe(around), /a stream is read through the forwarder where there is one/);
      const outside = hlsInput(`http://127.0.0.1:${PORT}/x.m3u8`, "/run/m-0123456789abcdef.s");
      await rejects(at.probe(outside), /a socket must be in the folder for it/);
    },
  });
}

Deno.test({
  ...needing(NAMESPACES, "a kill of the service ends the forwarder and what reads from it"),
  async fn() {
    const service = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", "--quiet", PROCESS, "forward"],
      stdout: "piped",
    }).spawn();
    const reader = service.stdout.getReader();
    await reader.read();
    const inside = childProcesses("", service.pid).map(({ pid }) => pid);
    ok(childProcesses(FORWARDER, service.pid).length > 0);
    service.kill("SIGKILL");
    await reader.cancel();
    await service.status;
    await until("they are gone", () => inside.every((pid) => !isRunning(pid)));
  },
});

Deno.test({
  ...needing(
    NAMESPACES,
    "where the forwarder does not work the reason is told, and `required` gives streams no network",
  ),
  async fn() {
    const without = await foundCage(tools(), { absent: ["nsenter"] });
    deepEqual(streamsOf(without.cage), { by: "machine" });
    equal(without.streamsMiss, "nsenter not installed");
    using folder = new TempFolder();
    const nsenter = folder.script(
      "nsenter",
      "echo 'nsenter: reassociate failed: Operation not permitted' >&2; exit 1",
    );
    const required = await foundCage(tools(), { replaced: { nsenter }, mode: "required" });
    deepEqual(streamsOf(required.cage), { by: "none" });
    match(required.streamsMiss!, /nsenter: reassociate failed: Operation not permitted$/);
    const places = { tempDir: folder.path, uploadRoot: folder.path, ingestRoots: [] };
    await using broker = new TestBroker(tools(), places, required.cage);
    const input = hlsInput("http://127.0.0.1:1/x.m3u8");
    await rejects(
      broker.client.run({ kind: "probe", input }, BOUNDS),
      /this cage has no network for streams/,
    );
    deepEqual(childProcesses(FORWARDER), []);
  },
});

Deno.test({
  ...needing(
    NAMESPACES,
    "the service's own program is its forwarder by an argument, as it must be where it was compiled",
  ),
  ignore: !NAMESPACES.isMet() || PERL === "" || !Deno.env.has("DENO_DIR"),
  async fn() {
    using folder = new TempFolder();
    using relay = new NamedRelay(join(folder.path, "m-0000000000000001.s"), "one");
    const cage = await cageOf("unshare", tools());
    const streams = streamsOf(cage);
    ok(streams.by === "forwarder");
    const command = {
      program: ENV,
      // The test's service has its packages in Deno's cache, a compiled one in itself.
      options: [`DENO_DIR=${Deno.env.get("DENO_DIR")}`, Deno.execPath(), "run", "-A", "--no-check", MAIN],
      entry: FORWARD_STREAMS,
    };
    const own = { ...streams.forwarder, command };
    await using forwarder = new Forwarder({ tools: own, socketDir: folder.path, world: world() });
    using passage = await forwarder.open({ socket: relay.socket, port: PORT }, NEVER);
    deepEqual(await dialled(cage, passage.words, [`127.0.0.1:${PORT}`]), ["one"]);
  },
});

Deno.test({
  ...needing(NAMESPACES, "ten forwarders one after another leave no descriptor"),
  async fn() {
    using folder = new TempFolder();
    using relay = new NamedRelay(join(folder.path, "m-0000000000000001.s"), "one");
    const cage = await cageOf("unshare", tools());
    const counts = [];
    for (let round = 0; round < 10; round++) {
      await using forwarder = forwarderOf(cage, folder.path);
      using _passage = await forwarder.open({ socket: relay.socket, port: PORT }, NEVER);
      counts.push(descriptors());
    }
    equal(counts.at(-1), counts[1]);
  },
});

/** A broker, and a relay that serves a playlist, and one whose part never comes. */
class Streaming implements AsyncDisposable {
  readonly film: MediaInput;
  readonly endless: MediaInput;
  readonly #server: Deno.HttpServer;
  readonly #hanging = Promise.withResolvers<Response>();
  #isReading = false;

  private constructor(readonly folder: TempFolder, readonly broker: TestBroker) {
    const playlist = join(folder.path, "list.m3u8");
    make(
      playlist,
      ...["-f", "lavfi", "-i", "testsrc2=s=64x64:r=10", "-t", "1"],
      "-c:v",
      "mpeg2video",
      "-f",
      "hls",
    );
    const socket = join(folder.path, "m-0123456789abcdef.s");
    this.film = hlsInput(`http://127.0.0.1:${PORT}/list.m3u8`, socket);
    this.endless = hlsInput(`http://127.0.0.1:${PORT}/endless.m3u8`, socket);
    this.#server = Deno.serve({ path: socket, onListen: () => {} }, async (request) => {
      const name = new URL(request.url).pathname;
      if (name === "/endless.m3u8") {
        return new Response("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nnever.ts\n#EXT-X-ENDLIST\n");
      }
      if (name === "/never.ts") {
        this.#isReading = true;
        return await this.#hanging.promise;
      }
      return new Response(await Deno.readFile(join(folder.path, name)));
    });
  }

  static async open(level: "bubblewrap" | "unshare"): Promise<Streaming> {
    const folder = new TempFolder();
    const places = { tempDir: folder.path, uploadRoot: folder.path, ingestRoots: [] };
    return new Streaming(folder, new TestBroker(tools(), places, await cageOf(level, tools())));
  }

  get isReading(): boolean {
    return this.#isReading;
  }

  /** The processes of the forwarder. */
  get holders(): number[] {
    return childProcesses(FORWARDER).map(({ pid }) => pid);
  }

  probe(input: MediaInput) {
    return this.broker.client.run({ kind: "probe", input }, BOUNDS);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.broker[Symbol.asyncDispose]();
    this.#hanging.resolve(new Response());
    await this.#server.shutdown();
    this.folder[Symbol.dispose]();
  }
}

function isRunning(pid: number): boolean {
  try {
    return !Deno.readTextFileSync(`/proc/${pid}/stat`).split(") ").at(-1)!.startsWith("Z");
  } catch {
    return false;
  }
}
