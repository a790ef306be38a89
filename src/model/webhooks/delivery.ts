/** The deliveries of a webhook: the records of the delivery log, and the state that follows from them. */

import { LIMITS } from "../../contract/limits.ts";
import { type CooldownEntry, Cooldowns } from "./cooldown.ts";

/**
 * One record of the delivery log. The right column has the additional fields of a state. See
 * docs/protocols.md#delivery-log.
 *
 *   retry        an attempt failed and will be repeated         attempts, withheld
 *   delivered    the receiver accepted the event                attempts, took_ms, kind, withheld
 *   dead_letter  the event was given up                         attempts, took_ms, kind, withheld
 *   gone         the receiver answered 410 to the event, and is sent nothing more  attempts, took_ms, kind, withheld, gone
 *   resume       the owner has started the webhook again after that
 *   checkpoint   no event up to seq needs a delivery; with the totals it replaces the whole state before it
 *   redeliver    matching events from seq to to_seq are sent again  to_seq
 *
 * A record that moves the cursor of a webhook with a cooldown also has `cooldowns` and `withheld_total`. A
 * checkpoint has `gone` where the receiver is gone.
 */
export interface DeliveryRecord {
  readonly webhook_id: string;
  readonly seq: number;
  readonly state: "retry" | DeliveryOutcome | "checkpoint" | "redeliver" | "resume";
  readonly error: string | null;
  /** When each attempt so far began, epoch milliseconds. */
  readonly attempts?: readonly number[];
  /** How long the last attempt took. */
  readonly took_ms?: number;
  /** Kind of the event. */
  readonly kind?: string;
  readonly to_seq?: number;
  readonly gone?: Gone;
  /** How many withheld events the delivery told of. */
  readonly withheld?: number;
  /** The cooldowns that changed. */
  readonly cooldowns?: readonly CooldownEntry[];
  /** Events withheld so far. */
  readonly withheld_total?: number;
  /** Totals of a checkpoint that replaces the state; its `error` is then the last error. */
  readonly delivered?: number;
  readonly dead_letters?: number;
  readonly failing_since_ms?: number | null;
}

/** What may become of an event that is sent: it is accepted or given up, or its receiver is gone. */
export const DELIVERY_OUTCOMES = ["delivered", "dead_letter", "gone"] as const;

export type DeliveryOutcome = typeof DELIVERY_OUTCOMES[number];

/** A receiver that has answered 410 Gone: nothing more is sent to it. */
export interface Gone {
  readonly since_ms: number;
  /**
   * The receiver of a webhook of the file of sources that has answered so: another text after a change of it;
   * null for other webhooks.
   */
  readonly receiver: string | null;
}

/** An event that was given up. */
export interface DeadLetter {
  readonly seq: number;
  readonly error: string;
  /** When each attempt began, epoch milliseconds; empty for a body that is too long to be sent. */
  readonly attempts: readonly number[];
}

/** What became of an event. */
export interface Delivery {
  readonly seq: number;
  readonly outcome: DeliveryOutcome;
  /** The kind of the event; null in records of versions that did not write it. */
  readonly kind: string | null;
  /** The error of the last attempt; null where the event was delivered. */
  readonly error: string | null;
  /** When each attempt began, epoch milliseconds. */
  readonly attempts: readonly number[];
  /**
   * How long the last attempt took; null where there was none, and in records of versions that did not write
   * it.
   */
  readonly tookMs: number | null;
  /** How many withheld events the delivery told of. */
  readonly withheld: number;
}

/** A range of events that is sent again; both ends belong to it. */
export interface Redelivery {
  readonly fromSeq: number;
  readonly toSeq: number;
}

/** The deliveries of one webhook. Only `fold` changes it. */
export class DeliveryState {
  /** Every event up to this seq is delivered, given up, or not for this webhook. */
  cursorSeq = 0;
  delivered = 0;
  deadLetters = 0;
  /** The error of the last attempt; null after a success. */
  lastError: string | null = null;
  /** The newest events that were given up, by seq; one that was delivered again is removed. */
  recentDeadLetters: readonly DeadLetter[] = [];
  /**
   * The outcomes of the last events, the oldest first. An event that was sent again is there once for each
   * time.
   */
  recentDeliveries: readonly Delivery[] = [];
  /** When the first attempt since the last success began, where it failed; null while deliveries succeed. */
  failingSinceMs: number | null = null;
  /** The receiver's answer 410; null until it comes, and after a success. */
  gone: Gone | null = null;
  /** The event that is being retried, and the start times of its attempts. */
  retry:
    | { readonly seq: number; readonly attempts: readonly number[]; readonly withheld: number }
    | undefined;
  /** The events that are still to be sent again; never beyond the cursor. */
  redelivery: Redelivery | undefined;
  /** The cooldowns as of the cursor. */
  cooldowns = new Cooldowns();
  /** Events that the cooldown has withheld. */
  withheld = 0;

  constructor(readonly runId: string) {}

  fold(record: DeliveryRecord): void {
    const { seq, error, attempts = [], withheld = 0 } = record;
    switch (record.state) {
      case "retry":
        this.retry = { seq, attempts, withheld };
        this.#fail(error, attempts);
        break;
      case "delivered":
        this.delivered++;
        this.lastError = null;
        this.failingSinceMs = null;
        this.gone = null;
        this.#keepDelivery(record, "delivered");
        this.#forgetDeadLetter(seq);
        this.#finish(seq);
        break;
      case "dead_letter":
        this.deadLetters++;
        this.#fail(error, attempts);
        this.#keepDelivery(record, "dead_letter");
        this.#forgetDeadLetter(seq);
        this.#keepDeadLetter({ seq, error: error ?? "", attempts });
        this.#finish(seq);
        break;
      case "gone":
        this.gone = record.gone ?? null;
        this.#fail(error, attempts);
        this.#keepDelivery(record, "gone");
        this.#finish(seq);
        this.redelivery = undefined;
        break;
      case "resume":
        this.gone = null;
        break;
      case "checkpoint":
        this.#checkpoint(record);
        break;
      case "redeliver":
        this.#redeliver({ fromSeq: seq, toSeq: record.to_seq ?? 0 });
        break;
    }
    this.cooldowns.apply(record.cooldowns ?? []);
    this.withheld = record.withheld_total ?? this.withheld;
  }

  /** The fewest records that, folded in order, give this state again. */
  records(webhookId: string): DeliveryRecord[] {
    const of = (seq: number, state: DeliveryRecord["state"], error: string | null) => ({
      webhook_id: webhookId,
      seq,
      state,
      error,
    });
    const { cursorSeq, delivered, deadLetters, lastError, failingSinceMs, gone, retry, redelivery } = this;
    const { recentDeadLetters, recentDeliveries } = this;
    // Where a dead letter is none of the last outcomes, so many came after it that it is none of them again.
    const older = recentDeadLetters.filter(({ seq }) =>
      !recentDeliveries.some((other) => other.seq === seq && other.outcome === "dead_letter")
    );
    const records: DeliveryRecord[] = older.map(({ seq, error, attempts }) => ({
      ...of(seq, "dead_letter", error),
      attempts,
    }));
    for (const { seq, outcome, kind, error, attempts, tookMs, withheld } of recentDeliveries) {
      records.push({
        ...of(seq, outcome, error),
        attempts,
        ...(tookMs !== null && { took_ms: tookMs }),
        ...(kind !== null && { kind }),
        ...(withheld > 0 && { withheld }),
      });
    }
    if (retry) {
      const { seq, attempts, withheld } = retry;
      records.push({ ...of(seq, "retry", lastError), attempts, ...(withheld > 0 && { withheld }) });
    }
    const cooldowns = this.cooldowns.all;
    records.push({
      ...of(cursorSeq, "checkpoint", lastError),
      delivered,
      dead_letters: deadLetters,
      failing_since_ms: failingSinceMs,
      ...(gone && { gone }),
      ...(cooldowns.length > 0 && { cooldowns, withheld_total: this.withheld }),
    });
    if (redelivery) records.push({ ...of(redelivery.fromSeq, "redeliver", null), to_seq: redelivery.toSeq });
    return records;
  }

  /** Ends an event. A redelivered one is at or before the cursor; every other one moves the cursor. */
  #finish(seq: number): void {
    if (this.retry?.seq === seq) this.retry = undefined;
    const { redelivery } = this;
    if (seq > this.cursorSeq) this.cursorSeq = seq;
    else if (redelivery && seq >= redelivery.fromSeq) this.#redeliver({ ...redelivery, fromSeq: seq + 1 });
  }

  #redeliver(range: Redelivery): void {
    const { fromSeq, toSeq } = range;
    this.redelivery = fromSeq <= toSeq && toSeq <= this.cursorSeq ? range : undefined;
  }

  #checkpoint({ seq, error, delivered, dead_letters, failing_since_ms, gone }: DeliveryRecord): void {
    if (delivered === undefined || dead_letters === undefined) {
      this.cursorSeq = Math.max(this.cursorSeq, seq);
      this.gone = gone ?? this.gone;
      return;
    }
    this.cursorSeq = seq;
    this.delivered = delivered;
    this.deadLetters = dead_letters;
    this.lastError = error;
    this.failingSinceMs = failing_since_ms ?? null;
    this.gone = gone ?? null;
    this.redelivery = undefined;
    this.cooldowns = new Cooldowns();
    this.withheld = 0;
  }

  #fail(error: string | null, attempts: readonly number[]): void {
    this.lastError = error;
    this.failingSinceMs ??= attempts[0] ?? null;
  }

  #keepDelivery(record: DeliveryRecord, outcome: DeliveryOutcome): void {
    const { seq, kind = null, attempts = [], took_ms: tookMs = null, withheld = 0 } = record;
    const error = outcome === "delivered" ? null : record.error ?? "";
    const delivery = { seq, outcome, kind, error, attempts, tookMs, withheld };
    this.recentDeliveries = [...this.recentDeliveries, delivery].slice(
      -LIMITS.webhook.recentDeliveriesMax,
    );
  }

  #forgetDeadLetter(seq: number): void {
    if (!this.recentDeadLetters.some((letter) => letter.seq === seq)) return;
    this.recentDeadLetters = this.recentDeadLetters.filter((letter) => letter.seq !== seq);
  }

  #keepDeadLetter(letter: DeadLetter): void {
    const letters = [...this.recentDeadLetters, letter].sort((left, right) => left.seq - right.seq);
    this.recentDeadLetters = letters.slice(-LIMITS.webhook.recentDeadLettersMax);
  }
}

/** JSON text as a record; undefined for other text, so that records of another version are ignored. */
export function deliveryRecord(json: string): DeliveryRecord | undefined {
  const record = parsed(json) as DeliveryRecord | null | undefined;
  const isRecord = typeof record === "object" && record !== null &&
    typeof record.webhook_id === "string" && Number.isSafeInteger(record.seq) && STATES.has(record.state) &&
    (record.error === null || typeof record.error === "string") &&
    (record.attempts === undefined || Array.isArray(record.attempts)) &&
    (record.gone === undefined || Number.isSafeInteger(record.gone?.since_ms)) &&
    (record.cooldowns === undefined || Array.isArray(record.cooldowns));
  return isRecord ? record : undefined;
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

const STATES: ReadonlySet<unknown> = new Set([
  "retry",
  ...DELIVERY_OUTCOMES,
  "checkpoint",
  "redeliver",
  "resume",
]);
