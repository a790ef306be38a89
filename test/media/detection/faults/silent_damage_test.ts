/** Damage of which no decoder tells: once the picture shows it, it lasts until a frame is made of no other,
 * or is seen to be over.
 */

import assert from "node:assert/strict";
import { REPORT } from "../../../../src/media/frame_reports.ts";
import { landscape, noisy, type Picture, withBox } from "../../../support/kernels/drawn_film.ts";
import { faultsIn } from "../../../support/kernels/found_faults.ts";
import { seededRandom } from "../../../support/seeded_random.ts";

const SIZE = { width: 640, height: 480 };
const { isReported, isKey, isIntra, isSilent } = REPORT;

/** Rows of wrong blocks, always the same ones. */
function damaged(picture: Picture): Picture {
  const random = seededRandom(7);
  let result = picture;
  for (let row = 0; row < 20; row++) {
    const x = Math.floor(random() * 28) * 8, y = Math.floor(random() * 29) * 6;
    for (let block = 0; block < 16; block++) {
      result = withBox(result, { x: x + block * 8, y, width: 8, height: 6 }, Math.floor(random() * 256));
    }
  }
  return result;
}

const shot = (n: number, seed = 1) => noisy(landscape(seed), 6, n);
/** What decoders say of a stream whose frames are all made of others, but for the first one and one more. */
const reports = (bits: number, key: number) => (n: number) =>
  isReported | bits | (n === 0 || n === key ? isKey | isIntra : 0);

Deno.test("silent damage: it lasts until a key frame, however long the picture has been like that, and over cuts", async () => {
  const film = (n: number) => {
    const picture = n < 60 ? shot(n) : shot(n, 5);
    return n >= 40 && n < 130 ? damaged(picture) : picture;
  };
  assert.deepEqual(await faultsIn(150, film, SIZE, reports(isSilent, 130)), ["decode_damage 40-129"]);
  const [told] = await faultsIn(150, film, SIZE, reports(0, 130));
  assert.equal(
    told,
    "decode_damage 40-59",
    "where decoders tell of damage, a cut ends what only the picture shows",
  );
});

Deno.test("silent damage: where the picture comes back before the key frame, it was drawn and is over", async () => {
  const film = (n: number) => n >= 40 && n < 52 ? damaged(shot(n)) : shot(n);
  assert.deepEqual(await faultsIn(110, film, SIZE, reports(isSilent, 100)), ["decode_damage 40-51"]);
});
