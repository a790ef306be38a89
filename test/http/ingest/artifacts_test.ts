/** Faults of real films, from the file to the markers. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { make } from "../../support/media.ts";
import { ffmpegEncoder, needing } from "../../support/needs.ts";
import { CLIPS, MODEL, newRun, startService, type TestService } from "../../support/service.ts";

interface WireMarker {
  event_type: string;
  start_frame: number;
  end_frame: number;
}

/** 200 frames of a film without a cut, 24 a second, with `filters` over it. */
function film(path: string, filters: string, ...encoder: string[]): string {
  const shot = "trim=start_frame=384:end_frame=584,setpts=N/24/TB,setsar=1";
  const chosen = encoder.length > 0 ? encoder : ["-c:v", "libx264", "-preset", "veryfast", "-crf", "18"];
  const input = ["-i", join(CLIPS, "bbb120.mp4"), "-vf", `${shot}${filters && ","}${filters}`];
  return make(path, ...input, ...chosen, "-pix_fmt", "yuv420p", "-an");
}

/**
 * Frames that are markers of type `artifact_suspected`, and their kinds as the event of the decode has them.
 */
async function faultsOf(test: TestService, source_uri: string): Promise<string[]> {
  const runId = await newRun(test);
  const ingested = await test.call("POST", `/v1/runs/${runId}/ingest`, { source_uri });
  assert.equal(ingested.status, 200, JSON.stringify(ingested.json));
  const { status, json } = await test.call("POST", `/v1/runs/${runId}/analyze`, { model: MODEL });
  assert.equal(status, 200);
  const { events } = (await test.call("GET", `/v1/runs/${runId}/events`)).json;
  // deno-lint-ignore no-explicit-any -- events of an answer
  const { signals } = events.find(({ kind }: any) => kind === "frames_decoded").payload;
  return json.markers.filter(({ event_type }: WireMarker) => event_type === "artifact_suspected").map(
    ({ start_frame, end_frame }: WireMarker) =>
      `${signals[start_frame].artifact_kind} ${start_frame}-${end_frame}`,
  );
}

Deno.test("faults of a real film are markers with their exact frames, and the film without them has none", async () => {
  await using test = await startService();
  assert.deepEqual(await faultsOf(test, film(join(test.mediaDir, "clean.mp4"), "")), []);
  const faults = [
    `lutyuv=y=val*1.25:enable='between(n,30,45)*not(mod(n,2))'`,
    `swapuv=enable='between(n,80,91)'`,
    `drawbox=y=ih/3:h=ih:color=gray:t=fill:enable='between(n,120,127)'`,
    `noise=c0s=90:c0f=t:enable='between(n,160,163)'`,
  ].join(",");
  assert.deepEqual(await faultsOf(test, film(join(test.mediaDir, "faulty.mp4"), faults)), [
    "flicker 30-44",
    "chroma_fault 80-91",
    "decode_damage 120-127",
    "noise_burst 160-163",
  ]);
});

Deno.test("colours that turn for five frames are a marker, but not within a dissolve", async () => {
  await using test = await startService();
  const shot = (input: number, start: number, name: string) =>
    `[${input}:v]trim=start_frame=${start}:end_frame=${start + 90},setpts=N/24/TB,` +
    `scale=640:360,setsar=1,fps=24,format=yuv420p[${name}]`;
  const turned = "hue=h=24:enable='between(n,20,24)+between(n,62,66)'";
  const graph = `${shot(0, 10, "x")};${shot(1, 384, "y")};[x][y]xfade=duration=1.2:offset=2,${turned}`;
  const path = make(
    join(test.mediaDir, "dissolve.mp4"),
    ...["-i", join(CLIPS, "intel_bottle.mp4"), "-i", join(CLIPS, "bbb120.mp4"), "-filter_complex", graph],
    ...["-c:v", "libx264", "-preset", "veryfast", "-crf", "18", "-pix_fmt", "yuv420p", "-an"],
  );
  assert.deepEqual(await faultsOf(test, path), ["chroma_fault 20-24"]);
});

Deno.test({
  ...needing(
    ffmpegEncoder("libx265"),
    "a film whose second keyframe was overwritten is decode damage until the third",
  ),
  async fn() {
    await using test = await startService();
    const keyframes = "log-level=none:keyint=40:min-keyint=40:scenecut=0:open-gop=0:bframes=0";
    const whole = film(join(test.mediaDir, "whole.hevc"), "", "-c:v", "libx265", "-x265-params", keyframes);
    const bytes = Deno.readFileSync(whole);
    overwriteKeyframe(bytes, 1);
    Deno.writeFileSync(join(test.mediaDir, "damaged.hevc"), bytes);
    const damaged = make(
      join(test.mediaDir, "damaged.ts"),
      "-f",
      "hevc",
      "-r",
      "24",
      "-i",
      join(test.mediaDir, "damaged.hevc"),
      "-c",
      "copy",
    );
    const found = await faultsOf(test, damaged);
    assert.match(found.join(", "), /^decode_damage (39|40|41)-(7[6-9]|80)$/);
  },
});

/**
 * Overwrites the slices of the keyframe of this number in an HEVC byte stream, where units follow the bytes
 * 0, 0, 1.
 */
function overwriteKeyframe(bytes: Uint8Array, number: number): void {
  const starts: number[] = [];
  for (let at = 0; at + 3 < bytes.length; at++) {
    if (bytes[at] === 0 && bytes[at + 1] === 0 && bytes[at + 2] === 1) starts.push(at + 3);
  }
  const isKeyframe = (at: number) => [19, 20].includes(bytes[at]! >> 1 & 63);
  const start = starts.filter(isKeyframe)[number]!;
  const next = starts.find((at) => at > start) ?? bytes.length;
  bytes.fill(0x55, start, next - 4);
}
