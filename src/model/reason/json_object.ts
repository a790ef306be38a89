/** Finds the first JSON object in a text, in linear time for every text. */

/** The position of an object in a text, `end` after its brace, and its depth (a flat object has 1). */
export interface FoundObject {
  readonly start: number;
  readonly end: number;
  readonly depth: number;
}

/** Deeper JSON is not accepted, because later code may recurse into it. */
export const MAX_JSON_DEPTH = 64;

/** The first `{...}` that is JSON. Other text around it, code fences and broken objects are skipped. */
export function firstJsonObject(text: string): FoundObject | null {
  // An attempt from one brace also decides about every brace that it reads as the start of an object. Those objects that
  // it finished are JSON. Those still open where it fails would fail at the same place. The remaining braces are inside
  // what it reads as strings. An attempt from there takes strings for text and text for strings, so no third attempt can
  // read the same characters again: every character is read at most twice.
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

/** The depth of the arrays and objects of a parsed value, found without recursion. */
export function jsonDepth(value: unknown): number {
  let level: unknown[] = [value];
  for (let depth = 0;; depth++) {
    const containers = level.filter((entry) => typeof entry === "object" && entry !== null);
    if (containers.length === 0) return depth;
    level = containers.flatMap((entry) => Object.values(entry as object));
  }
}

/** An array or object that is being read: its start and the depth inside it. */
interface OpenContainer {
  readonly start: number;
  readonly isObject: boolean;
  depth: number;
}

const WHITESPACE = /[ \t\n\r]*/y;
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/**
 * Reads one object from `start` by the grammar of JSON. If it fails, records in `decided` the result for every other
 * object whose start it read.
 */
function attempt(text: string, start: number, decided: Map<number, FoundObject | null>): FoundObject | null {
  const open: OpenContainer[] = [{ start, isObject: true, depth: 1 }];
  const closed: FoundObject[] = [];
  let at = skip(WHITESPACE, text, start + 1);
  // Whether the next key or value is the first one of its container; others come after a comma.
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
    // A value has ended: close the containers that end with it, up to the next comma.
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

/** The position after the match of `pattern` at `from`, or `from` itself without a match. */
function skip(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex : from;
}

/** The position after the string at `from`, or `from` itself when there is none. */
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
