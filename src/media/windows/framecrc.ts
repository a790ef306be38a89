/** Reads the lists of packets or frames that ffmpeg's `framecrc` output writes. */

/**
 * Presentation times in milliseconds, in the order of the list, of stream 0; empty when the list has none.
 *
 * ```
 * #tb 0: 1/12800
 * 0,      1024,      1024,      512,    28800, 0xaaa29d68       stream, decoding time, time, length, bytes, checksum
 * ```
 */
export function framecrcTimesMs(list: string): number[] {
  const unit = /^#tb 0: (\d+)\/(\d+)$/m.exec(list);
  if (!unit) return [];
  return Array.from(
    list.matchAll(/^0, *-?\d+, *(-?\d+),/gm),
    ([, time]) => Number(time) * Number(unit[1]) / Number(unit[2]) * 1000,
  );
}
