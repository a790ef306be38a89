import assert from "node:assert/strict";
import { FrameAnalyser } from "../../../src/media/detection/frame_analyser.ts";
import {
  FRAME_BYTES,
  PLANE_BYTES,
  PLANE_HEIGHT,
  PLANE_WIDTH,
} from "../../../src/media/kernels/frame_planes.ts";
import { CUT_SCORE_THRESHOLD } from "../../../src/model/frames/signals.ts";
import {
  landscape,
  noisy as withNoise,
  type Picture,
  plain,
  relit,
  withBox,
} from "../../support/kernels/drawn_film.ts";
import { seededRandom } from "../../support/seeded_random.ts";

type Random = () => number;
/** Luma as a function of the position, which need not be a whole number. */
type Scene = (x: number, y: number) => number;

const filter = await FrameAnalyser.load();

function kernelScores(
  planes: readonly Uint8Array[],
  offsetOf: (frame: number) => number = () => 0,
  msPerFrame = 40,
) {
  filter.reset();
  planes.forEach((plane, frame) => {
    filter.staging.set(plane, offsetOf(frame));
    filter.push(offsetOf(frame), frame * msPerFrame);
  });
  filter.finish();
  return filter.columns().cutScore;
}

function plane(lumaAt: Scene): Uint8Array {
  const result = new Uint8Array(FRAME_BYTES).fill(128);
  for (let i = 0; i < PLANE_BYTES; i++) {
    result[i] = clampedLuma(lumaAt(i % PLANE_WIDTH, Math.floor(i / PLANE_WIDTH)));
  }
  return result;
}

function clampedLuma(luma: number): number {
  return Math.max(0, Math.min(255, Math.round(luma)));
}

/** Smooth random patches about 24 samples wide, different for each seed. */
function scene(seed: number): Scene {
  const random = seededRandom(seed);
  const knots = Float64Array.from({ length: 64 * 64 }, () => 40 + 180 * random());
  const knot = (column: number, row: number) => knots[(row & 63) * 64 + (column & 63)]!;
  return (x, y) => {
    const [column, row] = [Math.floor(x / 24), Math.floor(y / 24)];
    const [right, down] = [x / 24 - column, y / 24 - row];
    const upper = knot(column, row) * (1 - right) + knot(column + 1, row) * right;
    const lower = knot(column, row + 1) * (1 - right) + knot(column + 1, row + 1) * right;
    return upper * (1 - down) + lower * down;
  };
}

function repeated(count: number, sceneOf: (frame: number) => Scene): Uint8Array[] {
  return Array.from({ length: count }, (_, frame) => plane(sceneOf(frame)));
}

function noisy(planes: readonly Uint8Array[], amplitude: number, seed: number): Uint8Array[] {
  const random = seededRandom(seed);
  return planes.map((plane) =>
    plane.map((luma, at) => at < PLANE_BYTES ? clampedLuma(luma + amplitude * (random() - 0.5)) : luma)
  );
}

/** A list with `count` times the same frame. */
function still(lumaAt: Scene, count: number): Uint8Array[] {
  return new Array<Uint8Array>(count).fill(plane(lumaAt));
}

function replaced(planes: readonly Uint8Array[], at: number, others: readonly Uint8Array[]): Uint8Array[] {
  return planes.map((plane, frame) => others[frame - at] ?? plane);
}

/** Bars at the sides and at both ends, black unless given. */
function barred(place: Scene, sides: number, ends: number, bar: Scene = () => 16): Scene {
  const isOutside = (x: number, y: number) =>
    x < sides || x >= PLANE_WIDTH - sides || y < ends || y >= PLANE_HEIGHT - ends;
  return (x, y) => isOutside(x, y) ? bar(x, y) : place(x, y);
}

const meadow = scene(1);
const street = scene(2);
const harbour = scene(3);

Deno.test("a score of .5 and more marks the first frame of a new shot and nothing else", () => {
  const check = (name: string, planes: readonly Uint8Array[], expected: readonly number[]) => {
    const scores = kernelScores(planes);
    assert.ok(scores.every((score) => score >= 0 && score <= 1), name);
    const cuts = Array.from(scores.keys()).filter((frame) => scores[frame]! >= CUT_SCORE_THRESHOLD);
    assert.deepEqual(cuts, expected, name);
  };
  const shot = still(meadow, 30);
  const other = plane(street);
  const blend = (share: number): Scene => (x, y) => meadow(x, y) * (1 - share) + street(x, y) * share;
  const moved = (place: Scene, dx: number, dy: number): Scene => (x, y) => place(x + dx, y + dy);
  const lit = (place: Scene, gain: number, offset: number): Scene => (x, y) => gain * place(x, y) + offset;
  const below = (place: Scene, top: number, luma: number): Scene => (x, y) => y < top ? place(x, y) : luma;

  check("nothing", [], []);
  check("one frame", still(meadow, 1), []);
  check("two frames, one cut", [plane(meadow), other], [1]);
  check("a cut", [...still(meadow, 12), ...still(street, 12)], [12]);
  check("a cut in the last frame", [...still(meadow, 12), other], [12]);
  check("a cut in frame 1", [plane(meadow), ...still(street, 12)], [1]);
  check("shots of six frames", [meadow, street, harbour, meadow].flatMap((place) => still(place, 6)), [
    6,
    12,
    18,
  ]);
  const between = (frames: number) => [
    ...new Array<Picture>(12).fill(landscape(1)),
    ...new Array<Picture>(frames).fill(landscape(5, 300, 20)),
    ...new Array<Picture>(12).fill(landscape(9, 600)),
  ];
  check("three frames between two shots", between(3), [12, 15]);
  const scores = kernelScores(between(2));
  const ends = [12, 14].filter((frame) => scores[frame]! >= CUT_SCORE_THRESHOLD);
  assert.equal(ends.length, 1, "two frames are no shot, so one of their ends is the cut");
  assert.equal(scores.filter((score) => score >= CUT_SCORE_THRESHOLD).length, 1, "and nothing else is");
  check("a cut in low light and noise", [
    ...noisy(still(lit(meadow, 0.15, 10), 12), 16, 5),
    ...noisy(still(lit(street, 0.15, 10), 12), 16, 6),
  ], [12]);
  for (const [sides, ends] of [[0, 23], [40, 0], [30, 17], [100, 0], [0, 8], [7, 50]] as const) {
    const framed = [meadow, street].flatMap((place) => still(barred(place, sides, ends), 10));
    check(`a cut between bars of ${sides} and ${ends}`, framed, [10]);
  }
  const gray = (x: number, y: number) => (x + y) % 2 === 0 ? 27 : 38;
  for (const [sides, ends] of [[112, 0], [0, 54]] as const) {
    const framed = [meadow, street].flatMap((place) => still(barred(place, sides, ends, gray), 10));
    check(`a cut between bars of dark gray, ${sides} and ${ends}`, framed, [10]);
  }
  check("bars that close in", repeated(30, (frame) => barred(meadow, 0, frame)), []);
  check("a cut between two pans", [
    ...repeated(12, (frame) => moved(meadow, 5 * frame, 0)),
    ...repeated(12, (frame) => moved(street, -5 * frame, 2 * frame)),
  ], [12]);

  check("a still picture", shot, []);
  check("black", still(() => 16, 30), []);
  check("noise on black", noisy(still(() => 30, 30), 20, 7), []);
  for (let length = 1; length <= 4; length++) {
    check(`${length} frames of flash`, replaced(shot, 12, still(lit(meadow, 0.3, 160), length)), []);
    check(`${length} frames of white`, replaced(shot, 12, still(() => 235, length)), []);
    // A shot has at least three frames.
    const edges = length < 3 ? [] : [12, 12 + length];
    check(`${length} foreign frames`, replaced(shot, 12, still(street, length)), edges);
  }
  check("two flashes", replaced(replaced(shot, 10, still(() => 235, 2)), 14, still(() => 235, 2)), []);
  check("flicker", repeated(30, (frame) => lit(meadow, frame % 2 ? 1 : 0.6, 0)), []);
  check("a sudden dimming that stays", [...still(meadow, 15), ...still(lit(meadow, 0.4, 20), 15)], []);
  check("a dissolve over 20 frames", repeated(40, (frame) => blend(Math.min(1, frame / 20))), []);
  check("a pan", repeated(30, (frame) => moved(meadow, 7 * frame, 0)), []);
  check(
    "a still frame, then a pan",
    repeated(30, (frame) => moved(meadow, 4 * Math.max(0, frame - 15), 0)),
    [],
  );
  check("a tilt that stops suddenly", repeated(30, (frame) => moved(meadow, 0, 8 * Math.min(frame, 15))), []);
  check("one damaged frame", replaced(shot, 12, [plane(below(meadow, 40, 128))]), []);
  check("ten frames whose lower part is lost", replaced(shot, 12, still(below(meadow, 60, 84), 10)), []);
  check(
    "a new inset in a corner",
    replaced(shot, 12, still((x, y) => (x < 100 && y < 80 ? street : meadow)(x, y), 18)),
    [],
  );
  check("back from decoder gray", [...still(() => 128, 20), ...still(meadow, 20)], []);
});

Deno.test("a clear cut scores above .9 and above any frame of a short dissolve, and the frames around it score below .1", () => {
  const clear = kernelScores([...still(meadow, 12), ...still(street, 12)]);
  const dissolve = kernelScores(
    repeated(24, (frame) => {
      const share = Math.max(0, Math.min(1, (frame - 10) / 4));
      return (x, y) => meadow(x, y) * (1 - share) + street(x, y) * share;
    }),
  );
  assert.ok(clear[12]! > 0.9, `a clear cut scores ${clear[12]}`);
  assert.ok(Math.max(...dissolve) < clear[12]!);
  assert.ok(clear.every((score, frame) => frame === 12 || score < 0.1));
});

Deno.test("the upper or the middle third of the plane is enough to see a cut; a lower one is lost in damage", () => {
  for (const top of [0, 60]) {
    const stripe = (place: Scene): Scene => (x, y) => y >= top && y < top + 60 ? place(x, y) : 100;
    const scores = kernelScores([...still(stripe(meadow), 8), ...still(stripe(street), 8)]);
    assert.ok(scores[8]! >= CUT_SCORE_THRESHOLD, `rows ${top} to ${top + PLANE_HEIGHT / 3}`);
  }
});

Deno.test("colour alone makes a cut, and neither moving things nor light do", () => {
  const check = (name: string, frames: readonly Picture[], expected: readonly number[], msPerFrame = 40) => {
    const scores = kernelScores(frames, undefined, msPerFrame);
    const cuts = Array.from(scores.keys()).filter((frame) => scores[frame]! >= CUT_SCORE_THRESHOLD);
    assert.deepEqual(cuts, expected, `${name} at ${msPerFrame} ms a frame`);
  };
  const times = (count: number, draw: (n: number) => Picture) =>
    Array.from({ length: count }, (_, n) => draw(n));
  const held = (count: number, picture: Picture) => new Array<Picture>(count).fill(picture);
  const square = (ground: Picture, n: number, luma = 235) =>
    withBox(ground, { x: 20 + (n * 9) % 260, y: 70 + (n * 5) % 60, width: 24, height: 24 }, luma);

  check("green to purple of equal luma", [
    ...held(15, plain(110, 90, 100)),
    ...held(15, plain(110, 160, 150)),
  ], [15]);
  check("colours that are nearly the same", [
    ...held(15, plain(110, 120, 120)),
    ...held(15, plain(110, 121, 121)),
  ], []);
  check("a colour that drifts", times(60, (n) => plain(110, 90 + n, 160 - n)), []);
  check("a white square that moves on black", times(60, (n) => square(plain(16), n)), []);
  check(
    "a gray square that moves in noise",
    times(60, (n) => square(withNoise(plain(40), 8, n), n, 120)),
    [],
  );
  check("snow", times(40, (n) => withNoise(plain(128), 100, n)), []);
  for (const msPerFrame of [1000 / 60, 40, 100]) {
    check("shots", [...held(20, landscape(1)), ...held(20, landscape(2))], [20], msPerFrame);
    check("a fast pan", times(40, (n) => landscape(3, 30 * n)), [], msPerFrame);
    check(
      "still shots of one kind",
      [...held(20, landscape(1)), ...held(20, landscape(5))],
      [20],
      msPerFrame,
    );
    for (const length of msPerFrame < 20 ? [6, 8, 12] : [3, 5, 8, 12]) {
      const frames = [...held(20, landscape(1)), ...held(length, landscape(2)), ...held(20, landscape(1))];
      check(`another shot of ${length} frames`, frames, [20, 20 + length], msPerFrame);
    }
    const lightened = relit(landscape(1), (luma) => luma * 0.3 + 160);
    check(
      "a flash",
      [...held(20, landscape(1)), lightened, lightened, ...held(20, landscape(1))],
      [],
      msPerFrame,
    );
  }
  const slide = (box: number) => withBox(plain(220), { x: 30, y: box, width: 200, height: 20 }, 60);
  check("slides on the same ground", [
    ...held(20, slide(30)),
    ...held(20, withBox(slide(110), { x: 60, y: 60, width: 90, height: 90 }, 120)),
  ], [20]);
  check("white for eight frames is a shot", [
    ...held(20, landscape(1)),
    ...held(8, plain(235)),
    ...held(20, landscape(1)),
  ], [20, 28]);
  const mostly = (picture: Picture, luma: number, share: number) =>
    withBox(picture, { x: 0, y: 0, width: 320, height: 180 * share }, luma);
  check("five frames of which most is white", [
    ...held(20, landscape(1)),
    ...held(5, mostly(landscape(1), 235, 0.85)),
    ...held(20, landscape(1)),
  ], []);
  check("five frames of which two thirds are white", [
    ...held(20, landscape(1)),
    ...held(5, mostly(landscape(5), 235, 0.65)),
    ...held(20, landscape(1)),
  ], [20, 25]);
  const lost = (share: number) => {
    const picture = landscape(5);
    picture.fill(128, 0, PLANE_WIDTH * 180 * share);
    for (const plane of [PLANE_BYTES, PLANE_BYTES * 5 / 4]) {
      picture.fill(128, plane, plane + 160 * 90 * share);
    }
    return picture;
  };
  check("gray in most of the picture", [...held(20, lost(0.85)), ...held(20, landscape(1))], []);
  check("a cut from a picture of which two thirds are gray", [
    ...held(20, lost(0.65)),
    ...held(20, landscape(1)),
  ], [20]);
  check("gray of a decoder without references", [...held(20, plain(128)), ...held(20, landscape(1))], []);
  check("gray with colour is a picture", [...held(20, plain(128, 90, 150)), ...held(20, landscape(1))], [20]);
});

Deno.test("a plain picture to another plain picture is a cut, and neither fades nor flicker are", () => {
  const cutsOf = (frames: readonly Picture[], msPerFrame: number) => {
    const scores = kernelScores(frames, undefined, msPerFrame);
    return Array.from(scores.keys()).filter((frame) => scores[frame]! >= CUT_SCORE_THRESHOLD);
  };
  const times = (count: number, draw: (n: number) => Picture) =>
    Array.from({ length: count }, (_, n) => draw(n));
  for (const msPerFrame of [1000 / 60, 20, 40]) {
    for (const noise of [0, 4]) {
      const shown = (picture: Picture, n: number) => noise > 0 ? withNoise(picture, noise, n) : picture;
      const film = (...pictures: readonly Picture[]) =>
        pictures.flatMap((picture, shot) => times(30, (n) => shown(picture, 100 * shot + n)));
      const name = `at ${msPerFrame} ms a frame with noise of ${noise} levels`;
      for (const [from, to] of [[16, 235], [235, 16], [80, 160], [60, 50], [126, 180], [200, 128]] as const) {
        assert.deepEqual(cutsOf(film(plain(from), plain(to)), msPerFrame), [30], `${from} to ${to} ${name}`);
      }
      const colors = film(plain(90), plain(90, 118, 140), plain(120, 60, 200), plain(16), plain(50));
      assert.deepEqual(cutsOf(colors, msPerFrame), [30, 60, 90, 120], `colours ${name}`);
    }
    for (const held of [1, 2, 3, 4]) {
      const fade = [
        ...times(30, () => plain(16)),
        ...times(25 * held, (n) => plain(16 + 8 * Math.floor(n / held))),
        ...times(30, () => plain(216)),
      ];
      assert.deepEqual(cutsOf(fade, msPerFrame), [], `a fade that holds ${held} at ${msPerFrame} ms a frame`);
      const flicker = [
        ...times(30, () => plain(100)),
        ...times(60, (n) => plain(Math.floor(n / held) % 2 === 0 ? 60 : 180)),
        ...times(30, () => plain(100)),
      ];
      assert.deepEqual(
        cutsOf(flicker, msPerFrame),
        [],
        `flicker that holds ${held} at ${msPerFrame} ms a frame`,
      );
    }
    const nearlyTheSame = [...times(30, () => plain(80)), ...times(30, () => plain(83))];
    assert.deepEqual(cutsOf(nearlyTheSame, msPerFrame), [], "a step of the light that is hardly seen");
  }
  const lost = [...times(30, () => plain(80)), ...times(30, () => plain(0, 0, 0))];
  assert.deepEqual(cutsOf(lost, 40), [], "the green of a decoder");
});

Deno.test("a frame that cannot become a cut is known at once, and stays out", () => {
  const frames = [...still(meadow, 10), ...still(street, 10), ...still(() => 235, 3), ...still(street, 10)];
  filter.reset();
  const closed = new Set<number>();
  frames.forEach((frame, index) => {
    filter.staging.set(frame);
    filter.push(0, index * 40);
    for (let open = Math.max(0, index - filter.cutLookahead + 1); open <= index; open++) {
      if (filter.isCutOpen(open)) assert.ok(!closed.has(open), `frame ${open} is open again at ${index}`);
      else closed.add(open);
    }
    if (index < 10 || index > 12 && index < 20) assert.ok(closed.has(index), `frame ${index} is not known`);
  });
  filter.finish();
  const { cutScore } = filter.columns();
  assert.deepEqual(frames.flatMap((_, frame) => cutScore[frame]! >= CUT_SCORE_THRESHOLD ? [frame] : []), [
    10,
  ]);
});

Deno.test("a part of the picture that changes is out two frames later, a cut stays open until it is final", () => {
  const openAfter = (later: Picture): boolean[] => {
    filter.reset();
    return Array.from({ length: 17 }, (_, index) => {
      filter.staging.set(index < 12 ? landscape(1) : later);
      filter.push(0, index * 40);
      return index < 12 || filter.isCutOpen(12);
    }).slice(12);
  };
  const part = withBox(landscape(1), { x: 30, y: 20, width: 100, height: 80 }, 200);
  assert.deepEqual(openAfter(part), [true, true, false, false, false]);
  assert.deepEqual(openAfter(landscape(2)), [true, true, true, true, true]);
});
