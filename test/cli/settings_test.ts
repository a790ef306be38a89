/** Where the settings of the command line are from, and what the config file is like. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { CliUser } from "../support/cli/cli.ts";
import { KEY_A, startService } from "../support/service.ts";

// deno-lint-ignore no-explicit-any -- the shape is what is tested
const settingsOf = (answer: any) =>
  Object.fromEntries(
    answer.settings.map(({ key, value, source }: Record<string, string>) => [key, [value, source]]),
  );

Deno.test("a flag goes before a variable, a variable before the file, and the file before the default", async () => {
  using user = new CliUser("", null);
  const config = join(user.home, "settings");
  const show = async (args: string[], env: Record<string, string>) =>
    settingsOf(await user.json([...args, "config", "show"], { env: { SERVICE_CLI_CONFIG: config, ...env } }));

  assert.deepEqual(await show([], {}), {
    api_url: ["http://127.0.0.1:8080", "default"],
    api_key: [null, "not set"],
    tenant_id: [null, "not set"],
  });
  Deno.writeTextFileSync(
    config,
    "# mine\napi_url = http://file:1/\napi_key=key-of-the-file-00000\ntenant_id=t file\n",
    { mode: 0o600 },
  );
  assert.deepEqual(await show([], {}), {
    api_url: ["http://file:1", "config file"],
    api_key: ["****0000", "config file"],
    tenant_id: ["t file", "config file"],
  });
  const env = { SERVICE_API_URL: "http://variable:2", SERVICE_API_KEY: "variable", SERVICE_TENANT_ID: "t2" };
  assert.deepEqual(await show([], env), {
    api_url: ["http://variable:2", "environment"],
    api_key: ["****", "environment"],
    tenant_id: ["t2", "environment"],
  });
  const flags = ["--url", "http://flag:3/", "--api-key", "flag", "--tenant-id", "t3"];
  assert.deepEqual(await show(flags, env), {
    api_url: ["http://flag:3", "flag"],
    api_key: ["****", "flag"],
    tenant_id: ["t3", "flag"],
  });
  // An empty variable is one that is not set.
  assert.deepEqual((await show([], { SERVICE_API_KEY: "" })).api_key, ["****0000", "config file"]);
});

Deno.test("without SERVICE_CLI_CONFIG the file is service/config in XDG_CONFIG_HOME or ~/.config", async () => {
  using user = new CliUser("", null);
  const fileOf = async (env: Record<string, string>) => (await user.json(["config", "show"], { env })).file;
  assert.equal(await fileOf({}), join(user.home, ".config/service/config"));
  assert.equal(await fileOf({ XDG_CONFIG_HOME: join(user.home, "x") }), join(user.home, "x/service/config"));
  const flag = await user.json(["--config", join(user.home, "y"), "config", "show"]);
  assert.equal(flag.file, join(user.home, "y"));
});

Deno.test("config set keeps the other lines, takes a secret from stdin, and lets nobody else read the file", async () => {
  await using test = await startService();
  using user = new CliUser("", null);
  const path = join(user.home, ".config/service/config");
  assert.equal((await user.run(["config", "set", "api_url", test.url])).code, 0);
  Deno.writeTextFileSync(path, `# kept\n${Deno.readTextFileSync(path)}`);
  const set = await user.run(["config", "set", "api_key", "-"], { stdin: `${KEY_A}\n` });
  assert.deepEqual([set.code, set.stdout], [0, ""]);
  assert.ok(!set.stderr.includes(KEY_A));
  assert.equal(Deno.readTextFileSync(path), `# kept\napi_url=${test.url}\napi_key=${KEY_A}\n`);
  assert.equal(Deno.statSync(path).mode! & 0o777, 0o600);
  assert.deepEqual([...Deno.readDirSync(join(user.home, ".config/service"))].map(({ name }) => name), [
    "config",
  ]);
  assert.deepEqual(await user.json(["runs", "list"]), []);

  // A link stays one.
  Deno.renameSync(path, join(user.home, "elsewhere"));
  Deno.symlinkSync(join(user.home, "elsewhere"), path);
  assert.equal((await user.run(["config", "set", "tenant_id", "t1"])).code, 0);
  assert.ok(Deno.lstatSync(path).isSymlink);
  assert.equal((await user.run(["config", "unset", "tenant_id"])).code, 0);
  assert.equal(Deno.readTextFileSync(path), `# kept\napi_url=${test.url}\napi_key=${KEY_A}\n`);

  assert.equal((await user.run(["config", "set", "api_url", "nowhere"])).code, 2);
  assert.equal((await user.run(["config", "set", "colour", "red"])).code, 2);
  const { stdout } = await user.run(["config", "show"]);
  assert.ok(!stdout.includes(KEY_A), stdout);
});

Deno.test("a config file that others may read, or with a line that means nothing, is warned of", async () => {
  using user = new CliUser("http://127.0.0.1:1", null);
  const path = join(user.home, "settings");
  Deno.writeTextFileSync(path, "api_key=a-key-of-mine\napikey=oh-no\n", { mode: 0o644 });
  Deno.chmodSync(path, 0o644);
  const { stderr } = await user.run(["--config", path, "config", "show"]);
  assert.match(
    stderr,
    /warning: \S+settings has an API key and others may read it \(mode 0644\); chmod 600 it\n/,
  );
  assert.match(stderr, /warning: \S+settings:2 is none of api_url=/);
  assert.ok(!stderr.includes("oh-no") && !stderr.includes("a-key-of-mine"));
});

Deno.test("a key is read from a file, and never stands in an error", async () => {
  await using test = await startService();
  using user = new CliUser(test.url, null);
  const file = join(user.home, "key.txt");
  Deno.writeTextFileSync(file, `${KEY_A}\n`);
  assert.deepEqual(await user.json(["--api-key-file", file, "runs", "list"]), []);
  assert.deepEqual(await user.json(["--api-key-file", "-", "runs", "list"], { stdin: KEY_A }), []);
  const both = await user.run(["--api-key-file", file, "--api-key", KEY_A, "runs", "list"]);
  assert.deepEqual([both.code, both.stderr.includes(KEY_A)], [2, false]);
  const broken = await user.run(["--api-key", "zwei\nZeilen", "runs", "list"]);
  assert.deepEqual([broken.code, broken.stderr.includes("Zeilen")], [2, false]);
  assert.equal((await user.run(["--api-key-file", join(user.home, "no"), "runs", "list"])).code, 2);
});
