import assert from "node:assert/strict";
import { join } from "node:path";
import type { Mark } from "../../scripts/contact_sheet/marks.ts";
import { contactSheet } from "../../scripts/contact_sheet/sheet.ts";
import { CLIPS } from "../support/service.ts";
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
