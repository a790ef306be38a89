import assert from "node:assert/strict";
import { join } from "node:path";
import { ceilingOf, type Gate, gateLine, passGates, verdict } from "../../scripts/release/gate.ts";
import { GATES } from "../../scripts/release/gates.ts";
import { PROJECT_ROOT } from "../support/service.ts";

function gate(name: string, observe: Gate["observe"]): Gate {
  return { name, what: "bytes", variable: `SERVICE_MAX_${name.toUpperCase()}`, defaultCeiling: 100, observe };
}

Deno.test("a gate holds up to its ceiling, and one that cannot be measured holds never", async () => {
  const lines: string[] = [];
  const results = await passGates(
    [
      gate("equal", () => Promise.resolve(100)),
      gate("above", () => Promise.resolve(100.5)),
      gate("raised", () => Promise.resolve(150)),
      gate("none", () => Promise.resolve(NaN)),
      gate("broken", () => Promise.reject(new Error("no such program"))),
    ],
    { SERVICE_MAX_RAISED: "150" },
    (result) => lines.push(gateLine(result)),
  );
  assert.deepEqual(results.map(({ holds }) => holds), [true, false, true, false, false]);
  assert.equal(verdict(results), "not held: above, none, broken");
  assert.equal(verdict(results.slice(0, 1)), "1 held");
  assert.deepEqual(lines, [
    "ok      equal           100 of at most 100 bytes (SERVICE_MAX_EQUAL)",
    "FAILED  above           100.5 of at most 100 bytes (SERVICE_MAX_ABOVE)",
    "ok      raised          150 of at most 150 bytes (SERVICE_MAX_RAISED)",
    "FAILED  none            NaN of at most 100 bytes (SERVICE_MAX_NONE)",
    "FAILED  broken          not measured: no such program (SERVICE_MAX_BROKEN)",
  ]);
});

Deno.test("a ceiling is a number from 0, and is looked at before anything is measured", async () => {
  const size = gate("size", () => Promise.reject(new Error("measured")));
  assert.equal(ceilingOf(size, {}), 100);
  assert.equal(ceilingOf(size, { SERVICE_MAX_SIZE: "0" }), 0);
  for (const text of ["", " ", "-1", "ten", "1 000"]) {
    assert.throws(
      () => ceilingOf(size, { SERVICE_MAX_SIZE: text }),
      /SERVICE_MAX_SIZE must be a number from 0/,
    );
  }
  await assert.rejects(passGates([size], { SERVICE_MAX_SIZE: "x" }, () => {}), /must be a number from 0/);
});

Deno.test("the gates of the release have names and variables of their own, and the ceilings of the specification", () => {
  assert.equal(new Set(GATES.map(({ name }) => name)).size, GATES.length);
  assert.equal(new Set(GATES.map(({ variable }) => variable)).size, GATES.length);
  const ceilings = Object.fromEntries(
    GATES.map(({ variable, defaultCeiling }) => [variable, defaultCeiling]),
  );
  assert.deepEqual(
    ["ALLOC_TOTAL", "CLI_SIZE_BYTES", "API_SIZE_BYTES", "GATE_P95_NS"].map((name) =>
      ceilings[`SERVICE_MAX_${name}`]
    ),
    [0, 25_000_000, 45_000_000, 50_000],
  );
});

Deno.test("the script fails with the name of a gate that does not hold, and refuses an unknown one and a ceiling that is no number", async () => {
  const run = async (args: string[], env: Record<string, string> = {}) => {
    const script = join(PROJECT_ROOT, "scripts", "release", "main.ts");
    const command = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--quiet", script, ...args],
      env,
    });
    const { code, stdout, stderr } = await command.output();
    return { code, text: new TextDecoder().decode(new Uint8Array([...stdout, ...stderr])) };
  };
  // Without a shell its tests cannot run.
  const broken = await run(["--only", "replay"], { PATH: "/nonexistent" });
  assert.equal(broken.code, 1);
  assert.match(broken.text, /^FAILED +replay .*not measured: .*\nnot held: replay\n$/);
  const unknown = await run(["--only", "speed"]);
  assert.equal(unknown.code, 2);
  assert.match(unknown.text, /no gate is called speed; there are replay, allocations, /);
  assert.equal((await run(["--only", "filter_p95"], { SERVICE_MAX_GATE_P95_NS: "fast" })).code, 2);
});
