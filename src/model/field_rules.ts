/** Collects the faults of request fields, so that one answer names all of them. */

import { utf8Length } from "../base/bytes.ts";
import { type FieldFault, refuse } from "../contract/refusal.ts";
import type { IdentifyModel } from "./infer/catalog.ts";
import { type Detector, DETECTORS } from "./frames/detected_range.ts";
import { LIMITS } from "../contract/limits.ts";
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

  /**
   * A name that every event and every row of a call repeats; null when none is given. Control characters are refused, as
   * each takes six bytes in JSON.
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

  /** The detectors of a request; all when none are given. */
  detectors(names: readonly string[] | null | undefined): ReadonlySet<Detector> {
    if (names == null) return new Set(DETECTORS);
    const rule = `must be a list of ${DETECTORS.join(", ")}, each at most once`;
    const chosen = new Set<Detector>();
    for (const name of names) {
      const detector = DETECTORS.find((known) => known === name);
      if (detector === undefined || chosen.has(detector)) {
        this.fault("detectors", `${rule}: got ${quoted(name)}${detector === undefined ? "" : " twice"}`);
        break;
      }
      chosen.add(detector);
    }
    return chosen;
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
