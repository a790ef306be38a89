/** Videos of hard cuts: plain ones, fast ones, short inserts, look-alike shots, conversations. */

import type { Clip } from "../files/clips.ts";
import type { Edit, Framing, Shot } from "../edit.ts";
import { light } from "../pictures/picture.ts";

/** Shots of 0.4 to 2.5 seconds. */
export async function hard(edit: Edit): Promise<void> {
  while (edit.wants()) {
    const shot = edit.cutTo({
      frames: edit.seconds(edit.random.between(0.4, 2.5)),
      least: edit.seconds(0.4),
      drawn: 0.05,
    });
    await edit.play(shot, shot.frames);
    await edit.close(shot);
  }
}

export async function fast(edit: Edit): Promise<void> {
  while (edit.wants()) {
    const shot = edit.cutTo({ frames: edit.random.int(6, 40), least: 6, drawn: 0.04 });
    await edit.play(shot, shot.frames);
    await edit.close(shot);
  }
}

/** Inserts of 3 to 12 frames into a longer shot, which goes on where it stopped or as if it had run on. */
export async function inserts(edit: Edit): Promise<void> {
  const { random, film } = edit;
  while (edit.wants()) {
    const main = edit.cutTo({ frames: random.int(70, 220), least: 60 });
    await edit.play(main, Math.min(main.left, random.int(10, 30)));
    while (main.left >= 20) {
      const insert = edit.cutTo({ frames: random.int(3, 12), drawn: 0.05 });
      await edit.play(insert, insert.frames);
      await edit.close(insert);
      if (random.chance(0.5)) { for (let skipped = 0; skipped < insert.frames; skipped++) await main.next(); }
      film.cut(main.label);
      await edit.play(main, Math.min(main.left, random.int(8, 40)));
    }
    if (main.left > 0) await edit.play(main, main.left);
    await edit.close(main);
  }
}

/** Shots of one clip in other framings: only crop, mirroring and time differ. Contrast is low in many. */
export async function similar(edit: Edit): Promise<void> {
  const { random } = edit;
  while (edit.wants()) {
    const clips = edit.clips(random.chance(0.5) ? "head" : random.chance(0.5) ? "still" : "moving");
    const clip = clips.length > 0 ? random.pick(clips) : undefined;
    const contrast = random.chance(0.6) ? random.between(0.25, 0.7) : 1;
    const level = random.between(-10, 40);
    let framing = anyFraming(edit);
    for (let shots = random.int(3, 6); shots > 0 && edit.wants(); shots--) {
      const shot = edit.cutTo({
        frames: edit.seconds(random.between(0.5, 2)),
        least: 10,
        ...(clip ? { clip, framing } : {}),
      });
      await edit.play(shot, shot.frames, (picture) => {
        if (contrast < 1) light(picture, contrast, level, contrast);
      });
      await edit.close(shot);
      framing = otherFraming(edit, framing);
    }
  }
}

/** Two or three people, each in a framing of their own, who come back again and again. */
export async function conversation(edit: Edit): Promise<void> {
  const { random } = edit;
  while (edit.wants()) {
    const heads = random.shuffled(edit.clips("head"));
    const first = anyFraming(edit);
    const setups: { clip: Clip | undefined; framing: Framing }[] = [
      { clip: heads[0], framing: first },
      { clip: heads[1] ?? heads[0], framing: otherFraming(edit, first) },
    ];
    if (heads[2] && random.chance(0.4)) setups.push({ clip: heads[2], framing: anyFraming(edit) });
    const contrast = random.chance(0.4) ? random.between(0.4, 0.8) : 1;
    let who = 0;
    for (let turns = random.int(5, 10); turns > 0 && edit.wants(); turns--) {
      const { clip, framing } = setups[who]!;
      const shot: Shot = edit.cutTo({
        frames: edit.seconds(random.between(0.6, 2.5)),
        least: 12,
        ...(clip ? { clip, framing } : {}),
      });
      await edit.play(shot, shot.frames, (picture) => {
        if (contrast < 1) light(picture, contrast, 20, contrast);
      });
      await edit.close(shot);
      who = (who + random.int(1, setups.length - 1)) % setups.length;
    }
  }
}

function anyFraming({ random }: Edit): Framing {
  return {
    zoom: random.between(1, 1.8),
    x: random.next(),
    y: random.between(0, 0.6),
    mirrored: random.chance(0.3),
  };
}

/** Nearer, further, mirrored, or shifted by at least a sixth: what an editor would call another shot. */
function otherFraming({ random }: Edit, { zoom, x, y, mirrored }: Framing): Framing {
  switch (random.pick(["zoom", "mirror", "shift"])) {
    case "zoom":
      return {
        zoom: zoom > 1.5 ? zoom / random.between(1.25, 1.5) : zoom * random.between(1.25, 1.6),
        x,
        y,
        mirrored,
      };
    case "mirror":
      return { zoom: Math.max(1.1, zoom), x: x < 0.5 ? x + 0.2 : x - 0.2, y, mirrored: !mirrored };
    default:
      return { zoom: Math.max(1.5, zoom), x: x < 0.5 ? x + 0.5 : x - 0.5, y, mirrored };
  }
}
