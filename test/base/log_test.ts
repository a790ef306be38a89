/** Log lines can be filtered, cannot be forged, and cannot take the service down. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { BackgroundOutput, openLog, quietLog, readFilter } from "../../src/base/log.ts";

Deno.test("a line goes to stdout for people and to stderr as JSON", () => {
  const { log, stdout, stderr } = captured("info");
  log.info("listening", { address: "127.0.0.1:8080", roots: ["/a b"], big: 2n ** 64n, left_out: undefined });
  assert.equal(
    stdout.text(),
    '2026-01-02T03:04:05.678Z INFO  service: listening address=127.0.0.1:8080 roots=["/a b"] big=18446744073709551616\n',
  );
  assert.deepEqual(JSON.parse(stderr.text()), {
    timestamp: "2026-01-02T03:04:05.678Z",
    level: "info",
    target: "service",
    message: "listening",
    fields: { address: "127.0.0.1:8080", roots: ["/a b"], big: "18446744073709551616" },
  });
});

Deno.test("the most specific directive decides which lines pass", () => {
  const check = (filter: string, target: string, expected: string) => {
    const { log, stderr } = captured(filter);
    const child = target === "service" ? log : log.child(target);
    for (const level of ["trace", "debug", "info", "warn", "error"] as const) child[level]("x");
    const passed = stderr.text().split("\n").filter(Boolean).map((line) => JSON.parse(line).level);
    assert.equal(passed.join(" "), expected, `${filter} for ${target}`);
  };

  check("info", "service", "info warn error");
  check("INFO", "http", "info warn error");
  check("off", "service", "");
  check("", "service", "");
  check("trace", "store", "trace debug info warn error");
  check("warn,http=debug", "http", "debug info warn error");
  check("warn,http=debug", "http::sse", "debug info warn error");
  check("warn,http=debug", "httpd", "warn error");
  check("warn,service::http=debug", "http", "debug info warn error");
  check("http=debug", "store", "");
  check("http", "http", "trace debug info warn error");
  check("debug,http=off", "http", "");
  check("http=off,http::sse=error,debug", "http::sse", "error");
  check("info,service=error", "http", "error");
  check("info,debug", "service", "debug info warn error");
  check("info,hyper=trace", "http", "info warn error");
});

Deno.test("a malformed filter is refused", () => {
  for (const filter of ["loud=yes", "=info", "http=", "a=b=c", "info debug", "[span]=info", "1"]) {
    assert.equal(readFilter(filter), undefined, filter);
    assert.throws(() => openLog(filter), RangeError, filter);
  }
});

Deno.test("no text from outside can forge a line or control a terminal", () => {
  const nasty = "x\n2026-01-01T00:00:00.000Z ERROR forged\r\t\u001b[2J\u0085\u2028\u202e\u0000\u007f\ud800";
  const { log, stdout, stderr } = captured("info");
  log.warn(nasty, { [nasty]: nasty, nested: { list: [nasty] } });
  for (const stream of [stdout, stderr]) {
    assert.equal(stream.text().split("\n").length, 2, "one line and its end");
    // deno-lint-ignore no-control-regex -- control characters are searched for
    assert.doesNotMatch(stream.text().slice(0, -1), /[\u0000-\u001f\u007f-\u009f\u2028\u202e]/);
  }
  const { message, fields } = JSON.parse(stderr.text());
  assert.equal(message, nasty);
  assert.equal(fields.nested.list[0], nasty);
});

Deno.test("every value can be logged, as a catch block may get any", () => {
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  const throwing = { toJSON: () => assert.fail("asked") };
  const check = (fields: Record<string, unknown>, ...expected: RegExp[]) => {
    const { log, stderr } = captured("info");
    log.error("x", fields);
    const logged = JSON.stringify(JSON.parse(stderr.text()).fields);
    for (const pattern of expected) assert.match(logged, pattern);
  };

  check(
    { error: new TypeError("bad", { cause: new Error("deep") }) },
    /"TypeError","message":"bad"/,
    /"message":"deep"/,
  );
  check({ circle }, /^\{"unprintable":true\}$/);
  check({ throwing }, /^\{"unprintable":true\}$/);
  check({ nothing: null, not: NaN, call: () => 1 }, /^\{"nothing":null,"not":null\}$/);
  check({ long: "y".repeat(10_000) }, /^\{"long":"y{8192}…"\}$/);
});

Deno.test("a closed pipe loses the line and nothing else", () => {
  const written: string[] = [];
  const broken = {
    writeSync: (): number => {
      throw new Deno.errors.BrokenPipe("EPIPE");
    },
  };
  const stuck = { writeSync: () => 0 };
  const oneByOne = {
    writeSync: (bytes: Uint8Array) => {
      written.push(new TextDecoder().decode(bytes.subarray(0, 1)));
      return 1;
    },
  };
  openLog("info", { stdout: broken, stderr: oneByOne, now: () => 0 }).info("still here");
  assert.equal(JSON.parse(written.join("")).message, "still here");
  openLog("info", { stdout: stuck, stderr: broken }).info("lost");
});

Deno.test("lines that nobody reads are dropped, and a line says how many when somebody reads again", async () => {
  const [stdout, stderr] = [new Pipe(), new Pipe()];
  const output = new BackgroundOutput({ isOnePlace: false, stdout, stderr, now: () => 0 });
  const log = openLog("info", output);
  log.info("first");
  await output.flushed();
  assert.equal(stdout.text, "1970-01-01T00:00:00.000Z INFO  service: first\n");
  stdout.isRead = false;
  const count = 20_000;
  for (let number = 0; number < count; number++) log.info("x".repeat(100), { number });
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.ok(output.droppedLines > 5_000);
  const dropped = output.stdout.droppedLines;
  stdout.isRead = true;
  stdout.read();
  await output.flushed();
  log.info("last");
  await output.flushed();
  const lines = stdout.text.trimEnd().split("\n");
  assert.equal(lines.length, 1 + (count - dropped) + 2);
  assert.match(lines.at(-3)!, new RegExp(` number=${count - dropped - 1}$`));
  assert.equal(
    lines.at(-2),
    `1970-01-01T00:00:00.000Z WARN  service: log lines were dropped as nobody read the log lines=${dropped}`,
  );
  assert.match(lines.at(-1)!, / last$/);
  assert.ok(stdout.longest <= 4096, "no piece is longer than a pipe takes at once");
  for (const line of stderr.text.trimEnd().split("\n")) JSON.parse(line);
});

Deno.test("a closed pipe ends no background output", async () => {
  let written = 0;
  const closed = {
    write:
      () => (written++ % 2 === 0
        ? Promise.reject(new Deno.errors.BrokenPipe("EPIPE"))
        : Promise.resolve(1e6)),
  };
  const stderr = new Pipe();
  const output = new BackgroundOutput({ isOnePlace: false, stdout: closed, stderr, now: () => 0 });
  for (const message of ["one", "two"]) {
    openLog("info", output).info(message);
    await output.flushed();
  }
  assert.equal(written, 2);
  assert.equal(stderr.text.trimEnd().split("\n").length, 2);
});

const LOG = fileURLToPath(new URL("../../src/base/log.ts", import.meta.url));

/**
 * What a program that logs one line leaves in the files of a folder, with its streams as a shell sets them.
 */
function linesOf(redirections: string): string[] {
  const folder = Deno.makeTempDirSync({ prefix: "log-test-" });
  try {
    const program = `
      import { BackgroundOutput, isOnePlace, openLog, processOutput } from ${JSON.stringify(LOG)};
      openLog("info", processOutput()).info("at once");
      const output = new BackgroundOutput({ isOnePlace: isOnePlace() });
      openLog("info", output).info("in the background");
      await output.flushed();`;
    Deno.writeTextFileSync(join(folder, "program.ts"), program);
    const { success, stderr } = new Deno.Command("sh", {
      args: ["-c", `"$0" run --quiet --no-config -A program.ts ${redirections}`, Deno.execPath()],
      cwd: folder,
    }).outputSync();
    assert.ok(success, new TextDecoder().decode(stderr));
    return ["a", "b"].flatMap((name) => {
      try {
        return Deno.readTextFileSync(join(folder, name)).trimEnd().split("\n");
      } catch {
        return [];
      }
    });
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

Deno.test("where both streams go to one place each line is there once, for people", () => {
  for (const redirections of [">a 2>&1", "2>&1 | cat >a", ">>a 2>>a"]) {
    const lines = linesOf(redirections);
    assert.equal(lines.length, 2, `${redirections}\n${lines.join("\n")}`);
    assert.match(lines[0]!, / INFO {2}service: at once$/, redirections);
    assert.match(lines[1]!, / INFO {2}service: in the background$/, redirections);
  }
});

Deno.test("streams that go to two places have each line, once for people and once as JSON", () => {
  const [first, second, ...json] = linesOf(">a 2>b");
  assert.match(first!, /at once$/);
  assert.match(second!, /in the background$/);
  assert.deepEqual(json.map((line) => JSON.parse(line).message), ["at once", "in the background"]);
});

Deno.test("a quiet log writes nothing, nor do its children", () => {
  const written: string[] = [];
  const streams = [Deno.stdout, Deno.stderr];
  for (const stream of streams) {
    stream.writeSync = (bytes) => {
      written.push(new TextDecoder().decode(bytes));
      return bytes.length;
    };
  }
  try {
    openLog("info").info("the streams are watched");
    assert.equal(written.length, 2);
    const log = quietLog();
    log.error("x");
    log.child("http").error("x");
    assert.equal(written.length, 2, "nothing was added");
  } finally {
    // The method of the class again.
    for (const stream of streams) delete (stream as { writeSync?: unknown }).writeSync;
  }
});

function captured(filter: string) {
  const stdout = collector();
  const stderr = collector();
  const now = () => Date.UTC(2026, 0, 2, 3, 4, 5, 678);
  return { log: openLog(filter, { stdout, stderr, now }), stdout, stderr };
}

function collector() {
  const decoder = new TextDecoder();
  let text = "";
  return {
    writeSync(bytes: Uint8Array): number {
      text += decoder.decode(bytes);
      return bytes.length;
    },
    text: () => text,
  };
}

/** A stream whose writes wait while nobody reads. */
class Pipe {
  text = "";
  longest = 0;
  isRead = true;
  #reads = Promise.withResolvers<void>();

  async write(bytes: Uint8Array): Promise<number> {
    if (!this.isRead) await this.#reads.promise;
    const taken = bytes.subarray(0, 1000);
    this.longest = Math.max(this.longest, bytes.length);
    this.text += new TextDecoder().decode(taken);
    return taken.length;
  }

  read(): void {
    this.#reads.resolve();
  }
}
