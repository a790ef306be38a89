/** What was found damaged in the log: counted, told, and its bytes set aside where an operator can look at them. */

import { join } from "node:path";
import type { Log } from "../../base/log.ts";

/** One damaged stretch of the log. */
export interface Damage {
  /** File name of the segment. */
  readonly segment: string;
  /** First damaged byte in that file. */
  readonly offset: number;
  readonly bytes: number;
  /** How many events are lost by it; 0 where only bytes between records were damaged. */
  readonly records: number;
  readonly what: string;
}

const COPY_BYTES_MAX = 1024 * 1024;
const COPIES_MAX = 64;

export class DamageReport {
  /** Events that are known to be lost. */
  records = 0;
  /** Damaged stretches that were found, whether they cost an event or not. */
  stretches = 0;
  readonly #directory: string;
  #copies = 0;

  constructor(
    directory: string,
    private readonly log: Log,
    private readonly onDamage: ((damage: Damage) => void) | undefined,
    /** What the log is called where damage is told. */
    private readonly name = "timeline",
  ) {
    this.#directory = join(directory, "damaged");
  }

  /** `read` gives the damaged bytes, at most as many as it is asked for. */
  add(damage: Damage, read?: (bytesMax: number) => Uint8Array): void {
    this.records += damage.records;
    this.stretches++;
    const copy = read === undefined || damage.bytes === 0 ? undefined : this.#copy(damage, read);
    this.log.error(`damaged ${this.name}: ${damage.what}`, {
      ...damage,
      ...(copy === undefined ? {} : { copy }),
    });
    this.onDamage?.(damage);
  }

  /** Best effort: a copy that cannot be written costs nothing but the copy, the segment keeps the bytes. */
  #copy(damage: Damage, read: (bytesMax: number) => Uint8Array): string | undefined {
    if (this.#copies >= COPIES_MAX) return undefined;
    this.#copies++;
    // The same damage found again by the next start has the same name, so copies do not pile up.
    const path = join(this.#directory, `${damage.segment}.${damage.offset}.bytes`);
    try {
      Deno.mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
      Deno.writeFileSync(path, read(COPY_BYTES_MAX), { mode: 0o600 });
      return path;
    } catch (error) {
      this.log.warn("cannot set damaged bytes aside", { path, error: String(error) });
      return undefined;
    }
  }
}
