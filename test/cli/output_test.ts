/** What is printed for people: alignment, colours, and texts that cannot act on a terminal. */

import assert from "node:assert/strict";
import { paintOf } from "../../cli/output/colour.ts";
import { tableLines } from "../../cli/output/table.ts";
import { visible, visibleJson } from "../../cli/output/visible.ts";
import { CliUser } from "../support/cli/cli.ts";
import { needing, SCRIPT } from "../support/needs.ts";
import { newRun, startService } from "../support/service.ts";

const PLAIN = { paint: paintOf(false), columns: Infinity };
const COLUMNS = [{ title: "NAME" }, { title: "N", isRight: true }, { title: "TEXT" }];

Deno.test("characters that act on a terminal are written out, also in JSON, whose value stays", () => {
  const cases: [string, string][] = [
    ["plain – ü 日本 👩‍👩‍👧", "plain – ü 日本 👩‍👩‍👧"],
    ["\x1b]0;title\x07", "\\x1b]0;title\\x07"],
    ["a\r\nb\tc", "a\\r\\nb\\tc"],
    ["\x7f\x9b31m", "\\x7f\\x9b31m"],
    ["left\u202eright\u2066\ufeff", "left\\u202eright\\u2066\\ufeff"],
    ["half \ud83d", "half \\ud83d"],
  ];
  for (const [text, shown] of cases) assert.equal(visible(text), shown);
  const value = { text: "\x1b[31m\x9b\u202e\u2028\x7f" };
  const json = visibleJson(JSON.stringify(value));
  assert.deepEqual(JSON.parse(json), value);
  assert.match(json, /^[ -~]*$/);
});

Deno.test("wide and combined characters take the columns that they have on a terminal", async () => {
  const rows = [["abc", 1, "x"], ["日本", 20, "y"], ["e\u0301", 300, "z"], ["👩‍👩‍👧", null, "\x1b[1m"]];
  assert.deepEqual(await tableLines(COLUMNS, rows, PLAIN), [
    "NAME    N  TEXT",
    "abc     1  x",
    "日本   20  y",
    "e\u0301     300  z",
    "👩‍👩‍👧         \\x1b[1m",
  ]);
});

Deno.test("the last column is cut where the terminal ends, and never in the middle of a character", async () => {
  const lines = await tableLines(COLUMNS, [["abc", 1, "日".repeat(40)]], { ...PLAIN, columns: 32 });
  assert.equal(lines[1], `abc   1  ${"日".repeat(11)}…`);
});

Deno.test({
  ...needing(SCRIPT, "colours are used on a terminal alone, and not with NO_COLOR, --no-color or a dumb one"),
  async fn() {
    await using test = await startService();
    using user = new CliUser(test.url);
    await newRun(test);
    const onTerminal = async (flags: string, env: Record<string, string> = {}) => {
      const { stdout } = await new Deno.Command("script", {
        args: [
          "-qec",
          `${new URL("../../scripts/cli", import.meta.url).pathname} ${flags} runs list`,
          "/dev/null",
        ],
        env: user.env({ TERM: "xterm", ...env }),
        clearEnv: true,
        stdin: "null",
      }).output();
      return new TextDecoder().decode(stdout);
    };
    assert.ok((await onTerminal("")).includes("\x1b[33mpending\x1b[0m"));
    assert.ok((await onTerminal("", { NO_COLOR: "" })).includes("\x1b["));
    assert.ok(!(await onTerminal("", { NO_COLOR: "1" })).includes("\x1b["));
    assert.ok(!(await onTerminal("--no-color")).includes("\x1b["));
    assert.ok(!(await onTerminal("", { TERM: "dumb" })).includes("\x1b["));
    assert.ok(!(await user.run(["runs", "list"])).stdout.includes("\x1b["));
  },
});
