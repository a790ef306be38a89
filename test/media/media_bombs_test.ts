/** Small files that would take much memory or time are refused after the probe, with the rule that they
 * break.
 */

import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { join } from "node:path";
import { Refusal } from "../../src/contract/refusal.ts";
import { fileInput } from "../../src/media/input.ts";
import type { DecodedSignals, Decoder } from "../../src/media/files/decoder.ts";
import { PulledDecoder } from "../../src/media/live/pulled_decoder.ts";
import { Extractor } from "../../src/media/files/extractor.ts";
import { croppedFrame } from "../../src/model/frames/coordinates.ts";
import { planSampling } from "../../src/model/frames/sampling.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { localRunner } from "../support/local_runner.ts";
import { make, makeClip, NEVER, openDecoder, probeOnce, TempFolder, tools, world } from "../support/media.ts";
import { manyFramesMp4, tinyGif } from "../support/media_bombs.ts";

const { picturePixelsMax, streamsMax } = LIMITS.media;

function isRefused(error: unknown, expected: RegExp): true {
  ok(error instanceof Refusal, String(error));
  equal(error.status, 422);
  equal(error.details[0]!.field, "source_uri");
  match(error.message, expected);
  return true;
}

async function decodeAll(decoder: Decoder, path: string): Promise<DecodedSignals> {
  const info = await probeOnce(decoder, path, NEVER);
  return await decoder.decodeSignals({
    ...{ input: fileInput(path), info, maxFrames: 100, signal: NEVER },
    plan: planSampling({}, info.video!.averageFps, "ingest"),
  });
}

/** Four small pictures, one that is too large, and four small ones. */
function changingJpegs(folder: TempFolder): string {
  const jpegs = (name: string, size: string, count: number) =>
    Deno.readFileSync(make(
      join(folder.path, name),
      ...["-f", "lavfi", "-i", `color=s=${size}:r=5`, "-frames:v", String(count), "-c:v", "mjpeg"],
    ));
  const small = jpegs("small.mjpeg", "160x120", 4), large = jpegs("large.mjpeg", "6400x6000", 1);
  return folder.file("changing.mjpeg", new Uint8Array([...small, ...large, ...small]));
}

function openExtractor(folder: TempFolder): Extractor {
  const tempDir = join(folder.path, "temp");
  return new Extractor({ runner: localRunner(tools()), tempDir, world: world(), maxConcurrent: 1 });
}

/** A region of the picture: with it a clip is encoded and not copied. */
const PART = { x: 0, y: 0, width: 1, height: 0.9 };

Deno.test("a small file of very large pictures is refused with their size", async () => {
  using folder = new TempFolder();
  await using decoder = openDecoder(folder);
  const check = (path: string) =>
    rejects(
      decoder.probe(fileInput(path), NEVER),
      (error) => isRefused(error, new RegExp(`of 16000x16000 have more than the ${picturePixelsMax} pixels`)),
    );
  await check(folder.file("large.gif", tinyGif(16_000, 16_000)));
  // The container says the size, so that no decoder is asked for it.
  const stated = make(
    join(folder.path, "stated.avi"),
    ...["-f", "gif", "-i", folder.file("small.gif", tinyGif(64, 64)), "-c", "copy"],
  );
  const bytes = Deno.readFileSync(stated);
  const format = new TextDecoder("latin1").decode(bytes).indexOf("strf") + 8;
  const view = new DataView(bytes.buffer);
  view.setInt32(format + 4, 16_000, true);
  view.setInt32(format + 8, 16_000, true);
  await check(folder.file("patched.avi", bytes));
});

Deno.test("the largest pictures that are allowed, whatever their shape, pass the probe", async () => {
  using folder = new TempFolder();
  await using decoder = openDecoder(folder);
  for (const [width, height] of [[8192, 4352], [4352, 8192], [65_535, 544]] as const) {
    ok(width * height <= picturePixelsMax);
    const path = folder.file(`${width}.gif`, tinyGif(width, height));
    const { video } = await decoder.probe(fileInput(path), NEVER);
    equal(`${video!.width}x${video!.height}`, `${width}x${height}`);
  }
});

Deno.test("streams of all kinds count, and one more than are allowed is refused", async () => {
  using folder = new TempFolder();
  await using decoder = openDecoder(folder);
  const clip = makeClip(join(folder.path, "clip.mp4"), { frames: 2, size: "64x64" });
  for (const end of ["mp4", "mkv", "ts"]) {
    const many = (count: number) =>
      make(
        join(folder.path, `${count}.${end}`),
        ...["-i", clip, ...Array.from({ length: count }, () => ["-map", "0:v"]).flat(), "-c", "copy"],
      );
    const { videoStreams } = await decoder.probe(fileInput(many(streamsMax)), NEVER);
    equal(videoStreams, streamsMax, end);
    await rejects(
      decoder.probe(fileInput(many(streamsMax + 1)), NEVER),
      (error) => isRefused(error, new RegExp(`more than the ${streamsMax} streams`)),
      end,
    );
    await rejects(
      decoder.probe(fileInput(many(300)), NEVER),
      (error) => isRefused(error, /more than the/),
      end,
    );
  }
});

Deno.test("pictures that become too large on the way are left out, and the answer says so", async () => {
  using folder = new TempFolder();
  await using decoder = openDecoder(folder);
  const path = changingJpegs(folder);
  const { signals, end } = await decodeAll(decoder, path);
  equal(signals.count, 8);
  match(end.source_warning ?? "", new RegExp(`6400x6000 have more than the ${picturePixelsMax} pixels`));
});

Deno.test("tables of a short MP4 that announce eighty million frames do not fill the memory", async () => {
  using folder = new TempFolder();
  await using decoder = openDecoder(folder);
  const clip = makeClip(join(folder.path, "one.mp4"), { frames: 1, size: "64x64" });
  const path = folder.file("many.mp4", manyFramesMp4(Deno.readFileSync(clip), 80_000_000));
  await rejects(decodeAll(decoder, path), (error) => isRefused(error, /nothing in it tells the size/));
});

Deno.test("a film of 7680x4320 with 10 bits is decoded, and a clip of it made", async () => {
  using folder = new TempFolder();
  await using decoder = openDecoder(folder);
  const film = make(
    join(folder.path, "film.mp4"),
    ...["-f", "lavfi", "-i", "color=size=7680x4320:rate=24", "-frames:v", "3", "-pix_fmt", "yuv420p10le"],
    ...["-c:v", "libx264", "-preset", "ultrafast"],
  );
  const { signals, width, height } = await decodeAll(decoder, film);
  equal(`${signals.count} of ${width}x${height}`, "3 of 7680x4320");
  await using extractor = openExtractor(folder);
  const { bytes } = await extractor.clip({
    ...{ input: fileInput(film), info: await probeOnce(decoder, film, NEVER), signal: NEVER },
    ...{ startMs: 0, durationMs: 120, withAudio: false, coordinates: croppedFrame({ width, height }, PART) },
  });
  ok(bytes.length > 0);
});

Deno.test("a cover that is too large is left alone, and its film is decoded", async () => {
  using folder = new TempFolder();
  await using decoder = openDecoder(folder);
  const clip = makeClip(join(folder.path, "clip.mp4"), { frames: 5 });
  const cover = make(
    join(folder.path, "cover.png"),
    ...["-f", "lavfi", "-i", "color=size=6400x6000,format=monob", "-frames:v", "1"],
  );
  const film = make(
    join(folder.path, "film.mp4"),
    ...["-i", clip, "-i", cover, "-map", "0", "-map", "1", "-c", "copy", "-disposition:v:1", "attached_pic"],
  );
  const { signals, end } = await decodeAll(decoder, film);
  equal(signals.count, 5);
  deepEqual(end, {});
});

Deno.test("a live source goes on behind a picture that is too large", async () => {
  using folder = new TempFolder();
  const ended = Promise.withResolvers<string>();
  const sizes: string[] = [];
  await using _pulled = PulledDecoder.start({
    ...{ runner: localRunner(tools()), world: world(), input: fileInput(changingJpegs(folder)) },
    room: { maxFrame: { width: 3840, height: 2160 }, takeFor: () => true },
    onFrame: ({ pixels }) => sizes.push(`${pixels.width}x${pixels.height}`),
    onEnded: ended.resolve,
  });
  equal(await ended.promise, "it has ended");
  deepEqual(sizes, Array(8).fill("160x120"));
});
