/** Finds the first JSON object in a text, in time linear in the text whatever it holds. */

/** Where an object stands in a text, `end` past its brace, and how deep its values nest (a flat object is 1). */
export interface FoundObject {
  readonly start: number;
  readonly end: number;
  readonly depth: number;
}

/** Deeper JSON is no answer: whoever walks it later may recurse. */
export const MAX_JSON_DEPTH = 64;

/** The `{...}` with the smallest start that is JSON; prose, code fences and broken objects around it do not matter. */
export function firstJsonObject(text: string): FoundObject | null {
  // An attempt from one brace decides for every brace that it reads as the start of an object. Those it has finished
  // are objects. Those still open where it fails would fail at the same place. What is left are braces that it reads
  // inside a string, and an attempt from there reads text as strings and strings as text, so no third one can run
  // over the same stretch: every character is read at most twice.
  const decided = new Map<number, FoundObject | null>();
  for (let start = text.indexOf("{"); start >= 0; start = text.indexOf("{", start + 1)) {
    const known = decided.get(start);
    if (known) return known;
    if (known === null) continue;
    const found = attempt(text, start, decided);
    if (found) return found;
  }
  return null;
}

/** How deep the arrays and objects of a parsed value nest; without recursion. */
export function jsonDepth(value: unknown): number {
  let level: unknown[] = [value];
  for (let depth = 0;; depth++) {
    const containers = level.filter((entry) => typeof entry === "object" && entry !== null);
    if (containers.length === 0) return depth;
    level = containers.flatMap((entry) => Object.values(entry as object));
  }
}

/** What is open while an object is read: where it starts, whether it is an object, the deepest nesting inside. */
interface Open {
  readonly start: number;
  readonly isObject: boolean;
  depth: number;
}

const WHITESPACE = /[ \t\n\r]*/y;
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/**
 * Reads one object from `start` by the grammar of JSON. Notes in `decided` every other object whose start it read; on
 * success there is no need to.
 */
function attempt(text: string, start: number, decided: Map<number, FoundObject | null>): FoundObject | null {
  const open: Open[] = [{ start, isObject: true, depth: 1 }];
  const closed: FoundObject[] = [];
  let at = skip(WHITESPACE, text, start + 1);
  // What may come next: a key or value is `first` in its container, or it is not and stands behind a comma.
  let isFirst = true;
  for (;;) {
    const container = open.at(-1)!;
    const closing = container.isObject ? "}" : "]";
    if (isFirst && text[at] === closing) {
      at = close();
    } else {
      if (container.isObject) {
        const key = stringEnd(text, at);
        if (key === at) break;
        const colon = skip(WHITESPACE, text, key);
        if (text[colon] !== ":") break;
        at = skip(WHITESPACE, text, colon + 1);
      }
      if (text[at] === "{" || text[at] === "[") {
        open.push({ start: at, isObject: text[at] === "{", depth: 1 });
        isFirst = true;
        at = skip(WHITESPACE, text, at + 1);
        continue;
      }
      const end = text[at] === '"' ? stringEnd(text, at) : skip(SCALAR, text, at);
      if (end === at) break;
      at = end;
    }
    // A value has ended: close what it completes, up to the next comma.
    for (;;) {
      if (open.length === 0) return closed.at(-1)!;
      at = skip(WHITESPACE, text, at);
      if (text[at] !== (open.at(-1)!.isObject ? "}" : "]")) break;
      at = close();
    }
    if (text[at] !== ",") break;
    at = skip(WHITESPACE, text, at + 1);
    isFirst = false;
  }
  for (const object of closed) decided.set(object.start, object);
  for (const { start: failed, isObject } of open) if (isObject) decided.set(failed, null);
  return null;

  function close(): number {
    const done = open.pop()!;
    const parent = open.at(-1);
    if (parent) parent.depth = Math.max(parent.depth, done.depth + 1);
    if (done.isObject) closed.push({ start: done.start, end: at + 1, depth: done.depth });
    return at + 1;
  }
}

/** The position behind what `pattern` matches at `from`, or `from` itself. */
function skip(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex : from;
}

/** The position behind the string at `from`, or `from` itself when none stands there. */
function stringEnd(text: string, from: number): number {
  if (text[from] !== '"') return from;
  for (let at = from + 1; at < text.length;) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) return at + 1;
    if (unit < SPACE) return from;
    const next = unit === BACKSLASH ? skip(ESCAPE, text, at) : at + 1;
    if (next === at) return from;
    at = next;
  }
  return from;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
