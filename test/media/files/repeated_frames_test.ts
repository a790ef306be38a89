/** A film that is sent at a higher rate than its own, with frames that are shown twice or thrice, gives the
 * marks of the film itself.
 */

import assert from "node:assert/strict";
import type { Decoder } from "../../../src/media/files/decoder.ts";
import { fileInput } from "../../../src/media/input.ts";
import { ARTIFACT_SCORE_THRESHOLD, CUT_SCORE_THRESHOLD } from "../../../src/model/frames/signals.ts";
import { LONG_TEST } from "../../support/long_tests.ts";
import { make, NEVER, openDecoder, probeOnce, TempFolder } from "../../support/media.ts";

const CLIP = "fixtures/clips/bbb120.mp4";
const SHOT = 72;

/**
 * Black, a fade in, a shot, a dissolve, a shot, a cut, a shot that stands still in between, a fade out, and
 * black, at 25 frames a second.
 */
function film(path: string): void {
  const shot = (first: number) =>
    `[0:v]trim=start_frame=${first}:end_frame=${first + SHOT},setpts=N/25/TB,fps=25`;
  const filters = [
    `${shot(20)},tpad=start=12:color=black,fade=t=in:s=12:n=26[a]`,
    `${shot(440)}[b]`,
    `${shot(600)},loop=loop=25:size=1:start=30,fade=t=out:s=70:n=26,tpad=stop=14:color=black[c]`,
    "[a][b]xfade=transition=fade:duration=0.8:offset=2.4[ab]",
    "[ab][c]concat=n=2",
  ];
  const lossless = ["-c:v", "libx264", "-qp", "0", "-preset", "ultrafast", "-pix_fmt", "yuv420p"];
  make(path, "-i", CLIP, "-filter_complex", filters.join(";"), ...lossless);
}

interface MarkAt {
  readonly type: string;
  readonly startMs: number;
  readonly endMs: number;
}

async function marksOf(decoder: Decoder, path: string): Promise<MarkAt[]> {
  const info = await probeOnce(decoder, path);
  const { signals, ranges } = await decoder.decodeSignals({
    ...{ input: fileInput(path), info, maxFrames: 10_000, signal: NEVER },
    plan: { policy: "source_fps_adaptive", sampleFps: 60, sourceFps: 60 },
  });
  const rows = (type: string, scores: Float32Array | undefined, least: number) =>
    Array.from(scores ?? []).flatMap((score, row) =>
      score >= least ? [{ type, startMs: signals.ptsMs[row]!, endMs: signals.ptsMs[row]! }] : []
    );
  return [
    ...rows("scene_cut", signals.cutScore, CUT_SCORE_THRESHOLD),
    ...rows("artifact_suspected", signals.artifactScore, ARTIFACT_SCORE_THRESHOLD),
    ...ranges.map(({ type, startPtsMs, endPtsMs }) => ({ type, startMs: startPtsMs, endMs: endPtsMs })),
  ].sort((one, other) => one.startMs - other.startMs || (one.type < other.type ? -1 : 1));
}

/** The film's own rate, and how often a second its frames are sent. */
const RATES: readonly (readonly [own: readonly [number, number], sent: string])[] = [
  [[25, 1], "50"],
  [[30_000, 1001], "60000/1001"],
  [[24_000, 1001], "60000/1001"],
  [[25, 2], "25"],
  [[15, 1], "60"],
];

for (const [[frames, seconds], sent] of RATES) {
  const own = `${frames}/${seconds}`;
  Deno.test(
    `a film of ${own} frames a second has the same marks where it is sent with ${sent}`,
    LONG_TEST,
    async () => {
      using folder = new TempFolder();
      const [lossless, plain, repeated] = ["lossless.mkv", "plain.mp4", "repeated.mp4"].map((name) =>
        `${folder.path}/${name}`
      );
      film(lossless!);
      const retimed = `settb=1/${frames},setpts=N*${seconds},fps=${own}`;
      const encoding = ["-c:v", "libx264", "-crf", "10", "-preset", "veryfast"];
      make(plain!, "-i", lossless!, "-vf", retimed, ...encoding);
      make(repeated!, "-i", lossless!, "-vf", `${retimed},fps=${sent}`, ...encoding);
      await using decoder = openDecoder(folder);
      const expected = await marksOf(decoder, plain!), found = await marksOf(decoder, repeated!);
      assert.deepEqual(found.map(({ type }) => type), expected.map(({ type }) => type));
      const frameMs = 1000 * seconds / frames + 1;
      found.forEach(({ type, startMs, endMs }, at) => {
        const other = expected[at]!;
        assert.ok(
          Math.abs(startMs - other.startMs) <= frameMs,
          `${type} starts at ${startMs}, not ${other.startMs}`,
        );
        assert.ok(Math.abs(endMs - other.endMs) <= frameMs, `${type} ends at ${endMs}, not ${other.endMs}`);
      });
    },
  );
}
