/** Which sources a range belongs to: those of the shots that it lies in. A set of folds is a number with a
 * bit for each.
 */

import { groupOf } from "../edits/files/origins.ts";
import type { FrameRange, NamedRange, Truth } from "../scores/truth.ts";
import { originsOf } from "../scores/videos.ts";

export type FoldSet = number;

/** Folds of the frames of one video. */
export class VideoFolds {
  readonly #fold: readonly number[];

  constructor(truth: Truth, frames: number, folds: number) {
    const originAt = originsOf(truth);
    this.#fold = Array.from({ length: frames }, (_, frame) => groupOf(originAt(frame), folds));
  }

  get count(): number {
    return this.#fold.length;
  }

  ofFrame(frame: number): FoldSet {
    return 1 << (this.#fold[Math.max(0, Math.min(frame, this.#fold.length - 1))] ?? 0);
  }

  /** The folds of all that is shown in a range, right before it and right after it. */
  ofRange({ start, end }: FrameRange): FoldSet {
    let set = 0;
    for (let frame = start - 1; frame <= end; frame++) set |= this.ofFrame(frame);
    return set;
  }

  /** The parts of ranges whose frames are of these folds alone. */
  partsOf(ranges: readonly NamedRange[], set: FoldSet): NamedRange[] {
    return ranges.flatMap(({ start, end, ...rest }) => {
      const parts: { start: number; end: number }[] = [];
      for (let frame = start; frame < end; frame++) {
        if (this.ofFrame(frame) !== set) continue;
        const last = parts.at(-1);
        if (last?.end === frame) last.end++;
        else parts.push({ start: frame, end: frame + 1 });
      }
      return parts.map((part) => ({ ...part, ...rest }));
    });
  }
}

/** Ranges with those that touch joined into one. */
export function joined(ranges: readonly NamedRange[]): NamedRange[] {
  const result: { start: number; end: number; kind?: string }[] = [];
  for (const range of ranges.toSorted((a, b) => a.start - b.start)) {
    const last = result.at(-1);
    if (last && last.end >= range.start) last.end = Math.max(last.end, range.end);
    else result.push({ ...range });
  }
  return result;
}
