/** Videos that are drawn: recorded screens, slides, plain colours, patterns, a bright object on dark. */

import {
  anyDrawing,
  brightObject,
  colourApart,
  drawPage,
  gradient,
  life,
  plain,
  snow,
  testPattern,
} from "../pictures/drawings.ts";
import type { Edit } from "../edit.ts";
import { blend, light, Picture } from "../pictures/picture.ts";
import { type Colour, ellipse, rectangle, Script } from "../pictures/shapes.ts";

/**
 * Plain grounds and gradients that change by a cut, many of them at equal luma; some drift or mix instead.
 */
export async function colours(edit: Edit): Promise<void> {
  const { random, film } = edit;
  let last: Colour = colourApart(random);
  let shown: Picture | null = null;
  while (edit.wants()) {
    const plainOne = random.chance(0.65);
    const colour = colourApart(random, last, plainOne && random.chance(0.5));
    const drawing = plainOne
      ? plain(colour, random.chance(0.3) ? random : null)
      : gradient(random.fork(`g${film.at}`), edit.size, last);
    const shot = edit.drawn(drawing);
    if (shown && random.chance(0.15)) {
      const frames = random.int(6, 25), start = film.at;
      for (let n = 0; n < frames; n++) {
        const picture = (await shot.next()).clone();
        blend(shown, picture, (n + 1) / (frames + 1), picture);
        await film.show(picture);
      }
      film.range("gradual", "dissolve", start);
      film.enter(shot.label);
    } else film.cut(shot.label);
    const drift = plainOne && random.chance(0.2) ? random.between(-0.6, 0.6) : 0;
    await edit.play(shot, random.int(8, 60), (picture, n) => {
      if (drift !== 0) light(picture, 1, drift * n);
    });
    shown = shot.picture.clone();
    last = [shown.y[0]!, shown.u[0]!, shown.v[0]!];
  }
}

/** Pages that follow each other: a new ground is a cut, new text on the same ground is not asked for. */
export async function slides(edit: Edit): Promise<void> {
  const { random, film } = edit;
  let ground = colourApart(random);
  let first = true;
  while (edit.wants()) {
    const sameGround = !first && random.chance(0.25);
    if (!sameGround && !first) ground = colourApart(random, ground, random.chance(0.3));
    const page = new Picture(edit.size);
    drawPage(page, random.fork(`page${film.at}`), ground);
    const label = { src: "drawn:slide", src_t: 0, origin: "drawn:slides" };
    if (sameGround) film.jumpCut(label);
    else film.cut(label);
    first = false;
    await showScreen(
      edit,
      page,
      edit.seconds(random.between(0.6, 4)),
      random.pick(["still", "bullets", "pointer", "typing"]),
    );
  }
}

/** A desktop: typing, scrolling, a pop-up, a pointer. None of it is a cut; a real shot may follow by one. */
export async function screen(edit: Edit): Promise<void> {
  const { random, film } = edit;
  while (edit.wants()) {
    const page = new Picture(edit.size);
    drawPage(
      page,
      random.fork(`page${film.at}`),
      random.chance(0.5) ? [random.int(200, 235), 128, 128] : [random.int(24, 50), 132, 126],
    );
    film.cut({ src: "drawn:screen", src_t: 0, origin: "drawn:screen" });
    for (let acts = random.int(3, 6); acts > 0; acts--) {
      await showScreen(
        edit,
        page,
        edit.seconds(random.between(1, 4)),
        random.pick(["typing", "scroll", "popup", "pointer", "still"]),
      );
    }
    if (random.chance(0.5)) {
      const shot = edit.cutTo({ frames: edit.seconds(random.between(1, 4)), least: 20, tag: "screen" });
      await edit.play(shot, shot.frames);
      await edit.close(shot);
    }
  }
}

type Act = "still" | "bullets" | "pointer" | "typing" | "scroll" | "popup";

/** What happens stays on the page. */
async function showScreen(edit: Edit, page: Picture, frames: number, act: Act): Promise<void> {
  const { film } = edit;
  const random = edit.random.fork(`act${film.at}`);
  const { width, height } = edit.size;
  const script = new Script(random);
  const dark = page.y[0]! < 100;
  const ink: Colour = dark ? [215, 128, 128] : [30, 128, 128];
  const scale = Math.max(1, Math.round(height / 240));
  const shown = new Picture(edit.size);
  const line = script.line(random, Math.floor(width * 0.6 / (6 * scale)));
  const pointer = {
    x: random.next() * width,
    y: random.next() * height,
    dx: random.between(-9, 9),
    dy: random.between(-6, 6),
  };
  const band = { top: 2 * Math.round(height * 0.12), speed: random.pick([2, 4, 8, 16]) };
  const window = { x: random.even(20, width / 2), y: random.even(20, height / 2), begin: random.int(5, 20) };
  let written = 0, row = 0;
  for (let n = 0; n < frames; n++) {
    if (act === "typing" && n % 2 === 0) {
      if (written === line.length) [written, row] = [0, row + 1];
      const x = width * 0.1 + written * 6 * scale, y = height * (0.35 + 0.06 * (row % 9));
      script.write(page, [line[written]!], x, y, scale, ink);
      written++;
    }
    if (act === "bullets" && n % 18 === 9) {
      script.write(page, line.slice(0, 20), width * 0.1, height * (0.4 + 0.08 * (row++ % 7)), scale, ink);
    }
    if (act === "scroll" && n % 3 !== 2) scrollUp(page, band.top, band.speed, script, random, ink, scale);
    if (act === "popup" && n === window.begin) {
      rectangle(page, window.x, window.y, width * 0.36, height * 0.36, colourApart(random));
      script.write(page, line.slice(0, 12), window.x + 10, window.y + 12, scale, ink);
    }
    shown.copyFrom(page);
    if (act === "pointer") {
      const x = Math.abs(pointer.x + pointer.dx * n) % width,
        y = Math.abs(pointer.y + pointer.dy * n) % height;
      ellipse(shown, x, y, 5, 8, dark ? [235, 128, 128] : [16, 128, 128]);
    }
    await film.show(shown);
  }
}

function scrollUp(
  page: Picture,
  top: number,
  by: number,
  script: Script,
  random: Edit["random"],
  ink: Colour,
  scale: number,
): void {
  const { width, height } = page;
  page.planes().forEach(({ data, width: columns }, p) => {
    const from = (p === 0 ? top : top / 2) * columns;
    data.copyWithin(from, from + (p === 0 ? by : by / 2) * columns);
  });
  const ground: Colour = [
    page.y[top * width]!,
    page.u[(top / 2) * (width / 2)]!,
    page.v[(top / 2) * (width / 2)]!,
  ];
  rectangle(page, 0, height - by, width, by, ground);
  if (random.chance(by / (10 * scale))) {
    script.write(page, script.line(random, random.int(8, 40)), width * 0.08, height - 9 * scale, scale, ink);
  }
}

/** Long shots of one bright object on dark, cut only now and then. */
export async function darkObject(edit: Edit): Promise<void> {
  const { random, film } = edit;
  while (edit.wants()) {
    const shot = edit.drawn(brightObject(random.fork(`o${film.at}`), edit.size));
    film.cut(shot.label);
    await edit.play(shot, edit.seconds(random.between(4, 9)));
    if (random.chance(0.3)) {
      const real = edit.cutTo({ frames: edit.seconds(random.between(1, 3)), least: 15 });
      await edit.play(real, real.frames, (picture) => light(picture, 0.4, 0, 0.6));
      await edit.close(real);
    }
  }
}

/** Snow, game of life, test patterns: they change all the time and are not cut. */
export async function patterns(edit: Edit): Promise<void> {
  const { random, film } = edit;
  while (edit.wants()) {
    const make = random.pick([snow, life, testPattern, testPattern, anyDrawing]);
    const shot = edit.drawn(make(random.fork(`p${film.at}`), edit.size));
    film.cut(shot.label);
    await edit.play(shot, edit.seconds(random.between(1.5, 6)));
  }
}
