/** What a whole video has in common: how its camera and grading look, and what lies over every frame. */

import { addNoise, light, type Picture, type Size } from "./picture.ts";
import type { Random } from "../random.ts";
import { BLACK, type Colour, ellipse, rectangle, Script } from "./shapes.ts";

export interface Style {
  readonly name: string;
  /** Changes a frame of a source. */
  readonly grade: (picture: Picture) => void;
  /** Draws over a frame of the video. */
  readonly overlay: (picture: Picture, frame: number) => void;
}

/** `all`: any style; `grade`: nothing is drawn over the picture; `none`: sources as they are. */
export type StyleChoice = "all" | "grade" | "none";

export function anyStyle(random: Random, size: Size, choice: StyleChoice): Style {
  const nothing = () => {};
  const grade = choice !== "none" && random.chance(0.35) ? anyGrade(random) : { name: "", change: nothing };
  const overlay = choice === "all" && random.chance(0.35)
    ? anyOverlay(random, size)
    : { name: "", change: nothing };
  return {
    name: [grade.name, overlay.name].filter(Boolean).join(" "),
    grade: grade.change,
    overlay: overlay.change,
  };
}

function anyGrade(random: Random): { name: string; change: (picture: Picture) => void } {
  const name = random.pick(["grain", "dim", "grey", "warm", "flat"]);
  const noise = random.fork("noise");
  switch (name) {
    case "grain": {
      const sigma = random.between(1, 5);
      return { name, change: (picture) => addNoise(picture, noise, sigma, 0.4) };
    }
    case "dim": {
      const gain = random.between(0.35, 0.7);
      return { name, change: (picture) => light(picture, gain, 0, gain + 0.2) };
    }
    case "grey":
      return { name, change: (picture) => light(picture, 1, 0, 0) };
    case "warm": {
      const tint = random.between(-14, 14);
      return { name, change: (picture) => light(picture, 1, 0, 1, -tint, tint) };
    }
    default: {
      const contrast = random.between(0.4, 0.7);
      return { name, change: (picture) => light(picture, contrast, 40, contrast) };
    }
  }
}

function anyOverlay(
  random: Random,
  size: Size,
): { name: string; change: (picture: Picture, frame: number) => void } {
  const name = random.pick(["letterbox", "pillarbox", "logo", "subtitles"]);
  switch (name) {
    case "letterbox":
      return { name, change: (picture) => bars(picture, 0, share) };
    case "pillarbox":
      return { name, change: (picture) => bars(picture, share, 0) };
    case "logo":
      return { name, change: logo(random, size) };
    default:
      return { name, change: subtitles(random, size) };
  }
}

const share = 0.11;

/** Black bars of a share of the width at each side, and of the height above and below. */
export function bars(picture: Picture, sides: number, ends: number): void {
  const { width, height } = picture;
  const across = 2 * Math.round(width * sides / 2), down = 2 * Math.round(height * ends / 2);
  rectangle(picture, 0, 0, across, height, BLACK);
  rectangle(picture, width - across, 0, across, height, BLACK);
  rectangle(picture, 0, 0, width, down, BLACK);
  rectangle(picture, 0, height - down, width, down, BLACK);
}

export function logo(random: Random, { width, height }: Size): (picture: Picture) => void {
  const radius = height * random.between(0.03, 0.07);
  const x = random.pick([0.08, 0.92]) * width, y = random.pick([0.1, 0.9]) * height;
  const colour: Colour = [random.int(150, 235), random.int(80, 176), random.int(80, 176)];
  const strength = random.between(0.4, 1);
  return (picture) => {
    ellipse(picture, x, y, radius, radius, colour, () => strength);
    ellipse(picture, x, y, radius / 2, radius / 2, BLACK, () => strength);
  };
}

/** Lines that come and go every few seconds, with or without a box. */
export function subtitles(
  random: Random,
  { width, height }: Size,
): (picture: Picture, frame: number) => void {
  const script = new Script(random);
  const scale = Math.max(1, Math.round(height / 200));
  const box = random.chance(0.4);
  const lines: { from: number; to: number; text: number[] }[] = [];
  let until = random.int(5, 40);
  return (picture, frame) => {
    while (until <= frame) {
      const from = until + random.int(0, 40), to = from + random.int(20, 90);
      lines.push({
        from,
        to,
        text: script.line(random, random.int(12, Math.floor(width * 0.8 / (6 * scale)))),
      });
      until = to + 1;
    }
    const line = lines.at(-1);
    if (!line || frame < line.from || frame >= line.to) return;
    const x = (width - line.text.length * 6 * scale) / 2, y = height * 0.86;
    if (box) rectangle(picture, x - 6, y - 4, line.text.length * 6 * scale + 12, 9 * scale + 4, BLACK);
    script.write(picture, line.text, x, y, scale, [225, 128, 128]);
  };
}
