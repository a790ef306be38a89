/** Waiting in a test for what another task, thread or process does. */

/** Longest wait, milliseconds: within that of a test (preload.ts), also on a busy machine. */
const DEADLINE_MS = 120_000;
const PERIOD_MS = 5;

type Condition = () => boolean | Promise<boolean>;

/**
 * Resolves once the condition holds; fails after two minutes with `what`, or with the text of the condition.
 */
export async function until(...args: [isTrue: Condition] | [what: string, isTrue: Condition]): Promise<void> {
  const isTrue = args.at(-1) as Condition;
  const end = performance.now() + DEADLINE_MS;
  while (!await isTrue()) {
    if (performance.now() > end) throw new Error(`never: ${args[0]}`);
    await new Promise((resolve) => setTimeout(resolve, PERIOD_MS));
  }
}
