/** Scenes as generators of test pictures make them: next to nothing is there, it moves, and it is neither cut
 * nor at fault.
 */

import { HEIGHT, noisy, type Picture, plain, WIDTH, withBox } from "./drawn_film.ts";

/** A place that bounces between the edges. */
const bounced = (way: number, reach: number) => reach - Math.abs(way % (2 * reach) - reach);

function ball(n: number): Picture {
  const picture = plain(16), radius = 20;
  const x = radius + bounced(9 * n, WIDTH - 2 * radius), y = radius + bounced(7 * n, HEIGHT - 2 * radius);
  for (let row = -radius; row <= radius; row++) {
    const half = Math.floor(Math.sqrt(radius ** 2 - row ** 2)), from = (y + row) * WIDTH + x;
    picture.fill(235, from - half, from + half + 1);
  }
  return picture;
}

const square = (ground: Picture, n: number, luma: number) =>
  withBox(
    ground,
    { x: bounced(5 * n, WIDTH - 24), y: bounced(3 * n, HEIGHT - 24), width: 24, height: 24 },
    luma,
  );

/** Scenes by name, as the picture of each frame. */
export const TEST_SCENES: Readonly<Record<string, (n: number) => Picture>> = {
  "a white square on black": (n) => square(plain(16), n, 235),
  "a gray square in noise": (n) => square(noisy(plain(40), 8, n), n, 120),
  "gray noise": (n) => noisy(plain(128), 100, n),
  "a ball on black": ball,
  "black and white in turn": (n) => plain(n % 2 === 0 ? 16 : 235),
};
