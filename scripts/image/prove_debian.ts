/** Follows the README's commands on a bare Debian, as root and as another user. See scripts/prove-debian. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { copyFiles, ENVIRONMENT, inside, run, unpackRelease } from "./build_root.ts";

const PROJECT = fileURLToPath(new URL("../..", import.meta.url));
const CHECKOUT = "/opt/service";
const USER = "1000";
const AS_USER = ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups", "--inh-caps=-all"];
/** What the README asks for, and the authorities of a package server. */
const GIVEN = ["ca-certificates", "npm"];
/** How much of what a failed command said is shown. */
const KEPT_CHARACTERS = 200_000;
const TESTS_PASS = /^\d+ passed, 0 failed.*/m;

const { values: { release, archive, test }, positionals: folders } = parseArgs({
  args: Deno.args,
  options: {
    release: { type: "string", default: "trixie" },
    archive: { type: "string" },
    test: { type: "boolean", default: false },
  },
  allowPositionals: true,
});

let failures = 0;
const folder = Deno.makeTempDirSync({ dir: "/var/tmp", prefix: "service-debian-" });
try {
  Deno.chmodSync(folder, 0o755);
  if (archive !== undefined) Deno.symlinkSync(Deno.realPathSync(archive), join(folder, `${release}.tar`));
  // One that fails does not keep the other from being tried.
  for (const [name, follow] of Object.entries({ root: asRoot, user: asAnotherUser })) {
    await newRoot(name).then(follow).catch(({ message }) => {
      failures++;
      console.log(`as ${name}: ${message}`);
    });
  }
} finally {
  await run(["rm", "-rf", "--one-file-system", folder]);
}
if (failures === 0) console.log(`the README's commands work on ${release}`);
Deno.exit(failures);

async function newRoot(name: string): Promise<string> {
  const root = join(folder, name);
  await unpackRelease(release, root, { folder, include: GIVEN });
  await copyFiles(PROJECT, ".", join(root, CHECKOUT));
  return root;
}

async function asRoot(root: string): Promise<void> {
  await command(root, ["./scripts/demo"], /contact sheet/);
  if (test) await command(root, ["./scripts/test", ...folders], TESTS_PASS);
}

async function asAnotherUser(root: string): Promise<void> {
  await command(root, ["useradd", "--uid", USER, "user"]);
  await run(["chown", "-R", `${USER}:${USER}`, join(root, CHECKOUT)]);
  await askedFor(root, ["./scripts/demo"], /contact sheet/);
  if (!test) return;
  // One file is enough to be told.
  await askedFor(root, ["./scripts/test", "test/base/wait_test.ts"], TESTS_PASS);
  await command(root, [...AS_USER, "./scripts/test", ...folders], TESTS_PASS);
}

/** Runs a command as the user, who has root run each line that it asks for and starts it again. */
async function askedFor(root: string, words: readonly string[], wanted: RegExp): Promise<void> {
  const done = new Set<string>();
  for (let lines = await linesFor(root, words); lines.size > 0; lines = await linesFor(root, words)) {
    for (const line of lines) {
      assert.ok(!done.has(line), `it was done, and is asked for again: ${line}`);
      done.add(line);
      await command(root, ["/bin/sh", "-c", line]);
    }
  }
  assert.notEqual(done.size, 0, "it does not say what to install");
  await command(root, [...AS_USER, ...words], wanted);
}

async function linesFor(root: string, words: readonly string[]): Promise<Set<string>> {
  const { text } = await output(root, [...AS_USER, ...words]);
  const found = text.matchAll(/Run this line as root, then start this script again: (.+)/g);
  return new Set(Array.from(found, ([, line]) => line!));
}

/** Runs a command that must end well, and say what is wanted. */
async function command(root: string, words: readonly string[], wanted = /(?:)/): Promise<void> {
  const { code, text } = await output(root, words);
  assert.ok(code === 0 && wanted.test(text), `${words.join(" ")} failed:\n${text.slice(-KEPT_CHARACTERS)}`);
  console.log([words.join(" "), TESTS_PASS.exec(text)?.[0] ?? []].flat().join(": "));
}

async function output(root: string, words: readonly string[]): Promise<{ code: number; text: string }> {
  const [program, ...args] = inside(
    { root, env: { ...ENVIRONMENT, HOME: "/tmp" }, workingDir: CHECKOUT },
    words,
  );
  const { code, stdout, stderr } = await new Deno.Command(program!, { args }).output();
  return { code, text: [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes)).join("\n") };
}
