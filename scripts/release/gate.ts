/** A gate of a release: one observed value against a ceiling, which a variable of the environment may set. */

export interface Gate {
  /** Name of the gate, as `--only` takes it and as a failure names it. */
  readonly name: string;
  /** What is observed, with its unit. */
  readonly what: string;
  readonly variable: string;
  readonly defaultCeiling: number;
  /** Observes the value. Throws where it cannot be measured, and then the gate does not hold. */
  readonly observe: () => Promise<number>;
}

export interface GateResult {
  readonly gate: Gate;
  readonly ceiling: number;
  /** The observed value; null where it could not be measured. */
  readonly observed: number | null;
  /** Why the value could not be measured; null where it was. */
  readonly fault: string | null;
  readonly holds: boolean;
}

/** The ceiling of a gate. Throws for a variable that is no number from 0. */
export function ceilingOf(
  { variable, defaultCeiling }: Gate,
  environment: Readonly<Record<string, string>>,
): number {
  const text = environment[variable];
  if (text === undefined) return defaultCeiling;
  const ceiling = text.trim() === "" ? NaN : Number(text);
  if (!(ceiling >= 0)) throw new Error(`${variable} must be a number from 0, got "${text}"`);
  return ceiling;
}

/** Observes one gate after the other, so that none disturbs another, and calls `tell` with each result. */
export async function passGates(
  gates: readonly Gate[],
  environment: Readonly<Record<string, string>>,
  tell: (result: GateResult) => void,
): Promise<GateResult[]> {
  // all faults before the first minute of work
  const ceilings = gates.map((gate) => ceilingOf(gate, environment));
  const results: GateResult[] = [];
  for (const [at, gate] of gates.entries()) {
    const ceiling = ceilings[at]!;
    let [observed, fault]: [number | null, string | null] = [null, null];
    try {
      observed = await gate.observe();
    } catch (error) {
      fault = error instanceof Error ? error.message : String(error);
    }
    const result = { gate, ceiling, observed, fault, holds: observed !== null && observed <= ceiling };
    tell(result);
    results.push(result);
  }
  return results;
}

/** The closing line, with the names of the gates that do not hold. */
export function verdict(results: readonly GateResult[]): string {
  const failed = results.filter(({ holds }) => !holds).map(({ gate }) => gate.name);
  return failed.length === 0 ? `${results.length} held` : `not held: ${failed.join(", ")}`;
}

/**
 * A result as a line, such as `ok api_size 43640751 of at most 45000000 bytes (SERVICE_MAX_API_SIZE_BYTES)`.
 */
export function gateLine({ gate, ceiling, observed, fault, holds }: GateResult): string {
  const { name, what, variable } = gate;
  const said = observed === null
    ? `not measured: ${fault}`
    : `${Number(observed.toPrecision(9))} of at most ${ceiling} ${what}`;
  return `${(holds ? "ok" : "FAILED").padEnd(8)}${name.padEnd(16)}${said} (${variable})`;
}
