/** The cooldown of a webhook: which events it withholds, and the state that follows from that. See
 * docs/events/webhooks.md#cooldown.
 */

import type { FieldRules } from "../field_rules.ts";
import { LIMITS } from "../../contract/limits.ts";
import { COOLDOWN_KEYS } from "../events/run_payloads.ts";
import type { EventFacts } from "./filter.ts";

/** The cooldown of a webhook: after a delivery, further events with the same key are withheld for so long. */
export interface Cooldown {
  readonly interval_ms: number;
  /** The parts of the key, in the order of `COOLDOWN_KEYS`; may be empty, for one cooldown of all events. */
  readonly per: readonly typeof COOLDOWN_KEYS[number][];
}

export interface GivenCooldown {
  readonly interval_ms: number;
  readonly per?: readonly typeof COOLDOWN_KEYS[number][] | null | undefined;
}

/** The cooldown of a request. Its faults go to `rules`, under `cooldown.<field>`. */
export function checkedCooldown(given: GivenCooldown | null | undefined, rules: FieldRules): Cooldown | null {
  if (given == null) return null;
  const { interval_ms } = given;
  rules.range("cooldown.interval_ms", interval_ms, LIMITS.webhook.cooldownMs);
  const chosen = given.per ?? ["kind", "source"];
  return { interval_ms, per: COOLDOWN_KEYS.filter((name) => chosen.includes(name)) };
}

/** The cooldown in a stored event; null for anything else. */
export function storedCooldown(value: unknown): Cooldown | null {
  const { interval_ms, per } = (value ?? {}) as { interval_ms?: unknown; per?: unknown };
  if (typeof interval_ms !== "number" || !Array.isArray(per)) return null;
  return { interval_ms, per: COOLDOWN_KEYS.filter((name) => per.includes(name)) };
}

/** One key: when its last delivered event was written, and how many it has withheld since. */
export interface CooldownEntry {
  readonly key: string;
  /**
   * When the last delivered event was written, epoch milliseconds; null where the next event is delivered
   * whatever its time.
   */
  readonly since_ms: number | null;
  /** How many withheld events the receiver was not told of yet. */
  readonly withheld: number;
}

/** What decides whether an event is withheld. */
export interface CoolingEvent {
  readonly kind: string;
  /** The time of the event; of an explanation, the time of the event that is explained. */
  readonly ptsMs: number;
  readonly facts: EventFacts;
  readonly sourceUri: string | null;
}

/** The key of an event, as text. */
export function cooldownKey({ per }: Cooldown, { kind, facts, sourceUri }: CoolingEvent): string {
  const parts = {
    kind,
    label: facts.sightings.flatMap(({ labels }) => labels)[0] ?? null,
    zone: facts.zone,
    source: sourceUri,
  };
  const shortened = (text: string | null) => text?.slice(0, LIMITS.webhook.cooldownKeyCharacters) ?? null;
  return JSON.stringify(per.map((name) => shortened(parts[name])));
}

/**
 * The cooldowns of one webhook by key. What they decide depends on the events alone, on their order and on
 * the times at which they were written: after a restart the same events are withheld again. The key that was
 * unused longest goes beyond the limit.
 */
export class Cooldowns {
  readonly #entries = new Map<string, CooldownEntry>();
  readonly #changed = new Set<string>();

  /** How many events were withheld of which no delivery has told. */
  get pending(): number {
    return this.all.reduce((sum, { withheld }) => sum + withheld, 0);
  }

  get all(): readonly CooldownEntry[] {
    return [...this.#entries.values()];
  }

  /** The entries that `withholds` has changed since the last `apply`. */
  get changed(): readonly CooldownEntry[] {
    return [...this.#changed].flatMap((key) => this.#entries.get(key) ?? []);
  }

  /**
   * Whether the event is withheld, which is counted then. An event from before the last one is not: a clock
   * was set back.
   */
  withholds({ interval_ms }: Cooldown, key: string, ptsMs: number): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.since_ms === null) return false;
    const sinceMs = ptsMs - entry.since_ms;
    if (sinceMs < 0 || sinceMs >= interval_ms) return false;
    this.#set({ ...entry, withheld: entry.withheld + 1 });
    this.#changed.add(key);
    return true;
  }

  /** What the delivery of the next event with the key tells. */
  withheldOf(key: string): number {
    return this.#entries.get(key)?.withheld ?? 0;
  }

  /**
   * How the key stands after an event with it: one that was given up ends the cooldown, and has told nothing.
   */
  after(key: string, ptsMs: number, outcome: "delivered" | "dead_letter"): CooldownEntry {
    return outcome === "delivered"
      ? { key, since_ms: ptsMs, withheld: 0 }
      : { key, since_ms: null, withheld: this.withheldOf(key) };
  }

  /** Takes over what the delivery log has recorded. */
  apply(entries: readonly CooldownEntry[]): void {
    for (const entry of entries) this.#set(entry);
    this.#changed.clear();
  }

  #set(entry: CooldownEntry): void {
    this.#entries.delete(entry.key);
    this.#entries.set(entry.key, entry);
    if (this.#entries.size <= LIMITS.webhook.cooldownKeysMax) return;
    const [oldest] = this.#entries.keys();
    this.#entries.delete(oldest!);
  }
}
