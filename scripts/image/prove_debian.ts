/** Follows the README's commands on a bare Debian, as root and as another user. See scripts/prove-debian. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { copyFiles, ENVIRONMENT, inside, run, unpackRelease } from "./build_root.ts";

const PROJECT = fileURLToPath(new URL("../..", import.meta.url));
const CHECKOUT = "/opt/service";
const USER = "1000";
/** What the README asks for, and the authorities of a package server. */
const GIVEN = ["ca-certificates", "npm"];

const { values: { release, archive, test }, positionals: folders } = parseArgs({
  args: Deno.args,
  options: {
    release: { type: "string", default: "trixie" },
    archive: { type: "string" },
    test: { type: "boolean", default: false },
  },
  allowPositionals: true,
});

const folder = Deno.makeTempDirSync({ dir: "/var/tmp", prefix: "service-debian-" });
try {
  Deno.chmodSync(folder, 0o755);
  if (archive !== undefined) Deno.symlinkSync(Deno.realPathSync(archive), join(folder, `${release}.tar`));
  await asRoot(await newRoot("root"));
  await asAnotherUser(await newRoot("user"));
  console.log(`the README's commands work on ${release}`);
} finally {
  await run(["rm", "-rf", "--one-file-system", folder]);
}

async function newRoot(name: string): Promise<string> {
  const root = join(folder, name);
  await unpackRelease(release, root, { folder, include: GIVEN });
  await copyFiles(PROJECT, ".", join(root, CHECKOUT));
  return root;
}

async function asRoot(root: string): Promise<void> {
  assert.match((await command(root, ["./scripts/demo"])).text, /contact sheet/);
  console.log("as root: ./scripts/demo");
  if (!test) return;
  const { code, text } = await command(root, ["./scripts/test", ...folders]);
  console.log(text.slice(-6000));
  assert.equal(code, 0, "the tests do not pass");
}

async function asAnotherUser(root: string): Promise<void> {
  await run(["chown", "-R", `${USER}:${USER}`, join(root, CHECKOUT)]);
  const user = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups", "--inh-caps=-all"];
  const first = await command(root, [...user, "./scripts/demo"], { mayFail: true });
  const line = /Run this line as root, then start this script again: (.+)/.exec(first.text)?.[1];
  assert.ok(line, `it does not say what to install:\n${first.text}`);
  console.log(`as user ${USER}: told to run ${line}`);
  await command(root, ["/bin/sh", "-c", line]);
  assert.match((await command(root, [...user, "./scripts/demo"])).text, /contact sheet/);
  console.log(`as user ${USER}: ./scripts/demo`);
}

async function command(
  root: string,
  words: readonly string[],
  { mayFail = false } = {},
): Promise<{ code: number; text: string }> {
  const [program, ...args] = inside(
    { root, env: { ...ENVIRONMENT, HOME: "/tmp" }, workingDir: CHECKOUT },
    words,
  );
  const { code, stdout, stderr } = await new Deno.Command(program!, { args }).output();
  const text = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes)).join("\n");
  if (!mayFail) assert.equal(code, 0, `${words.join(" ")} failed:\n${text.slice(-6000)}`);
  return { code, text };
}
