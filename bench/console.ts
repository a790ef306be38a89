/**
 * The console in Chromium, as a person sees it: from a cold start to a page that can be used; a run of
 * 100,000 marks, until it is open and while it is scrolled, zoomed and panned; the time from the commit of a
 * marker to its row on the page; and the memory of the page after as many events as a live run has in an
 * hour. Without a graphics processor, as here, Chromium draws on the CPU.
 *
 *     ./scripts/deno run -A bench/console.ts [--rounds 5] [--marks 100000] [--live 100] [--hour 7200]
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Browser, type CDPSession, chromium, type Page } from "playwright-core";
import { principalKeyOf } from "../src/model/identifiers.ts";
import { CHROMIUM_PATH } from "../test/support/needs.ts";
import { type Server, startServer } from "../scripts/server.ts";
import { fillTimeline, runId } from "./filled_timeline.ts";
import { load, pause, percentile, report, TemporaryFolder } from "./support.ts";

const API_KEY = "bench-key";
const MODEL = "Qwen/Qwen3-VL-4B-Instruct";
const WIDE = { width: 1440, height: 900 };
/** Frames of a gesture: two seconds at 60 frames a second. */
const GESTURE_STEPS = 120;
const BATCH = 20;
const WAIT_MS = 60_000;

const { values } = parseArgs({
  args: Deno.args,
  options: {
    rounds: { type: "string", default: "5" },
    marks: { type: "string", default: "100000" },
    live: { type: "string", default: "100" },
    hour: { type: "string", default: "7200" },
  },
});
const [rounds, marks, live, hour] = [values.rounds, values.marks, values.live, values.hour].map(Number) as [
  number,
  number,
  number,
  number,
];
if (CHROMIUM_PATH === null) throw new Error("Chromium is not installed");
const headers = { "x-api-key": API_KEY, "content-type": "application/json" };

using folder = new TemporaryFolder();
const dataDir = join(folder.path, "data");
await fillTimeline({ dataDir, events: marks + 2, runs: 1, principalOf: () => principalKeyOf(API_KEY) });
await using server = await startServer({ SERVICE_API_KEYS: API_KEY, SERVICE_DATA_DIR: dataDir });

const firstMs: number[] = [];
const rowsMs: number[] = [];
const openMs: number[] = [];
const listMs: number[] = [];
const zoomMs: number[] = [];
const panMs: number[] = [];
for (let round = 0; round < rounds; round++) {
  await inBrowser(async (browser) => {
    firstMs.push(await firstPage(browser, server));
    const page = await signedIn(browser, server);
    const { firstMs: rowsAtMs, allMs } = await opened(page, server);
    rowsMs.push(rowsAtMs);
    openMs.push(allMs);
    listMs.push(await scrolledList(page));
    zoomMs.push(await zoomedTimeline(page));
    panMs.push(await pannedTimeline(page));
  });
}
const commitMs = await inBrowser((browser) => committedToPage(browser, server));
const memoryMb = await inBrowser((browser) => memoryAfterEvents(browser, server));

const tell = (name: string, unit: string, ours: readonly number[]) =>
  report({ name: `console: ${name}`, unit, better: "less", ours, limit: null });
tell("first page usable, empty cache", "ms", firstMs);
tell(`run of ${marks} marks, first of them shown`, "ms", rowsMs);
tell(`run of ${marks} marks, open`, "ms", openMs);
tell(`run of ${marks} marks, list scrolled, frame p95`, "ms", listMs);
tell(`run of ${marks} marks, timeline zoomed, frame p95`, "ms", zoomMs);
tell(`run of ${marks} marks, timeline panned, frame p95`, "ms", panMs);
tell("marker committed to its row on the page, p50", "ms", [percentile(commitMs, 0.5)]);
tell("marker committed to its row on the page, p95", "ms", [percentile(commitMs, 0.95)]);
tell(`memory of the page after ${hour} events, JavaScript`, "MB", [memoryMb.heapMb]);
tell(`memory of the page after ${hour} events, its process`, "MB", [memoryMb.processMb]);
console.log(`load ${load()}`);

async function inBrowser<T>(work: (browser: Browser) => Promise<T>): Promise<T> {
  const browser = await chromium.launch({
    executablePath: CHROMIUM_PATH!,
    args: ["--no-sandbox", "--disable-quic"],
  });
  try {
    return await work(browser);
  } finally {
    await browser.close();
  }
}

/** Milliseconds until the form of the key takes input. */
async function firstPage(browser: Browser, { url }: Server): Promise<number> {
  const page = await browser.newPage({ viewport: WIDE });
  await page.goto("about:blank");
  const startMs = performance.now();
  await page.goto(`${url}/console/`, { waitUntil: "commit" });
  await page.getByLabel("API key").fill(API_KEY);
  const tookMs = performance.now() - startMs;
  await page.context().close();
  return tookMs;
}

async function signedIn(browser: Browser, { url }: Server): Promise<Page> {
  const page = await browser.newPage({ viewport: WIDE });
  page.setDefaultTimeout(WAIT_MS);
  await page.goto(`${url}/console/#/search`);
  await page.getByLabel("API key").fill(API_KEY);
  await page.getByRole("button", { name: "Open the console" }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
  return page;
}

/**
 * Milliseconds from the click to the first marks on the page, and to the moment at which all are counted and
 * the list shows them.
 */
async function opened(page: Page, { url }: Server): Promise<{ firstMs: number; allMs: number }> {
  const startMs = performance.now();
  await page.evaluate((to) => void (globalThis.location.href = to), `${url}/console/#/runs/${runId(0)}`);
  await page.waitForFunction(HAS_ROWS, undefined, { polling: 4 });
  const firstMs = performance.now() - startMs;
  await counted(page, marks);
  return { firstMs, allMs: performance.now() - startMs };
}

/** Runs in the page. */
function HAS_ROWS(): boolean {
  // deno-lint-ignore no-explicit-any -- the globals of the page
  return (globalThis as any).document.querySelector(".mark-row") !== null;
}

/** Waits until the head of the list says that there are so many marks. */
async function counted(page: Page, count: number): Promise<void> {
  await page.waitForFunction(HAS_COUNT, count, { polling: 4 });
}

/** Runs in the page. */
function HAS_COUNT(wanted: number): boolean {
  // deno-lint-ignore no-explicit-any -- the globals of the page
  const head = (globalThis as any).document.querySelector(".mark-list h2");
  return head !== null && Number(head.textContent.replaceAll(/[^0-9]/g, "")) === wanted;
}

/** Frames of the page while `step` is done once in each. Returns their p95, milliseconds. */
async function frameP95(page: Page, step: string): Promise<number> {
  const times = await page.evaluate(
    `new Promise((resolve) => {
      const step = ${step};
      const times = [];
      let last;
      const frame = (now) => {
        if (last !== undefined) times.push(now - last);
        last = now;
        if (times.length >= ${GESTURE_STEPS}) return resolve(times);
        step(times.length);
        requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
    })`,
  ) as number[];
  return percentile(times, 0.95);
}

function scrolledList(page: Page): Promise<number> {
  return frameP95(page, `(at) => document.querySelector(".mark-rows").scrollTop = at * 4_000`);
}

function zoomedTimeline(page: Page): Promise<number> {
  return frameP95(page, wheel("0, deltaY: at < 60 ? -120 : 120"));
}

function pannedTimeline(page: Page): Promise<number> {
  return frameP95(
    page,
    `(at) => { if (at === 1) for (let notch = 0; notch < 10; notch++) (${wheel("0, deltaY: -240")})(at); (${
      wheel("at < 60 ? 60 : -60, deltaY: 0")
    })(at); }`,
  );
}

function wheel(deltas: string): string {
  return `(at) => {
    const canvas = document.querySelector(".timeline canvas");
    const box = canvas.getBoundingClientRect();
    canvas.dispatchEvent(new WheelEvent("wheel", {
      bubbles: true, cancelable: true, clientX: box.left + box.width / 2, clientY: box.top + box.height / 2, deltaX: ${deltas},
    }));
  }`;
}

/**
 * Milliseconds from the time that the service writes into the event to the time at which the page shows one
 * mark more.
 */
async function committedToPage(browser: Browser, service: Server): Promise<number[]> {
  const page = await signedIn(browser, service);
  const run = await newRun(service);
  await addMarkers(service, run, 1);
  await page.evaluate((to) => void (globalThis.location.href = to), `${service.url}/console/#/runs/${run}`);
  await counted(page, 1);
  const tookMs: number[] = [];
  for (let number = 2; number <= live + 1; number++) {
    const shown = page.evaluate(SHOWN_AT, String(number)) as Promise<number>;
    const [added, shownMs] = [await addMarkers(service, run, 1), await shown];
    tookMs.push(shownMs - added);
    await pause(Math.random() * 40);
  }
  return tookMs;
}

/**
 * Tells, in the page, the time of the day at which the list has so many marks, and the frame that shows it is
 * drawn.
 */
function SHOWN_AT(wanted: string): Promise<number> {
  // deno-lint-ignore no-explicit-any -- the globals of the page
  const { document, MutationObserver, requestAnimationFrame } = globalThis as any;
  return new Promise((resolve) => {
    const head = document.querySelector(".mark-list h2");
    const isThere = () => head.textContent.replaceAll(/[^0-9]/g, "") === wanted;
    const observer = new MutationObserver(() => {
      if (!isThere()) return;
      observer.disconnect();
      requestAnimationFrame(() => resolve(Date.now()));
    });
    observer.observe(head, { childList: true, subtree: true, characterData: true });
  });
}

async function memoryAfterEvents(browser: Browser, service: Server) {
  const page = await signedIn(browser, service);
  const run = await newRun(service);
  await addMarkers(service, run, 1);
  await page.evaluate((to) => void (globalThis.location.href = to), `${service.url}/console/#/runs/${run}`);
  await counted(page, 1);
  let count = 1;
  for (; count < hour; count += BATCH) await addMarkers(service, run, BATCH);
  await counted(page, count);
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const heapMb = await metric(session, "JSHeapUsedSize") / 2 ** 20;
  return { heapMb, processMb: await rendererMb(browser) };
}

async function metric(session: CDPSession, wanted: string): Promise<number> {
  await session.send("Performance.enable");
  const { metrics } = await session.send("Performance.getMetrics");
  return metrics.find(({ name }) => name === wanted)!.value;
}

/** Memory of the largest process that draws pages, in MB; its shared pages by share. */
async function rendererMb(browser: Browser): Promise<number> {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  const sizes = processInfo.filter(({ type }) => type === "renderer")
    .map(({ id }) =>
      Number(/^Pss:\s+(\d+)/m.exec(Deno.readTextFileSync(`/proc/${id}/smaps_rollup`))![1]) / 1024
    );
  return Math.max(...sizes);
}

async function newRun(service: Server): Promise<string> {
  return (await post(service, "/v1/runs", {})).run_id;
}

/**
 * Adds frames, each of which becomes a marker of its own. Returns the time that the service wrote into the
 * last of their events.
 */
async function addMarkers(service: Server, run: string, count: number): Promise<number> {
  const frames = Array.from({ length: count }, (_, at) => callerFrame(at));
  const { markers } = await post(service, `/v1/runs/${run}/analyze`, { model: MODEL, frames });
  if (markers.length !== count) throw new Error(`${markers.length} markers of ${count} frames`);
  const { matches } = await post(service, "/v1/query", { run_id: run, kind: "marker_emitted" });
  return matches.at(-1).pts_ms;
}

/** Cuts and frames that are none in turn, so that no two are one marker. */
function callerFrame(at: number) {
  return {
    frame_index: at,
    pts_ms: at * 40,
    perceptual_hash: 1,
    luma_mean: 0.5,
    flicker_score: 0,
    ghosting_score: 0,
    noise_variance_score: 0,
    cut_score: at % 2 === 0 ? 0.9 : 0,
  };
}

// deno-lint-ignore no-explicit-any -- the answers of several routes
async function post(service: Server, path: string, body: unknown): Promise<any> {
  const response = await fetch(service.url + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
  return await response.json();
}
