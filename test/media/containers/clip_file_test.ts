/** Evidence clips out of encoded units: files that play, and a ring that stays within its bound. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { videoCodecName } from "../../../src/media/containers/parameter_sets.ts";
import { clipFile, type ClipStreams } from "../../../src/media/containers/clip_file.ts";
import { UnitRing } from "../../../src/media/live/unit_ring.ts";
import { recorded, recordedAsTs } from "../../support/live/copied_units.ts";
import { playedFile } from "../../support/live/played_file.ts";
import { frameTimesMs, TempFolder } from "../../support/media.ts";

function codecsOf(path: string): string[] {
  const args = ["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", path];
  const { stdout } = new Deno.Command("ffprobe", { args }).outputSync();
  return new TextDecoder().decode(stdout).trim().split("\n");
}

Deno.test("H.264 and H.265 become clips with their sound, also where the parameter sets come beside the stream", async () => {
  using folder = new TempFolder();
  const check = async (
    { units, streams: [video, sound] }: ReturnType<typeof recorded>,
    streams: Pick<ClipStreams, "codec"> & { readonly sound: "aac" | "opus" },
    expected: RegExp,
  ) => {
    const file = await clipFile(units, {
      codec: streams.codec,
      codecData: video!.codecData,
      sound: { codec: streams.sound, ...sound! },
    });
    assert.match(file!.codec, expected);
    const path = join(folder.path, "clip.mp4");
    Deno.writeFileSync(path, file!.mp4);
    const names = { h264: "h264", h265: "hevc" };
    assert.deepEqual(codecsOf(path), [names[streams.codec], streams.sound]);
    const times = frameTimesMs(path, 0);
    assert.equal(times.length, 25);
    assert.deepEqual(times, times.map((_, frame) => frame * 40));
  };
  const h264 = ["-c:v", "libx264", "-preset", "ultrafast", "-bf", "2"];
  // With global headers the packets have no parameter sets of their own.
  await check(
    recorded(folder, ...h264, "-flags:v", "+global_header", "-c:a", "libopus"),
    { codec: "h264", sound: "opus" },
    /^avc1\.[0-9a-f]{6}, opus$/,
  );
  const h265 = ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none"];
  await check(
    recorded(folder, ...h265, "-c:a", "aac"),
    { codec: "h265", sound: "aac" },
    /^hvc1\.1\.6\.L\d+\.[0-9A-F.]+, mp4a\.40\.2$/,
  );
});

Deno.test("of AAC with a header before each frame the frames go into the clip, and what has none is left out", async () => {
  using folder = new TempFolder();
  const { units, streams } = recordedAsTs(folder, "-c:v", "libx264", "-preset", "ultrafast", "-bf", "0");
  const [video, sound] = streams;
  const broken = units.map((unit, at) =>
    unit.isVideo || at % 9 !== 0 ? unit : { ...unit, data: new Uint8Array(40).fill(0x21) }
  );
  const parts = { codec: "h264", codecData: video!.codecData, sound: { codec: "aac", ...sound! } } as const;
  const paths = await Promise.all([units, broken].map(async (all, at) => {
    const file = await clipFile(all, parts);
    assert.match(file!.codec, /^avc1\.[0-9a-f]{6}, mp4a\.40\.2$/);
    return folder.file(`${at}.mp4`, file!.mp4);
  }));
  const [whole, part] = paths.map(playedFile);
  assert.deepEqual([whole!.errors, part!.errors, whole!.codecs], ["", "", ["h264", "aac"]]);
  assert.ok(Math.abs(whole!.soundMs - 1_000) < 60, `${whole!.soundMs} ms of sound`);
  assert.ok(part!.soundMs > 500 && part!.soundMs < whole!.soundMs, `${part!.soundMs} ms of sound`);
});

Deno.test("what is no picture of the codec makes no clip", async () => {
  const unit = { isVideo: true, isKeyframe: true, ptsMs: 0, size: { width: 64, height: 48 } };
  const streams = { codec: "h264", codecData: new Uint8Array(), sound: null } as const;
  assert.equal(await clipFile([], streams), null);
  assert.equal(await clipFile([{ ...unit, data: new Uint8Array(64) }], streams), null);
  assert.equal(videoCodecName("h265", Uint8Array.of(0, 0, 1, 0x42, 1)), null);
});

Deno.test("a ring of units begins with a key frame, keeps what is wanted and never more bytes than it may", () => {
  const ring = new UnitRing({ bytesMax: 1_000, keepMs: 200 });
  const push = (ptsMs: number, isKeyframe: boolean, bytes = 10, isVideo = true) =>
    ring.push({ isVideo, isKeyframe, ptsMs, data: new Uint8Array(bytes), size: null });
  const times = (fromMs: number) => ring.from(fromMs).map(({ ptsMs }) => ptsMs);
  push(0, false);
  assert.deepEqual(times(0), [], "nothing before the first key frame");
  for (let ms = 40; ms <= 1_000; ms += 40) push(ms, ms % 200 === 0);
  // 1000 is a key frame, 200 ms before it another: older ones are gone.
  assert.equal(times(0)[0], 800);
  assert.deepEqual(times(1_010), [1_000]);
  push(990, true, 10, false);
  push(1_010, true, 10, false);
  assert.deepEqual(times(1_000), [1_000, 1_010], "sound from before the picture is left out");
  ring.hold(800);
  for (let ms = 1_040; ms <= 2_000; ms += 40) push(ms, ms % 200 === 0);
  assert.equal(times(800)[0], 800);
  ring.release();
  push(2_040, false, 900);
  assert.ok(ring.bytes <= 1_000, `${ring.bytes} bytes`);
  push(2_080, true, 1_001);
  assert.deepEqual([ring.bytes, times(0)], [0, []], "one unit that is too large");
});
