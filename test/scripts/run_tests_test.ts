/** The test runner: what it reads from the reports of `deno test`, and what it makes of tests that hang or
 * are skipped.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { readReport, testUnderWay } from "../../scripts/testing/file_report.ts";
import { ALONE, FIRST, planOf, turnsOf, WITH_EACH_FFMPEG } from "../../scripts/testing/plan.ts";
import { TemporaryFolder } from "../support/folders.ts";
import { isSkipAllowed, needing, SHARED_CLIPS } from "../support/needs.ts";
import { PROJECT_ROOT } from "../support/service.ts";

const OUTPUT = `running 5 tests from ./a_test.ts
one ... ok (2ms)
two: with ... dots ...
------- output -------
three ... is only printed by two
----- output end -----
two: with ... dots ... FAILED (3ms)
with steps ...
  inner ... ok (1ms)
with steps ... ok (4ms)
left out (skipped: it is Monday) ... ignored (0ms)
`;

Deno.test("a report names what passed, failed and was skipped, steps aside", () => {
  const junit = `<testcase name="one" classname="./a_test.ts" time="0.002" line="1" col="6"></testcase>
<testcase name="two: a &lt;b&gt; &amp; c" classname="./a_test.ts" time="1.250" line="2" col="6"></testcase>
<testcase name="with steps &gt; inner" classname="./a_test.ts" time="0.001" line="3" col="6"></testcase>`;
  const report = readReport(`${OUTPUT}\nFAILED | 2 passed (1 step) | 1 failed | 1 ignored (1s)\n`, junit);
  assert.deepEqual(report, {
    passed: 2,
    failed: 1,
    skipped: ["left out (skipped: it is Monday)"],
    failures: ["two: with ... dots"],
    times: [{ name: "one", seconds: 0.002 }, { name: "two: a <b> & c", seconds: 1.25 }],
  });
});

Deno.test("where the process was ended the tests' own lines are counted, and the test under way is named", () => {
  const cut = `${OUTPUT}five hangs ...`;
  const { passed, failed } = readReport(cut, "");
  assert.deepEqual([passed, failed, testUnderWay(cut), testUnderWay(OUTPUT)], [2, 1, "five hangs", null]);
});

Deno.test("a plan holds every file once, those that run alone apart", () => {
  const files = ["test/a_test.ts", "test/console/live_test.ts", "test/media/files/extractor_test.ts"];
  const [a, live, extractor] = turnsOf(files, []);
  assert.deepEqual(planOf([a!, live!, extractor!]), {
    sideBySide: [extractor, a],
    alone: [live],
  });
});

Deno.test("the plan names only files that are there", () => {
  for (const path of [ALONE, WITH_EACH_FFMPEG].flatMap(Object.keys).concat(FIRST)) {
    Deno.statSync(join(PROJECT_ROOT, path));
  }
});

Deno.test("only what CI cannot install may be skipped there", () => {
  const absent = { ...SHARED_CLIPS, isMet: () => false };
  assert.ok(isSkipAllowed(needing(absent, "a test").name));
  assert.ok(!isSkipAllowed("a test (skipped: prlimit is not installed)"));
  assert.ok(!isSkipAllowed("a test"));
});

/** Runs the runner over files with these texts; the lines of its output, and its exit code. */
async function runOver(texts: Record<string, string>, env: Record<string, string> = {}) {
  using folder = new TemporaryFolder();
  for (const [name, text] of Object.entries(texts)) Deno.writeTextFileSync(join(folder.path, name), text);
  return await runPaths([folder.path], env);
}

async function runPaths(paths: readonly string[], env: Record<string, string>) {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--allow-all",
      "--no-check",
      "--quiet",
      join(PROJECT_ROOT, "scripts/testing/run_tests.ts"),
      ...paths,
    ],
    env: { CI: "", FFMPEGS: "", ...env },
  }).output();
  const text = new TextDecoder().decode(stdout);
  return { code, text: text + new TextDecoder().decode(stderr), last: text.trimEnd().split("\n").at(-1) };
}

Deno.test("tests and files that hang fail with the name of the test, and the others still run", async () => {
  const { code, text, last } = await runOver({
    "a_test.ts": `Deno.test("fine", () => {});
      Deno.test({ name: "waits for ever", timeout: 200, fn: () => new Promise(() => setInterval(() => {}, 50)) });
      Deno.test({ name: "turns for ever", timeout: 200, fn() { for (;;); } });
      Deno.test("fine after these", () => {});`,
    "b_test.ts": `Deno.test("b is fine", () => {});
      Deno.test({ name: "hangs without a deadline", timeout: 0, fn() { for (;;); } });`,
  }, { TEST_FILE_DEADLINE_SECS: "6" });
  assert.equal(last, "3 passed, 3 failed", text);
  assert.equal(code, 1);
  assert.match(text, /a_test\.ts: waits for ever$/m);
  assert.match(text, /a_test\.ts: turns for ever$/m);
  assert.match(text, /b_test\.ts was ended after 6 s in the test "hangs without a deadline"/);
});

Deno.test("skipped tests are counted and named, and fail in CI unless it cannot have what they need", async () => {
  const names = ["no tool", needing({ ...SHARED_CLIPS, isMet: () => false }, "no clips").name];
  const file = names.map((name) => `Deno.test.ignore(${JSON.stringify(name)}, () => {});`).join("\n") +
    'Deno.test("fine", () => {});';
  const here = await runOver({ "a_test.ts": file });
  assert.deepEqual([here.code, here.last], [0, "1 passed, 0 failed, 2 skipped"], here.text);
  for (const name of names) assert.ok(here.text.includes(`a_test.ts: ${name}\n`), here.text);
  const inCi = await runOver({ "a_test.ts": file }, { CI: "true" });
  assert.deepEqual([inCi.code, inCi.last], [1, "1 passed, 1 failed, 1 skipped"], inCi.text);
});

Deno.test("a file whose types are wrong or that cannot be loaded is a failure", async () => {
  const wrong = await runOver({ "a_test.ts": 'const a: number = "b"; Deno.test("x", () => void a);' });
  assert.deepEqual([wrong.code, wrong.last], [1, "0 passed, 1 failed"], wrong.text);
  const broken = await runOver({ "a_test.ts": 'Deno.test("x", () => {}); throw new Error("at once");' });
  assert.deepEqual([broken.code, broken.last], [1, "0 passed, 1 failed"], broken.text);
});

Deno.test("a path at which nothing is ends the run before any test, with that path", async () => {
  const { code, text, last } = await runPaths(["test/base/wait_test.ts", "test/no_such_test.ts"], {});
  assert.deepEqual([code, last], [1, "0 passed, 1 failed"], text);
  assert.match(text, /^neither a file nor a folder: test\/no_such_test\.ts$/m);
});

Deno.test("files that media decide on run again with each further ffmpeg, with its version behind their name", async () => {
  const files = ["test/media/containers/a_test.ts", "test/base/b_test.ts"];
  assert.deepEqual(turnsOf(files, ["/x"]), [
    { file: files[0], ffmpeg: null },
    { file: files[1], ffmpeg: null },
    { file: files[0], ffmpeg: "/x" },
  ]);

  using folder = new TemporaryFolder();
  const [first, other] = ["one", "other"].map((name, index) => {
    Deno.mkdirSync(join(folder.path, name));
    const program = join(folder.path, name, "ffmpeg");
    Deno.writeTextFileSync(program, `#!/bin/sh\necho ffmpeg version 7.${index}.5-x Copyright\n`, {
      mode: 0o755,
    });
    return join(folder.path, name);
  });
  const file = "test/media/containers/nut_test.ts";
  const { text } = await runPaths([file, "--filter", "none of them"], { FFMPEGS: `${first}:${other}` });
  assert.match(text, /^ok test\/media\/containers\/nut_test\.ts: 0 passed/m);
  assert.match(text, /^ok test\/media\/containers\/nut_test\.ts \[ffmpeg 7\.1\.5\]: 0 passed/m);
  const asked = await runOver({
    "a_test.ts": `Deno.test("says its ffmpeg", () => {
      const { stdout } = new Deno.Command("ffmpeg", { args: ["-version"] }).outputSync();
      throw new Error(new TextDecoder().decode(stdout));
    });`,
  }, { FFMPEGS: `${first}:${other}` });
  assert.match(asked.text, /version 7\.0\.5-x/);
  assert.equal(asked.last, "0 passed, 1 failed");
});
