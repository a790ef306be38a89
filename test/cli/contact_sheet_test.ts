import assert from "node:assert/strict";
import { join } from "node:path";
import { type Alteration, makeAlteredFilm } from "../../scripts/altered_film.ts";
import { FilmTimes } from "../../cli/contact_sheet/film_times.ts";
import { type Mark, marksOf, rateText } from "../../cli/contact_sheet/marks.ts";
import { timelineLines } from "../../cli/output/timeline.ts";
import { thumbnails } from "../../cli/contact_sheet/thumbnails.ts";
import { contactSheet } from "../../cli/contact_sheet/sheet.ts";
import { CLIPS, MODEL, newRun, startService, type TestService } from "../support/service.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { make, TempFolder, tools } from "../support/media.ts";

const { ffmpeg } = tools();

function mark(event_type: Mark["event_type"], start_frame: number, end_frame: number): Mark {
  const times = {
    start_pts_ms: Math.round(start_frame * 125 / 3),
    end_pts_ms: Math.round(end_frame * 125 / 3),
  };
  return { event_type, status: "exact", start_frame, end_frame, ...times, confidence: 0.9, note: null };
}

function timesOf(pts_ms: readonly number[]): FilmTimes {
  return new FilmTimes({ pts_ms, counts: pts_ms.map(() => 1), last_pts_ms: pts_ms.at(-1)! }, 24);
}

Deno.test("times of a film without a steady rate, and that does not begin at 0, count and not its frames", () => {
  // Ten seconds at 24 frames a second, then one picture a second, as a screen recording.
  const pts = [
    ...Array.from({ length: 240 }, (_, n) => 5000 + n * 1000 / 24),
    ...Array.from({ length: 19 }, (_, n) => 15_000 + n * 1000),
  ];
  const times = timesOf(pts);
  assert.equal(times.lengthMs, 29_000);
  assert.equal(times.msAt(250), 25_000);
  assert.equal(times.frameAt(25_500), 250);
  assert.equal(times.frameAt(99_000), 258);
  const cut = { ...mark("scene_cut", 250, 250), start_pts_ms: 25_000, end_pts_ms: 25_000 };
  const [lane, axis] = timelineLines({ marks: [cut], firstMs: times.firstMs, endMs: times.endMs }, 29);
  assert.equal(lane!.slice(20).indexOf("┃"), 20);
  assert.equal(axis, `${"".padEnd(20)}0:05${"0:34.000".padStart(25)}`);
  // Bins of many frames.
  const bins = new FilmTimes({ pts_ms: [0, 10_000], counts: [100, 50], last_pts_ms: 19_800 }, 10);
  assert.equal(bins.msAt(50), 5000);
  assert.equal(bins.frameAt(5000), 50);
  assert.equal(bins.endMs, 20_000);
  assert.equal(new FilmTimes({ pts_ms: [40], counts: [1], last_pts_ms: 40 }, 25).endMs, 80);
});

Deno.test("a rate is written with three decimals at most", () => {
  assert.deepEqual([60_000 / 1001, 24_000 / 1001, 25].map(rateText), ["59.94", "23.976", "25"]);
});

Deno.test("a contact sheet needs no other file, and shows the frames of every mark", async () => {
  const marks = [mark("black", 0, 9), mark("scene_cut", 285, 285), mark("freeze", 700, 719)];
  const times = timesOf(Array.from({ length: 720 }, (_, frame) => frame * 125 / 3));
  const film = { path: join(CLIPS, "bbb120.mp4"), times, endMs: times.endMs, fps: 24, marks };
  const html = await contactSheet(ffmpeg, [{ ...film, title: "One", about: "A film.", done: null }]);
  assert.doesNotMatch(html, /https?:|<script|<link|url\(/);
  const pictures = [...html.matchAll(/<img alt="frame (\d+)" src="data:image\/jpeg;base64,([^"]+)">/g)];
  assert.equal(pictures.length, html.split("<img").length - 1);
  for (const [, , data] of pictures) {
    assert.deepEqual([...Uint8Array.fromBase64(data!).subarray(0, 2)], [0xff, 0xd8]);
  }
  const cards = html.split("<li ").slice(1).map((card) =>
    [...card.matchAll(/<figcaption>(\d+)</g)].map(([, n]) => +n!)
  );
  // A frame before the film or behind it is left out.
  assert.deepEqual(cards, [[0, 9, 10], [277, 284, 285, 293], [700, 710, 719]]);
});

/**
 * How far the lines of a JPEG differ from those beside them, more than from the next lines but one: the teeth
 * of combs.
 */
function teethOf(jpeg: Uint8Array, folder: TempFolder): number {
  const path = folder.file("picture.jpg", new Uint8Array(jpeg));
  const { stdout } = new Deno.Command(ffmpeg, {
    args: [
      "-v",
      "error",
      "-i",
      path,
      "-vf",
      "extractplanes=y,scale=232:128",
      "-pix_fmt",
      "gray",
      "-f",
      "rawvideo",
      "-",
    ],
  }).outputSync();
  let teeth = 0;
  for (let at = 2 * 232; at < stdout.length - 2 * 232; at++) {
    const [here, above, below] = [stdout[at]!, stdout[at - 232]!, stdout[at + 232]!];
    teeth += Math.max(0, Math.min(Math.abs(here - above), Math.abs(here - below)) - Math.abs(above - below));
  }
  return teeth / stdout.length;
}

Deno.test("pictures of a film with fields have no combs, and are as many", async () => {
  using folder = new TempFolder();
  const picture = ["-f", "lavfi", "-i", "testsrc2=s=232x128:r=50:d=2,scroll=h=0.03,format=yuv420p"];
  const encoder = ["-c:v", "libx264", "-preset", "ultrafast", "-qp", "10"];
  const film = (name: string, ...args: string[]) => make(join(folder.path, name), ...picture, ...args);
  const fields = film(
    "fields.mp4",
    "-vf",
    "tinterlace=interleave_top,fieldorder=tff",
    ...encoder,
    "-x264-params",
    "tff=1",
  );
  const woven = film("woven.mp4", "-vf", "tinterlace=interleave_top,setfield=prog", ...encoder);
  const teeth = async (path: string) => {
    const pictures = await thumbnails(ffmpeg, path, [0, 10, 20, 49, 50]);
    assert.deepEqual([...pictures.keys()], [0, 10, 20, 49]);
    const jpegs = [...pictures.values()].map((uri) => Uint8Array.fromBase64(uri.slice(uri.indexOf(",") + 1)));
    return jpegs.map((jpeg) => teethOf(jpeg, folder));
  };
  const [shown, combed] = [await teeth(fields), await teeth(woven)];
  shown.forEach((value, at) =>
    assert.ok(value < combed[at]! / 4, `${at}: ${value}, and ${combed[at]} with combs`)
  );
});

/** The marks that the service makes of a film. */
async function marksOfFilm(test: TestService, source_uri: string): Promise<readonly Mark[]> {
  const runId = await newRun(test);
  const ingested = await test.call("POST", `/v1/runs/${runId}/ingest`, { source_uri, max_frames: 5000 });
  assert.equal(ingested.status, 200, ingested.text);
  const { json } = await test.call("POST", `/v1/runs/${runId}/analyze`, { model: MODEL });
  return marksOf(json.markers, (frame) => json.metadata[frame].annotations.events[0].description);
}

/** Cuts within one frame, ranges by the half of what both cover together. */
function isSame(found: Mark, done: Alteration): boolean {
  if (found.event_type !== done.type) return false;
  if (done.type === "scene_cut") return Math.abs(found.start_frame - done.startFrame) <= 1;
  const both = Math.min(found.end_frame, done.endFrame) - Math.max(found.start_frame, done.startFrame) + 1;
  const either = Math.max(found.end_frame, done.endFrame) - Math.min(found.start_frame, done.startFrame) + 1;
  return both / either >= 0.5;
}

const brief = (found: Mark) => `${found.event_type} ${found.start_frame}-${found.end_frame}`;

Deno.test(
  "every mark of the demo's films is true, and everything that happens in them is marked",
  LONG_TEST,
  async () => {
    await using test = await startService();
    const path = join(test.mediaDir, "altered.mp4");
    const done = await makeAlteredFilm(ffmpeg, path);
    const altered = await marksOfFilm(test, path);
    assert.deepEqual(
      altered.filter((found) => !done.some((each) => isSame(found, each))).map(brief),
      [],
      "not true",
    );
    assert.deepEqual(done.filter((each) => !altered.some((found) => isSame(found, each))), [], "not found");

    // Labelled by eye: a fade from black and three cuts.
    const original = await marksOfFilm(test, join(CLIPS, "bbb480.mp4"));
    const [black, fade, ...cuts] = original;
    assert.deepEqual([black!.event_type, black!.start_frame, fade!.event_type], [
      "black",
      0,
      "gradual_transition",
    ]);
    assert.ok(black!.end_frame >= 3 && black!.end_frame <= 12, brief(black!));
    assert.ok(fade!.start_frame <= 12 && fade!.end_frame >= 45 && fade!.end_frame <= 75, brief(fade!));
    assert.deepEqual(cuts.map(brief), ["scene_cut 285-285", "scene_cut 378-378", "scene_cut 553-553"]);
  },
);
