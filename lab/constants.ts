/** The named numbers of a source file: `const NAME = 3` at its top level, with or without a type. */

export interface Constant {
  readonly name: string;
  readonly value: number;
  /** The number as it is written, and where it stands in the source. */
  readonly text: string;
  readonly at: number;
}

/**
 * Names of numbers that say where things lie in memory or how many there are: another value is another
 * layout, not another decision.
 */
const LAYOUT =
  /(BYTES|WIDTH|HEIGHT|ROWS|COLUMNS|CELLS|SLOTS|SIZE|LENGTH|SAMPLES|BINS|OFFSET|STRIDE|SHIFT|COUNT|VALUES|LOOKAHEAD|RING|KEPT)$/;

/** All numbers of a source that decide something; those of the memory's layout are left out. */
export function constantsIn(source: string): Constant[] {
  const found = source.matchAll(/^(?:export )?const ([A-Z][A-Z0-9_]*)(?:: \w+)? = (-?[\d_.]+)(?=[;\s])/gm);
  return [...found]
    .map((match) => ({
      name: match[1]!,
      value: Number(match[2]!.replaceAll("_", "")),
      at: match.index + match[0].length - match[2]!.length,
      text: match[2]!,
    }))
    .filter(({ name, value }) => Number.isFinite(value) && !LAYOUT.test(name));
}

/** The numbers of the bounds in a source, which stand in objects such as `BLACK_BOUNDS`. */
export function boundsIn(source: string): Constant[] {
  return [...source.matchAll(/^export const \w+_BOUNDS = \{\n[^]*?^\} as const;/gm)].flatMap((block) =>
    [...block[0].matchAll(/^ {2}(\w+): (-?[\d_.]+)(?=,)/gm)].map(([line, name, text]) => ({
      ...{ name: name!, value: Number(text!.replaceAll("_", "")), text: text! },
      at: block.index + block[0].indexOf(line!) + line!.length - text!.length,
    }))
  );
}

/** The value times a factor. A whole number stays one, and changes by one at least. */
export function scaled({ value, text }: Pick<Constant, "value" | "text">, factor: number): number {
  if (text.includes(".")) return value * factor;
  const rounded = Math.round(value * factor);
  return rounded === value ? value + (factor > 1 ? 1 : -1) : rounded;
}
