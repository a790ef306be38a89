/** What a row of the command table says, and the readers of the values of flags. */

import { InvalidArgumentError } from "commander";
import type { Handler } from "../session.ts";

export interface OptionRow {
  /** As the parser writes them: `--kind <kind>`, `-o, --output <file>`, `--no-vlm`. */
  readonly flags: string;
  readonly summary: string;
  /** Makes a value of the text, or throws InvalidArgumentError. */
  readonly read?: (text: string) => unknown;
  /** The only values that are taken. */
  readonly choices?: readonly string[];
  /** Shown in the help; it counts when the flag is not given. */
  readonly standard?: unknown;
  readonly isRequired?: boolean;
  /** Whether its value is the path of a file or folder. */
  readonly isPath?: boolean;
  /** The flags with which it does not go together. */
  readonly excludes?: readonly string[];
}

export interface ArgumentRow {
  /** `<run>`, or `[file]` where it may be left out. */
  readonly name: string;
  readonly summary: string;
  readonly choices?: readonly string[];
  readonly isPath?: boolean;
}

export interface CommandRow {
  /** `runs list`. */
  readonly path: string;
  /** One sentence without a full stop. */
  readonly summary: string;
  readonly args?: readonly ArgumentRow[];
  readonly options?: readonly OptionRow[];
  /** Command lines without the name of the program. */
  readonly examples: readonly string[];
  /** Left out of help, completions and documentation. */
  readonly isHidden?: boolean;
  /** Takes anything behind its name. */
  readonly isOpen?: boolean;
  readonly load: () => Promise<Handler>;
}

/** Commands under one word. */
export interface GroupRow {
  readonly name: string;
  readonly alias?: string;
  readonly summary: string;
}

export const RUN: ArgumentRow = { name: "<run>", summary: "id of a run" };

export function whole(min: number, max: number = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max) {
      throw new InvalidArgumentError(`It must be a whole number ${rangeOf(min, max)}.`);
    }
    return value;
  };
}

export function number(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === "" || !(value >= min && value <= max)) {
      throw new InvalidArgumentError(`It must be a number ${rangeOf(min, max)}.`);
    }
    return value;
  };
}

/** `0.1,0.2,0.3,0.4` as the crop that the server takes. */
export function crop(text: string): { x: number; y: number; width: number; height: number } {
  const parts = text.split(",");
  const [x, y, width, height] = parts.map(Number) as [number, number, number, number];
  const isValid = parts.length === 4 && parts.every((part) => part.trim() !== "") &&
    [x, y].every((value) => value >= 0 && value < 1) &&
    [width, height].every((value) => value > 0 && value <= 1);
  if (!isValid) {
    throw new InvalidArgumentError(
      "It must be X,Y,WIDTH,HEIGHT as fractions of the picture, such as 0.1,0,0.5,1.",
    );
  }
  return { x, y, width, height };
}

/** `a,b` as a list. */
export function list(text: string): readonly string[] {
  return text.split(",").map((item) => item.trim()).filter((item) => item !== "");
}

function rangeOf(min: number, max: number): string {
  return max === Number.MAX_SAFE_INTEGER ? `from ${min} on` : `from ${min} to ${max}`;
}
