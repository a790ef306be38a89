/** The main features with real films, through the HTTP API of a real server: run, ingest, analyze, timeline,
 * contact sheet.
 */

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { FilmTimes, TIME_POINTS } from "../cli/contact_sheet/film_times.ts";
import { MARK_TYPES, marksOf, rateText } from "../cli/contact_sheet/marks.ts";
import { contactSheet, type MarkedFilm } from "../cli/contact_sheet/sheet.ts";
import { timelineLines } from "../cli/output/timeline.ts";
import { makeAlteredFilm } from "./altered_film.ts";
import { startServer } from "./server.ts";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const CLIP = join(ROOT, "fixtures", "clips", "bbb480.mp4");
const SHEET = join(ROOT, ".demo", "contact-sheet.html");
const API_KEY = "demo-key";
const MODEL = "Qwen/Qwen3-VL-4B-Instruct";
const FFMPEG = Deno.env.get("SERVICE_FFMPEG_PATH") || "ffmpeg";

const keep = Deno.args.includes("--keep");
const dataDir = Deno.makeTempDirSync({ prefix: "service-demo-" });
const filmDir = Deno.makeTempDirSync({ prefix: "service-demo-film-" });
const server = await startServer({
  SERVICE_API_KEYS: API_KEY,
  SERVICE_DATA_DIR: dataDir,
  SERVICE_INGEST_FILE_ROOTS: [dirname(CLIP), filmDir].join(","),
});
try {
  await tour(server.url);
  if (keep) await untilInterrupted(server.url);
} finally {
  await server[Symbol.asyncDispose]();
  Deno.removeSync(dataDir, { recursive: true });
  Deno.removeSync(filmDir, { recursive: true });
}
Deno.exit(0);

async function tour(url: string): Promise<void> {
  console.log(`A server runs at ${url}, with its timeline in ${join(dataDir, "timeline")}.\n`);
  const original = await watch(url, CLIP, { shows: true });

  console.log("6. A second film: the same one altered, so that everything happens in it that has a name");
  const path = join(filmDir, "altered.mp4");
  const done = await makeAlteredFilm(FFMPEG, path);
  const altered = await watch(url, path, { shows: false });
  printTimeline(altered);

  const films: MarkedFilm[] = [
    {
      ...original,
      title: "Big Buck Bunny",
      about: "Thirty seconds as they are.",
      done: null,
    },
    {
      ...altered,
      title: "The same film, altered",
      about:
        "Put together from parts of it and of another clip. Above the pictures stands what was found, below what was done.",
      done,
    },
  ];
  Deno.mkdirSync(dirname(SHEET), { recursive: true });
  Deno.writeTextFileSync(SHEET, await contactSheet(FFMPEG, films));
  console.log(`7. The contact sheet of both, with the frames of every mark\n   ${SHEET}\n`);
}

type Watched = Pick<MarkedFilm, "path" | "times" | "fps" | "endMs" | "marks">;

/** Has the service analyze a film; with `shows` every step is printed. */
async function watch(url: string, path: string, { shows }: { shows: boolean }): Promise<Watched> {
  const say = (text: string) => shows ? console.log(text) : undefined;
  const call = caller(shows);
  say("1. Create a run");
  const run = await call("POST", `${url}/v1/runs`, { mode: "balanced", model: MODEL });
  say(`   ${run.run_id} is ${run.status}\n`);
  const runUrl = `${url}/v1/runs/${run.run_id}`;

  say("2. Ingest a film: every frame is decoded and measured");
  const ingestStart = performance.now();
  const ingested = await call("POST", `${runUrl}/ingest`, { source_uri: path, max_frames: 5000 });
  const ingestSeconds = (performance.now() - ingestStart) / 1000;
  const { decoded_frames: frames, sample_fps: fps } = ingested;
  const times = new FilmTimes(await call("GET", `${runUrl}/signals?points=${TIME_POINTS}`), fps);
  const videoSeconds = times.lengthMs / 1000;
  say(
    `   ${frames} frames at ${rateText(fps)} per second, ${videoSeconds.toFixed(1)} s of video, in ` +
      `${ingestSeconds.toFixed(2)} s: ${(videoSeconds / ingestSeconds).toFixed(0)} times real time\n`,
  );

  say("3. Analyze: signals become markers");
  const analyzeStart = performance.now();
  const analyzed = await call("POST", `${runUrl}/analyze`, { model: MODEL });
  say(
    `   ${analyzed.generated} rows and ${analyzed.markers.length} markers ` +
      `in ${((performance.now() - analyzeStart) / 1000).toFixed(2)} s\n`,
  );

  say("4. Read the markers back from the durable timeline");
  const { markers } = await call("GET", `${runUrl}/markers`);
  const noteOf = (frame: number) => analyzed.metadata[frame].annotations.events[0].description;
  const watched = { path, times, fps, endMs: times.endMs, marks: marksOf(markers, noteOf) };
  if (!shows) return watched;
  printTimeline(watched);
  const rest = markers.filter(({ event_type }: { event_type: string }) =>
    !MARK_TYPES.some((type) => type === event_type)
  );
  console.log(
    `   Beside these there are ${kindsOf(rest, "event_type")}: what was kept, and what lies between.\n`,
  );

  console.log("5. The run itself is nothing but its events");
  const { events } = await call("GET", `${runUrl}/events`);
  console.log(`   ${kindsOf(events, "kind")}\n`);
  return watched;
}

/** Kinds with their counts, such as `2 run_created, 1 ingest_received`. */
function kindsOf<Key extends string>(items: readonly Record<Key, string>[], key: Key): string {
  const kinds = Map.groupBy(items, (item) => item[key]);
  return Array.from(kinds, ([kind, all]) => `${all.length} ${kind}`).join(", ");
}

/** Makes requests; with `shows` prints the curl line that makes the same one. */
function caller(shows: boolean) {
  // deno-lint-ignore no-explicit-any -- a demo reads answers of many shapes
  return async (method: string, url: string, body?: unknown): Promise<any> => {
    const data = body === undefined
      ? ""
      : ` \\\n     -H 'content-type: application/json' -d '${JSON.stringify(body)}'`;
    const line = `curl -s${method === "GET" ? "" : ` -X ${method}`} ${url} -H 'x-api-key: ${API_KEY}'${data}`;
    if (shows) console.log(`   $ ${line}`);
    const response = await fetch(url, {
      method,
      headers: { "x-api-key": API_KEY, ...(body !== undefined && { "content-type": "application/json" }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!response.ok) {
      throw new Error(`${method} ${url} answered ${response.status}: ${await response.text()}`);
    }
    return response.json();
  };
}

function printTimeline(watched: Watched): void {
  console.log();
  for (
    const line of timelineLines({
      marks: watched.marks,
      firstMs: watched.times.firstMs,
      endMs: watched.endMs,
    })
  ) console.log(line === "" ? "" : `   ${line}`);
  console.log();
}

async function untilInterrupted(url: string): Promise<void> {
  console.log(
    `The server stays until Ctrl-C. Look at the two films: ${url}/console/ with the key "${API_KEY}".`,
  );
  const interrupted = Promise.withResolvers<void>();
  Deno.addSignalListener("SIGINT", () => interrupted.resolve());
  Deno.addSignalListener("SIGTERM", () => interrupted.resolve());
  await interrupted.promise;
}
