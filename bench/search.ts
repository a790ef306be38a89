/**
 * Search in a million descriptions of 80 characters over 1,000 runs, with word frequencies by Zipf's law:
 *
 *   - the time of queries with few and with many matches, and of short ones, p50 and p95, compared with a
 *     search of
 *     each text as a lower-case string in memory;
 *   - the memory that the index adds to a process that has the timeline open;
 *   - the time from opening the timeline until searches are answered, with and without the index file.
 *
 *     ./scripts/deno run -A bench/search.ts [--events 1000000] [--runs 1000] [--rounds 200]
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { yieldToEventLoop } from "../src/base/wait.ts";
import { SearchIndex } from "../src/store/search/search_index.ts";
import { Timeline } from "../src/store/timeline/timeline.ts";
import { measureInChild, median, percentile, quietWorld, report, TemporaryFolder } from "./support.ts";

const { values } = parseArgs({
  args: Deno.args,
  options: {
    events: { type: "string", default: "1000000" },
    runs: { type: "string", default: "1000" },
    rounds: { type: "string", default: "200" },
    // For the child process: opens the timeline of this folder, with or without the index, and prints the
    // times.
    open: { type: "string", default: "" },
    without: { type: "boolean", default: false },
  },
});
const EVENTS = Number(values.events);
const RUNS = Number(values.runs);
const OWNER = "api-key:bench";
const DESCRIPTION_CHARACTERS = 80;
const VOCABULARY_WORDS = 20_000;

const random = randomFrom(20_261);
const words = vocabulary();

if (values.open !== "") await openOnly(values.open);
else await main();

async function main(): Promise<void> {
  using folder = new TemporaryFolder();
  await fill(folder.path);
  const without = await child(folder.path, "--without");
  const unread = await child(folder.path);
  const stored = await child(folder.path);
  print("memory without the index, MB", [without.rssMb]);
  print("memory with it, after a start, MB", [stored.rssMb]);
  print("the index adds, MB", [stored.rssMb - without.rssMb]);
  const adds = [stored.rssMb - without.rssMb];
  report({ name: "search: memory of the index", unit: "MB", better: "less", ours: adds, limit: null });
  print("index file, MB", [Deno.statSync(join(folder.path, "search-index")).size / 1e6]);
  print("timeline open, ms", [stored.openMs]);
  print("searches answered after, ms", [stored.readyMs]);
  print("the same without index file, ms", [unread.readyMs]);
  await measure(folder.path);
}

async function fill(dataDir: string): Promise<void> {
  await using timeline = await Timeline.open({ dataDir, world: quietWorld(), sync: "none" });
  for (let number = 0; number < EVENTS + RUNS; number++) {
    const run = number % RUNS;
    const payload = number < RUNS ? { principal_key: OWNER, mode: "balanced", model: null } : {
      session_id: "",
      frame_index: number,
      pts_ms: number * 33,
      confidence: 0.5,
      description: description(),
    };
    timeline.commit(() => [{ kind: number < RUNS ? "run_created" : "vlm", runId: runId(run), payload }]);
    if (number % 10_000 === 0) await yieldToEventLoop();
  }
}

/** Times each kind of query; the queries consist of words of the texts, some frequent and some rare. */
async function measure(dataDir: string): Promise<void> {
  const world = quietWorld();
  await using timeline = await Timeline.open({ dataDir, world, sync: "none" });
  await using index = SearchIndex.open({ timeline, dataDir, world });
  await index.caughtUp();
  const texts = lowerTexts(timeline);
  const rare = () => words[5_000 + below(VOCABULARY_WORDS - 5_000)]!;
  const middle = () => words[100 + below(2_000)]!;
  const kinds: Record<string, () => string> = {
    "a rare word": () => wordOf(rare, 6),
    "two words": () => `${wordOf(middle, 4)} ${wordOf(middle, 4)}`,
    "half a text": () => texts[below(texts.length)]!.slice(20, 60),
    "nothing has it": () => `${rare()}0${rare()}`,
    "a frequent word": () => words[below(20)]!,
    "three letters": () => rare().slice(0, 3).padEnd(3, "a"),
    "two letters": () => rare().slice(0, 2),
    "one letter": () => rare().slice(0, 1),
  };
  for (const [kind, query] of Object.entries(kinds)) {
    const times: number[] = [];
    const totals: number[] = [];
    for (let round = 0; round < Number(values.rounds); round++) {
      const text = query();
      const startedMs = performance.now();
      const { total, seqs } = await index.find(OWNER, { text, limit: 50 });
      for (const seq of seqs) timeline.readOne(seq);
      times.push(performance.now() - startedMs);
      totals.push(total);
    }
    print(`${kind}, ms`, times, `${percentile(totals, 0.5)} matches at p50`);
    const scans = Array.from({ length: 5 }, () => timedScan(texts, query()));
    print("  limit: each text searched, ms", scans);
    report({
      ...{ name: `search: ${kind}, p50`, unit: "ms", better: "less", ours: [median(times)] },
      limit: { name: "each text searched", values: [median(scans)] },
    });
  }
}

/** The texts as strings in lower case, for the search without an index. */
function lowerTexts(timeline: Timeline): string[] {
  const texts: string[] = [];
  for (const batch of timeline.readAll({ kinds: new Set(["vlm"]) })) {
    for (const { payload } of batch) texts.push(JSON.parse(payload).description.toLowerCase());
  }
  return texts;
}

function timedScan(texts: readonly string[], query: string): number {
  const startedMs = performance.now();
  let total = 0;
  for (const text of texts) if (text.includes(query)) total++;
  if (total > texts.length) throw new Error("never");
  return performance.now() - startedMs;
}

interface Opened {
  readonly openMs: number;
  readonly readyMs: number;
  readonly rssMb: number;
}

function child(dataDir: string, ...flags: string[]): Promise<Opened> {
  return measureInChild(import.meta.url, ["--open", dataDir, ...flags]);
}

async function openOnly(dataDir: string): Promise<void> {
  const world = quietWorld();
  const startedMs = performance.now();
  await using timeline = await Timeline.open({ dataDir, world, sync: "none" });
  const openMs = performance.now() - startedMs;
  await using index = values.without ? undefined : SearchIndex.open({ timeline, dataDir, world });
  await index?.caughtUp();
  console.log(JSON.stringify({ openMs, readyMs: performance.now() - startedMs }));
  await Deno.stdin.read(new Uint8Array(1));
}

function description(): string {
  let text = "";
  while (text.length < DESCRIPTION_CHARACTERS) text += `${text === "" ? "" : " "}${frequentWord()}`;
  return text.slice(0, DESCRIPTION_CHARACTERS);
}

/** A random word; the probability of the word of rank r is proportional to 1/r. */
function frequentWord(): string {
  return words[Math.floor(Math.exp(random() * Math.log(VOCABULARY_WORDS)))]!;
}

/** Random words of 2 to 10 letters; some letters are more frequent than others. */
function vocabulary(): string[] {
  const letters = "etaoinshrdlcumwfgypbvkjxqz";
  return Array.from({ length: VOCABULARY_WORDS + 1 }, () => {
    const length = 2 + below(9);
    return Array.from({ length }, () => letters[Math.floor(random() * random() * letters.length)]!).join("");
  });
}

function wordOf(word: () => string, lengthMin: number): string {
  for (;;) {
    const drawn = word();
    if (drawn.length >= lengthMin) return drawn;
  }
}

function print(name: string, numbers: readonly number[], more = ""): void {
  const figures = numbers.length === 1
    ? numbers[0]!.toFixed(1).padStart(9)
    : `${percentile(numbers, 0.5).toFixed(2).padStart(9)} p50${
      percentile(numbers, 0.95).toFixed(2).padStart(9)
    } p95`;
  console.log(`${name.padEnd(36)}${figures}   ${more}`.trimEnd());
}

function below(limit: number): number {
  return Math.floor(random() * limit);
}

function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

function runId(number: number): string {
  return `run-${number.toString(16).padStart(32, "0")}`;
}
