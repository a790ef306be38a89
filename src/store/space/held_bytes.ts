/** What the runs on hold of one principal may have: retention cannot remove them, so they have a bound. See
 * docs/retention.md#holds.
 */

import { refuse } from "../../contract/refusal.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { RunView } from "../../model/runs/run.ts";
import type { TimelineView } from "../../model/runs/run_register.ts";

export interface HeldBytesOptions {
  readonly view: Pick<TimelineView, "heldBytes">;
  /** SERVICE_RETENTION_RUN_BYTES; without it runs on hold have no bound. */
  readonly runBytes: number | undefined;
}

export class HeldBytes {
  readonly #view: HeldBytesOptions["view"];
  readonly #bytesMax: number;

  constructor({ view, runBytes }: HeldBytesOptions) {
    this.#view = view;
    this.#bytesMax = runBytes === undefined ? Infinity : Math.floor(runBytes * LIMITS.retention.heldPart);
  }

  /** Refuses with 409 `run_id` a hold beyond which the principal would hold too much. */
  requireHold({ principalKey, logBytes }: Pick<RunView, "principalKey" | "logBytes">): void {
    const held = this.#view.heldBytes(principalKey);
    if (held + logBytes <= this.#bytesMax) return;
    throw refuse.conflict(
      "run_id",
      `Cannot hold the run: it has ${logBytes} bytes, your runs on hold have ${held}, and together they may have ` +
        `${this.#bytesMax}. End another hold first`,
    );
  }

  /** Refuses with 507 `storage_quota` to write `bytes` more to runs that are on hold. */
  requireRoom(principalKey: string, bytes: number): void {
    const held = this.#view.heldBytes(principalKey);
    if (held + bytes <= this.#bytesMax) return;
    throw refuse.because(
      "storage_quota",
      `Cannot write more to a run on hold: your runs on hold have ${held} of the ${this.#bytesMax} bytes that they may ` +
        `have together, and this needs ${bytes}. End a hold first`,
    );
  }
}
