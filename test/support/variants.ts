/** Reads fixtures of the form `{ valid, invalid }`, where an invalid value is a valid one with a single
 * fault.
 */

/**
 * An edit of a fixture. `remove` and `set` are paths of keys and indexes joined by dots; `to` is what `set`
 * puts there.
 */
interface Edit {
  readonly why: string;
  /** Which of the valid values is edited. */
  readonly of: number;
  readonly remove?: string;
  readonly set?: string;
  readonly to?: unknown;
}

export interface Variants {
  readonly valid: readonly unknown[];
  readonly invalid: readonly { readonly why: string; readonly value: unknown }[];
}

/**
 * Reads the variants of a fixture; `path` is relative to fixtures/. An edit that would change nothing is a
 * mistake in the fixture and throws.
 */
export function readVariants(path: string): Variants {
  const url = new URL(`../../fixtures/${path}`, import.meta.url);
  const fixture = JSON.parse(Deno.readTextFileSync(url)) as { valid: unknown[]; invalid: Edit[] };
  return {
    valid: fixture.valid,
    invalid: fixture.invalid.map((edit) => ({
      why: edit.why,
      value: edited(fixture.valid[edit.of], edit),
    })),
  };
}

function edited(original: unknown, edit: Edit): unknown {
  const copy = structuredClone(original) as Record<string, unknown>;
  const keys = (edit.remove ?? edit.set!).split(".");
  const last = keys.pop()!;
  const holder = keys.reduce((inner, key) => inner[key] as Record<string, unknown>, copy);
  if (edit.remove !== undefined) {
    if (!Object.hasOwn(holder, last)) throw new Error(`"${edit.why}": there is no ${edit.remove} to remove`);
    delete holder[last];
  } else {
    if (holder[last] === edit.to) throw new Error(`"${edit.why}": ${edit.set} is that already`);
    holder[last] = edit.to;
  }
  return copy;
}
