/** What the service marks in a film does not depend on the version of ffmpeg: this file runs with each, and
 * all have to give these marks.
 */

import { deepEqual, ok } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { fileInput } from "../../../src/media/input.ts";
import type { Decoder } from "../../../src/media/files/decoder.ts";
import { ARTIFACT_SCORE_THRESHOLD, CUT_SCORE_THRESHOLD } from "../../../src/model/frames/signals.ts";
import { flipped, zeroed } from "../../support/damage.ts";
import { NEVER, openDecoder, packetsOf, probeOnce, TempFolder } from "../../support/media.ts";

const clip = (name: string) => fileURLToPath(new URL(`../../../fixtures/clips/${name}.mp4`, import.meta.url));
const EVERY_FRAME = { policy: "source_fps_adaptive" as const, sampleFps: 60, sourceFps: 60 };
/** Largest difference between confidences. */
const TOLERANCE = 0.005;

const CUTS = { "scene_cut 285-285": 0.984, "scene_cut 378-378": 0.987, "scene_cut 553-553": 0.985 };
const OF_BBB120 = { "black 0-11": 0.5, "gradual_transition 12-49": 0.973, ...CUTS };
/**
 * Marks of a film with damaged bytes in packets 60, 61 and 200: seen from the first one that moves on, to the
 * next key frame.
 */
const OF_DAMAGED = { ...OF_BBB120, "decode_damage 62-159": 0.98 };
/** Marks of a film with changed bits and with stretches of zeros, which the decoder conceals. */
const OF_BROKEN = [
  {
    ...{ "black 0-11": 0.5, "gradual_transition 12-49": 0.973, "scene_cut 377-377": 0.985 },
    "decode_damage 194-718": 0.98,
  },
  {
    ...{ "black 0-11": 0.5, "gradual_transition 12-49": 0.973, "scene_cut 284-284": 0.976 },
    ...{ "scene_cut 376-376": 0.986, "scene_cut 549-549": 0.983, "decode_damage 96-693": 0.98 },
  },
  {
    ...{ "black 0-11": 0.5, "gradual_transition 12-49": 0.973, "scene_cut 283-283": 0.984 },
    ...{ "scene_cut 375-375": 0.987, "scene_cut 550-550": 0.985, "decode_damage 214-715": 0.98 },
  },
];
const OF_BBB480 = {
  ...{ "black 0-10": 0.511, "gradual_transition 10-49": 0.955 },
  ...{ "scene_cut 285-285": 0.984, "scene_cut 378-378": 0.985, "scene_cut 553-553": 0.985 },
};

async function marksIn(decoder: Decoder, path: string): Promise<Record<string, number>> {
  const request = { input: fileInput(path), info: await probeOnce(decoder, path), plan: EVERY_FRAME };
  const { signals, ranges } = await decoder.decodeSignals({ ...request, maxFrames: 5_000, signal: NEVER });
  const marks: Record<string, number> = {};
  for (const { type, startFrame, endFrame, confidence } of ranges) {
    marks[`${type} ${startFrame}-${endFrame}`] = confidence;
  }
  signals.cutScore!.forEach((score, frame) => {
    if (score >= CUT_SCORE_THRESHOLD) marks[`scene_cut ${frame}-${frame}`] = score;
  });
  const damaged = [...signals.artifactScore!].flatMap((score, frame) =>
    score >= ARTIFACT_SCORE_THRESHOLD ? [frame] : []
  );
  if (damaged.length > 0) {
    const scores = damaged.map((frame) => signals.artifactScore![frame]!);
    marks[`decode_damage ${damaged[0]}-${damaged.at(-1)}`] = Math.max(...scores);
  }
  return marks;
}

Deno.test("films and damaged films have the same marks with every ffmpeg", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  const whole = Deno.readFileSync(clip("bbb120"));
  const bytes = Uint8Array.from(whole);
  const packets = packetsOf(clip("bbb120"));
  for (const { pos, size } of [60, 61, 200].map((packet) => packets[packet]!)) {
    for (let at = pos + 48; at < pos + size; at += 23) bytes[at] = bytes[at]! ^ 0x5a;
  }
  const films = [
    ...[[clip("bbb120"), OF_BBB120], [clip("bbb480"), OF_BBB480]] as const,
    [folder.file("damaged.mp4", bytes), OF_DAMAGED] as const,
    ...[flipped(1), flipped(2), zeroed].map((damage, i) =>
      [folder.file(`broken${i}.mp4`, damage(whole)), OF_BROKEN[i]!] as const
    ),
  ];
  for (const [path, expected] of films) {
    const found = await marksIn(decoder, path);
    deepEqual(Object.keys(found).sort(), Object.keys(expected).sort(), path);
    for (const [mark, confidence] of Object.entries<number>(expected)) {
      ok(Math.abs(found[mark]! - confidence) <= TOLERANCE, `${path}: ${mark}: ${found[mark]}`);
    }
  }
});
