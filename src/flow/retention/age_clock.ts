/** The time by which retention judges ages: it never runs faster than time passes, so that a clock that jumps
 * ahead deletes nothing.
 */

import type { World } from "../../base/world.ts";

/**
 * ```
 *   wall clock   12:00 ── 12:10 ──┐ jumps a year ahead        next year 12:20 ──┐ is set right
 *   this clock   12:00 ── 12:10 ── 12:10 ─────────────────────────────── 12:20 ── 12:21
 * ```
 *
 * What the wall clock runs ahead of the monotonic one is held back, until it falls back or the service starts
 * again.
 */
export class AgeClock implements Pick<World, "now"> {
  readonly #world: Pick<World, "now" | "monotonicMs">;
  #wallMs: number;
  #monotonicMs: number;
  #aheadMs = 0;

  constructor(world: Pick<World, "now" | "monotonicMs">) {
    this.#world = world;
    this.#wallMs = world.now();
    this.#monotonicMs = world.monotonicMs();
  }

  /** Epoch milliseconds. */
  now(): number {
    const [wallMs, monotonicMs] = [this.#world.now(), this.#world.monotonicMs()];
    const gainedMs = wallMs - this.#wallMs - (monotonicMs - this.#monotonicMs);
    this.#aheadMs = Math.max(0, this.#aheadMs + gainedMs);
    this.#wallMs = wallMs;
    this.#monotonicMs = monotonicMs;
    return wallMs - this.#aheadMs;
  }

  /** By how much the wall clock has run ahead since the start. */
  get aheadMs(): number {
    this.now();
    return this.#aheadMs;
  }
}
