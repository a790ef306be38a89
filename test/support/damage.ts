/** Damages the bytes of films, the same ones each time. */

/** Single bits are changed, one in about 6,000 bytes. */
export function flipped(seed: number): (film: Uint8Array) => Uint8Array<ArrayBuffer> {
  return (film) => {
    const bytes = Uint8Array.from(film);
    for (const { place, value } of places(film.length, Math.max(6, Math.round(film.length / 6_000)), seed)) {
      bytes[place] = bytes[place]! ^ (1 << (value & 7));
    }
    return bytes;
  };
}

/** Six times 800 bytes are zero. */
export function zeroed(film: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = Uint8Array.from(film);
  for (const { place } of places(film.length, 6, 9)) bytes.fill(0, place, place + 800);
  return bytes;
}

/** Six times 700 bytes are missing. */
export function cutOut(film: Uint8Array): Uint8Array<ArrayBuffer> {
  const gaps = places(film.length, 6, 11).map(({ place }) => place);
  return Uint8Array.from(film).filter((_, at) => !gaps.some((gap) => at >= gap && at < gap + 700));
}

/**
 * Places in the middle three quarters, as what containers say of the rest is at the beginning or the end,
 * with a number from 0 to 255 each.
 */
function places(length: number, count: number, seed: number): { place: number; value: number }[] {
  let state = seed;
  const next = () => state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Array.from({ length: count }, () => ({
    place: Math.floor((0.125 + 0.75 * next() / 2 ** 32) * length),
    value: next() >>> 24,
  }));
}
