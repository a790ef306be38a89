/** Damage in a log: counts and reports it, and copies the damaged bytes to a file that an operator can look
 * at.
 */

import { join } from "node:path";
import type { Log } from "../../base/log.ts";

/** One damaged range of bytes in the log. */
export interface Damage {
  /** File name of the segment. */
  readonly segment: string;
  /** First damaged byte in that file. */
  readonly offset: number;
  readonly bytes: number;
  /** How many events are lost; 0 where only bytes between records were damaged. */
  readonly records: number;
  readonly what: string;
}

const COPY_BYTES_MAX = 1024 * 1024;
const COPIES_MAX = 64;

export class DamageReport {
  /** Events that are known to be lost. */
  records = 0;
  /** Damaged ranges that were found since the log was opened. */
  ranges = 0;
  readonly #directory: string;
  readonly #log: Log;
  readonly #onDamage: ((damage: Damage) => void) | undefined;
  readonly #name: string;
  #copies = 0;

  /** `name`: what the log is called in the messages. */
  constructor(
    directory: string,
    log: Log,
    onDamage: ((damage: Damage) => void) | undefined,
    name = "timeline",
  ) {
    this.#directory = join(directory, "damaged");
    this.#log = log;
    this.#onDamage = onDamage;
    this.#name = name;
  }

  /** Counts and reports damage; `read` returns the damaged bytes, at most as many as its argument says. */
  add(damage: Damage, read?: (bytesMax: number) => Uint8Array): void {
    this.records += damage.records;
    this.ranges += 1;
    const copy = read === undefined || damage.bytes === 0 ? undefined : this.#copy(damage, read);
    this.#log.error(`damaged ${this.#name}: ${damage.what}`, {
      ...damage,
      ...(copy === undefined ? {} : { copy }),
    });
    this.#onDamage?.(damage);
  }

  /**
   * Copies the damaged bytes to a file, if possible: when the copy cannot be written, the segment still has
   * them.
   */
  #copy(damage: Damage, read: (bytesMax: number) => Uint8Array): string | undefined {
    if (this.#copies >= COPIES_MAX) return undefined;
    this.#copies++;
    // The next start finds the same damage again and writes to the same name, so there is one copy of it.
    const path = join(this.#directory, `${damage.segment}.${damage.offset}.bytes`);
    try {
      Deno.mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
      Deno.writeFileSync(path, read(COPY_BYTES_MAX), { mode: 0o600 });
      return path;
    } catch (error) {
      this.#log.warn("cannot copy damaged bytes", { path, error: String(error) });
      return undefined;
    }
  }
}
