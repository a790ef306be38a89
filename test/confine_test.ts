import assert from "node:assert/strict";
import { join } from "node:path";
import { readConfig } from "../src/base/config.ts";
import { startConfined } from "../src/confine.ts";
import { settleTools } from "../src/settle.ts";
import { CLIPS, PROJECT_ROOT } from "./support/service.ts";
import type { Probe } from "./support/probe_worker.ts";

/** Opens the real service confined as in production, with `test/support/probe_worker.ts` looking around inside it. */
async function probeFromInside(): Promise<{ probes: Record<string, Probe>; root: string }> {
  const root = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "service-confine-" }));
  for (const name of ["data", "data/tmp", "uploads", "media", "outside"]) Deno.mkdirSync(join(root, name));
  Deno.writeTextFileSync(join(root, "outside", "secret.txt"), "secret");
  Deno.copyFileSync(join(CLIPS, "intel_bottle.mp4"), join(root, "outside", "film.mp4"));
  Deno.copyFileSync(join(CLIPS, "intel_bottle.mp4"), join(root, "media", "film.mp4"));
  Deno.symlinkSync(join(root, "outside", "film.mp4"), join(root, "media", "leads_out.mp4"));
  Deno.symlinkSync(join(root, "outside"), join(root, "media", "folder_out"));
  const config = readConfig({ SERVICE_API_KEYS: "k", SERVICE_BIND_ADDR: "127.0.0.1:0", RUST_LOG: "off" });
  const worker = startConfined(new URL("./support/probe_worker.ts", import.meta.url), {
    config,
    tools: settleTools(config, []),
    places: {
      dataDir: join(root, "data"),
      uploadRoot: join(root, "uploads"),
      tempDir: join(root, "data", "tmp"),
      operatorRoots: [join(root, "media")],
      codeDirs: [join(PROJECT_ROOT, "src"), join(PROJECT_ROOT, "wasm")],
    },
  });
  try {
    const probes = await new Promise<Record<string, Probe>>((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = (event) => {
        event.preventDefault();
        reject(new Error(event.message));
      };
    });
    return { probes, root };
  } finally {
    worker.terminate();
  }
}

Deno.test("from inside the running service other files, programs, addresses and variables are out of reach", async () => {
  const { probes, root } = await probeFromInside();
  Deno.removeSync(root, { recursive: true });
  const refused = Object.entries(probes).filter(([name]) => name.startsWith("refused: "));
  const allowed = Object.entries(probes).filter(([name]) => name.startsWith("allowed: "));
  assert.ok(refused.length >= 15 && allowed.length >= 6);
  for (const [name, probe] of refused) {
    assert.equal(probe.outcome, "NotCapable", `${name}: ${JSON.stringify(probe)}`);
  }
  for (const [name, probe] of allowed) assert.equal(probe.outcome, "ok", `${name}: ${JSON.stringify(probe)}`);
  assert.deepEqual(probes["ingest of a file inside a root"], { outcome: "200" });
  for (const path of ["a symlink that leads out", "a folder symlink that leads out", "a file outside"]) {
    assert.deepEqual(probes[`ingest of ${path}`], { outcome: "422 source_uri" }, path);
  }
});
