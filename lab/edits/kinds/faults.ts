/** Videos with faults drawn into them, as broken players, cables and decoders show them. */

import { type Edit, Shot } from "../edit.ts";
import { difference, light, type Picture, sample } from "../pictures/picture.ts";
import type { Random } from "../random.ts";
import { rectangle } from "../pictures/shapes.ts";

/** Frames between a fault and a cut or another fault. */
const GAP_FRAMES = 12;

/**
 * Least change of the pictures by a fault, mean over the picture; the next constant is that in its worst
 * block of 32x32. A fault that changes less is none.
 */
const LEAST_MEAN = 1.8;
const LEAST_BLOCK = 40;

interface Fault {
  readonly kind: string;
  readonly frames: number;
  /** Changes the pictures of the whole fault, which come in the order in which they are shown. */
  readonly spoil: (pictures: Picture[]) => Picture[];
}

async function withFaults(
  edit: Edit,
  choose: (random: Random, edit: Edit) => Fault,
  openShot: (edit: Edit) => Shot = anyShot,
): Promise<void> {
  const { random, film } = edit;
  while (edit.wants()) {
    const shot = openShot(edit);
    film.cut(shot.label);
    await edit.play(shot, GAP_FRAMES + random.int(0, 15));
    for (;;) {
      const fault = choose(random.fork(`fault${film.at}`), edit);
      if (shot.left < fault.frames + 2 * GAP_FRAMES) break;
      await showFault(edit, shot, fault);
      await edit.play(shot, GAP_FRAMES + random.int(0, Math.min(50, shot.left - GAP_FRAMES)));
    }
    await edit.play(shot, shot.left);
    await edit.close(shot);
  }
}

function anyShot(edit: Edit): Shot {
  return edit.shot({ frames: edit.length(3, 7, 110), least: 80 });
}

/** A shot in which there is enough motion for frames of two times to differ; most of them get it by a pan. */
function movingShot(edit: Edit): Shot {
  const { random } = edit;
  const wish = { frames: edit.length(3, 7, 110), least: 80 };
  if (random.chance(0.3)) return edit.shot({ ...wish, tag: "moving" });
  const enlarged = 1.5;
  const whole = edit.shot({ ...wish, enlarged });
  const { width, height } = edit.size;
  const speed = random.between(2, 9), y = random.next() * height * (enlarged - 1);
  const next = async (into: Picture, n: number) => {
    const way = (n * speed) % (2 * width * (enlarged - 1));
    const x = Math.min(way, 2 * width * (enlarged - 1) - way);
    sample(await whole.next(), { x, y, width, height }, into);
    return true;
  };
  return new Shot(
    whole.label,
    whole.clip,
    whole.framing,
    whole.frames,
    edit.size,
    next,
    () => edit.close(whole),
  );
}

/**
 * Shows a fault. Where there is not enough to see (nothing moves, nothing has colour) the pictures are shown
 * as they were.
 */
async function showFault({ film }: Edit, shot: Shot, { kind, frames, spoil }: Fault): Promise<void> {
  const pictures: Picture[] = [];
  for (let n = 0; n < frames; n++) pictures.push((await shot.next()).clone());
  const spoiled = spoil(pictures.map((picture) => picture.clone()));
  const seen = spoiled.map((picture, n) => {
    const { mean, block } = difference(picture, pictures[n]!);
    return mean >= LEAST_MEAN || block >= LEAST_BLOCK;
  });
  const first = seen.indexOf(true), last = seen.lastIndexOf(true);
  const visible = seen.filter(Boolean).length >= Math.max(1, 0.4 * (last - first + 1));
  const start = film.at;
  for (const picture of visible ? spoiled : pictures) await film.show(picture);
  if (visible) film.truth.artifacts.push({ start: start + first, end: start + last + 1, kind });
}

/** Brightness goes up and down by 8 to 40 % from frame to frame. */
export async function flicker(edit: Edit): Promise<void> {
  await withFaults(edit, (random) => {
    const depth = random.between(0.08, 0.4), hold = random.pick([1, 1, 1, 2]);
    const irregular = random.chance(0.3);
    return {
      kind: "flicker",
      frames: random.int(6, 30),
      spoil(pictures) {
        pictures.forEach((picture, n) => {
          const up = Math.floor(n / hold) % 2 === 0;
          const amount = irregular ? depth * random.between(0.5, 1) : depth;
          light(picture, up ? 1 + amount : 1 - amount, 0);
        });
        return pictures;
      },
    };
  });
}

/** One or two frames of another source. */
export async function foreign(edit: Edit): Promise<void> {
  const { random, film } = edit;
  while (edit.wants()) {
    const shot = edit.cutTo({ frames: edit.length(3, 7, 110), least: 80 });
    await edit.play(shot, GAP_FRAMES + random.int(0, 20));
    while (shot.left > 3 * GAP_FRAMES) {
      const other = edit.shot({ frames: random.int(1, 2), drawn: 0.1 });
      const { mean } = difference(await other.next(), shot.picture);
      if (mean > 12) {
        const start = film.at;
        await film.show(other.picture);
        if (other.left > 0) await edit.play(other, other.left);
        film.range("artifacts", "foreign", start);
        if (random.chance(0.5)) await shot.next();
      }
      await edit.close(other);
      await edit.play(shot, GAP_FRAMES + random.int(0, Math.min(50, shot.left - GAP_FRAMES)));
    }
    await edit.play(shot, shot.left);
    await edit.close(shot);
  }
}

/** Frames that changed places, or old ones that come back in between. */
export async function disorder(edit: Edit): Promise<void> {
  await withFaults(edit, (random) => {
    const swapped = random.chance(0.5), distance = random.int(2, 6), every = random.int(2, 4);
    return {
      kind: swapped ? "swapped" : "old_frame",
      frames: random.int(8, 30),
      spoil: (pictures) =>
        pictures.map((picture, n) => {
          if (swapped) return pictures[n % 2 === 0 ? Math.min(n + 1, pictures.length - 1) : n - 1]!;
          return n >= distance && n % every === 0 ? pictures[n - distance]! : picture;
        }),
    };
  }, movingShot);
}

/** Blocks of 16x16 or 8x8 that are displaced, stand still or hold garbage; they become more. */
export async function blocks(edit: Edit): Promise<void> {
  const { width, height } = edit.size;
  await withFaults(edit, (random) => {
    const cell = random.pick([8, 16, 16, 16]), frames = random.int(3, 30);
    const columns = Math.floor(width / cell), rows = Math.floor(height / cell);
    const most = Math.ceil(columns * rows * random.between(0.03, 0.4));
    const growing = random.chance(0.6);
    const way = random.pick(["displaced", "frozen", "garbage", "mixed"]);
    const places: { x: number; y: number; way: string; dx: number; dy: number; values: number[] }[] = [];
    while (places.length < most) {
      // Errors run on to the end of a slice: blocks come in rows.
      let place = random.int(0, columns * rows - 1);
      for (let run = random.int(1, columns); run > 0 && places.length < most; run--, place++) {
        places.push({
          x: (place % columns) * cell,
          y: (Math.floor(place / columns) % rows) * cell,
          way: way === "mixed" ? random.pick(["displaced", "frozen", "garbage"]) : way,
          ...{ dx: random.even(-96, 96), dy: random.even(-48, 48) },
          values: Array.from({ length: 4 }, () => random.int(0, 255)),
        });
      }
    }
    return {
      kind: "blocks",
      frames,
      spoil(pictures) {
        const old = pictures[0]!.clone();
        pictures.forEach((picture, n) => {
          const count = growing ? Math.ceil(most * (n + 1) / frames) : most;
          const before = n > 0 ? pictures[n - 1]! : old;
          for (const { x, y, way, dx, dy, values } of places.slice(0, count)) {
            if (way === "displaced") copyBlock(before, picture, x + dx, y + dy, x, y, cell);
            else if (way === "frozen") copyBlock(old, picture, x, y, x, y, cell);
            else {
              const half = cell / 2;
              for (let part = 0; part < 4; part++) {
                const luma = values[part]!;
                const chroma = [values[(part + 1) % 4]! / 2 + 64, values[(part + 2) % 4]! / 2 + 64] as const;
                rectangle(picture, x + (part % 2) * half, y + (part >> 1) * half, half, half, [
                  luma,
                  ...chroma,
                ]);
              }
            }
          }
        });
        return pictures;
      },
    };
  });
}

function copyBlock(
  from: Picture,
  to: Picture,
  x: number,
  y: number,
  toX: number,
  toY: number,
  cell: number,
): void {
  const planesFrom = from.planes(), planesTo = to.planes();
  for (let p = 0; p < 3; p++) {
    const scale = p === 0 ? 1 : 2, size = cell / scale;
    const source = planesFrom[p]!, target = planesTo[p]!;
    const left = Math.max(0, Math.min(source.width - size, x / scale));
    for (let row = 0; row < size; row++) {
      const line = Math.max(0, Math.min(source.height - 1, y / scale + row)), out = toY / scale + row;
      if (out >= target.height) continue;
      const at = line * source.width + left;
      target.data.set(source.data.subarray(at, at + size), out * target.width + toX / scale);
    }
  }
}

/** Grey with only the changes drawn on it, as after a lost keyframe; it may clear up slowly. */
export async function smear(edit: Edit): Promise<void> {
  const { height } = edit.size;
  await withFaults(edit, (random) => {
    const frames = random.int(4, 30), top = random.chance(0.5) ? 0 : random.even(0, height * 0.6);
    const clearing = random.chance(0.5);
    return {
      kind: "smear",
      frames,
      spoil(pictures) {
        const first = pictures[0]!.clone();
        pictures.forEach((picture, n) => {
          const keep = clearing ? n / (frames * 1.6) : 0;
          const planes = picture.planes(), old = first.planes();
          for (let p = 0; p < 3; p++) {
            const { data, width } = planes[p]!, reference = old[p]!.data;
            for (let i = width * (p === 0 ? top : top / 2); i < data.length; i++) {
              const changed = 128 + (data[i]! - reference[i]!);
              data[i] = Math.max(0, Math.min(255, changed + (data[i]! - changed) * keep));
            }
          }
        });
        return pictures;
      },
    };
  });
}

/** The lower part of the picture is missing: it stands, is green or is grey. */
export async function slices(edit: Edit): Promise<void> {
  const { width, height } = edit.size;
  await withFaults(edit, (random) => {
    const way = random.pick(["frozen", "green", "grey"]);
    const frames = way === "frozen" ? random.int(4, 20) : random.int(1, 12);
    const top = 16 * random.int(1, Math.floor(height * 0.85 / 16)), moving = random.chance(0.4);
    return {
      kind: `slice_${way}`,
      frames,
      spoil(pictures) {
        const old = pictures[0]!.clone();
        pictures.forEach((picture, n) => {
          const from = moving ? 16 * Math.floor((top / 16 + n) % (height * 0.9 / 16)) : top;
          if (way === "frozen") {
            const lower = picture.planes(), still = old.planes();
            lower.forEach(({ data, width: columns }, p) => {
              const at = columns * (p === 0 ? from : from / 2);
              data.set(still[p]!.data.subarray(at), at);
            });
          } else {rectangle(
              picture,
              0,
              from,
              width,
              height - from,
              way === "green" ? [0, 0, 0] : [128, 128, 128],
            );}
        });
        return pictures;
      },
    };
  });
}

/** Fields of two times in one frame, or fields in the wrong order. */
export async function fields(edit: Edit): Promise<void> {
  await withFaults(edit, (random) => {
    const order = random.chance(0.4), distance = random.int(1, 3);
    return {
      kind: order ? "field_order" : "combing",
      frames: random.int(8, 50),
      spoil: (pictures) =>
        pictures.map((picture, n) => {
          const out = picture.clone();
          // Of a wrong field order every second frame shows its later field first.
          const other = order ? (n % 2 === 0 ? n + 1 : n - 1) : n - distance;
          weave(pictures[Math.max(0, Math.min(pictures.length - 1, other))]!, out);
          return out;
        }),
    };
  }, movingShot);
}

function weave(odd: Picture, into: Picture): void {
  const from = odd.planes();
  into.planes().forEach(({ data, width, height }, p) => {
    for (let row = 1; row < height; row += 2) {
      data.set(from[p]!.data.subarray(row * width, (row + 1) * width), row * width);
    }
  });
}

/** Chroma planes swapped, shifted by many samples, or stuck at a value: green, pink or grey pictures. */
export async function chroma(edit: Edit): Promise<void> {
  await withFaults(edit, (random) => {
    const way = random.pick(["swapped", "shifted", "stuck", "stuck"]);
    const planes = random.pick<readonly (1 | 2)[]>([[1], [2], [1, 2]]);
    const value = random.pick([0, 0, 128, 255]), shift = random.sign() * random.int(12, 60);
    return {
      kind: `chroma_${way}`,
      frames: random.int(1, 20),
      spoil(pictures) {
        for (const picture of pictures) {
          if (way === "swapped") {
            const u = picture.u.slice();
            picture.u.set(picture.v);
            picture.v.set(u);
          }
          for (const p of planes) {
            const { data, width } = picture.planes()[p];
            if (way === "stuck") data.fill(value);
            if (way === "shifted") {
              const by = shift + width * Math.sign(shift) * 4;
              const old = data.slice();
              data.set(old.subarray(0, data.length - Math.abs(by)), Math.max(0, by));
              if (by < 0) data.set(old.subarray(-by), 0);
            }
          }
        }
        return pictures;
      },
    };
  });
}

/** Bursts of salt and pepper, of torn lines, or of white dropouts. */
export async function bursts(edit: Edit): Promise<void> {
  await withFaults(edit, (random) => {
    const way = random.pick(["salt", "torn", "dropout"]);
    const amount = random.between(0.02, 0.2);
    return {
      kind: `burst_${way}`,
      frames: random.int(1, 8),
      spoil(pictures) {
        for (const picture of pictures) {
          if (way === "salt") salt(picture, random, amount);
          else spoilLines(picture, random, way, amount);
        }
        return pictures;
      },
    };
  });
}

function salt(picture: Picture, random: Random, amount: number): void {
  const { y } = picture;
  for (let i = random.int(0, 10); i < y.length; i += 1 + Math.floor(random.next() * 2 / amount)) {
    y[i] = random.chance(0.5) ? 16 : 235;
  }
}

function spoilLines(picture: Picture, random: Random, way: string, amount: number): void {
  const { width, height, y } = picture;
  for (let row = random.int(0, 10); row < height; row += 1 + Math.floor(random.next() * 1.2 / amount)) {
    const thick = random.int(1, 4);
    for (let line = row; line < Math.min(height, row + thick); line++) {
      const data = y.subarray(line * width, (line + 1) * width);
      if (way === "torn") data.copyWithin(random.int(10, width / 4), 0);
      else {
        const from = random.int(0, width - 20);
        data.fill(random.int(200, 235), from, from + random.int(20, width));
      }
    }
  }
}
