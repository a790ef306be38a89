import assert from "node:assert/strict";
import { join } from "node:path";
import { type Alteration, makeAlteredFilm } from "../../scripts/altered_film.ts";
import { type Mark, marksOf } from "../../cli/contact_sheet/marks.ts";
import { contactSheet } from "../../cli/contact_sheet/sheet.ts";
import { CLIPS, MODEL, newRun, startService, type TestService } from "../support/service.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { tools } from "../support/media.ts";

const { ffmpeg } = tools();

function mark(event_type: Mark["event_type"], start_frame: number, end_frame: number): Mark {
  const times = {
    start_pts_ms: Math.round(start_frame * 125 / 3),
    end_pts_ms: Math.round(end_frame * 125 / 3),
  };
  return { event_type, status: "exact", start_frame, end_frame, ...times, confidence: 0.9, note: null };
}

Deno.test("a contact sheet needs no other file, and shows the frames of every mark", async () => {
  const marks = [mark("black", 0, 9), mark("scene_cut", 285, 285), mark("freeze", 700, 719)];
  const film = { path: join(CLIPS, "bbb120.mp4"), frames: 720, fps: 24, marks };
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
