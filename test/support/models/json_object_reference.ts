/** The reference implementation of the search for a JSON object: from every brace, to every closing brace that balances it. */

/** Start and end of the first balanced `{...}` that JSON.parse takes, or null. Quadratic. */
export function referenceFirstJsonObject(text: string): { start: number; end: number } | null {
  for (let start = 0; start < text.length; start++) {
    if (text[start] !== "{") continue;
    const end = balancedEnd(text, start);
    if (end === null) continue;
    try {
      JSON.parse(text.slice(start, end));
      return { start, end };
    } catch {
      // Balanced, but no JSON: the next brace may do.
    }
  }
  return null;
}

/** Behind the brace that closes the one at `start`; braces in strings do not count. */
function balancedEnd(text: string, start: number): number | null {
  let depth = 0;
  let isString = false;
  for (let at = start; at < text.length; at++) {
    const character = text[at];
    if (isString) {
      if (character === "\\") at += 1;
      else if (character === '"') isString = false;
    } else if (character === '"') isString = true;
    else if (character === "{") depth += 1;
    else if (character === "}" && --depth === 0) return at + 1;
  }
  return null;
}
