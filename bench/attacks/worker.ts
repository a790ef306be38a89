/** Runs one attack apart from what measures its effect. */

import { type AttackContext, ATTACKS } from "./list.ts";

export interface AttackOrder extends Omit<AttackContext, "untilMs"> {
  readonly name: string;
  readonly durationMs: number;
}

interface AttackScope {
  onmessage: ((event: MessageEvent<AttackOrder>) => void) | null;
  postMessage(message: string | null): void;
}

const scope = globalThis as unknown as AttackScope;

scope.onmessage = async ({ data: { name, durationMs, ...context } }) => {
  const attack = ATTACKS.find((each) => each.name === name)!;
  try {
    await attack.run({ ...context, untilMs: performance.now() + durationMs });
    scope.postMessage(null);
  } catch (error) {
    scope.postMessage(error instanceof Error ? `${error.name}: ${error.message}` : String(error));
  }
};
