/** Videos in which time stops, goes missing or plays again: freezes, black, repeats, a standing camera with
 * time jumps.
 */

import type { Edit } from "../edit.ts";
import { addNoise, Picture } from "../pictures/picture.ts";
import { dim, LONGEST_HOLD_SECONDS } from "./transitions.ts";

/** The picture stands for 8 to 80 frames; the time that passed meanwhile is shown after it or lost. */
export async function freeze(edit: Edit): Promise<void> {
  const { random, film } = edit;
  while (edit.wants()) {
    // A camera that stands before a still scene would be frozen without any freeze.
    const shot = edit.cutTo({ frames: edit.length(4, 9, 110), least: 70, tag: "moving" });
    await edit.play(shot, Math.min(shot.left, random.int(12, 40)));
    while (shot.left > 24) {
      const frames = random.int(8, random.chance(0.3) ? 80 : 40);
      const lost = random.chance(0.5) && shot.left > frames + 12;
      const still = shot.picture.clone();
      const start = film.at;
      for (let n = 0; n < frames; n++) await film.show(still);
      if (lost) { for (let n = 0; n < frames; n++) await shot.next(); }
      film.range("freezes", lost ? "freeze_drop" : "freeze", start);
      await edit.play(shot, Math.min(shot.left, random.int(12, 50)));
    }
    await edit.play(shot, shot.left);
    await edit.close(shot);
  }
}

/**
 * Stretches of black within and between shots: full or near black, still or noisy, with hard edges or fades.
 */
export async function black(edit: Edit): Promise<void> {
  const { random, film } = edit;
  if (random.chance(0.3)) await blackFrames(edit, random.int(5, 40));
  let soft = 0;
  let fallStart = -1;
  while (edit.wants()) {
    const shot = edit.shot({ frames: edit.length(1.2, 2.8, 40), least: 40, drawn: 0.03 });
    film.enter(shot.label);
    const riseStart = film.at;
    const rise = soft;
    await edit.play(shot, rise, (picture, n) => dim(picture, (n + 1) / (rise + 1)));
    if (rise > 0) film.range("gradual", "fade_black", fallStart >= 0 ? fallStart : riseStart);
    soft = random.chance(0.4) ? random.int(4, 15) : 0;
    await edit.play(shot, shot.left - soft);
    const fall = soft;
    fallStart = film.at;
    await edit.play(shot, fall, (picture, n) => dim(picture, 1 - (n + 1) / (fall + 1)));
    await edit.close(shot);
    const fallEnd = film.at;
    if (random.chance(0.3)) soft = 0;
    await blackFrames(edit, random.int(2, random.chance(0.3) ? 80 : 30));
    const held = film.at - fallEnd;
    if (fall > 0 && (soft === 0 || held > edit.seconds(LONGEST_HOLD_SECONDS) || !edit.wants())) {
      film.truth.gradual.push({ start: fallStart, end: fallEnd, kind: "fade_black" });
      fallStart = -1;
    } else if (fall === 0) fallStart = -1;
  }
}

async function blackFrames(edit: Edit, frames: number): Promise<void> {
  const { random, film } = edit;
  const level = random.chance(0.5) ? 16 : random.int(17, 22);
  const sigma = random.chance(0.5) ? 0 : random.between(0.5, 2);
  const picture = new Picture(edit.size);
  const start = film.at;
  for (let n = 0; n < frames; n++) {
    picture.fill(level);
    if (sigma > 0) addNoise(picture, random, sigma, 0.3);
    await film.show(picture);
  }
  film.truth.black.push({ start, end: film.at });
}

/** A stretch of 8 to 60 frames plays 2 to 5 times, as a broken player or a prank does. */
export async function repeat(edit: Edit): Promise<void> {
  const { random, film } = edit;
  while (edit.wants()) {
    const shot = edit.cutTo({ frames: edit.length(3, 7, 130), least: 90, tag: "moving" });
    await edit.play(shot, random.int(10, 25));
    while (shot.left > 75) {
      const period = random.int(8, 60), copies = random.int(2, 5);
      const start = film.at;
      const frames: Picture[] = [];
      await edit.play(shot, period, (picture) => void frames.push(picture.clone()));
      for (let copy = 1; copy < copies; copy++) for (const picture of frames) await film.show(picture);
      film.truth.loops.push({ start, end: film.at, period, copies });
      await edit.play(shot, Math.min(shot.left, random.int(15, 50)));
    }
    await edit.play(shot, shot.left);
    await edit.close(shot);
  }
}

/** A standing camera whose recording leaves time out; now and then another camera. */
export async function surveillance(edit: Edit): Promise<void> {
  const { random, film } = edit;
  const whole = { zoom: 1, x: 0.5, y: 0.5, mirrored: false };
  while (edit.wants()) {
    const clips = edit.clips("still");
    const clip = clips.length > 0 ? random.pick(clips) : undefined;
    for (let shots = random.int(2, 5), first = true; shots > 0 && edit.wants(); shots--, first = false) {
      const wish = { frames: edit.seconds(random.between(3, 8)), least: 20, framing: whole };
      const shot = edit.shot(clip ? { ...wish, clip } : wish);
      if (first || !clip) film.cut(shot.label);
      else film.jumpCut(shot.label);
      await edit.play(shot, shot.frames);
      await edit.close(shot);
    }
  }
}
