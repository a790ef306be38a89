/** Live sources whose pictures become larger and smaller, in the stream or behind a gap: everything that is
 * seen of them has the new size.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { joinedBytes } from "../../../src/base/bytes.ts";
import { reservationOf } from "../../../src/flow/live/capacity.ts";
import type { Extent } from "../../../src/model/frames/coordinates.ts";
import { type CameraTrack, recordTrack } from "../../support/live/camera_tracks.ts";
import { hlsSource, watchHls } from "../../support/live/hls_cameras.ts";
import { serveHls } from "../../support/live/hls_server.ts";
import { metric } from "../../support/live/live.ts";
import { LivePublisher, PublisherMedia, testVideo } from "../../support/live/live_publisher.ts";
import { playedFile } from "../../support/live/played_file.ts";
import { serveRtsp } from "../../support/live/rtsp_server.ts";
import { LONG_TEST } from "../../support/long_tests.ts";
import { make, TempFolder } from "../../support/media.ts";
import { eventsOf, kindsOf, payloads, startReason, type StoredEvent } from "../../support/models/reason.ts";
import { KEY_A, type TestService } from "../../support/service.ts";
import { until } from "../../support/until.ts";

const SMALL: Extent = { width: 160, height: 120 };
const LARGE: Extent = { width: 640, height: 480 };
const FULL_HD: Extent = { width: 1920, height: 1080 };
/** The lower right part of the picture. */
const ZONE = { x: 0.5, y: 0.25, width: 0.5, height: 0.75 };
const RATE = 10;
const PART_SECONDS = 3;

function textOf({ width, height }: Extent): string {
  return `${width}x${height}`;
}

function zoneOf({ width, height }: Extent) {
  return { x: width * ZONE.x, y: height * ZONE.y, width: width * ZONE.width, height: height * ZONE.height };
}

/** Small pictures stand still, larger ones move, and the largest ones are noise of 2 MB a second. */
function pictures(size: Extent): string[] {
  const source = size === SMALL ? "smptebars" : "testsrc2";
  const noise = size === FULL_HD
    ? ["-vf", "noise=alls=40:allf=t", "-b:v", "16M", "-maxrate", "16M", "-bufsize", "8M"]
    : [];
  return ["-f", "lavfi", "-i", `${source}=s=${textOf(size)}:r=${RATE}`, ...noise];
}

/** H.264 of so many seconds of each size, one after the other. */
function annexB(folder: TempFolder, sizes: readonly Extent[], seconds: number): string {
  const parts = sizes.map((size, at) =>
    Deno.readFileSync(make(
      join(folder.path, `${at}-${textOf(size)}.h264`),
      ...pictures(size),
      ...["-frames:v", String(RATE * seconds)],
      ...["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-bf", "0", "-g", String(RATE)],
    ))
  );
  return folder.file(`${sizes.map(textOf).join("-")}.h264`, joinedBytes(...parts));
}

function trackOf(folder: TempFolder, sizes: readonly Extent[], seconds = PART_SECONDS): CameraTrack {
  const input = ["-r", String(RATE), "-f", "h264", "-i", annexB(folder, sizes, seconds)];
  return recordTrack([...input, "-c:v", "copy"], { seconds: seconds * sizes.length });
}

const RECORDED =
  `recording = { hours = 1 }\nrecord = { pre_roll_ms = 500, post_roll_ms = 300, on = ["keyframe"] }\n`;
const WATCHED = `[[sources]]\nname = "dock"\nprincipals = ["*"]\nlive = true\n`;
const ZONED =
  `restricted_zone = { policy_id = "dock", policy_version = 1, device_id = "cam-1", enter_motion_score = 0.02, ` +
  `exit_motion_score = 0.01, enter_after_frames = 2, exit_after_frames = 3, ` +
  `region = { x = ${ZONE.x}, y = ${ZONE.y}, width = ${ZONE.width}, height = ${ZONE.height} } }\n`;

/** A service that watches the camera on this port, and short ways to what is seen of it. */
async function watch(
  port: number,
  { more = "", env = {} }: { more?: string; env?: Record<string, string> } = {},
) {
  const live = await startReason({ answer: () => "A picture." }, {
    SERVICE_ALLOW_UNENCRYPTED_RTSP: "true",
    ...env,
  }, {
    outbound: { resolve: () => Promise.resolve(["93.184.216.34"]), reroute: () => "127.0.0.1" },
    sourcesFile: `${WATCHED}uri = "rtsp://camera.test:${port}/1"\n${more}`,
  });
  return { live, ...viewOf(live.test, "dock"), [Symbol.asyncDispose]: () => live[Symbol.asyncDispose]() };
}

/** The live view of a source, or of a run. */
function viewOf(test: TestService, name: string) {
  const get = (path: string) => fetch(`${test.url}${path}`, { headers: { "x-api-key": KEY_A } });
  const runId = async (): Promise<string | null> => {
    if (name.startsWith("run-")) return name;
    const { sources } = (await test.call("GET", "/v1/sources")).json;
    return sources.find((source: { name: string }) => source.name === name).run_id;
  };
  const bytesOf = async (path: string) => {
    const answer = await get(path);
    const bytes = new Uint8Array(await answer.arrayBuffer());
    return answer.status === 200 ? bytes : null;
  };
  return {
    runId,
    bytesOf,
    async snapshot(): Promise<string | null> {
      const jpeg = await bytesOf(`/v1/runs/${await runId()}/snapshot.jpg`);
      return jpeg && textOf(jpegSize(jpeg));
    },
    // deno-lint-ignore no-explicit-any -- as the answers of tests are
    async look(): Promise<any> {
      return (await test.call("GET", `/v1/runs/${await runId()}/live`)).json;
    },
    async events(): Promise<StoredEvent[]> {
      const id = await runId();
      return id === null ? [] : await eventsOf(test, id);
    },
    reserved: () => metric(test, "service_media_capacity_memory_reserved_bytes"),
  };
}

/** The size of a JPEG by its frame header. */
function jpegSize(jpeg: Uint8Array): Extent {
  const view = new DataView(jpeg.buffer, jpeg.byteOffset, jpeg.length);
  for (let at = 2; at + 9 < jpeg.length; at += 2 + view.getUint16(at + 2)) {
    const marker = view.getUint16(at);
    if (marker === 0xffc0) return { height: view.getUint16(at + 5), width: view.getUint16(at + 7) };
  }
  throw new Error("a JPEG without a frame header");
}

/**
 * The stored pictures fit their coordinates, which are the zone in the pictures of their size; the sizes that
 * there are.
 */
async function storedSizes({ events, runId, bytesOf }: ReturnType<typeof viewOf>, regionOf = zoneOf) {
  const sizes = new Set<string>();
  for (const { image_sha256, coordinates } of payloads(await events(), "keyframe_stored")) {
    const { source_extent, resolved_region, analysis_extent } = coordinates;
    const jpeg = await bytesOf(`/v1/runs/${await runId()}/keyframes/${image_sha256}`);
    assert.deepEqual(jpegSize(jpeg!), analysis_extent);
    assert.deepEqual(resolved_region, regionOf(source_extent));
    assert.deepEqual(analysis_extent, { width: resolved_region.width, height: resolved_region.height });
    sizes.add(textOf(source_extent));
  }
  return [...sizes].sort();
}

const whole = ({ width, height }: Extent) => ({ x: 0, y: 0, width, height });
const bytesFor = (picture: Extent) =>
  reservationOf(picture, {
    ...{ prompt: null, tokensPerSecond: 0, crop: null, clip: null, zone: null, trigger: null },
    ...{ localAudio: null, record: null, enrich: null },
  }).memoryBytes;

for (
  const [title, sizes] of [["larger and smaller", [SMALL, LARGE]], ["smaller and larger", [
    LARGE,
    SMALL,
  ]]] as const
) {
  Deno.test({
    name:
      `a camera whose pictures become ${title} in the stream goes on, each with its size and the same zone`,
    ...LONG_TEST,
    async fn() {
      using folder = new TempFolder();
      await using camera = serveRtsp(new Uint8Array(), { tracks: [trackOf(folder, sizes)] });
      await using watched = await watch(camera.port, { more: ZONED });
      for (const size of [...sizes, ...sizes]) {
        await until(`${textOf(size)} is seen`, async () => await watched.snapshot() === textOf(zoneOf(size)));
      }
      for (const size of sizes) {
        await until(`${textOf(size)} is told`, async () => {
          const { picture_size } = await watched.look();
          return picture_size.scaled_from === null && picture_size.width === size.width;
        });
      }
      await until("pictures of both are stored", async () => (await storedSizes(watched)).length === 2);
      await until("activity enters the zone with each large part", async () => {
        const entered = payloads(await watched.events(), "restricted_zone_activity_entered");
        return entered.length > 1;
      });
      assert.ok(!kindsOf(await watched.events()).includes("source_gap"));
    },
  });
}

Deno.test({
  name:
    "a camera that comes back with pictures of another size is seen with it, and memory is reserved for it and given back",
  ...LONG_TEST,
  async fn() {
    using folder = new TempFolder();
    const tracks = new Map([SMALL, LARGE].map((size) => [size, trackOf(folder, [size])]));
    const serve = (size: Extent, port?: number) =>
      serveRtsp(new Uint8Array(), { tracks: [tracks.get(size)!], ...(port && { port }) });
    let camera = serve(SMALL);
    const { port } = camera;
    try {
      await using watched = await watch(port);
      for (const [at, size] of [SMALL, LARGE, SMALL].entries()) {
        if (at > 0) {
          await camera[Symbol.asyncDispose]();
          camera = serve(size, port);
        }
        await until(`${textOf(size)} is seen`, async () => await watched.snapshot() === textOf(size));
        assert.equal(await watched.reserved(), bytesFor(size));
        await until(`${textOf(size)} is stored`, async () => {
          const stored = payloads(await watched.events(), "keyframe_stored").at(-1);
          return stored?.coordinates.source_extent.width === size.width;
        });
      }
      assert.deepEqual(await storedSizes(watched, whole), [SMALL, LARGE].map(textOf));
      const kinds = kindsOf(await watched.events());
      assert.equal(kinds.filter((kind) => kind === "source_resumed").length, 2);
    } finally {
      await camera[Symbol.asyncDispose]();
    }
  },
});

Deno.test({
  name: "clips and recordings of pictures that have become larger play whole",
  ...LONG_TEST,
  async fn() {
    using folder = new TempFolder();
    await using camera = serveRtsp(new Uint8Array(), { tracks: [trackOf(folder, [SMALL, FULL_HD])] });
    await using watched = await watch(camera.port, { more: RECORDED });
    const played = async (path: string, name: string) => {
      const { sizes, pictures, errors } = playedFile(
        folder.file(`${name}.mp4`, (await watched.bytesOf(path))!),
      );
      assert.deepEqual([errors, sizes.length], ["", 1]);
      return { size: sizes[0]!, pictures };
    };
    const ofClips = new Set<string>();
    const seen = new Set<string>();
    await until("clips of both", async () => {
      for (const { sha256 } of payloads(await watched.events(), "clip_stored")) {
        if (seen.has(sha256)) continue;
        seen.add(sha256);
        ofClips.add((await played(`/v1/runs/${await watched.runId()}/media/${sha256}`, sha256)).size);
      }
      return ofClips.size === 2;
    });
    // deno-lint-ignore no-explicit-any -- as the answers of tests are
    let segments: any[] = [];
    await until("segments of both", async () => {
      segments = (await watched.live.test.call("GET", "/v1/sources/dock/recordings")).json.segments;
      return segments.length >= 3;
    });
    for (const [at, { segment_id }] of segments.entries()) {
      const { size, pictures } = await played(`/v1/sources/dock/recordings/${segment_id}`, segment_id);
      assert.equal(size, textOf(at % 2 === 0 ? SMALL : FULL_HD), `segment ${at}`);
      if (at > 0) assert.equal(pictures, RATE * PART_SECONDS, `segment ${at}`);
    }
  },
});

Deno.test({
  name:
    "where there is no memory for larger pictures they are scaled down, which the session tells, and it goes on",
  ...LONG_TEST,
  async fn() {
    using folder = new TempFolder();
    await using camera = serveRtsp(new Uint8Array(), { tracks: [trackOf(folder, [SMALL, FULL_HD])] });
    await using watched = await watch(camera.port, {
      more: RECORDED,
      env: { SERVICE_MEDIA_MEMORY_BUDGET_BYTES: String(2 ** 28) },
    });
    await until("it is seen", async () => await watched.snapshot() === textOf(SMALL));
    await until("it is scaled down", async () => {
      const { picture_size } = await watched.look();
      return picture_size?.scaled_from?.width === FULL_HD.width;
    });
    const { picture_size: { width, height } } = await watched.look();
    assert.ok(width * height <= SMALL.width * SMALL.height && width > height);
    await until("a snapshot of it", async () => await watched.snapshot() === textOf({ width, height }));
    await until("it is small again", async () => await watched.snapshot() === textOf(SMALL));
    const gaps = payloads(await watched.events(), "source_gap");
    assert.deepEqual(gaps.map(({ reason }) => reason), ["there is no memory for its pictures of 1920x1080"]);
    assert.ok(await watched.reserved() <= 2 ** 28);
  },
});

Deno.test({
  name: "an HLS camera whose pictures become larger is seen with their size",
  ...LONG_TEST,
  async fn() {
    using folder = new TempFolder();
    const films = [SMALL, LARGE].map((size) =>
      make(
        join(folder.path, `${textOf(size)}.ts`),
        ...["-f", "lavfi", "-i", `testsrc2=s=${textOf(size)}:r=${RATE}:d=8`, "-pix_fmt", "yuv420p"],
        ...["-c:v", "libx264", "-preset", "ultrafast", "-g", String(RATE)],
      )
    );
    await using server = serveHls(films, { format: "ts" });
    await using live = await watchHls([hlsSource("dock", server.port)]);
    const watched = viewOf(live.test, "dock");
    for (const size of [SMALL, LARGE]) {
      await until(`${textOf(size)} is seen`, async () => await watched.snapshot() === textOf(size));
    }
    await until("both are stored", async () => (await storedSizes(watched, whole)).length === 2);
  },
});

Deno.test({
  name: "a camera of JPEGs that become larger and smaller is seen with their size",
  ...LONG_TEST,
  async fn() {
    using folder = new TempFolder();
    const jpegs = [SMALL, LARGE].map((size) =>
      Deno.readFileSync(
        make(join(folder.path, `${textOf(size)}.jpg`), ...[
          ...["-f", "lavfi", "-i", `testsrc2=s=${textOf(size)}`, "-frames:v", "1"],
        ]),
      )
    );
    let shown = 0;
    const head = new TextEncoder().encode("--frame\r\nContent-Type: image/jpeg\r\n\r\n");
    const ended = Promise.withResolvers<void>();
    await using camera = {
      server: Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => {
        const body = new ReadableStream<Uint8Array>({
          pull: async (controller) => {
            const due = Promise.withResolvers<void>();
            const timer = setTimeout(due.resolve, 50);
            await Promise.race([ended.promise, due.promise]);
            clearTimeout(timer);
            controller.enqueue(joinedBytes(head, jpegs[shown]!));
          },
        });
        return new Response(body, {
          headers: { "content-type": "multipart/x-mixed-replace; boundary=frame" },
        });
      }),
      [Symbol.asyncDispose]() {
        ended.resolve();
        return this.server.shutdown();
      },
    };
    await using live = await startReason({ answer: () => "A picture." }, {
      SERVICE_ALLOW_INSECURE_HTTP: "true",
      SERVICE_MEDIA_ALLOWED_NETWORKS: "127.0.0.0/8",
    }, { sourcesFile: `${WATCHED}uri = "http://127.0.0.1:${camera.server.addr.port}/video.cgi"\n` });
    const watched = viewOf(live.test, "dock");
    for (const [next, size] of [SMALL, LARGE, SMALL].entries()) {
      shown = next % 2;
      await until(`${textOf(size)} is seen`, async () => await watched.snapshot() === textOf(size));
    }
  },
});

Deno.test({
  name: "a publisher whose pictures change their size goes on, also with larger ones than its offer says",
  ...LONG_TEST,
  async fn() {
    using media = new PublisherMedia();
    // Of 1920x1080, which is taken for an offer that says nothing, it has more pixels.
    const sizes = ["320x180", "2048x1152", "640x360", "2048x1152"];
    const files = sizes.map((size, at) => media.vp8(`${at}`, testVideo(size, 2, 5), 10));
    await using live = await startReason({ answer: () => "A picture." }, { SERVICE_WEBRTC_STUN_SERVERS: "" });
    await using publishing = LivePublisher.start({
      url: live.test.url,
      args: ["--fps", "5", "--repeat", "20", ...files.flatMap((file) => ["--video", file])],
    });
    const watched = viewOf(live.test, await publishing.runId());
    for (const size of sizes) {
      await until(`${size} is seen`, async () => await watched.snapshot() === size);
    }
    for (const size of sizes) {
      await until(`${size} is told`, async () => {
        const { picture_size: { scaled_from, width } } = await watched.look();
        return scaled_from === null && size.startsWith(`${width}x`);
      });
    }
    assert.ok(!kindsOf(await watched.events()).includes("decoder_restarted"));
  },
});
