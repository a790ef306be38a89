/** Reads the lists of packets or frames that ffmpeg's `framecrc` output writes. */

export interface Packet {
  /** When the frame of the packet is shown, milliseconds. */
  readonly timeMs: number;
  readonly isKey: boolean;
  /** Whether the container says that the packet is decoded and not shown. */
  readonly isHidden: boolean;
}

/**
 * The packets of stream 0, in the order of the list; empty when the list has none.
 *
 * ```
 * #tb 0: 1/12800
 * 0,      1024,      1024,      512,    28800, 0xaaa29d68, F=0x0    stream, decoding time, time, length, bytes, checksum, flags
 * ```
 */
export function packetsIn(list: string): Packet[] {
  const unit = /^#tb 0: (\d+)\/(\d+)$/m.exec(list);
  if (!unit) return [];
  return Array.from(list.matchAll(/^0, *-?\d+, *(-?\d+),.*$/gm), ([line, time]) => {
    // The flags are left out where the only one is that of a key frame.
    const flags = Number(/, F=(0x[0-9a-f]+)/i.exec(line)?.[1] ?? KEY);
    return {
      timeMs: Number(time) * Number(unit[1]) / Number(unit[2]) * 1000,
      isKey: (flags & KEY) !== 0,
      isHidden: (flags & HIDDEN) !== 0,
    };
  });
}

const KEY = 1;
const HIDDEN = 4;

/** Presentation times in milliseconds, in the order of the list. */
export function framecrcTimesMs(list: string): number[] {
  return packetsIn(list).map(({ timeMs }) => timeMs);
}
