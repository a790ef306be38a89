/** What the broker starts ends when the caller says so, when its time is over, or when the Worker that asked
 * is gone.
 */

import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { BrokerClient } from "../../../src/media/broker/broker_client.ts";
import { childProcesses } from "../../support/own_process.ts";
import { NEVER, TempFolder, tools, world } from "../../support/media.ts";
import { TestBroker } from "../../support/test_broker.ts";
import { until } from "../../support/until.ts";

const BOUNDS = { world: world(), maxStdoutBytes: 1000, maxStderrBytes: 1000, signal: NEVER };
const SHAPE = { width: 16, height: 16, isFullRange: true };

/** A broker whose ffmpeg never ends, with its folder. */
class Hanging implements AsyncDisposable {
  readonly #folder = new TempFolder();
  readonly tempDir = Deno.realPathSync(this.#folder.path);
  readonly #broker = new TestBroker(
    { ...tools(), ffmpeg: this.#folder.script("ffmpeg", `exec sleep 1000 # "$@"`), prlimit: null },
    { tempDir: this.tempDir, uploadRoot: this.tempDir, ingestRoots: [] },
  );

  get client(): BrokerClient {
    return this.#broker.client;
  }

  get programs(): number {
    return childProcesses("sleep 1000").length;
  }

  close(): Promise<void> {
    return this.#broker[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
    deepEqual(childProcesses("sleep 1000"), []);
    deepEqual(this.#folder.names().filter((name) => name !== "ffmpeg"), []);
    this.#folder[Symbol.dispose]();
  }
}

Deno.test("a caller's abort and a passed deadline kill the program", async () => {
  await using hanging = new Hanging();
  const abort = new AbortController();
  const running = hanging.client.run({ kind: "list_decoders" }, {
    ...BOUNDS,
    deadlineMs: 60_000,
    signal: abort.signal,
  });
  await until("it runs", () => hanging.programs === 1);
  abort.abort(new Error("enough"));
  await rejects(running, /enough/);
  await until("it is gone", () => hanging.programs === 0);
  const late = await hanging.client.run({ kind: "list_decoders" }, { ...BOUNDS, deadlineMs: 300 });
  equal(late.end, "out_of_time");
  equal(hanging.programs, 0);
});

Deno.test("a stream ends by a kill with its reason, and leaves no socket", async () => {
  await using hanging = new Hanging();
  const tool = hanging.client.start({ kind: "encode_jpegs", ...SHAPE }, { ...BOUNDS });
  await until("it runs", () => hanging.programs === 1);
  const reading = tool.stdout!.getReader().read();
  tool.kill("out_of_time");
  tool.kill("killed");
  equal((await tool.ended).end, "out_of_time");
  equal((await reading).done, true);
  await rejects(tool.stdin!.getWriter().write(new Uint8Array(1)), /has ended/);
});

Deno.test("what runs for a Worker ends when the Worker is gone, and what runs for others goes on", async () => {
  await using hanging = new Hanging();
  const connection = hanging.client.connect();
  const live = new BrokerClient({ port: connection.port, socketDir: hanging.tempDir, world: world() });
  const ofWorker = live.start({ kind: "encode_jpegs", ...SHAPE }, { ...BOUNDS });
  const own = hanging.client.start({ kind: "encode_jpegs", ...SHAPE }, { ...BOUNDS });
  await until("both run", () => hanging.programs === 2);
  connection.close();
  equal((await ofWorker.ended).end, "killed");
  equal(hanging.programs, 1);
  await hanging.close();
  equal(hanging.programs, 0);
  own.kill("killed");
  await own.ended;
  for (const tool of [ofWorker, own]) await tool.stdout!.cancel();
  live[Symbol.dispose]();
});

Deno.test("what the broker refuses ends at once with its reason", async () => {
  await using hanging = new Hanging();
  const input = { kind: "file" as const, path: "/etc/passwd", url: null, socket: null };
  const probing = hanging.client.run({ kind: "probe", input }, { ...BOUNDS, deadlineMs: 1000 });
  await rejects(probing, /not a file inside the granted roots/);
  const pull = {
    kind: "live_pull" as const,
    input,
    streamIndex: 0,
    isPaced: false,
    maxFrame: { width: 16, height: 16 },
    soundSocket: null,
  };
  const tool = hanging.client.start(pull, { ...BOUNDS });
  const { end, stderr } = await tool.ended;
  equal(end, "killed");
  match(stderr, /not a file inside the granted roots/);
  await tool.stdout!.cancel();
});
