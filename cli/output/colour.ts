/** Colours of the terminal, or none. */

/** Texts in, texts out; without colours they come back unchanged. */
export interface Paint {
  readonly bold: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly red: (text: string) => string;
  readonly green: (text: string) => string;
  readonly yellow: (text: string) => string;
  readonly cyan: (text: string) => string;
}

const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const;

export function paintOf(isColoured: boolean): Paint {
  const names = Object.keys(CODES) as (keyof typeof CODES)[];
  return Object.fromEntries(
    names.map((name) => [name, (text: string) => isColoured ? `\x1b[${CODES[name]}m${text}\x1b[0m` : text]),
  ) as unknown as Paint;
}

/** Whether a stream is to be coloured. NO_COLOR counts when it is not empty (https://no-color.org). */
export function wantsColour(
  isTerminal: boolean,
  noColourFlag: boolean,
  noColour: string | undefined,
): boolean {
  return isTerminal && !noColourFlag && !noColour && Deno.env.get("TERM") !== "dumb";
}

/** The colour of a run's status. */
export function paintStatus(paint: Paint, status: string): (text: string) => string {
  switch (status) {
    case "completed":
      return paint.green;
    case "failed":
      return paint.red;
    case "processing":
      return paint.cyan;
    case "pending":
      return paint.yellow;
    default:
      return paint.dim;
  }
}
