import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { join } from "node:path";
import { type MemoryLimits, type Outcome, run, type RunOptions } from "../../src/media/process.ts";
import { NEVER, steppedWorld, TempFolder, tools, world } from "../support/media.ts";
import { needing, PRLIMIT } from "../support/needs.ts";
import { until } from "../support/until.ts";
import { childProcesses } from "../support/own_process.ts";

const SHELL = "/bin/sh";
const MIB = 2 ** 20;

function options(changed: Partial<RunOptions> = {}): RunOptions {
  return {
    world: world(),
    signal: NEVER,
    deadlineMs: 60_000,
    maxStdoutBytes: 1000,
    maxStderrBytes: 1000,
    ...changed,
  };
}

function limited(changed: { cpuSeconds?: number; memory?: MemoryLimits } = {}): Partial<RunOptions> {
  return { limits: { prlimit: tools().prlimit, cpuSeconds: 60, memory: memoryOf(2 ** 34), ...changed } };
}

function memoryOf(bytes: number): MemoryLimits {
  return { stackBytes: 8 * MIB, dataBytes: bytes, addressSpaceBytes: bytes };
}

function summary({ end, code, stdout, stderr }: Outcome) {
  return { end, code, stdout: new TextDecoder().decode(stdout), stderr };
}

Deno.test("a process gives its output and exit code, within bounds", async () => {
  const check = async (script: string, expected: Partial<ReturnType<typeof summary>>, changed = {}) => {
    const outcome = summary(await run(SHELL, ["-c", script], options(changed)));
    deepEqual({ ...outcome, ...expected }, outcome, script);
  };
  await check("echo out; echo err >&2", { end: "exited", code: 0, stdout: "out\n", stderr: "err\n" });
  await check("exit 3", { end: "exited", code: 3, stdout: "", stderr: "" });
  await check("cat; echo eof", { end: "exited", stdout: "eof\n" });
  await check("echo dropped", { end: "exited", code: 0, stdout: "" }, { maxStdoutBytes: 0 });
  await check("printf 12345", { end: "exited", stdout: "12345" }, { maxStdoutBytes: 5 });
  await check("printf 123456; exec sleep 1000", { end: "out_of_space", stdout: "12345" }, {
    maxStdoutBytes: 5,
  });
  await check("while :; do echo endless; done", { end: "out_of_space" });
  await check("printf 123456 >&2; exit 1", { end: "exited", code: 1, stderr: "12345" }, {
    maxStderrBytes: 5,
  });
  await check("head -c 1000000 /dev/zero | tr '\\0' e >&2", {
    end: "exited",
    code: 0,
    stderr: "e".repeat(1000),
  });
  await check("kill -9 $$", { end: "killed" });
  await check("kill -SEGV $$", { end: "killed" });
});

Deno.test("a process sees no environment but the locale", async () => {
  Deno.env.set("MEDIA_TEST_SECRET", "do not pass on");
  try {
    const { stdout } = await run("/usr/bin/env", [], options());
    equal(new TextDecoder().decode(stdout), "LC_ALL=C\n");
  } finally {
    Deno.env.delete("MEDIA_TEST_SECRET");
  }
});

Deno.test("a process that outlives its deadline is killed and reaped", async () => {
  using folder = new TempFolder();
  const stepped = steppedWorld();
  const started = join(folder.path, "started");
  const script = folder.script("hang", `trap '' TERM INT; : > ${started}; exec tail -f ${started}`);
  const running = run(script, [], options({ world: stepped }));
  await until(() => folder.names().includes("started"));
  stepped.elapse();
  equal((await running).end, "out_of_time");
  deepEqual(childProcesses(folder.path), []);
});

Deno.test("aborting kills the process and rejects with the signal's reason", async () => {
  using folder = new TempFolder();
  const abort = new AbortController();
  const script = folder.script(
    "hang",
    `: > ${join(folder.path, "started")}; exec tail -f ${folder.path}/started`,
  );
  const running = run(script, [], options({ signal: abort.signal }));
  await until(() => folder.names().includes("started"));
  abort.abort(new Error("nobody waits any more"));
  await rejects(running, /nobody waits any more/);
  deepEqual(childProcesses(folder.path), []);
  await rejects(run(script, [], options({ signal: abort.signal })), /nobody waits any more/);
});

Deno.test("a missing program rejects and gives no outcome", async () => {
  await rejects(run("/no/such/program", [], options()), Deno.errors.NotFound);
});

Deno.test({
  ...needing(PRLIMIT, "the kernel holds a tool to its CPU time, its memory and to writing no file"),
  fn: async () => {
    using folder = new TempFolder();
    const spin = await run(SHELL, ["-c", "while :; do :; done"], options(limited({ cpuSeconds: 1 })));
    equal(spin.end, "out_of_cpu");

    const hungry = ["-nostdin", "-v", "error", "-f", "lavfi", "-i", "color=s=4096x4096", "-frames:v", "1"];
    for (const changed of [{ addressSpaceBytes: 64 * MIB }, { dataBytes: 32 * MIB }]) {
      const memory = await run(
        tools().ffmpeg,
        [...hungry, "-f", "null", "-"],
        options(limited({ memory: { ...memoryOf(2 ** 34), ...changed } })),
      );
      ok(memory.end === "killed" || memory.code !== 0, JSON.stringify(summary(memory)));
    }

    const file = join(folder.path, "written");
    const writing = await run(SHELL, ["-c", `echo data > ${file}`], options(limited({})));
    ok(writing.end === "killed" || writing.code !== 0, JSON.stringify(summary(writing)));
    equal(Deno.statSync(file).size, 0);

    const plain = await run(SHELL, ["-c", "echo fine"], options(limited({})));
    match(new TextDecoder().decode(plain.stdout), /fine/);
  },
});
