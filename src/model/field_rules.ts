/** Collects the faults of request fields, so that one answer names all of them. */

import { type FieldFault, refuse } from "../base/refusal.ts";
import { canonicalModel } from "./infer/catalog.ts";
import { DEFAULT_MODE, type Mode, parseMode } from "./runs/mode.ts";

export class FieldRules {
  readonly #faults: FieldFault[] = [];

  /** The faults found so far. */
  get faults(): readonly FieldFault[] {
    return this.#faults;
  }

  fault(field: string, message: string): void {
    this.#faults.push({ field, message });
  }

  /** `value` lies in [minimum, maximum]; NaN does not. */
  range(field: string, value: number, { minimum, maximum }: { minimum: number; maximum: number }): void {
    if (!(value >= minimum && value <= maximum)) {
      this.fault(field, `must be from ${minimum} to ${maximum}: got ${value}`);
    }
  }

  /** The canonical mode; the default when none is given. */
  mode(text: string | null | undefined): Mode {
    const mode = parseMode(text ?? DEFAULT_MODE);
    if (!mode) {
      this.fault("mode", `must be balanced, detailed, efficiency or custom: got ${quoted(text!)}`);
    }
    return mode ?? DEFAULT_MODE;
  }

  /** The canonical model id. */
  model(text: string): string {
    const model = canonicalModel(text);
    if (!model) this.fault("model", `must be a model of the catalog: got ${quoted(text)}`);
    return model ?? text;
  }

  /** 422 with every fault found so far; nothing when there is none. */
  check(): void {
    if (this.#faults.length > 0) throw refuse.invalidFields(this.#faults);
  }
}

/** A text of the caller, shortened for an error message. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
