/** The generator of edited videos: the same seed gives the same frames, and what its truth says holds for
 * them.
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Clip, readClips } from "../../lab/edits/files/clips.ts";
import { type Codec, encodingOf } from "../../lab/edits/files/codecs.ts";
import type { FilmTruth } from "../../lab/edits/film.ts";
import { type Kind, KINDS } from "../../lab/edits/kinds/table.ts";
import { makeVideo, shoot } from "../../lab/edits/make.ts";
import { groupOf } from "../../lab/edits/files/origins.ts";
import { difference, Picture } from "../../lab/edits/pictures/picture.ts";
import { planVideo, planVideos, type VideoPlan } from "../../lab/edits/plan.ts";
import { Random } from "../../lab/edits/random.ts";
import { remap } from "../../lab/edits/remap.ts";
import type { FrameRange, Truth } from "../../lab/scores/truth.ts";
import { TemporaryFolder } from "../support/folders.ts";
import { ffmpegEncoder, needing } from "../support/needs.ts";

const SEED = 11;
const SIZE = { width: 160, height: 90 };
const CLIPS = fileURLToPath(new URL("../../fixtures/clips/", import.meta.url));
/** Drawn a second time as well, to compare: each uses other parts of the generator. */
const DRAWN_TWICE = ["hard", "wipe", "flash", "shake", "old_film", "slides", "blocks"];

/** What a video of a kind must have something of; cuts unless it is named here. */
const HOLDS: Readonly<Record<string, readonly (keyof FilmTruth)[]>> = {
  ...{ dissolve: ["gradual"], fade: ["gradual"], wipe: ["gradual"], slide: ["gradual"] },
  ...{ flash: ["flashes"], strobe: ["flashes"], explosion: ["flashes"], lamp: ["lightsteps"] },
  ...{ freeze: ["freezes"], black: ["black"], repeat: ["loops"], surveillance: ["jumpcuts"] },
  ...{ shake: ["shakes"], pan: ["shakes"], whip: ["shakes"], passing: [], titles: [], insets: [] },
  ...{ screen: ["shots"], slides: ["static"], dark_object: ["shots"], patterns: ["cuts"] },
  ...Object.fromEntries(
    ["flicker", "foreign", "disorder", "blocks", "smear", "slices", "fields", "chroma", "bursts"]
      .map((name) => [name, ["artifacts"]]),
  ),
};

Deno.test("random numbers depend on the label alone, and a part has its own", () => {
  const draw = (random: Random) => Array.from({ length: 5 }, () => random.next());
  assert.deepEqual(draw(new Random("a")), draw(new Random("a")));
  assert.notDeepEqual(draw(new Random("a")), draw(new Random("b")));
  const used = new Random("a");
  draw(used);
  assert.deepEqual(draw(used.fork("part")), draw(new Random("a").fork("part")));
  const random = new Random("spread");
  const values = Array.from({ length: 4000 }, () => random.next());
  assert.ok(Math.abs(values.reduce((sum, value) => sum + value, 0) / 4000 - 0.5) < 0.02);
  const rolls = new Set(Array.from({ length: 300 }, () => random.int(1, 6)));
  assert.deepEqual([...rolls].sort(), [1, 2, 3, 4, 5, 6]);
});

Deno.test("a plan follows from its seed, has every kind, and parts the groups", () => {
  const wishes = { seed: SEED, kinds: KINDS, videos: 120, groups: 3 };
  const plans = planVideos(wishes);
  assert.equal(plans.length, 120);
  assert.deepEqual(planVideos(wishes), plans);
  assert.notDeepEqual(planVideos({ ...wishes, seed: SEED + 1 }), plans);
  assert.equal(new Set(plans.map(({ name }) => name)).size, 120);
  assert.deepEqual(new Set(plans.map(({ kind }) => kind)), new Set(Object.keys(KINDS)));
  assert.deepEqual(new Set(plans.map(({ group }) => group)), new Set([0, 1, 2]));
  assert.ok(planVideos({ ...wishes, group: 1 }).every(({ group }) => group === 1));
});

Deno.test("a truth is moved to the frames that are left", () => {
  const truth: FilmTruth = {
    ...{
      cuts: [3, 6],
      gradual: [{ start: 4, end: 8 }],
      flashes: [{ start: 2, end: 3 }],
      freezes: [],
      black: [],
    },
    ...{
      loops: [],
      corruption: [],
      faint: [],
      artifacts: [],
      shakes: [],
      jumpcuts: [7],
      jumps: [],
      lightsteps: [],
    },
    ...{ static: [], shots: [{ start: 0, src: "a", src_t: 0 }, { start: 3, src: "b", src_t: 0 }] },
  };
  const moved = remap(truth, [0, 1, 4, 5, 7, 8]);
  assert.deepEqual(moved.cuts, [2, 4]);
  assert.deepEqual(moved.gradual, [{ start: 2, end: 5 }]);
  assert.deepEqual(moved.flashes, []);
  assert.deepEqual(moved.jumpcuts, [4]);
  assert.deepEqual(moved.shots.map(({ start }) => start), [0, 2]);
});

const sources = new TemporaryFolder();
let clipsRead: Promise<Clip[]> | null = null;
const readSources = () =>
  clipsRead ??= clipFolder(sources.path).then((path) => readClips([path], join(path, "work")));
Deno.test.afterAll(() => sources[Symbol.dispose]());

Deno.test("clips that cannot be decoded are left out, and takes hold nothing that is listed of a clip", async () => {
  const clips = await readSources();
  assert.deepEqual(clips.map(({ file, origin }) => `${file}: ${origin}`), [
    "bbb120.mp4: big buck bunny",
    "intel_bottle.mp4: bottle",
  ]);
  const { takes, frames } = clips[0]!;
  assert.equal(frames, 720);
  for (const cut of [10, 285, 378, 553]) {
    assert.ok(!takes.some(({ start, end }) => start <= cut && cut < end), `${cut}`);
  }
});

for (const [name, kind] of Object.entries(KINDS)) {
  Deno.test(`what the truth says holds for the frames of the kind ${name}`, async () => {
    const clips = await readSources();
    const first = await draw(clips, name, kind);
    checkTruth(first.frames, first.truth, clips);
    for (const list of HOLDS[name] ?? ["cuts"]) assert.ok(first.truth[list].length > 0, list);
    if (DRAWN_TWICE.includes(name)) {
      const second = await draw(clips, name, kind);
      assert.deepEqual(second.truth, first.truth);
      assert.equal(hashOf(second.frames), hashOf(first.frames));
    }
  });
}

const ENCODERS: Readonly<Record<Codec, string>> = {
  ...{ h264: "libx264", hevc: "libx265", vp8: "libvpx", vp9: "libvpx-vp9", av1: "libsvtav1" },
  ...{ mpeg2: "mpeg2video", mpeg4: "mpeg4", mjpeg: "mjpeg" },
};
for (const [codec, encoder] of Object.entries(ENCODERS) as [Codec, string][]) {
  Deno.test({
    ...needing(ffmpegEncoder(encoder), `a video in ${codec} decodes to the frames of its truth`),
    async fn() {
      using folder = new TemporaryFolder();
      const kind: Kind = { ...KINDS.colours!, styles: "none" };
      const encoding = encodingOf(codec, new Random(codec));
      const plan = { ...tinyPlan("colours", kind), encoding, seconds: 1.5 };
      await makeVideo({ seed: SEED, groups: 1, clips: [], outFolder: folder.path }, plan, kind);
      await checkFile(folder.path, plan.name);
    },
  });
}

for (const way of ["bytes", "packets"] as const) {
  Deno.test(`damage by ${way} is found in the frames that come out, and nothing is left over`, async () => {
    using folder = new TemporaryFolder();
    const kind: Kind = { ...KINDS.patterns!, damage: way };
    const plan = {
      ...tinyPlan("patterns", kind),
      encoding: {
        codec: "mpeg4" as const,
        extension: "avi",
        args: ["-c:v", "mpeg4", "-q:v", "4", "-g", "25"],
      },
    };
    await makeVideo({ seed: SEED, groups: 1, clips: [], outFolder: folder.path }, plan, kind);
    const truth = await checkFile(folder.path, plan.name);
    if (way === "bytes") assert.ok(truth.corruption!.length > 0);
    else assert.ok(truth.jumps!.length > 0);
    const left = [...Deno.readDirSync(folder.path)].map(({ name }) => name).sort();
    assert.deepEqual(left, [`${plan.name}.avi`, `${plan.name}.truth.json`]);
  });
}

Deno.test("frames that are left out of a video are left out of its truth", async () => {
  using folder = new TemporaryFolder();
  const kind: Kind = { ...KINDS.colours!, styles: "none" };
  const encoding = {
    codec: "h264" as const,
    extension: "mkv",
    args: ["-c:v", "libx264", "-preset", "ultrafast"],
  };
  const plan = { ...tinyPlan("colours", kind), encoding, uneven: 0.2, seconds: 3 };
  await makeVideo({ seed: SEED, groups: 1, clips: [], outFolder: folder.path }, plan, kind);
  const truth = await checkFile(folder.path, plan.name);
  const whole = await draw([], "colours", kind, plan);
  assert.ok(truth.frames! < whole.frames.length * 0.9);
  assert.ok(truth.cuts.length > 0 && truth.cuts.every((cut, i) => cut <= whole.truth.cuts[i]!));
});

Deno.test("the program writes the same truth twice, prints what it made, and refuses what it does not know", async () => {
  using folder = new TemporaryFolder();
  const run = async (...args: string[]) => {
    const script = fileURLToPath(new URL("../../lab/make_edits.ts", import.meta.url));
    const output = await new Deno.Command(Deno.execPath(), {
      args: ["run", "--allow-all", "--no-check", "--no-prompt", script, "--seed", "3", ...args],
    }).output();
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
    return { code: output.code, printed: text(output.stdout), errors: text(output.stderr) };
  };
  const truths: string[] = [];
  for (const name of ["one", "two"]) {
    const out = join(folder.path, name);
    const { code, printed, errors } = await run("--out", out, "--kinds", "slides");
    assert.equal(code, 0, errors);
    assert.match(printed, /^slides +1 +\d+ /m);
    truths.push(Deno.readTextFileSync(join(out, "slides_g0_00.truth.json")));
  }
  assert.equal(truths[0], truths[1]);
  assert.match((await run("--out", folder.path, "--kinds", "slides,slices,none")).errors, /no kind "none"/);
  assert.match(
    (await run("--out", folder.path, "--groups", "3", "--group", "3")).errors,
    /--group must be below 3/,
  );
  assert.match((await run("--kinds", "slides")).errors, /--out FOLDER/);
});

/** Two clips of a few seconds: a moving and a still one. */
async function clipFolder(path: string): Promise<string> {
  const folder = join(path, "clips");
  Deno.mkdirSync(folder);
  Deno.copyFileSync(join(CLIPS, "bbb120.mp4"), join(folder, "bbb120.mp4"));
  Deno.writeTextFileSync(join(folder, "bad_notes.mp4"), "no video");
  const { success } = await new Deno.Command("ffmpeg", {
    args: [
      ...["-v", "error", "-i", join(CLIPS, "intel_bottle.mp4"), "-t", "6", "-an", "-vf", "scale=320:180"],
      ...["-c:v", "mpeg4", "-q:v", "4", join(folder, "intel_bottle.mp4")],
    ],
  }).output();
  assert.ok(success);
  return folder;
}

function tinyPlan(name: string, kind: Kind): VideoPlan {
  return { ...planVideo(SEED, name, kind, 0, 0), size: SIZE, fps: 25, seconds: 5, uneven: 0 };
}

async function draw(
  clips: readonly Clip[],
  name: string,
  kind: Kind,
  plan: VideoPlan = tinyPlan(name, kind),
): Promise<{ frames: Picture[]; truth: FilmTruth }> {
  const frames: Picture[] = [];
  const sink = {
    write(picture: Picture) {
      frames.push(picture.clone());
      return Promise.resolve();
    },
  };
  // Nothing is drawn over the frames, so that a freeze is the same picture again.
  const { film } = await shoot({ seed: SEED, groups: 1, clips }, plan, { ...kind, styles: "none" }, sink);
  return { frames, truth: film.truth };
}

function hashOf(frames: readonly Picture[]): string {
  const hash = createHash("sha256");
  for (const { data } of frames) hash.update(data);
  return hash.digest("hex");
}

function checkTruth(frames: readonly Picture[], truth: FilmTruth, clips: readonly Clip[]): void {
  assert.ok(frames.length >= 100, `${frames.length} frames`);
  const lists = { ...truth, loops: truth.loops as readonly FrameRange[] };
  for (const list of [...Object.values(lists)] as readonly (number | FrameRange)[][]) {
    for (const item of list) {
      if (typeof item === "number") assert.ok(item > 0 && item < frames.length, `${item}`);
      else if ("end" in item) {
        assert.ok(
          item.start >= 0 && item.start < item.end && item.end <= frames.length,
          JSON.stringify(item),
        );
      }
    }
  }
  assert.equal(truth.shots[0]?.start ?? 0, 0);
  for (const { src, origin } of truth.shots) {
    if (src.startsWith("drawn:")) continue;
    assert.equal(clips.find(({ file }) => file === src)?.origin, origin);
    assert.equal(groupOf(origin!, 1), 0);
  }
  const change = (frame: number) => difference(frames[frame]!, frames[frame - 1]!);
  for (const cut of truth.cuts) {
    assert.ok(change(cut).mean >= 3, `cut ${cut}`);
    assert.ok(truth.shots.some(({ start }) => start === cut), `shot at cut ${cut}`);
  }
  for (const { start, end } of truth.freezes) {
    for (let n = start; n < end; n++) {
      assert.deepEqual(frames[n]!.data, frames[start - 1]!.data, `freeze ${n}`);
    }
  }
  for (const { start, end, period } of truth.loops) {
    for (let n = start + period; n < end; n++) {
      assert.deepEqual(frames[n]!.data, frames[n - period]!.data, `repeat ${n}`);
    }
  }
  for (const { start, end } of truth.black) {
    for (let n = start; n < end; n++) {
      const { y } = frames[n]!;
      assert.ok(meanOf(y) < 24 && y.reduce((most, value) => Math.max(most, value), 0) < 40, `black ${n}`);
    }
  }
  for (const { start, end } of truth.flashes) {
    for (const n of [start, end]) if (n < frames.length) assert.ok(change(n).mean > 1, `flash at ${n}`);
    assert.ok(meanOf(frames[start]!.y) > meanOf(frames[start - 1]!.y), `flash ${start} is bright`);
  }
  for (const { start, end } of truth.static) {
    for (let n = start; n < end; n++) assert.ok(change(n).luma <= 0.5, `static ${n}`);
  }
  for (const { start, end, kind } of truth.gradual) {
    const whole = difference(frames[Math.max(0, start - 1)]!, frames[Math.min(end, frames.length - 1)]!).mean;
    assert.ok(whole > 1 && end - start >= 4, `${kind} ${start}-${end}`);
  }
  for (const { start, end, kind } of truth.artifacts) {
    const within = truth.cuts.filter((cut) => cut > start - 6 && cut < end + 6);
    assert.deepEqual(within, [], `cuts at ${kind} ${start}-${end}`);
    assert.ok(change(start).mean > 0.2, `${kind} at ${start}`);
  }
  for (const step of truth.lightsteps) {
    assert.ok(Math.abs(meanOf(frames[step]!.y) - meanOf(frames[step - 1]!.y)) > 0.5, `light at ${step}`);
    assert.ok(!truth.cuts.includes(step));
  }
}

function meanOf(values: Uint8Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Decodes the video anew and compares the number of its frames. */
async function checkFile(folder: string, name: string): Promise<Truth> {
  const truth = JSON.parse(Deno.readTextFileSync(join(folder, `${name}.truth.json`))) as Truth;
  const { stdout } = await new Deno.Command("ffmpeg", {
    args: [
      ...["-v", "quiet", "-threads", "1", "-i", join(folder, truth.video), "-map", "0:v:0"],
      ...["-fps_mode", "passthrough", "-f", "framecrc", "pipe:1"],
    ],
  }).output();
  const frames = new TextDecoder().decode(stdout).split("\n").filter((line) => /^0,/.test(line)).length;
  assert.ok(frames > 20);
  assert.equal(frames, truth.frames);
  return truth;
}
