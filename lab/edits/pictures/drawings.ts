/** Pictures that need no clip: plain colours, gradients, snow, test patterns, game of life, a bright object
 * on dark.
 */

import { addNoise, light, Picture, type Size } from "./picture.ts";
import type { Random } from "../random.ts";
import { type Colour, ellipse, rectangle, Script } from "./shapes.ts";

/** Draws its frames one after the other. */
export interface Drawing {
  readonly name: string;
  /** `n` goes up by one with each call. */
  draw(picture: Picture, n: number): void;
}

/** Any drawing that can stand beside real shots. */
export function anyDrawing(random: Random, size: Size): Drawing {
  return random.pick([gradient, testPattern, life, brightObject, slide, slide])(random, size);
}

/** A colour that is neither black nor white, and at least `apart` from `from` in luma or chroma. */
export function colourApart(random: Random, from?: Colour, equalLuma = false): Colour {
  for (;;) {
    const luma = equalLuma && from ? from[0] : random.int(45, 220);
    const spread = random.chance(0.25) ? 0 : 60;
    const colour: Colour = [
      luma,
      random.int(128 - spread, 128 + spread),
      random.int(128 - spread, 128 + spread),
    ];
    if (!from) return colour;
    const chroma = Math.abs(colour[1] - from[1]) + Math.abs(colour[2] - from[2]);
    if (chroma > 40 || (!equalLuma && Math.abs(colour[0] - from[0]) > 30)) return colour;
  }
}

export function plain(colour: Colour, noise: Random | null = null): Drawing {
  return {
    name: "plain",
    draw(picture) {
      picture.fill(...colour);
      if (noise) addNoise(picture, noise, 2);
    },
  };
}

/** A gradient from one colour to another: across, down, or from the middle; it may drift slowly. */
export function gradient(random: Random, size: Size, from?: Colour): Drawing {
  const a = colourApart(random, from);
  const b = colourApart(random, a);
  const direction = random.pick(["across", "back", "down", "up", "radial", "diagonal"]);
  const still = new Picture(size);
  still.planes().forEach(({ data, width, height }, p) => {
    for (let row = 0, i = 0; row < height; row++) {
      for (let column = 0; column < width; column++, i++) {
        const x = column / (width - 1), y = row / (height - 1);
        const place = direction === "across"
          ? x
          : direction === "back"
          ? 1 - x
          : direction === "down"
          ? y
          : direction === "up"
          ? 1 - y
          : direction === "diagonal"
          ? (x + y) / 2
          : Math.min(1, Math.hypot(x - 0.5, y - 0.5) * 1.5);
        data[i] = Math.round(a[p]! + (b[p]! - a[p]!) * place);
      }
    }
  });
  const drift = random.chance(0.3) ? random.between(-0.25, 0.25) : 0;
  return {
    name: "gradient",
    draw(picture, n) {
      picture.copyFrom(still);
      if (drift !== 0) light(picture, 1, drift * n, 1, drift * n / 3, -drift * n / 3);
    },
  };
}

/** What a receiver without a signal shows; grain is one sample or more. */
export function snow(random: Random, { width }: Size): Drawing {
  const grain = random.pick([1, 1, 2, 4]);
  const values = Uint8Array.from({ length: 1 << 15 }, () => random.int(16, 235));
  const coloured = random.chance(0.3);
  return {
    name: "snow",
    draw(picture) {
      for (const { data, width: columns, height: rows } of picture.planes()) {
        if (columns < width && !coloured) {
          data.fill(128);
          continue;
        }
        for (let row = 0; row < rows; row++) {
          const place = row * columns;
          if (row % grain > 0) data.copyWithin(place, place - columns, place);
          else {
            const from = random.int(0, values.length - columns);
            for (let i = 0; i < columns; i++) data[place + i] = values[from + Math.floor(i / grain)]!;
          }
        }
      }
    },
  };
}

/** Colour bars, a chequered floor that scrolls, or rings, with a box that moves over them. */
export function testPattern(random: Random, { width, height }: Size): Drawing {
  const pattern = random.pick(["bars", "chequers", "rings"]);
  const bars = Array.from({ length: random.int(5, 9) }, () => colourApart(random));
  const cell = random.even(16, 64), speed = random.pick([0, 1, 2, 3]);
  const box = {
    size: random.even(16, 80),
    x: random.between(1, 5),
    y: random.between(0.5, 3),
    colour: bars[0]!,
  };
  const still = new Picture({ width, height });
  if (pattern === "bars") {
    bars.forEach((colour, i) =>
      rectangle(still, i * width / bars.length, 0, width / bars.length + 1, height, colour)
    );
  } else if (pattern === "rings") {
    const rate = random.between(0.0005, 0.004);
    for (let row = 0, i = 0; row < height; row++) {
      for (let column = 0; column < width; column++, i++) {
        const square = (row - height / 2) ** 2 + (column - width / 2) ** 2;
        still.y[i] = Math.round(126 + 100 * Math.sin(square * rate));
      }
    }
  }
  return {
    name: pattern,
    draw(picture, n) {
      if (pattern === "chequers") chequers(picture, cell, n * speed, bars[1]!, bars[2]!);
      else picture.copyFrom(still);
      const x = bounce(n * box.x, width - box.size), y = bounce(n * box.y, height - box.size);
      rectangle(picture, x, y, box.size, box.size, box.colour);
    },
  };
}

function chequers(picture: Picture, cell: number, shift: number, a: Colour, b: Colour): void {
  picture.planes().forEach(({ data, width, height }, p) => {
    const size = p === 0 ? cell : cell / 2, over = Math.floor(p === 0 ? shift : shift / 2);
    for (let row = 0, i = 0; row < height; row++) {
      for (let column = 0; column < width; column++, i++) {
        data[i] = (Math.floor((column + over) / size) + Math.floor(row / size)) % 2 === 0 ? a[p]! : b[p]!;
      }
    }
  });
}

/** A path that goes to and fro between 0 and `length`. */
function bounce(way: number, length: number): number {
  const place = way % (2 * length);
  return place < length ? place : 2 * length - place;
}

/** Conway's game of life, a step every few frames. */
export function life(random: Random, { width, height }: Size): Drawing {
  const cell = random.pick([4, 6, 8, 12]);
  const columns = Math.floor(width / cell), rows = Math.floor(height / cell);
  const every = random.int(1, 4);
  const colour: Colour = random.chance(0.6) ? [235, 128, 128] : colourApart(random);
  let cells = Uint8Array.from({ length: columns * rows }, () => random.chance(0.3) ? 1 : 0);
  return {
    name: "life",
    draw(picture, n) {
      if (n > 0 && n % every === 0) cells = nextGeneration(cells, columns, rows);
      picture.fill(16);
      for (let i = 0; i < cells.length; i++) {
        if (cells[i] === 0) continue;
        rectangle(picture, (i % columns) * cell, Math.floor(i / columns) * cell, cell - 1, cell - 1, colour);
      }
    },
  };
}

function nextGeneration(cells: Uint8Array, columns: number, rows: number): Uint8Array<ArrayBuffer> {
  const next = new Uint8Array(cells.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      let around = 0;
      for (let dy = -1; dy <= 1; dy++) {
        for (let dx = -1; dx <= 1; dx++) {
          if (dx === 0 && dy === 0) continue;
          around += cells[((row + dy + rows) % rows) * columns + (column + dx + columns) % columns]!;
        }
      }
      const i = row * columns + column;
      next[i] = around === 3 || (around === 2 && cells[i] === 1) ? 1 : 0;
    }
  }
  return next;
}

/** One bright square or ball that moves over a dark ground. */
export function brightObject(random: Random, { width, height }: Size): Drawing {
  const extent = random.int(8, 60);
  const round = random.chance(0.5);
  const ground = random.pick([16, 16, 18, 24, 32, 45]);
  const colour: Colour = random.chance(0.7)
    ? [random.int(150, 235), 128, 128]
    : colourApart(random, [ground, 128, 128]);
  const noise = random.chance(0.5) ? random.between(1, 6) : 0;
  const speed = { x: random.between(1, 14), y: random.between(0.3, 9) };
  const start = { x: random.int(0, width), y: random.int(0, height) };
  const jumps = random.chance(0.15);
  return {
    name: "bright_object",
    draw(picture, n) {
      picture.fill(ground);
      const step = jumps ? Math.floor(n / 6) * 40 : n;
      const x = bounce(start.x + step * speed.x, width - extent);
      const y = bounce(start.y + step * speed.y, height - extent);
      if (round) ellipse(picture, x + extent / 2, y + extent / 2, extent / 2, extent / 2, colour);
      else rectangle(picture, x, y, extent, extent, colour);
      if (noise > 0) addNoise(picture, random, noise, 0.3);
    },
  };
}

/** A still page: ground, a bar or not, a title, lines, at times a framed picture. */
export function slide(random: Random, size: Size, ground?: Colour): Drawing {
  const page = new Picture(size);
  drawPage(page, random, ground ?? colourApart(random));
  return { name: "slide", draw: (picture) => void picture.copyFrom(page) };
}

export function drawPage(page: Picture, random: Random, ground: Colour): void {
  const { width, height } = page;
  const script = new Script(random);
  const ink: Colour = ground[0] > 120 ? [random.int(20, 50), 128, 128] : [random.int(190, 235), 128, 128];
  page.fill(...ground);
  if (random.chance(0.5)) {
    rectangle(page, 0, 0, width, height * random.between(0.08, 0.2), colourApart(random, ground));
  }
  const title = Math.max(2, Math.round(height / 120));
  script.write(page, script.line(random, random.int(8, 18)), width * 0.06, height * 0.06, title, ink);
  const scale = Math.max(1, Math.round(height / 240));
  const left = random.between(0.06, 0.15) * width;
  const lines = random.int(2, 8);
  for (let line = 0; line < lines; line++) {
    const y = height * 0.28 + line * height * 0.08;
    script.write(
      page,
      script.line(random, random.int(10, Math.floor(width * 0.5 / (6 * scale)))),
      left,
      y,
      scale,
      ink,
    );
  }
  if (random.chance(0.4)) {
    const shape = {
      x: width * 0.64,
      y: height * random.between(0.28, 0.45),
      w: width * 0.28,
      h: height * 0.4,
    };
    rectangle(page, shape.x, shape.y, shape.w, shape.h, colourApart(random, ground));
    ellipse(
      page,
      shape.x + shape.w / 2,
      shape.y + shape.h / 2,
      shape.w / 3,
      shape.h / 3,
      colourApart(random),
    );
  }
}
