/**
 * `./scripts/serve --dev`: starts the service without any configuration, for this machine alone, and prints
 * where the console is.
 *
 * The data and the key lie in .service-data/dev, so that the runs of yesterday are there today. Every setting
 * that the environment has goes before those of this file, but the address must be one of this machine alone.
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const DATA_DIR = join(ROOT, ".service-data", "dev");
const CLIPS = join(ROOT, "fixtures", "clips");
const KEY_FILE = "api-key";
const PREFERRED = "127.0.0.1:8080";
const LOOPBACK = /^(127\.\d+\.\d+\.\d+|\[::1\]|localhost):\d+$/;
const EXIT_USAGE = 2;

/** The settings that are not in `given`; throws an Error for an address that others can reach. */
export function devSettings(
  given: Readonly<Record<string, string>>,
  dataDir: string,
): Record<string, string> {
  const bindAddr = given.SERVICE_BIND_ADDR || freeAddress();
  if (!LOOPBACK.test(bindAddr)) {
    throw new Error(
      `--dev serves this machine alone: SERVICE_BIND_ADDR must be a loopback address and a port, got '${bindAddr}'`,
    );
  }
  return {
    SERVICE_BIND_ADDR: bindAddr,
    SERVICE_DATA_DIR: given.SERVICE_DATA_DIR || dataDir,
    SERVICE_API_KEYS: given.SERVICE_API_KEYS || keptKey(given.SERVICE_DATA_DIR || dataDir),
    SERVICE_INGEST_FILE_ROOTS: given.SERVICE_INGEST_FILE_ROOTS || CLIPS,
  };
}

/** The key of earlier starts, or a new random one that is kept where only this user can read it. */
function keptKey(dataDir: string): string {
  const path = join(dataDir, KEY_FILE);
  try {
    return Deno.readTextFileSync(path).trim();
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  const key = crypto.getRandomValues(new Uint8Array(16)).toHex();
  Deno.mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  Deno.writeTextFileSync(path, `${key}\n`, { mode: 0o600, createNew: true });
  return key;
}

/** The usual address, or a free one of this machine where another program has it. */
function freeAddress(): string {
  const [hostname, port] = PREFERRED.split(":");
  try {
    Deno.listen({ hostname: hostname!, port: Number(port) }).close();
    return PREFERRED;
  } catch (error) {
    if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    return `${hostname}:0`;
  }
}

/** What a person needs, once the service listens at `url`. */
export function welcome(url: string, apiKeys: string): string {
  return [
    "",
    `  Console   ${url}/console/`,
    `  Key       ${apiKeys.split(",")[0]!.trim()}`,
    `  Sample    ${join(CLIPS, "bbb480.mp4")}`,
    "  Stop      Ctrl-C; everything is still there at the next start",
    "",
  ].join("\n");
}

/** Runs the service, whose entry is `main`, until it ends; returns its exit code. */
async function serveDev(main: string): Promise<number> {
  const given = Deno.env.toObject();
  let settings: Record<string, string>;
  try {
    settings = devSettings(given, DATA_DIR);
  } catch (error) {
    console.error((error as Error).message);
    return EXIT_USAGE;
  }
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--quiet",
      "--no-prompt",
      "--cached-only",
      "--allow-all",
      "--config",
      join(ROOT, "deno.json"),
      main,
    ],
    env: settings,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    // Ctrl-C reaches the service by itself; another signal does not.
    Deno.addSignalListener(signal, () => child.kill("SIGTERM"));
  }
  await Promise.all([
    eachLine(child.stdout, (line) => {
      console.log(line);
      const url = /listening on (http:\S+)$/.exec(line)?.[1];
      if (url) console.log(welcome(url, settings.SERVICE_API_KEYS!));
    }),
    // The same log as JSON is for machines; faults of the configuration are not JSON.
    eachLine(child.stderr, (line) => line.startsWith("{") || console.error(line)),
  ]);
  return (await child.status).code;
}

async function eachLine(stream: ReadableStream<Uint8Array>, take: (line: string) => void): Promise<void> {
  let rest = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    lines.forEach(take);
  }
  if (rest !== "") take(rest);
}

if (import.meta.main) Deno.exit(await serveDev(Deno.args[0]!));
