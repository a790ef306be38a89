/** The bounds of a detector as a list of numbers, and bounds in which some of them are others. */

import { BLACK_BOUNDS } from "../../src/media/detection/ranges/black.ts";
import { FLASH_BOUNDS } from "../../src/media/detection/ranges/flash.ts";
import { FREEZE_BOUNDS } from "../../src/media/detection/freeze/still_stretch.ts";
import type { RangeNumbers } from "../../src/media/detection/range_detectors.ts";
import { REPEAT_BOUNDS } from "../../src/media/detection/ranges/repeat.ts";
import type { Constant } from "../constants.ts";
import type { Change } from "./chosen_constants.ts";

/** The bounds of each detector of ranges that has any. */
export const RANGE_BOUNDS = {
  black: BLACK_BOUNDS,
  flash: FLASH_BOUNDS,
  freeze: FREEZE_BOUNDS,
  repeat: REPEAT_BOUNDS,
} as const satisfies RangeNumbers;

/** Numbers by name, or groups of them. */
interface Group {
  readonly [name: string]: number | Group;
}

/** All numbers, named with their groups: `still.movedMax`. */
export function numbersIn(bounds: Group, group = ""): Omit<Constant, "at">[] {
  return Object.entries(bounds).flatMap(([name, value]) =>
    typeof value === "number"
      ? [{ name: group + name, value, text: String(value) }]
      : numbersIn(value, `${group}${name}.`)
  );
}

/** The bounds with other values of some numbers. */
export function withNumbers<Bounds extends Group>(bounds: Bounds, changes: readonly Change[]): Bounds {
  const changed = (group: Group, before: string): Group =>
    Object.fromEntries(
      Object.entries(group).map(([name, value]) => [
        name,
        typeof value === "number"
          ? changes.find(({ constant }) => constant.name === before + name)?.value ?? value
          : changed(value, `${before}${name}.`),
      ]),
    );
  return changed(bounds, "") as Bounds;
}
