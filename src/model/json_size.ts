/** Bounds what the values of a JSON text may take before it is parsed, in memory and in time. */

import { LIMITS } from "../contract/limits.ts";

/**
 * Why a text holds more values, more fields of one object, more levels or more sequences of field names than
 * any body or answer has; null for all others. Every value but the first stands behind a comma or an opening
 * bracket outside of strings, and takes many times its own bytes once it is parsed. Each new sequence of
 * field names makes the engine describe a new kind of object: a hundred thousand of them took a parse of 150
 * ms in place of 5.
 */
export function jsonSizeFault(text: string, valuesMax: number = LIMITS.body.jsonValuesMax): string | null {
  if (text.length <= HARMLESS_CHARACTERS) return null;
  const { jsonLevelsMax, jsonFieldsMax } = LIMITS.body;
  let count = 0;
  let isInString = false;
  let depth = 0;
  const fields = new Int32Array(jsonLevelsMax + 1); // so far, by level; below 0 for a list
  const shapes = new Shapes(jsonLevelsMax);
  let nameStart = -1; // of the string that is read, where it is the name of a field
  let isNameNext = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      isInString = !isInString;
      if (isInString) nameStart = isNameNext ? at + 1 : -1;
      else if (nameStart >= 0) {
        isNameNext = false;
        if (shapes.add(depth, text.slice(nameStart, at)) > LIMITS.body.jsonShapesMax) {
          return `must have at most ${LIMITS.body.jsonShapesMax} different sequences of field names`;
        }
      }
    } else if (isInString) {
      if (code === BACKSLASH) at += 1;
    } else if (code === COMMA || code === OPEN_BRACKET || code === OPEN_BRACE) {
      count += 1;
      if (count > valuesMax) return `must have at most ${valuesMax} values`;
      if (code !== COMMA) {
        depth += 1;
        if (depth > jsonLevelsMax) return "is nested too deeply";
        fields[depth] = code === OPEN_BRACE ? 1 : -valuesMax;
        shapes.begin(depth);
      } else if (++fields[depth]! > jsonFieldsMax) {
        return `must have at most ${jsonFieldsMax} fields in one object`;
      }
      isNameNext = fields[depth]! > 0;
    } else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) {
      depth = Math.max(0, depth - 1);
      isNameNext = false;
    }
  }
  return null;
}

/** The sequences of field names as a tree: each name behind those before it in its object is a node. */
class Shapes {
  readonly #ids = new Map<string, number>();
  readonly #nodes = new Map<number, number>();
  /** The node of the object at each level so far; 0 for none. */
  readonly #at: Int32Array;

  constructor(levelsMax: number) {
    this.#at = new Int32Array(levelsMax + 1);
  }

  begin(depth: number): void {
    this.#at[depth] = 0;
  }

  /** The number of nodes with this one. */
  add(depth: number, name: string): number {
    let id = this.#ids.get(name);
    if (id === undefined) this.#ids.set(name, id = this.#ids.size);
    const step = this.#at[depth]! * LIMITS.body.jsonValuesMax + id;
    let node = this.#nodes.get(step);
    if (node === undefined) this.#nodes.set(step, node = this.#nodes.size + 1);
    this.#at[depth] = node;
    return this.#nodes.size;
  }
}

/** The longest text that cannot have too many of anything: a level takes two characters, and a field more. */
const HARMLESS_CHARACTERS = 2 * Math.min(LIMITS.body.jsonLevelsMax, LIMITS.body.jsonFieldsMax);
const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d];
