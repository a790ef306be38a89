import assert from "node:assert/strict";
import { join } from "node:path";
import { Refusal, refuse } from "../../../src/contract/refusal.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import { PrincipalNames } from "../../../src/model/principal_names.ts";
import type { KeyUse } from "../../../src/store/answers/answer_file.ts";
import {
  KeptAnswers,
  type KeptAnswersOptions,
  type KeptKey,
} from "../../../src/store/answers/kept_answers.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { RUN, silentWorld } from "../../support/timeline.ts";

type Pieces = AsyncIterable<Uint8Array<ArrayBuffer>>;

/** Kept answers in a folder of their own. */
class Place implements Disposable {
  readonly dataDir = Deno.makeTempDirSync({ prefix: "answers-test-" });
  readonly folder = join(this.dataDir, "idempotency");
  readonly lines: string[] = [];
  readonly deleted = new Set<string>();
  readonly stored = new Map<string, number>();
  readonly clock = new ManualClock();
  quotaBytes = Infinity;
  nowMs = 1_700_000_000_000;

  open(options: Partial<KeptAnswersOptions> = {}): KeptAnswers {
    this.stored.clear();
    return KeptAnswers.open({
      dataDir: this.dataDir,
      syncs: false,
      names: new PrincipalNames(null),
      view: {
        lastSeq: 9,
        run: (runId) =>
          ({ deleted: this.deleted.has(runId) }) as ReturnType<KeptAnswersOptions["view"]["run"]>,
      },
      stored: {
        requireRoom: (principalKey, bytes = 0) => {
          if ((this.stored.get(principalKey) ?? 0) + bytes >= this.quotaBytes) {
            throw refuse.because("storage_quota", "no room");
          }
        },
        addAnswer: (principalKey, bytes) =>
          void this.stored.set(principalKey, (this.stored.get(principalKey) ?? 0) + bytes),
      },
      world: {
        ...silentWorld(() => this.nowMs, this.lines),
        sleep: (ms, signal) => this.clock.sleep(ms, signal),
      },
      ...options,
    });
  }

  use(scope: string, changes: Partial<KeyUse> = {}): KeyUse {
    return {
      scope,
      principalKey: "a",
      runIds: [],
      bodySha256: "0".repeat(64),
      requestId: "req-1",
      begunMs: this.nowMs,
      fromSeq: 1,
      ...changes,
    };
  }

  /** The sizes of all files by name. */
  get files(): Record<string, number> {
    return Object.fromEntries(
      Array.from(
        Deno.readDirSync(this.folder),
        ({ name }) => [name, Deno.statSync(join(this.folder, name)).size],
      ),
    );
  }

  edit(name: string, change: (text: string) => string): void {
    const path = join(this.folder, name);
    Deno.writeTextFileSync(path, change(Deno.readTextFileSync(path)));
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.dataDir, { recursive: true });
  }
}

async function* pieces(...texts: readonly (string | Error)[]): Pieces {
  for (const text of texts) {
    if (text instanceof Error) throw text;
    yield await Promise.resolve(new TextEncoder().encode(text));
  }
}

async function textOf(body: Pieces | undefined): Promise<string | undefined> {
  if (body === undefined) return undefined;
  const bytes = [];
  for await (const piece of body) bytes.push(...piece);
  return new TextDecoder().decode(new Uint8Array(bytes));
}

async function keep(answers: KeptAnswers, use: KeyUse, ...texts: readonly string[]): Promise<KeptKey> {
  const key = await answers.begin(use);
  assert.equal(await textOf(await answers.keep(key, 200, pieces(...texts))), texts.join(""));
  return key;
}

Deno.test("an answer is read as it was kept, by this process and by the next", async () => {
  using place = new Place();
  for (const syncs of [false, true]) {
    const name = `k-${syncs}`;
    {
      await using answers = place.open({ syncs });
      const key = await keep(answers, place.use(name), "{", '"é":\n1', "}");
      assert.equal(await textOf(await answers.read(key)), '{"é":\n1}');
      await keep(answers, place.use(`${name}-empty`));
    }
    await using answers = place.open({ syncs });
    const key = answers.find(name)!;
    assert.deepEqual(key.use, place.use(name));
    assert.deepEqual(key.state.kind === "answered" && key.state.status, 200);
    assert.equal(await textOf(await answers.read(key)), '{"é":\n1}');
    assert.equal(await textOf(await answers.read(answers.find(`${name}-empty`)!)), "");
  }
});

Deno.test("a key may name the runs of a whole batch, and its answer may be long", async () => {
  using place = new Place();
  const runIds = Array.from(
    { length: LIMITS.infer.batchRequests.maximum },
    (_, at) => `run-${at.toString(16).padStart(32, "0")}`,
  );
  const text = "0123456789\n".repeat(100_000);
  {
    await using answers = place.open();
    await keep(answers, place.use("k", { runIds }), text, text);
    await answers.begin(place.use("begun", { runIds }));
  }
  await using answers = place.open();
  assert.deepEqual(answers.find("k")!.use.runIds, runIds);
  assert.equal(await textOf(await answers.read(answers.find("k")!)), text + text);
  assert.equal(answers.find("begun")!.state.kind, "interrupted");
});

Deno.test("every cut of a file is a key that never began, or one that was interrupted", async () => {
  using place = new Place();
  {
    await using answers = place.open();
    await keep(answers, place.use("k"), "an answer of some length\n", "in two pieces");
  }
  const path = join(place.folder, "k");
  const whole = Deno.readFileSync(path);
  const headBytes = whole.indexOf(0x0a) + 1;
  for (let length = 0; length <= whole.length; length++) {
    Deno.writeFileSync(path, whole.subarray(0, length));
    await using answers = place.open();
    const state = answers.find("k")?.state.kind;
    assert.equal(
      state,
      length < headBytes ? undefined : length < whole.length ? "interrupted" : "answered",
      `${length}`,
    );
    if (state === undefined) assert.deepEqual(place.files, {});
  }
});

Deno.test("an interrupted key can be answered after all, whatever was written of its answer before", async () => {
  using place = new Place();
  {
    await using answers = place.open();
    await keep(answers, place.use("k"), "a long first answer");
  }
  place.edit("k", (text) => text.slice(0, -30));
  {
    await using answers = place.open();
    const key = answers.find("k")!;
    assert.deepEqual(key.state, { kind: "interrupted", toSeq: 9 });
    await answers.resume(key);
    assert.equal(key.state.kind, "running");
    await textOf(await answers.keep(key, 201, pieces("short")));
  }
  await using answers = place.open();
  assert.equal(await textOf(await answers.read(answers.find("k")!)), "short");
});

Deno.test("a damaged answer is not read: its key is known to be used", async () => {
  using place = new Place();
  {
    await using answers = place.open();
    await keep(answers, place.use("k"), "the answer");
    await keep(answers, place.use("gone"), "the answer");
  }
  place.edit("k", (text) => text.replace("the answer", "the onswer"));
  for (let time = 0; time < 2; time++) {
    await using answers = place.open();
    if (time === 0) Deno.removeSync(join(place.folder, "gone"));
    for (const name of time === 0 ? ["k", "gone"] : ["k"]) {
      const key = answers.find(name)!;
      assert.equal(await answers.read(key), undefined);
      assert.equal(key.state.kind, "dropped");
    }
  }
});

Deno.test("beyond its share of keys a principal loses its oldest one, unless that is young: then a new one is refused", async () => {
  using place = new Place();
  await using answers = place.open({ bounds: { ...LIMITS.idempotency, keysMax: 2 } });
  await keep(answers, place.use("other", { principalKey: "b" }), "4");
  await keep(answers, place.use("k1"), "1");
  place.nowMs += 60_000;
  const running = await answers.begin(place.use("k2"));
  await assert.rejects(
    answers.begin(place.use("k3")),
    (error: Refusal & { retryAfterSeconds: number }) =>
      error.status === 429 && error.retryAfterSeconds === 540,
  );
  place.nowMs += 540_000;
  await keep(answers, place.use("k3"), "3");
  assert.deepEqual(Object.keys(place.files).sort(), ["k2", "k3", "other"]);
  place.nowMs += 3_600_000;
  await assert.rejects(answers.begin(place.use("k4")), { status: 429 }, "the oldest one is still running");
  await textOf(await answers.keep(running, 200, pieces("2")));
  await keep(answers, place.use("k4"), "4");
  assert.deepEqual(Object.keys(place.files).sort(), ["k3", "k4", "other"]);
});

Deno.test("a running key is not removed, however old it is", async () => {
  using place = new Place();
  await using answers = place.open();
  const key = await answers.begin(place.use("k"));
  place.nowMs += 2 * LIMITS.idempotency.keptMs;
  assert.equal(answers.find("k"), key);
  await textOf(await answers.keep(key, 200, pieces("late")));
  assert.equal(answers.find("k"), undefined);
});

Deno.test("a new answer takes the room of the principal's oldest ones, whose keys stay used", async () => {
  using place = new Place();
  const bounds = { ...LIMITS.idempotency, bytesMax: 3000 };
  {
    await using answers = place.open({ bounds });
    for (const name of ["k1", "k2"]) await keep(answers, place.use(name), "x".repeat(800));
    await keep(answers, place.use("other", { principalKey: "b" }), "x".repeat(800));
    await keep(answers, place.use("k3"), "x".repeat(600), "x".repeat(600));
    const states = ["k1", "k2", "k3", "other"].map((name) => answers.find(name)!.state.kind);
    assert.deepEqual(states, ["dropped", "answered", "answered", "answered"]);
    const { k1, k2, k3 } = place.files;
    assert.equal(place.stored.get("a"), k1! + k2! + k3!, "what is counted is what is there");
  }
  const before = place.stored.get("a");
  await using answers = place.open({ bounds });
  assert.equal(answers.find("k1")!.state.kind, "dropped");
  assert.equal(place.stored.get("a"), before);
});

Deno.test("an answer that is too long, or beyond the quota, is sent whole and not kept", async () => {
  for (const texts of [["x".repeat(900)], ["y".repeat(300), "x".repeat(900), "z"]]) {
    for (const limit of ["bound", "quota"] as const) {
      using place = new Place();
      {
        await using answers = place.open({ bounds: { ...LIMITS.idempotency, answerBytesMax: 1000 - 200 } });
        if (limit === "quota") place.quotaBytes = 1000;
        const key = await keep(answers, place.use("k"), ...texts);
        assert.equal(key.state.kind, "dropped");
        assert.equal(await answers.read(key), undefined);
        assert.equal(place.stored.get("a"), place.files.k);
      }
      await using answers = place.open();
      assert.equal(answers.find("k")!.state.kind, "dropped");
    }
  }
});

Deno.test("an answer is sent whole where the disk does not take it", async () => {
  using place = new Place();
  await using answers = place.open();
  const key = await answers.begin(place.use("k"));
  Deno.removeSync(join(place.folder, "k"));
  Deno.mkdirSync(join(place.folder, "k")); // no file of this name can be written
  assert.equal(await textOf(await answers.keep(key, 200, pieces("all ", "of it"))), "all of it");
  assert.equal(key.state.kind, "dropped");
});

Deno.test("an answer that fails while it is made leaves the key interrupted", async () => {
  using place = new Place();
  await using answers = place.open();
  const key = await answers.begin(place.use("k"));
  const fault = new Error("no more rows");
  await assert.rejects(answers.keep(key, 200, pieces("half", fault)), (error) => error === fault);
  assert.deepEqual(key.state, { kind: "interrupted", toSeq: 9 });
});

Deno.test("answers about a deleted run go at once, at the end of their request, and at the next start", async () => {
  using place = new Place();
  const use = { runIds: [RUN, "run-b"] };
  {
    await using answers = place.open();
    await keep(answers, place.use("k1", use), "1");
    await keep(answers, place.use("k2"), "2");
    const running = await answers.begin(place.use("k3", use));
    place.deleted.add(RUN);
    answers.forgetRun(RUN);
    assert.deepEqual(Object.keys(place.files).sort(), ["k2", "k3"]);
    assert.equal(await textOf(await answers.keep(running, 200, pieces("3"))), "3");
    assert.deepEqual(Object.keys(place.files), ["k2"]);
    place.deleted.clear();
    await keep(answers, place.use("k4", use), "4");
  }
  place.deleted.add("run-b");
  await using answers = place.open();
  assert.deepEqual(Object.keys(place.files), ["k2"]);
  assert.equal(answers.count, 1);
});

Deno.test("old keys go without any request", async () => {
  using place = new Place();
  await using answers = place.open();
  await keep(answers, place.use("k1"), "1");
  place.nowMs += LIMITS.idempotency.keptMs;
  await keep(answers, place.use("k2"), "2");
  assert.equal(answers.count, 2);
  await place.clock.advance(10 * 60_000);
  assert.deepEqual(Object.keys(place.files), ["k2"]);
});

Deno.test("without room for a principal no key begins, and nothing is left of it", async () => {
  using place = new Place();
  await using answers = place.open();
  place.quotaBytes = 0;
  await assert.rejects(answers.begin(place.use("k")), { code: "storage_quota" });
  place.quotaBytes = Infinity;
  Deno.removeSync(place.folder);
  await assert.rejects(answers.begin(place.use("k")), { code: "storage_unavailable" });
  assert.equal(answers.find("k"), undefined);
  Deno.mkdirSync(place.folder);
  await keep(answers, place.use("k"), "1");
});
