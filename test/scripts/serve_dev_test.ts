/** `./scripts/serve --dev`: one command without configuration gives a console and a key, and tomorrow the
 * same key.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { LONG_TEST } from "../support/long_tests.ts";
import { TempFolder } from "../support/media.ts";
import { PROJECT_ROOT } from "../support/service.ts";

const SERVE = join(PROJECT_ROOT, "scripts", "serve");

/** The environment of a person who has set nothing, but for where the data of this test lies. */
function command(settings: Record<string, string>, ...args: string[]): Deno.Command {
  const kept = ["PATH", "HOME", "DENO_DIR"].flatMap((name) => {
    const value = Deno.env.get(name);
    return value === undefined ? [] : [[name, value]];
  });
  const env = { ...Object.fromEntries(kept), ...settings };
  return new Deno.Command(SERVE, {
    args,
    env,
    clearEnv: true,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
}

/** Starts it, and gives what it has printed for a person. */
async function started(dataDir: string): Promise<{ url: string; key: string; stop: () => Promise<number> }> {
  const child = command({ SERVICE_DATA_DIR: dataDir }, "--dev").spawn();
  const faults = new Response(child.stderr).text();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!/Stop /.test(text)) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`it ended: ${text}${await faults}`);
    text += value;
  }
  const rest = (async () => {
    while (!(await reader.read()).done);
  })();
  return {
    url: /Console +(\S+)/.exec(text)![1]!,
    key: /Key +(\S+)/.exec(text)![1]!,
    stop: async () => {
      child.kill("SIGTERM");
      const [{ code }] = await Promise.all([child.status, rest, faults]);
      return code;
    },
  };
}

Deno.test({
  name: "without any setting the service starts for this machine, with a key that stays the same",
  ...LONG_TEST,
  async fn() {
    using folder = new TempFolder();
    const first = await started(folder.path);
    try {
      assert.equal(new URL(first.url).hostname, "127.0.0.1");
      const page = await fetch(first.url);
      assert.equal(page.status, 200);
      assert.match(await page.text(), /<title>Console<\/title>/);
      const runs = new URL("/v1/runs", first.url);
      const refused = await fetch(runs);
      assert.equal(refused.status, 401);
      await refused.body?.cancel();
      assert.deepEqual(await (await fetch(runs, { headers: { "x-api-key": first.key } })).json(), []);
      assert.equal(Deno.statSync(join(folder.path, "api-key")).mode! & 0o777, 0o600);
      // The usual port is taken now, by the first one or by whoever had it before.
      using otherFolder = new TempFolder();
      const other = await started(otherFolder.path);
      assert.equal(await other.stop(), 0);
      assert.notEqual(other.url, first.url);
      assert.notEqual(other.key, first.key);
    } finally {
      assert.equal(await first.stop(), 0);
    }
    const again = await started(folder.path);
    assert.equal(await again.stop(), 0);
    assert.equal(again.key, first.key);
  },
});

Deno.test("an address that others reach, and an unknown argument, are refused with the reason", async () => {
  using folder = new TempFolder();
  const open = { SERVICE_DATA_DIR: folder.path, SERVICE_BIND_ADDR: "0.0.0.0:8080" };
  const exposed = await command(open, "--dev").output();
  assert.equal(exposed.code, 2);
  assert.match(new TextDecoder().decode(exposed.stderr), /SERVICE_BIND_ADDR must be a loopback address/);
  assert.deepEqual([...Deno.readDirSync(folder.path)], []);
  const unknown = await command({}, "--devel").output();
  assert.notEqual(unknown.code, 0);
  assert.match(new TextDecoder().decode(unknown.stderr), /unknown argument '--devel'/);
});
