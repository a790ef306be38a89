/** An ffmpeg that cannot do what a request needs is 503 `decoder_unusable`, in every answer, and never the
 * fault of the caller's file.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { offer } from "../../support/live/live.ts";
import { TempFolder, tools } from "../../support/media.ts";
import { startModelServer } from "../../support/models/model_server.ts";
import { type Answer, CLIPS, MODEL, newRun, startService, type TestService } from "../../support/service.ts";

const FILM = join(CLIPS, "intel_bottle.mp4");

/** A program in front of ffmpeg that fails where it is given the words. */
function ffmpegWithout(folder: TempFolder, words: string, message: string): Record<string, string> {
  const fails = `case " $* " in *" ${words} "*) echo "${message}" >&2; exit 1;; esac`;
  return { SERVICE_FFMPEG_PATH: folder.script("ffmpeg", `${fails}\nexec ${tools().ffmpeg} "$@"`) };
}

function assertUnusable({ status, json, text }: Answer, words: RegExp): void {
  assert.equal(status, 503, text);
  assert.equal(json.error.code, "decoder_unusable");
  assert.match(json.error.message, words);
}

async function ingest(test: TestService, source_uri = FILM): Promise<Answer> {
  return await test.call("POST", `/v1/runs/${await newRun(test)}/ingest`, { source_uri });
}

Deno.test("where frames cannot be decoded, ingest and reason say so, and health and system with them", async () => {
  using folder = new TempFolder();
  const without = ffmpegWithout(folder, "-c:v rawvideo", "[vost#0:0] Unknown encoder 'rawvideo'");
  await using test = await startService(without);
  const words = /it cannot decode the frames of a film \(\[vost#0:0\] Unknown encoder 'rawvideo'\)/;
  const runId = await newRun(test);
  assertUnusable(await test.call("POST", `/v1/runs/${runId}/ingest`, { source_uri: FILM }), words);
  assertUnusable(
    await test.call("POST", `/v1/runs/${runId}/reason`, { source_uri: FILM, model: MODEL }),
    words,
  );
  const { json: { events } } = await test.call("GET", `/v1/runs/${runId}/events`);
  assert.deepEqual(events.map(({ kind }: { kind: string }) => kind), ["run_created"]);

  const { json: { decoder_faults } } = await test.call("GET", "/v1/system");
  assert.deepEqual(decoder_faults, [
    { cannot: "decode the frames of a film", reason: "[vost#0:0] Unknown encoder 'rawvideo'" },
  ]);
  const { json: health } = await test.call("GET", "/v1/system/health");
  assert.equal(health.result, "faulted");
  assert.deepEqual(health.reasons.map(({ code }: { code: string }) => code), ["decoder_unusable"]);
  assert.match(health.reasons[0].text, /cannot decode the frames of a film: .*rawvideo/);
});

Deno.test("what works goes on: without an encoder of clips a film is ingested, and reason on clips is refused", async () => {
  using folder = new TempFolder();
  await using model = startModelServer();
  await using test = await startService({
    ...ffmpegWithout(folder, "-c:v libx264", "Unknown encoder 'libx264'"),
    SERVICE_VLLM_BASE_URL: model.url,
  });
  assert.equal((await ingest(test)).status, 200);
  const path = `/v1/runs/${await newRun(test)}/reason`;
  const body = { source_uri: FILM, model: MODEL, max_frames: 8 };
  assertUnusable(
    await test.call("POST", path, { ...body, video_clip_mode: true }),
    /make a clip of a film \(Unknown encoder 'libx264'\)/,
  );
  assert.equal((await test.call("POST", path, body)).status, 200);
  assert.deepEqual((await test.call("GET", "/v1/system")).json.decoder_faults, [
    { cannot: "make a clip of a film", reason: "Unknown encoder 'libx264'" },
  ]);
});

Deno.test("a film that is damaged beyond reading stays the caller's", async () => {
  using folder = new TempFolder();
  const film = folder.file("film.mp4", "nothing of a film");
  await using test = await startService({ SERVICE_INGEST_FILE_ROOTS: folder.path });
  const { status, json } = await ingest(test, film);
  assert.deepEqual([status, json.error.code], [422, "validation_error"]);
  const { json: { decoder_faults } } = await test.call("GET", "/v1/system");
  assert.deepEqual(decoder_faults, []);
});

Deno.test("a codec for which ffmpeg has no decoder, and every other one has, is no fault of the film", async () => {
  using folder = new TempFolder();
  const lists = `case " $* " in *" -decoders "*) echo ' VFS..D vp8   VP8'; exit 0;; esac`;
  const ffmpeg = folder.script("ffmpeg", `${lists}\nexec ${tools().ffmpeg} "$@"`);
  await using test = await startService({ SERVICE_FFMPEG_PATH: ffmpeg });
  assertUnusable(await ingest(test), /it has no decoder of h264/);
});

Deno.test("a container that ffmpeg was built without, and an option that it does not know, are its own faults", async () => {
  for (
    const said of [
      "Unknown input format: 'mov'",
      "[AVFilterGraph @ 0x55] No such filter: 'scale'",
      "Unrecognized option 'enc_time_base'.",
      "ffprobe: error while loading shared libraries: libavutil.so.59: cannot open shared object file",
    ]
  ) {
    using folder = new TempFolder();
    // The film of the trials is looked into.
    const fails = `case "$*" in *intel_bottle*) echo "${said}" >&2; exit 1;; esac`;
    const ffprobe = folder.script("ffprobe", `${fails}\nexec ${tools().ffprobe} "$@"`);
    await using test = await startService({ SERVICE_FFPROBE_PATH: ffprobe });
    const answer = await ingest(test);
    assertUnusable(answer, /cannot be used/);
    assert.ok(answer.json.error.message.includes(said.replace(/^\[.*?\] /, "")), answer.text);
  }
});

Deno.test("live video that cannot be decoded is refused with the offer", async () => {
  using folder = new TempFolder();
  await using test = await startService(ffmpegWithout(folder, "-f ivf", "Unknown input format: 'ivf'"));
  const { status, text } = await offer(test as Parameters<typeof offer>[0]);
  assert.equal(status, 503, text);
  assert.match(text, /it cannot decode live video \(Unknown input format: 'ivf'\)/);
  const opened = await test.call("POST", `/v1/runs/${await newRun(test)}/live`, {
    source_uri: "https://127.0.0.1:1/list.m3u8",
  });
  assertUnusable(opened, /decode live video/);
});
