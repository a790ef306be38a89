/** The reference implementation of `assembly/trigger.ts`: runs the program object directly, with every bound
 * checked.
 */

import assert from "node:assert/strict";
import { type Action, type Signal, type TriggerProgram } from "../../../src/model/triggers/program.ts";
import type { TriggerSample } from "../../../src/model/triggers/samples.ts";

export interface ReferenceResult {
  readonly fired: boolean;
  readonly missing_signal: boolean;
  readonly actions: readonly Action[];
}

/** Keeps the state of its slots between samples. */
export class ReferenceTrigger {
  readonly #framesInARow = new Map<number, number>();
  readonly #inputBefore = new Map<number, boolean>();
  readonly #lastMs = new Map<number, number>();

  constructor(readonly program: TriggerProgram) {}

  /** Fails when the program leaves its bounds. */
  step(sample: TriggerSample): ReferenceResult {
    const stack: number[] = [];
    const actions: Action[] = [];
    let missing = false;
    const push = (value: number | boolean) => {
      assert.ok(stack.length < 16, "the stack overflows");
      stack.push(Math.fround(Number(value)));
    };
    const pop = (): number => {
      assert.ok(stack.length > 0, "the stack underflows");
      return stack.pop()!;
    };
    const slotOf = ({ slot }: { slot: number }) => {
      assert.ok(slot >= 0 && slot < 16, "no such slot");
      return slot;
    };
    for (let at = 0;;) {
      const instruction = this.program.instructions[at];
      assert.ok(instruction, "the program runs out of its instructions");
      let next = at + 1;
      switch (instruction.op) {
        case "load": {
          const value = valueOf(instruction.signal, sample);
          if (value === undefined) missing = true;
          push(value ?? NaN);
          break;
        }
        case "constant":
          push(instruction.value);
          break;
        case "not":
          push(!isTrue(pop()));
          break;
        case "sustain_frames": {
          const slot = slotOf(instruction);
          const frames = isTrue(pop()) ? (this.#framesInARow.get(slot) ?? 0) + 1 : 0;
          this.#framesInARow.set(slot, frames);
          push(frames >= instruction.frames);
          break;
        }
        case "rising_edge": {
          const slot = slotOf(instruction);
          const input = isTrue(pop());
          push(input && !this.#inputBefore.get(slot));
          this.#inputBefore.set(slot, input);
          break;
        }
        case "cooldown_ms": {
          const slot = slotOf(instruction);
          const last = this.#lastMs.get(slot);
          const isCool = last === undefined || sample.pts_ms - last >= instruction.duration_ms;
          const passes = isTrue(pop()) && isCool;
          if (passes) this.#lastMs.set(slot, sample.pts_ms);
          push(passes);
          break;
        }
        case "jump_if_false":
          if (!isTrue(pop())) next = instruction.target;
          break;
        case "emit":
        case "capture":
        case "notify":
          actions.push(instruction);
          break;
        case "halt":
          return { fired: actions.some(({ op }) => op === "emit"), missing_signal: missing, actions };
        default: {
          const [right, left] = [pop(), pop()];
          push(BINARY[instruction.op](left, right));
        }
      }
      assert.ok(next > at, "the program goes back");
      at = next;
    }
  }
}

const BINARY = {
  greater_than: (left: number, right: number) => left > right,
  greater_or_equal: (left: number, right: number) => left >= right,
  less_than: (left: number, right: number) => left < right,
  less_or_equal: (left: number, right: number) => left <= right,
  equal: (left: number, right: number) => left === right,
  and: (left: number, right: number) => isTrue(left) && isTrue(right),
  or: (left: number, right: number) => isTrue(left) || isTrue(right),
};

function isTrue(value: number): boolean {
  return Number.isFinite(value) && value !== 0;
}

function valueOf(signal: Signal, sample: TriggerSample): number | undefined {
  const own = (sample as Partial<Record<string, unknown>>)[signal.kind];
  if (typeof own === "number") return own;
  return sample.observations?.find((observation) => keyOf(observation.signal) === keyOf(signal))?.value;
}

/** An absent zone is null. */
function keyOf(signal: Signal): string {
  const { kind, label = null, zone = null, left = null, right = null } = signal as Record<
    string,
    string | null
  >;
  return JSON.stringify([kind, label, zone, left, right]);
}
