/** Bounds what the values of a JSON text may take before it is parsed: parsed, each takes many times its own
 * bytes.
 */

import { LIMITS } from "../contract/limits.ts";

/**
 * Why a text holds more values, more fields of one object or more levels than any body or answer has; null
 * for all others. Every value but the first stands behind a comma or an opening bracket outside of strings.
 */
export function jsonSizeFault(text: string, valuesMax: number = LIMITS.body.jsonValuesMax): string | null {
  if (text.length <= HARMLESS_CHARACTERS) return null;
  const { jsonLevelsMax, jsonFieldsMax } = LIMITS.body;
  let count = 0;
  let isInString = false;
  let depth = 0;
  const fields = new Int32Array(jsonLevelsMax + 1); // so far, by level; below 0 for a list
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) isInString = !isInString;
    else if (isInString) {
      if (code === BACKSLASH) at += 1;
    } else if (code === COMMA || code === OPEN_BRACKET || code === OPEN_BRACE) {
      count += 1;
      if (count > valuesMax) return `must have at most ${valuesMax} values`;
      if (code !== COMMA) {
        depth += 1;
        if (depth > jsonLevelsMax) return "is nested too deeply";
        fields[depth] = code === OPEN_BRACE ? 1 : -valuesMax;
      } else if (++fields[depth]! > jsonFieldsMax) {
        return `must have at most ${jsonFieldsMax} fields in one object`;
      }
    } else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) depth = Math.max(0, depth - 1);
  }
  return null;
}

/** The longest text that cannot have too many of anything: a level takes two characters, and a field more. */
const HARMLESS_CHARACTERS = 2 * Math.min(LIMITS.body.jsonLevelsMax, LIMITS.body.jsonFieldsMax);
const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d];
