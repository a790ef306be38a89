/** Random trigger programs, sources, samples and damage to programs, for tests that compare and break. */

import {
  type Action,
  CAPTURE_KINDS,
  CHANNELS,
  COMPARISONS,
  type Instruction,
  SCALAR_KINDS,
  type Signal,
  type TriggerProgram,
} from "../../../src/model/triggers/program.ts";
import type { TriggerSample } from "../../../src/model/triggers/samples.ts";
import { seededRandom } from "../seeded_random.ts";

/**
 * Few values, so that comparisons often find equal ones; edges of 32-bit floats, numbers that a float rounds.
 */
const VALUES = [0, -0, 1, -1, 0.5, 0.1, 0.3, 1 / 3, 16777217, 1e-45, 1e-46, 3.4e38, -3.4e38];
/** Finite as JSON, infinite as a 32-bit float: allowed in samples, not in constants. */
const TOO_LARGE = 1e39;

const NAMES = ["person", "car", "bay"];

export class RandomTriggers {
  readonly random: () => number;

  constructor(seed: number) {
    this.random = seededRandom(seed);
  }

  below(limit: number): number {
    return Math.floor(this.random() * limit);
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!;
  }

  /** A valid program of up to 64 instructions. */
  program(): TriggerProgram {
    const actions = this.#actions();
    const body = this.#body(this.below(63 - actions.length), actions.length);
    return {
      isa_version: 1,
      program_id: this.pick(["dock-entry", "a.b:c_d", "x"]),
      version: 1 + this.below(9),
      instructions: [...body, ...actions, { op: "halt" }],
    };
  }

  /** Samples in order of time, with random values and missing signals. */
  samples(count: number): TriggerSample[] {
    let ptsMs = this.below(100);
    return Array.from({ length: count }, () => {
      ptsMs += this.pick([0, 33, 40, 1000]);
      const own = (key: string) =>
        this.random() < 0.3 ? {} : { [key]: this.random() < 0.1 ? null : this.#value() };
      return {
        pts_ms: ptsMs,
        ...own("motion_score"),
        ...own("novelty_score"),
        ...own("confidence"),
        ...own("teacher_disagreement"),
        ...(this.random() < 0.6 && {
          observations: Array.from(
            { length: this.below(6) },
            () => ({ signal: this.signal(), value: this.#value() }),
          ),
        }),
      };
    });
  }

  signal(): Signal {
    const label = this.pick(NAMES);
    const other = this.pick(NAMES);
    switch (this.below(8)) {
      case 0:
        return { kind: "object_count", label, zone: null };
      case 1:
        return { kind: "object_count", label, ...(this.random() < 0.5 && { zone: other }) };
      case 2:
        return {
          kind: this.pick(["minimum_distance_mm", "time_to_collision_ms"]),
          left: label,
          right: other,
        };
      case 3:
        return { kind: "dwell_ms", label, zone: other };
      case 4:
        return { kind: "audio_event_confidence", label };
      default:
        return { kind: this.pick(SCALAR_KINDS) };
    }
  }

  /** The program with one to three random changes, which may make it invalid. */
  mutated(program: TriggerProgram): unknown {
    const copy = structuredClone(program) as TriggerProgram & { instructions: Record<string, unknown>[] };
    for (let round = 1 + this.below(3); round > 0; round--) this.#damage(copy);
    return copy;
  }

  #damage(program: TriggerProgram): void {
    const code = program.instructions as (Instruction & Record<string, unknown>)[];
    if (code.length === 0) return;
    const at = this.below(code.length);
    const number = () =>
      this.pick([0, 1, 2, 9, 15, 16, 63, 64, 65, 255, 10_001, 86_400_001, -1, 0.5, 2 ** 31]);
    switch (this.below(9)) {
      case 0:
        code.splice(at, 1);
        break;
      case 1:
        code.splice(at, 0, structuredClone(this.pick(code)));
        break;
      case 2:
        code[at] = structuredClone(this.pick(code));
        break;
      case 3:
        [code[at], code[0]] = [code[0]!, code[at]!];
        break;
      case 4:
        code.splice(at, 0, { op: "jump_if_false", target: this.below(code.length + 2) });
        break;
      case 5:
        code[at] = { op: this.pick(["and", "not", "equal", "halt", "or"]) };
        break;
      case 6:
        code.length = at;
        break;
      default: {
        // Changes a number inside a random instruction that has one.
        const holders = code.filter((one) => Object.values(one).some((value) => typeof value === "number"));
        if (holders.length === 0) break;
        const holder = this.pick(holders);
        const key = this.pick(Object.keys(holder).filter((name) => typeof holder[name] === "number"));
        (holder as Record<string, unknown>)[key] = this.random() < 0.5 ? this.below(64) : number();
      }
    }
  }

  #value(): number {
    return this.random() < 0.02 ? TOO_LARGE : this.pick(VALUES);
  }

  #actions(): Action[] {
    const others = Array.from({ length: this.below(8) }, (): Action => {
      if (this.random() < 0.5) return { op: "notify", channel: this.pick(CHANNELS) };
      const [before_ms, after_ms] = [this.below(30_001), this.below(30_001)];
      return { op: "capture", kind: this.pick(CAPTURE_KINDS), before_ms, after_ms };
    });
    return others.toSpliced(this.below(others.length + 1), 0, {
      op: "emit",
      event_type: this.pick(["dock_entry", "a.b", "x:1"]),
    });
  }

  /**
   * Random code that keeps the stack within its bounds. Jumps go to places where the stack has the same
   * depth, often past the following actions. One instruction longer than `length` when it ends with such a
   * jump.
   */
  #body(length: number, actions: number): Instruction[] {
    const body: Instruction[] = [];
    /** Values on the stack before the instruction of each index. */
    const depths: number[] = [0];
    for (let at = 0; at < length; at++) {
      const depth = depths[at]!;
      const growth = depth < 16 ? 1 : 0;
      const kind = this.below(growth + (depth >= 1 ? 2 : 0) + (depth >= 2 ? 2 : 0));
      if (kind < growth) body.push(this.#leaf());
      else if (depth >= 2 && this.random() < 0.5) body.push({ op: this.pick(BINARY) });
      else body.push(this.#unary());
      depths.push(depth + effect(body[at]!));
    }
    if (depths.at(-1)! > 0 && this.random() < 0.8) {
      body.push({ op: "jump_if_false", target: 0 });
      depths.push(depths.at(-1)! - 1);
    }
    for (const [at, instruction] of body.entries()) {
      if (instruction.op !== "jump_if_false") continue;
      const isFitting = (target: number) => target > at && depths[target] === depths[at + 1];
      const fitting = depths.flatMap((_, target) => isFitting(target) ? [target] : []);
      const canSkip = isFitting(body.length) && this.random() < 0.7;
      instruction.target = canSkip ? body.length + actions : this.pick(fitting);
    }
    return body;
  }

  #leaf(): Instruction {
    return this.random() < 0.6
      ? { op: "load", signal: this.signal() }
      : { op: "constant", value: this.pick(VALUES) };
  }

  #unary(): Instruction {
    const slot = this.below(16);
    switch (this.below(5)) {
      case 0:
        return { op: "sustain_frames", slot: this.below(4), frames: this.pick([1, 1, 2, 3, 10_000]) };
      case 1:
        return { op: "rising_edge", slot };
      case 2:
        return { op: "cooldown_ms", slot, duration_ms: this.pick([0, 40, 1000, 86_400_000]) };
      case 3:
        return { op: "jump_if_false", target: 0 };
      default:
        return { op: "not" };
    }
  }
}

const BINARY = [...Object.values(COMPARISONS), "and", "or"] as const;

function effect({ op }: Instruction): number {
  if (op === "load" || op === "constant") return 1;
  if (op === "jump_if_false" || (BINARY as readonly string[]).includes(op)) return -1;
  return 0;
}
