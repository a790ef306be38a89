/** A source that ends before the end that it announces says so, and no other. */

import { deepEqual, equal, match, ok } from "node:assert/strict";
import { join } from "node:path";
import { LONG_TEST } from "../../support/long_tests.ts";
import { make, openDecoder, TempFolder } from "../../support/media.ts";
import { decodeRequest } from "../../support/recorded_media.ts";

const NOISE = ["-f", "lavfi", "-i", "testsrc2=s=160x90:r=25:d=6"];
const LONGER_SOUND = ["-f", "lavfi", "-i", "sine=d=9"];
const FILM_MS = 6000;
const CUT_OFF = "the file is cut off: it ends before its container does";

/** Whole films by name, with the ends of their command lines. */
const WHOLE: Readonly<Record<string, readonly string[]>> = {
  "film.mp4": ["-c:v", "mpeg4", "-movflags", "+faststart"],
  "film.mkv": ["-c:v", "mpeg4"],
  "film.avi": ["-c:v", "mpeg4"],
  "film.flv": ["-c:v", "flv1"],
  "film.asf": ["-c:v", "mpeg4"],
  "film.mxf": ["-c:v", "mpeg2video"],
  "film.ogv": ["-c:v", "libtheora"],
  "film.gif": ["-vf", "fps=5"],
  "film.ts": ["-c:v", "mpeg2video"],
  "sound.mkv": [...LONGER_SOUND, "-c:v", "mpeg4", "-c:a", "aac"],
  "sound.mp4": [...LONGER_SOUND, "-c:v", "mpeg4", "-c:a", "aac"],
  // The last picture is shown for five seconds.
  "slides.mp4": ["-vf", "select='lt(t,1)+gte(t,5.9)'", "-fps_mode", "passthrough", "-c:v", "mpeg4"],
};
/** Files whose half announces the end of the whole. */
const ANNOUNCING = ["film.mp4", "film.mkv", "film.avi", "film.flv", "film.asf", "film.mxf"];
/** Files whose half shows that it is one, and does not say how long the whole is. */
const CUT_OFF_ONLY = ["film.ogv", "film.gif"];

Deno.test("a film that is cut off says when it ends and when it should, and a whole one says nothing", {
  ...LONG_TEST,
}, async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  for (const [name, args] of Object.entries(WHOLE)) {
    const path = make(join(folder.path, name), ...NOISE, ...args);
    const whole = await decoder.decodeSignals(await decodeRequest(decoder, path));
    deepEqual(whole.end, {}, name);
    const isAnnounced = ANNOUNCING.includes(name);
    if (!isAnnounced && !CUT_OFF_ONLY.includes(name)) continue;
    const bytes = Deno.readFileSync(path);
    const half = folder.file(`half-${name}`, bytes.subarray(0, bytes.length >> 1));
    const request = await decodeRequest(decoder, half);
    if (!isAnnounced) {
      deepEqual((await decoder.decodeSignals(request)).end, { source_warning: CUT_OFF }, name);
      continue;
    }
    const { end, signals } = await decoder.decodeSignals(request);
    ok(end.ended_early, name);
    ok(
      Math.abs(end.ended_early.expected_end_ms - FILM_MS) <= 60,
      `${name}: ${end.ended_early.expected_end_ms}`,
    );
    ok(Math.abs(end.ended_early.ended_at_ms - signals.ptsMs[signals.count - 1]! - 40) <= 2, name);
    equal(end.ended_early.reason, CUT_OFF);
    const cut = await decoder.decodeSignals({ ...request, maxFrames: 10 });
    deepEqual(cut.end, {}, `${name}: max_frames ended it`);
    await using stream = await decoder.streamFrames({ ...request, chunks: { by: "count", size: 25 } });
    while (await stream.next() !== null);
    deepEqual(stream.end, end, `${name}, in chunks`);
  }
});

Deno.test("a part of a source that did not come is told, in the middle or at the end", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  const request = await decodeRequest(decoder, make(join(folder.path, "f.mp4"), ...NOISE, "-c:v", "mpeg4"));
  const sourceFault = () => "its server answered 404";
  const middle = await decoder.decodeSignals({ ...request, sourceFault });
  deepEqual(middle.end, { source_warning: "its server answered 404" });
  const info = { ...request.info, announcedEndMs: 2 * FILM_MS };
  const { end } = await decoder.decodeSignals({ ...request, info, sourceFault });
  deepEqual(end.ended_early, {
    ended_at_ms: FILM_MS,
    expected_end_ms: 2 * FILM_MS,
    reason: "its server answered 404",
  });
});

/** Films of which the decoder leaves frames out where bytes in the middle are lost. */
const WITH_HOLES: Readonly<Record<string, readonly string[]>> = {
  "film.mkv": ["-c:v", "ffv1"],
  "film.mp4": ["-c:v", "libx264", "-g", "25", "-pix_fmt", "yuv420p"],
  "film.ogv": ["-c:v", "libtheora"],
  "film.flv": ["-c:v", "flv1"],
};

Deno.test("a film of which the middle is lost says so", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  for (const [name, args] of Object.entries(WITH_HOLES)) {
    const bytes = Deno.readFileSync(make(join(folder.path, name), ...NOISE, ...args));
    bytes.fill(0, bytes.length * 0.4, bytes.length * 0.7);
    const request = await decodeRequest(decoder, folder.file(`hole-${name}`, bytes));
    const { end, signals } = await decoder.decodeSignals(request);
    ok(signals.count < 140, `${name}: ${signals.count} frames`);
    match(
      end.source_warning ?? "",
      /^a part of it is damaged, and for up to \d\.\d s there is no frame$/,
      name,
    );
  }
});
