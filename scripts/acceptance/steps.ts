/** The steps of a check of a whole service: each is a line, and the first one that fails ends it. */

/** How long a step may take unless it says so. */
const STEP_DEADLINE_MS = 60_000;

export class StepFailure extends Error {}

export interface Steps {
  /**
   * Does `work` and prints the name, the time, and what `work` returns. The signal aborts at the deadline.
   */
  readonly step: <T>(name: string, work: (signal: AbortSignal) => Promise<Done<T>>) => Promise<T>;
}

/** What a step found, for the line, and what later steps need. */
export interface Done<T> {
  readonly said: string;
  readonly value: T;
}

export const done = <T>(said: string, value: T): Done<T> => ({ said, value });

/** Checks that something is so; throws a StepFailure where it is not. */
export function expect(isSo: boolean, otherwise: string): asserts isSo {
  if (!isSo) throw new StepFailure(otherwise);
}

/** Exit codes: 0 all steps passed, 1 one failed, 2 what it needs is not given. */
export async function runSteps(what: string, work: (steps: Steps) => Promise<void>): Promise<never> {
  let count = 0;
  try {
    await work({
      step: async (name, perform) => {
        const startMs = performance.now();
        try {
          const { said, value } = await perform(AbortSignal.timeout(STEP_DEADLINE_MS));
          count++;
          console.log(`ok      ${name} (${(performance.now() - startMs).toFixed(0)} ms): ${said}`);
          return value;
        } catch (error) {
          throw new StepFailure(`${name}: ${error instanceof Error ? error.message : String(error)}`);
        }
      },
    });
  } catch (error) {
    if (!(error instanceof StepFailure)) throw error;
    console.log(`FAILED  ${error.message}`);
    console.log(`${what}: failed after ${count} steps`);
    Deno.exit(1);
  }
  console.log(`${what}: ${count} steps passed`);
  Deno.exit(0);
}

/** The value of a variable; without it the program ends with exit code 2. */
export function needed(variable: string, what: string): string {
  const value = Deno.env.get(variable)?.trim();
  if (value) return value;
  console.error(`set ${variable} to ${what}`);
  Deno.exit(2);
}

/** Repeats `look` until it gives something, up to the signal's deadline. */
export async function until<T>(signal: AbortSignal, look: () => Promise<T | null>): Promise<T> {
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    signal.throwIfAborted();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
