/** Help, the command table and completions: every command says what it does, and how it is called. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { VERSION } from "../../src/http/description/version.ts";
import { EXIT_CODES } from "../../cli/exit_codes.ts";
import { candidatesOf, FILES } from "../../cli/completion.ts";
import { exampleLine, programOf } from "../../cli/program.ts";
import { COMMANDS, GROUPS } from "../../cli/table/commands.ts";
import { CLI, CliUser } from "../support/cli/cli.ts";
import { PROJECT_ROOT } from "../support/service.ts";

Deno.test("every command has a sentence, arguments that are explained, and examples that the parser takes", async () => {
  for (const row of COMMANDS) {
    assert.match(row.summary, /^[A-Z].*[^.]$/, row.path);
    assert.ok(row.examples.length > 0, `${row.path} has no example`);
    for (const { name, summary } of row.args ?? []) {
      assert.ok(/^[<[]\w+[>\]]$/.test(name) && summary !== "", row.path);
    }
    const { default: handler } = { default: await row.load() };
    assert.equal(typeof handler, "function", row.path);
    for (const example of row.examples.map(exampleLine)) {
      // What `$(…)` prints is a word of the command around it.
      const inner = [...example.matchAll(/\$\(([^)]*)\)/g)].map(([, command]) => command!);
      const commands = [example.replaceAll(/"?\$\([^)]*\)"?/g, "1"), ...inner].flatMap((line) =>
        line.split(/[|;]/)
      );
      for (const line of commands.filter((part) => part.includes("service-cli "))) {
        const words = [...line.replace(/ [<>] .*/, "").matchAll(/'[^']*'|"[^"]*"|[^\s)"']+/g)]
          .map(([word]) => word!.replace(/^'|'$/g, ""));
        const args = words.slice(words.indexOf("service-cli") + 1);
        const taken: string[] = [];
        const program = programOf(({ row }) => Promise.resolve(void taken.push(row.path)));
        // What a program in front appends, as xargs does.
        if (line.includes("xargs")) args.push("run-0123456789abcdef");
        await program.parseAsync(args, { from: "user" }).catch((error) =>
          assert.fail(`${line}: ${error.message}`)
        );
        assert.equal(taken.length, 1, line);
      }
    }
  }
  const names = new Set(COMMANDS.map(({ path }) => path));
  assert.equal(names.size, COMMANDS.length);
  for (const { name } of GROUPS) assert.ok(COMMANDS.some(({ path }) => path.startsWith(`${name} `)), name);
});

Deno.test("the help of every command has its examples, on stdout and with exit code 0", async () => {
  using user = new CliUser("http://127.0.0.1:1");
  const visible = COMMANDS.filter(({ isOpen }) => !isOpen);
  const shown = async (path: string) => ({ path, ...await user.run([...path.split(" "), "--help"]) });
  for (let at = 0; at < visible.length; at += 4) {
    const rows = visible.slice(at, at + 4);
    const helps = await Promise.all(rows.map((row) => shown(row.path)));
    for (const [index, { code, stdout, stderr }] of helps.entries()) {
      const row = rows[index]!;
      assert.deepEqual([code, stderr], [0, ""], row.path);
      assert.ok(stdout.includes(`Usage: service-cli `), row.path);
      for (const example of row.examples) {
        assert.ok(stdout.includes(exampleLine(example)), `${row.path}: ${example}`);
      }
      for (const { flags } of row.options ?? []) assert.ok(stdout.includes(flags), `${row.path}: ${flags}`);
      assert.match(stdout, /--api-key-file <file>/, "global flags");
    }
  }
  assert.deepEqual(await user.run(["--version"]), { code: 0, stdout: `${VERSION}\n`, stderr: "" });
  const all = await user.run(["--help"]);
  assert.equal(all.code, 0);
  for (const { code } of Object.values(EXIT_CODES)) {
    assert.match(all.stdout, new RegExp(`^ {2}${code} +\\w`, "m"));
  }
  assert.ok(!all.stdout.includes("run-create") && !all.stdout.includes("edge"));
});

const CANDIDATES: readonly (readonly [words: string[], candidates: string[]])[] = [
  [["ru"], ["runs"]],
  [["runs", "s"], ["show", "stop", "snapshot"]],
  [["run", "s"], ["show", "stop", "snapshot"]],
  [["--json", "--url", "http://x", "webhook", "re"], ["redeliver"]],
  [["runs", "create", "--mode", ""], ["balanced", "detailed", "efficiency", "custom"]],
  [["runs", "create", "--mo"], ["--mode", "--model"]],
  [["events", "--js"], ["--json"]],
  [["runs", "show", ""], []],
  [["analyze", "--media", "a"], ["audio-video"]],
  [["analyze", ""], [FILES]],
  [["analyze", "--sheet", "x"], [FILES]],
  [["triggers", "evaluate", "p.json", ""], [FILES]],
  [["completions", "z"], ["zsh"]],
  [["config", "set", "api_"], ["api_url", "api_key"]],
  [["run-c"], []],
  [["nonsense", ""], []],
];

Deno.test("what may follow the words of a command line", () => {
  for (const [words, expected] of CANDIDATES) {
    assert.deepEqual(candidatesOf(words).map((line) => line.split("\t")[0]), expected, words.join(" "));
  }
});

Deno.test("the script for bash completes commands, values and files", async () => {
  using user = new CliUser("http://127.0.0.1:1");
  Deno.writeTextFileSync(join(user.home, "a clip.mp4"), "");
  const { code, stdout } = await user.run(["completions", "bash"]);
  assert.equal(code, 0);
  const complete = async (...words: string[]) => {
    const script = `${stdout}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}
$(complete -p service-cli | sed -E 's/.*-F (\\S+).*/\\1/')
printf '%s\\n' "\${COMPREPLY[@]}"`;
    const bash = await new Deno.Command("bash", {
      args: ["-c", script],
      cwd: user.home,
      env: user.env(),
      clearEnv: true,
    })
      .output();
    return new TextDecoder().decode(bash.stdout).trimEnd().split("\n");
  };
  assert.deepEqual(await complete("service-cli", "runs", "k"), ["keepalive"]);
  assert.deepEqual(await complete("service-cli", "markers", "r", "--format", ""), [
    "csv",
    "vtt",
    "edl",
    "ndjson",
  ]);
  assert.deepEqual(await complete("service-cli", "upload", "a"), ["a clip.mp4"]);
});

for (const [shell, check] of [["zsh", ["-n"]], ["fish", ["--no-execute"]]] as const) {
  Deno.test({
    name: `the script for ${shell} is one that the shell reads`,
    ignore: !isInstalled(shell),
    async fn() {
      using user = new CliUser("http://127.0.0.1:1");
      const file = join(user.home, "script");
      Deno.writeTextFileSync(file, (await user.run(["completions", shell, "--name", "video"])).stdout);
      const { success, stderr } = await new Deno.Command(shell, { args: [...check, file] }).output();
      assert.ok(success, new TextDecoder().decode(stderr));
    },
  });
}

function isInstalled(program: string): boolean {
  try {
    return new Deno.Command(program, { args: ["--version"], stdout: "null", stderr: "null" }).outputSync()
      .success;
  } catch {
    return false;
  }
}

Deno.test("the starter works by a link, and from any folder", async () => {
  using user = new CliUser("http://127.0.0.1:1");
  const link = join(user.home, "service-cli");
  Deno.symlinkSync(CLI, link);
  const { code, stdout } = await new Deno.Command(link, {
    args: ["completions", "bash"],
    cwd: user.home,
    env: user.env(),
    clearEnv: true,
  }).output();
  assert.equal(code, 0);
  assert.ok(new TextDecoder().decode(stdout).includes(join(PROJECT_ROOT, "scripts", "cli")));
});
