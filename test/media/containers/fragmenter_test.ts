/** Fragments out of encoded units: files that ffmpeg reads without a fault, with times that rise. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { joinedBytes } from "../../../src/base/bytes.ts";
import { DecodeTimes, reorderDepthOf } from "../../../src/media/containers/fragments/decode_times.ts";
import { type Fragment, Fragmenter } from "../../../src/media/containers/fragments/fragmenter.ts";
import {
  areSameTracks,
  initSegment,
  type Tracks,
} from "../../../src/media/containers/fragments/init_segment.ts";
import type { ClipStreams } from "../../../src/media/containers/clip_file.ts";
import { recorded, recordedAsTs } from "../../support/live/copied_units.ts";
import { frameTimesMs, TempFolder } from "../../support/media.ts";

/** Parameter sets in each key frame, as cameras send them. */
const IN_BAND = ["-c:v", "libx264", "-bsf:v", "dump_extra"];

interface Made {
  readonly fragments: Fragment[];
  readonly tracks: Tracks[];
  readonly picture: Uint8Array;
}

function fragmentsOf(
  { units, streams: [video, sound] }: ReturnType<typeof recorded>,
  { codec, soundCodec, fromMs = 0 }: Pick<ClipStreams, "codec"> & {
    readonly soundCodec: "aac" | "opus";
    readonly fromMs?: number;
  },
): Made {
  const made = {
    fragments: [] as Fragment[],
    tracks: [] as Tracks[],
    picture: new Uint8Array() as Uint8Array,
  };
  const fragmenter = new Fragmenter({
    streams: { codec, codecData: video!.codecData, sound: { ...sound!, codec: soundCodec } },
    reorderDepth: reorderDepthOf(units.filter(({ isVideo }) => isVideo).map(({ ptsMs }) => ptsMs)),
    onFragment: (fragment, tracks, picture) => {
      made.fragments.push(fragment);
      made.tracks.push(tracks);
      if (made.fragments.length === 1) made.picture = picture;
    },
  });
  for (const unit of units) fragmenter.push({ ...unit, ptsMs: unit.ptsMs + fromMs });
  fragmenter.finish();
  return made;
}

function told(program: string, ...args: string[]): string {
  const { stdout, stderr } = new Deno.Command(program, { args }).outputSync();
  assert.equal(new TextDecoder().decode(stderr), "");
  return new TextDecoder().decode(stdout).trim();
}

Deno.test("H.264 and H.265 with their sound become short fragments, each with every picture at its time", async () => {
  using folder = new TempFolder();
  const path = join(folder.path, "view.mp4");
  const check = async (made: Made, codecs: RegExp, startMs: number) => {
    const init = await initSegment(made.tracks[0]!, made.picture);
    assert.match(init.codecs, codecs);
    assert.ok(made.tracks.every((tracks) => tracks === made.tracks[0]), "nothing has changed");
    // Key frames at 0, 400 and 800 ms, and a fragment is no longer than 200 ms.
    assert.deepEqual(made.fragments.map(({ isKeyframe }) => isKeyframe), [true, false, true, false, true]);
    Deno.writeFileSync(path, joinedBytes(init.bytes, ...made.fragments.map(({ bytes }) => bytes)));
    const times = frameTimesMs(path, 0);
    assert.deepEqual(
      times.map((ms) => Math.round(ms - times[0]!)),
      Array.from({ length: 25 }, (_, frame) => frame * 40),
    );
    const packets = told(
      ...[
        "ffprobe",
        "-v",
        "error",
        "-select_streams",
        "v",
        "-show_entries",
        "packet=pts_time,dts_time,flags",
      ] as const,
      ...["-of", "csv=p=0", path],
    ).split("\n").map((line) => line.split(","));
    assert.match(packets[0]![2]!, /^K/);
    assert.equal(Math.round(Number(packets[0]![0]) * 1000), startMs);
    const decoded = packets.map(([, dts]) => Number(dts));
    assert.ok(decoded.every((dts, at) => at === 0 || dts > decoded[at - 1]!), decoded.join(" "));
    told("ffmpeg", "-v", "error", "-i", path, "-f", "null", "-");
    const sounds = told(
      ...[
        "ffprobe",
        "-v",
        "error",
        "-select_streams",
        "a",
        "-show_entries",
        "packet=pts_time",
        "-of",
        "csv=p=0",
      ] as const,
      path,
    ).split("\n").map(Number);
    assert.ok(sounds.length > 40 && sounds.every((at, index) => index === 0 || at > sounds[index - 1]!));
  };
  const h264 = ["-c:v", "libx264", "-preset", "ultrafast", "-sc_threshold", "0", "-bf", "2"];
  // With global headers the packets have no parameter sets of their own.
  const apart = recorded(folder, ...h264, "-flags:v", "+global_header", "-c:a", "libopus");
  const fromMs = 4 * 3_600_000;
  await check(
    fragmentsOf(apart, { codec: "h264", soundCodec: "opus", fromMs }),
    /^avc1\.[0-9a-f]{6}, opus$/,
    fromMs + apart.units.find(({ isVideo }) => isVideo)!.ptsMs,
  );
  const h265 = [
    "-c:v",
    "libx265",
    "-preset",
    "ultrafast",
    "-x265-params",
    "log-level=none:scenecut=0:open-gop=0",
  ];
  const streamed = recordedAsTs(folder, ...h264);
  assert.deepEqual([...streamed.units.find(({ isVideo }) => !isVideo)!.data.subarray(0, 2)], [0xff, 0xf1]);
  await check(
    fragmentsOf(streamed, { codec: "h264", soundCodec: "aac" }),
    /^avc1\.[0-9a-f]{6}, mp4a\.40\.2$/,
    streamed.units.find(({ isVideo }) => isVideo)!.ptsMs,
  );
  // A source that comes back after a gap as it was goes on with the same tracks.
  const [first, again] = [1, 2].map(() =>
    fragmentsOf(streamed, { codec: "h264", soundCodec: "aac" }).tracks[0]!
  );
  assert.ok(areSameTracks(first!, again!) && !areSameTracks(first!, { ...again!, sound: null }));
  const other = recorded(folder, ...h265, "-c:a", "aac");
  await check(
    fragmentsOf(other, { codec: "h265", soundCodec: "aac" }),
    /^hvc1\.1\.6\.L\d+\.[0-9A-F.]+, mp4a\.40\.2$/,
    other.units.find(({ isVideo }) => isVideo)!.ptsMs,
  );
  // Sound that never comes is not announced, as players would wait for it.
  const silent = { ...apart, units: apart.units.filter(({ isVideo }) => isVideo) };
  const { tracks } = fragmentsOf(silent, { codec: "h264", soundCodec: "opus" });
  assert.deepEqual(tracks.map(({ sound }) => sound), tracks.map(() => null));
});

Deno.test("other parameter sets are other tracks, and a key frame without any has those of before", () => {
  using folder = new TempFolder();
  const [first, second] = ["ultrafast", "veryfast"].map((preset) =>
    recorded(folder, ...IN_BAND, "-preset", preset, "-sc_threshold", "0", "-bf", "0", "-c:a", "libopus")
  );
  const later = second!.units.map((unit) => ({ ...unit, ptsMs: unit.ptsMs + 1_000 }));
  const { tracks, fragments } = fragmentsOf({ ...first!, units: [...first!.units, ...later] }, {
    ...{ codec: "h264", soundCodec: "opus" } as const,
  });
  const other = tracks.findIndex((one) => one !== tracks[0]);
  assert.ok(other > 0 && fragments[other]!.isKeyframe);
  assert.notEqual(tracks[other]!.videoCodec, tracks[0]!.videoCodec);
});

Deno.test("decode times rise and are not later than the pictures are shown, also where the depth was not known", () => {
  const shown = [10, 13, 11, 12, 16, 14, 15, 19, 17, 18].map((frame) => frame * 3_000);
  const timesOf = (depth: number) => {
    const times = new DecodeTimes(depth);
    return shown.map((time) => times.next(time));
  };
  const known = timesOf(1);
  assert.ok(known.every((time, at) => time <= shown[at]! && (at === 0 || time > known[at - 1]!)), `${known}`);
  assert.deepEqual(known.slice(1), [10, 11, 12, 13, 14, 15, 16, 17, 18].map((frame) => frame * 3_000));
  assert.equal(reorderDepthOf(shown), 1);
  const found = timesOf(0);
  assert.ok(found.every((time, at) => at === 0 || time > found[at - 1]!), `${found}`);
  assert.deepEqual(found.slice(-3), known.slice(-3));
});
