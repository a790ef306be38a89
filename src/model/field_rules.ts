/** Collects the faults of request fields, so that one answer names all of them. */

import { utf8Length } from "../base/bytes.ts";
import { type FieldFault, refuse } from "../contract/refusal.ts";
import { LIMITS } from "../contract/limits.ts";
import { DEFAULT_MODE, type Mode, parseMode } from "./mode.ts";

/** Gives the id that a model is known by; undefined for an unknown model. */
export type IdentifyModel = (model: string) => string | undefined;

export class FieldRules {
  readonly #faults: FieldFault[] = [];

  /** The faults found so far. */
  get faults(): readonly FieldFault[] {
    return this.#faults;
  }

  fault(field: string, message: string): void {
    this.#faults.push({ field, message });
  }

  /** Adds a fault unless `value` lies in [minimum, maximum]; NaN does not. */
  range(field: string, value: number, { minimum, maximum }: { minimum: number; maximum: number }): void {
    if (!(value >= minimum && value <= maximum)) {
      this.fault(field, `must be from ${minimum} to ${maximum}: got ${value}`);
    }
  }

  /**
   * Checks a name that every event and every row of a call repeats; null when none is given. Control
   * characters are refused, as each takes six bytes in JSON.
   */
  name(field: string, name: string | null | undefined): string | null {
    if (name == null) return null;
    const maximum = LIMITS.name.bytesMax;
    const bytes = utf8Length(name);
    if (bytes > maximum) this.fault(field, `must be at most ${maximum} bytes: got ${bytes}`);
    else if (name.trim() === "") this.fault(field, "must not be blank");
    // deno-lint-ignore no-control-regex -- control characters are searched for
    else if (/[\x00-\x1f\x7f]/.test(name)) this.fault(field, "must not contain control characters");
    return name;
  }

  /** The canonical mode; the default when none is given. */
  mode(text: string | null | undefined): Mode {
    const mode = parseMode(text ?? DEFAULT_MODE);
    if (!mode) {
      this.fault("mode", `must be balanced, detailed, efficiency or custom: got ${quoted(text!)}`);
    }
    return mode ?? DEFAULT_MODE;
  }

  /** The id that `identify` knows the model by. */
  model(text: string, identify: IdentifyModel): string {
    const model = identify(text);
    if (model === undefined) {
      this.fault("model", `must be a model of the catalog or of a model server: got ${quoted(text)}`);
    }
    return model ?? text;
  }

  /** Refuses with 422 and every fault found so far; does nothing when there is none. */
  check(): void {
    if (this.#faults.length > 0) throw refuse.invalidFields(this.#faults);
  }
}

/** A text of the caller, shortened for an error message. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
