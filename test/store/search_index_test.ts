import assert from "node:assert/strict";
import { join } from "node:path";
import { yieldToEventLoop } from "../../src/base/wait.ts";
import { describedPayload } from "../../src/model/events/description.ts";
import { foldedText } from "../../src/model/events/folded_text.ts";
import { SearchIndex } from "../../src/store/search/search_index.ts";
import { BLOCK_TEXTS, SEGMENT_TEXTS } from "../../src/store/search/text_segment.ts";
import type { Timeline } from "../../src/store/timeline/timeline.ts";
import { all, Bench, created, event, prepared, randomFrom } from "../support/timeline.ts";

const OWNERS = ["api-key:a", "api-key:b", "public"];
const runId = (number: number) => `run-${number.toString(16).padStart(32, "0")}`;
const ownerOf = (run: number) => OWNERS[run % OWNERS.length]!;

/** The timeline of a bench and its index, caught up; both are closed at the end of the block. */
async function opened(bench: Bench): Promise<{ timeline: Timeline; index: SearchIndex } & AsyncDisposable> {
  const stack = new AsyncDisposableStack();
  const timeline = stack.use(await bench.open());
  const index = stack.use(SearchIndex.open({ timeline, dataDir: bench.dataDir, world: bench.world }));
  await index.caughtUp();
  return { timeline, index, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

const indexPath = (bench: Bench) => join(bench.dataDir, "search-index");
const usedIndex = (bench: Bench) => !bench.lines.some((line) => line.includes("search index is not usable"));

interface Described {
  readonly seq: number;
  readonly owner: string;
  readonly runId: string;
  readonly folded: string;
}

/** What a search without an index would read: every event of every run that is not deleted. */
function described(timeline: Timeline): Described[] {
  return all(timeline.readAll({})).flatMap((stored) => {
    const run = timeline.view.run(stored.runId);
    const description = describedPayload(stored.payload)?.description;
    if (!run || run.deleted || description === undefined) return [];
    const folded = foldedText(description).toWellFormed();
    return [{ seq: stored.seq, owner: run.principalKey, runId: run.runId, folded }];
  });
}

function naive(
  texts: readonly Described[],
  owner: string,
  query: { text: string; runId?: string; limit: number },
): { total: number; seqs: number[] } {
  const needle = foldedText(query.text).toWellFormed();
  const seqs = texts.filter((each) =>
    each.owner === owner && (query.runId === undefined || each.runId === query.runId) &&
    each.folded.includes(needle)
  ).map(({ seq }) => seq);
  return { total: seqs.length, seqs: seqs.slice(0, query.limit) };
}

const WORDS = [
  ..."a an the of red RED car cars truck person persons walks stops at night gate 7 42 x".split(" "),
  ...["ΣΑΣ", "σας", "ΟΔΟΣ", "İstanbul", "istanbul", "STRASSE", "Straße", "ﬁre", "é", "e\u0301", "Ärger"],
  ...[
    "一辆红色卡车",
    "卡车",
    "夜",
    "ночь",
    "НОЧЬ",
    "🚗",
    "🚗🚙",
    "\ud83d",
    "\u0000",
    "\n",
    "“quoted”",
    "it’s",
    "ÿ",
  ],
];

/** A text of any length with many repetitions, sometimes one of `earlier`. */
function textFrom(random: (below: number) => number, earlier: string[]): string {
  if (earlier.length > 0 && random(4) === 0) return earlier[random(earlier.length)]!;
  const words = Array.from({ length: random(14) }, () => WORDS[random(WORDS.length)]!);
  const text = words.join(random(5) === 0 ? "" : " ") + (random(50) === 0 ? "long ".repeat(random(400)) : "");
  earlier.push(text);
  return text;
}

function queryFrom(random: (below: number) => number, earlier: readonly string[]): string {
  const source = random(4) === 0 ? WORDS[random(WORDS.length)]! : earlier[random(earlier.length)]!;
  const start = random(Math.max(1, source.length));
  const query = source.slice(start, start + 1 + random(random(3) === 0 ? 40 : 6));
  if (query === "") return "e";
  return [query, query.toUpperCase(), query.toLowerCase(), `${query}q`][random(4)]!;
}

Deno.test("the index finds what reading every description would find, for random texts and queries", async () => {
  using bench = new Bench();
  const random = randomFrom(20_260);
  const earlier: string[] = [];
  const runs = 24;
  let queries = 0;
  const compare = async ({ timeline, index }: { timeline: Timeline; index: SearchIndex }, count: number) => {
    const texts = described(timeline);
    for (let number = 0; number < count; number++, queries++) {
      const query = {
        text: queryFrom(random, earlier),
        ...(random(3) === 0 && { runId: runId(random(runs + 1)) }),
        limit: 1 + random(60),
      };
      const owner = OWNERS[random(OWNERS.length)]!;
      const found = await index.find(owner, query);
      assert.deepEqual(found, naive(texts, owner, query), `${owner} ${JSON.stringify(query)}`);
    }
  };
  const write = (timeline: Timeline, count: number) => {
    for (let number = 0; number < count; number++) {
      const run = random(runs);
      if (timeline.view.run(runId(run))?.deleted) continue;
      const text = textFrom(random, earlier);
      const payloads = [
        { description: text, summary: "a summary that gives way" },
        { description: null, summary: text },
        { summary: text, description: 7 },
        { confidence: 1, nested: { description: text } },
        prepared(`{"description":${JSON.stringify(text)}}`),
      ];
      timeline.commit(() => [event("vlm", payloads[random(payloads.length)]!, runId(run))]);
    }
  };

  {
    await using open = await opened(bench);
    for (let run = 0; run < runs; run++) {
      open.timeline.commit(() => [created(runId(run), ownerOf(run))]);
    }
    write(open.timeline, 18_000);
    await compare(open, 700);
    // Restarts in between, so that the file has segments of every size.
    open.timeline.commit(() => [event("run_deleted", {}, runId(3)), event("run_deleted", {}, runId(4))]);
    await compare(open, 200);
  }
  for (const how of ["from its file", "from the log", "from a file of half the log"]) {
    if (how === "from the log") Deno.removeSync(indexPath(bench));
    const old = how === "from a file of half the log" ? Deno.readFileSync(indexPath(bench)) : undefined;
    if (old !== undefined) {
      {
        await using open = await opened(bench);
        write(open.timeline, 2000);
        open.timeline.commit(() => [event("run_deleted", {}, runId(5))]);
      }
      Deno.writeFileSync(indexPath(bench), old);
    }
    await using open = await opened(bench);
    assert.ok(usedIndex(bench), how);
    await compare(open, 500);
    write(open.timeline, 500);
    await compare(open, 100);
  }
  assert.ok(queries >= 2000, `${queries} queries`);
});

Deno.test("texts are found on both sides of every border between blocks and segments, and never across one", async () => {
  using bench = new Bench();
  const count = SEGMENT_TEXTS + SEGMENT_TEXTS / 2 + BLOCK_TEXTS + 3;
  const check = async (open: { index: SearchIndex }) => {
    const find = (text: string) => open.index.find("api-key:a", { text, limit: 3 });
    for (const border of [0, BLOCK_TEXTS, SEGMENT_TEXTS / 2, SEGMENT_TEXTS, SEGMENT_TEXTS * 1.5, count]) {
      for (const number of [border - 2, border - 1, border, border + 1]) {
        const isAvailable = number >= 0 && number < count;
        const expected = isAvailable ? { total: 1, seqs: [number + 2] } : { total: 0, seqs: [] };
        assert.deepEqual(await find(`<${number}>`), expected, `text ${number}`);
        assert.deepEqual(await find(`<${number}><${number + 1}>`), { total: 0, seqs: [] });
        assert.deepEqual(await find(`><${number}`), { total: 0, seqs: [] });
      }
    }
    assert.deepEqual(await find("<"), { total: count, seqs: [2, 3, 4] });
  };
  {
    await using open = await opened(bench);
    open.timeline.commit(() => [created()]);
    for (let number = 0; number < count; number++) {
      open.timeline.commit(() => [event("vlm", { description: `<${number}>` })]);
    }
    await check(open);
  }
  await using again = await opened(bench);
  assert.ok(usedIndex(bench));
  await check(again);
});

Deno.test("a text of many events is stored once, and each of the events is found", async () => {
  using bench = new Bench();
  await using open = await opened(bench);
  open.timeline.commit(() => [created()]);
  for (let number = 0; number < 1000; number++) {
    open.timeline.commit(
      () => [event("vlm", { description: number % 2 === 0 ? "An empty yard" : "an EMPTY street" })],
    );
  }
  assert.equal((await open.index.find("api-key:a", { text: "empty", limit: 1 })).total, 1000);
  assert.deepEqual(await open.index.find("api-key:a", { text: "yard", limit: 2 }), {
    total: 500,
    seqs: [2, 4],
  });
});

Deno.test("texts with the same hash are still two texts", async () => {
  using bench = new Bench();
  await using open = await opened(bench);
  open.timeline.commit(() => [created()]);
  // Known collisions of FNV-1a with 32 bits.
  for (const description of ["costarring", "liquid", "declinate", "macallums", "liquid"]) {
    open.timeline.commit(() => [event("vlm", { description })]);
  }
  const find = async (text: string) => (await open.index.find("api-key:a", { text, limit: 9 })).seqs;
  assert.deepEqual(await find("costarring"), [2]);
  assert.deepEqual(await find("liquid"), [3, 6]);
  assert.deepEqual(await find("macallums"), [5]);
});

Deno.test("an index file that is damaged, cut or of another log is not used, and removed", async () => {
  using bench = new Bench();
  {
    await using open = await opened(bench);
    open.timeline.commit(() => [created()]);
    for (const text of ["a red truck", "a blue car", "Σίσυφος"]) {
      open.timeline.commit(() => [event("vlm", { description: text })]);
    }
  }
  const whole = Deno.readFileSync(indexPath(bench));
  const check = async (what: string, bytes: Uint8Array, isUsed: boolean) => {
    Deno.writeFileSync(indexPath(bench), bytes);
    await using open = await opened(bench);
    assert.equal(usedIndex(bench), isUsed, what);
    assert.deepEqual(
      await open.index.find("api-key:a", { text: "RED", limit: 9 }),
      { total: 1, seqs: [2] },
      what,
    );
    assert.deepEqual(await open.index.find("api-key:a", { text: "σίσυφος", limit: 9 }), {
      total: 1,
      seqs: [4],
    }, what);
  };
  await check("as it was", whole, true);
  await check("empty", new Uint8Array(), false);
  await check("garbage", new Uint8Array(9000).fill(65), false);
  await check("cut short", whole.subarray(0, -1), false);
  await check("cut in half", whole.subarray(0, whole.length / 2), false);
  await check("longer head than file", whole.slice().fill(255, 12, 16), false);
  for (let at = 0; at < whole.length; at += 3) {
    const bytes = whole.slice();
    bytes[at]! ^= 1 << at % 8;
    await check(`bit in byte ${at}`, bytes, false);
  }

  using other = new Bench();
  {
    await using open = await opened(other);
    open.timeline.commit(() => [created()]);
    for (const text of ["a", "b", "c", "d", "e"]) {
      open.timeline.commit(() => [event("vlm", { description: text })]);
    }
  }
  await check("of a longer log", Deno.readFileSync(indexPath(other)), false);
  other.nowMs += 1;
  Deno.writeFileSync(indexPath(other), whole);
  await using open = await opened(other);
  assert.ok(!usedIndex(other), "of a shorter log with other events");
  assert.equal((await open.index.find("api-key:a", { text: "red", limit: 9 })).total, 0);
});

Deno.test("when most indexed events are of deleted runs, the next start removes them from the file", async () => {
  using bench = new Bench();
  {
    await using open = await opened(bench);
    open.timeline.commit(() => [created(runId(1)), created(runId(2))]);
    for (let number = 0; number < 12_000; number++) {
      const run = runId(number % 3 === 0 ? 1 : 2);
      open.timeline.commit(() => [event("vlm", { description: `picture ${number}` }, run)]);
    }
    open.timeline.commit(() => [event("run_deleted", {}, runId(2))]);
  }
  const sizeBefore = Deno.statSync(indexPath(bench)).size;
  for (const isUsed of [false, true]) {
    await using open = await opened(bench);
    assert.equal(usedIndex(bench), isUsed);
    assert.equal(open.index.eventCount, 4000);
    assert.equal((await open.index.find("api-key:a", { text: "picture", limit: 1 })).total, 4000);
    open.timeline.commit(() => [event("keepalive_refreshed", {}, runId(1))]);
  }
  assert.ok(Deno.statSync(indexPath(bench)).size * 2 < sizeBefore);
});

Deno.test("events that are committed while the index reads the log are found once", async () => {
  using bench = new Bench();
  {
    await using timeline = await bench.open();
    timeline.commit(() => [created()]);
    for (let number = 0; number < 20_000; number++) {
      timeline.commit(() => [event("vlm", { description: `early ${number}` })]);
    }
  }
  await using timeline = await bench.open();
  await using index = SearchIndex.open({ timeline, dataDir: bench.dataDir, world: bench.world });
  let late = 0;
  let isReady = false;
  const ready = index.caughtUp().then(() => isReady = true);
  while (!isReady) {
    timeline.commit(() => [event("vlm", { description: `late ${late++}` })]);
    await yieldToEventLoop();
  }
  await ready;
  assert.equal((await index.find("api-key:a", { text: "early ", limit: 1 })).total, 20_000);
  assert.equal((await index.find("api-key:a", { text: "late ", limit: 1 })).total, late);
});

Deno.test("an index that is closed before it has read the log loses nothing", async () => {
  using bench = new Bench();
  {
    await using timeline = await bench.open();
    timeline.commit(() => [created()]);
    for (let number = 0; number < 9000; number++) {
      timeline.commit(() => [event("vlm", { description: `number ${number}` })]);
    }
    const index = SearchIndex.open({ timeline, dataDir: bench.dataDir, world: bench.world });
    const early = index.find("api-key:a", { text: "number", limit: 1 });
    await Promise.all([
      assert.rejects(early, { kind: "storage_unavailable" }),
      index[Symbol.asyncDispose](),
    ]);
  }
  await using open = await opened(bench);
  assert.equal((await open.index.find("api-key:a", { text: "number", limit: 1 })).total, 9000);
});
