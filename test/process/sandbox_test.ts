import assert from "node:assert/strict";
import { join } from "node:path";
import { readConfig } from "../../src/contract/config.ts";
import { ENTRIES } from "../../src/base/program_paths.ts";
import { quietLog } from "../../src/base/log.ts";
import { realWorld } from "../../src/base/world.ts";
import { Broker } from "../../src/media/broker/broker.ts";
import { loadSandboxed, type Start, startOrder } from "../../src/process/sandbox.ts";
import { findTools } from "../../src/process/environment.ts";
import { CLIPS, PROJECT_ROOT } from "../support/service.ts";
import { machineCage } from "../support/cages.ts";
import type { Probe } from "../support/probe_worker.ts";

/**
 * Opens the real service in its sandbox as in production; `test/support/probe_worker.ts` probes it from
 * inside.
 */
async function probeFromInside(): Promise<{ probes: Record<string, Probe>; root: string }> {
  const root = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "service-sandbox-" }));
  for (const name of ["data", "data/tmp", "uploads", "media", "outside"]) Deno.mkdirSync(join(root, name));
  Deno.writeTextFileSync(join(root, "outside", "secret.txt"), "secret");
  Deno.copyFileSync(join(CLIPS, "intel_bottle.mp4"), join(root, "outside", "film.mp4"));
  Deno.copyFileSync(join(CLIPS, "intel_bottle.mp4"), join(root, "media", "film.mp4"));
  Deno.symlinkSync(join(root, "outside", "film.mp4"), join(root, "media", "leads_out.mp4"));
  Deno.symlinkSync(join(root, "outside"), join(root, "media", "folder_out"));
  const config = readConfig({
    SERVICE_API_KEYS: "k",
    SERVICE_BIND_ADDR: "127.0.0.1:0",
    RUST_LOG: "off",
    SERVICE_ALLOW_INSECURE_HTTP: "1",
    SERVICE_ALLOW_REMOTE_HLS: "1",
  });
  const tools = findTools(config, []);
  const film = join(root, "media", "film.mp4");
  new Deno.Command(tools.ffmpeg, {
    args: [
      "-v",
      "error",
      "-i",
      film,
      "-c",
      "copy",
      "-t",
      "1",
      "-f",
      "mpegts",
      join(root, "media", "part.ts"),
    ],
    stdin: "null",
  }).outputSync();
  const cage = await machineCage(tools);
  const start: Start = {
    config,
    tools,
    cage,
    places: {
      dataDir: join(root, "data"),
      uploadRoot: join(root, "uploads"),
      tempDir: join(root, "data", "tmp"),
      socketDir: join(root, "data", "tmp"),
      ingestRoots: [join(root, "media")],
      codeDirs: ["src", "wasm", "weights"].map((name) => join(PROJECT_ROOT, name)),
      pagesDir: join(PROJECT_ROOT, "dist", "pages"),
    },
  };
  const before = namesIn(root);
  await using broker = new Broker({ ...start, cage, world: realWorld(quietLog()), pipes: null });
  const worker = loadSandboxed(new URL("../support/probe_worker.ts", import.meta.url), start);
  const order = startOrder(start, broker);
  worker.postMessage(order, [order.broker]);
  try {
    const probes = await new Promise<Record<string, Probe>>((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = (event) => {
        event.preventDefault();
        reject(new Error(event.message));
      };
    });
    const made = namesIn(root).filter((name) => !before.includes(name) && !name.startsWith("data/"));
    assert.deepEqual(made, [], "nothing was made outside the data directory");
    return { probes, root };
  } finally {
    worker.terminate();
  }
}

Deno.test("from inside the running service other files, programs and variables are out of reach, and neighbours are refused", async () => {
  const { probes, root } = await probeFromInside();
  Deno.removeSync(root, { recursive: true });
  const refused = Object.entries(probes).filter(([name]) => name.startsWith("refused: "));
  const allowed = Object.entries(probes).filter(([name]) => name.startsWith("allowed: "));
  assert.ok(refused.length >= 25 && allowed.length >= 6);
  for (const [name, probe] of refused) {
    assert.equal(probe.outcome, "NotCapable", `${name}: ${JSON.stringify(probe)}`);
  }
  assert.equal(probes["gone: the Cache API"]?.outcome, "ReferenceError");
  for (const [name, probe] of allowed) assert.equal(probe.outcome, "ok", `${name}: ${JSON.stringify(probe)}`);
  const forged = Object.entries(probes).filter(([name]) => name.startsWith("forged: "));
  assert.ok(forged.length >= 45);
  for (const [name, probe] of forged) {
    assert.equal(probe.outcome, "refused", `${name}: ${JSON.stringify(probe)}`);
  }
  assert.deepEqual(probes["refused to a live Worker: a probe"], { outcome: "refused" });
  for (const [name, probe] of Object.entries(probes)) {
    if (name.startsWith("allowed by the broker: ")) {
      assert.equal(probe.outcome, "ok", `${name}: ${JSON.stringify(probe)}`);
    }
  }
  const ingested = ["a file inside a root", "a remote film", "a remote playlist"].map((name) =>
    `ingest of ${name}`
  );
  for (const name of ingested) assert.deepEqual(probes[name], { outcome: "200" }, name);
  const others = Object.entries(probes).filter(([name]) =>
    name.startsWith("ingest of ") && !ingested.includes(name)
  );
  assert.equal(others.length, 9);
  for (const [name, probe] of others) assert.deepEqual(probe, { outcome: "422 source_uri" }, name);
});

Deno.test("each Worker takes away first what would store files elsewhere", () => {
  for (const path of sourceFiles(join(PROJECT_ROOT, "src"))) {
    const text = Deno.readTextFileSync(path);
    assert.doesNotMatch(text, /new Worker\((?!entry)/, `${path}: entryOf() gives the module`);
    if (/worker_globals\.ts";$/m.test(text)) assert.ok(isEntry(path), path);
  }
  const entries = Object.values(ENTRIES).filter((name) => name.endsWith("_worker"));
  assert.equal(entries.length, 6);
  for (const name of entries) {
    const path = join(PROJECT_ROOT, "src", `${name}.ts`);
    const [first] = Deno.readTextFileSync(path).match(/^import .*$/m) ?? [];
    assert.match(first ?? "", /^import "[./]+\/base\/worker_globals\.ts";$/, path);
  }
});

function isEntry(path: string): boolean {
  return Object.values(ENTRIES).some((name) => path.endsWith(`${name}.ts`));
}

function* sourceFiles(folder: string): Iterable<string> {
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    if (isDirectory) yield* sourceFiles(join(folder, name));
    else yield join(folder, name);
  }
}

/** The paths of everything in a folder, from there. */
function namesIn(root: string, from = ""): string[] {
  return [...Deno.readDirSync(join(root, from))].flatMap(({ name, isDirectory }) => [
    join(from, name),
    ...(isDirectory ? namesIn(root, join(from, name)) : []),
  ]);
}
