/** Delivers one webhook's events in sequence order, one at a time: attempts, retries with delays, dead
 * letters.
 */

import type { Log } from "../../base/log.ts";
import type { Metrics } from "../../contract/metrics.ts";
import { inRootSpan } from "../../base/tracing.ts";
import { unlessAborted } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { cloudEvent, cloudEventBytes } from "../../model/events/cloudevent.ts";
import type { DeliveryRecord, DeliveryState, Gone } from "../../model/webhooks/delivery.ts";
import { LIMITS } from "../../contract/limits.ts";
import {
  type CooldownEntry,
  cooldownKey,
  Cooldowns,
  type CoolingEvent,
} from "../../model/webhooks/cooldown.ts";
import { isForAnyPayload, mayMatch, type Webhook } from "../../model/webhooks/webhook.ts";
import { deliveryHeaders } from "../../model/webhooks/signature.ts";
import type { SendFault } from "../../remote/webhook_sender.ts";
import type { DeliveryLog } from "../../store/webhook_deliveries.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { LongEvent, StoredEvent } from "../../store/timeline/event_reader.ts";
import type { Subscription } from "../../store/timeline/notification_ring.ts";
import { EventMatcher } from "./event_matcher.ts";
import type { HookReceiver } from "./receivers.ts";

export interface WebhookWorkerOptions {
  readonly hook: Webhook;
  readonly receiver: HookReceiver;
  readonly timeline: Timeline;
  readonly deliveries: DeliveryLog;
  readonly world: World;
  readonly metrics: Metrics;
  /** Waits before the second, third and fourth attempt. See docs/events/webhooks.md#webhook-deliveries. */
  readonly retryDelaysMs: readonly number[];
  /** The worker of the webhook that this one goes on for, in another run. */
  readonly previous?: WebhookWorker | undefined;
}

/*
 *      ┌───────────────────────── a new event, or a redelivery was scheduled ◄──┐
 *      ▼                                                                        │
 *   a batch of new events  ──►  a batch of the redelivery  ──►  none was left: wait
 *
 *   one event:  attempt ──2xx──► delivered
 *                  ├─ 410: gone; no event is sent until the owner has it started again
 *                  │ else
 *                  ├─ fewer than four so far: retry, delay ──► attempt
 *                  └─ four, or a body over 1 MiB: dead letter
 *
 *   a new event within the cooldown of its key is counted, and not sent
 *
 * Every outcome is recorded in the delivery log before the next event starts, so a restart continues where
 * this process ended. New events and a redelivery alternate batch by batch, so that neither waits for all of
 * the other.
 * See docs/events/webhooks.md#webhook-deliveries.
 */
export class WebhookWorker {
  readonly #options: WebhookWorkerOptions;
  readonly #log: Log;
  readonly #encoder = new TextEncoder();
  readonly #matcher: EventMatcher;
  /** The cooldowns of this loop: ahead of those of the delivery log by the events between the two cursors. */
  #cooldowns = new Cooldowns();
  #withheld: number;
  /**
   * Every event up to here has an outcome. It is ahead of the delivery log's cursor by events that did not
   * match, which are not recorded one by one.
   */
  #cursorSeq: number;
  #nextAttemptMs: number | null = null;
  #waitingSinceMs: number | null = null;
  /** Resolved when a redelivery was scheduled. */
  #redeliveryScheduled = Promise.withResolvers<void>();
  /** Until it goes on for that one. */
  #previous: WebhookWorker | null;
  #hasEnded = false;
  /** Each is resolved when the cursor has come to its `seq`, or the worker has ended. */
  #passing: { readonly seq: number; readonly passed: () => void }[] = [];

  constructor(options: WebhookWorkerOptions) {
    this.#options = options;
    this.#log = options.world.log.child("webhooks");
    const { hook, timeline } = options;
    this.#matcher = new EventMatcher(hook, timeline);
    this.#cooldowns.apply(this.#state.cooldowns.all);
    this.#withheld = this.#state.withheld;
    // At least the registration and at most the end of the timeline, even if the delivery log has another
    // number.
    this.#cursorSeq = Math.min(Math.max(this.#state.cursorSeq, hook.registeredSeq), timeline.view.lastSeq);
    // The record of taking over is the first one of the webhook.
    this.#previous = this.#state.cursorSeq === 0 ? options.previous ?? null : null;
  }

  get cursorSeq(): number {
    return this.#cursorSeq;
  }

  /** Events that the cooldown has withheld. */
  get withheld(): number {
    return this.#withheld;
  }

  /** How many withheld events no delivery has told of yet. */
  get withheldPending(): number {
    return this.#cooldowns.pending;
  }

  /** When the event that failed is tried again, epoch milliseconds; null while none waits for that. */
  get nextAttemptMs(): number | null {
    return this.#nextAttemptMs;
  }

  /**
   * When the event was written for which an outcome is due, epoch milliseconds; null while none is. A failure
   * of the worker does not end the wait, and an event that is delivered again does not begin one.
   */
  get waitingSinceMs(): number | null {
    return this.#waitingSinceMs;
  }

  /**
   * Returns when the run was deleted and its last event has an outcome: the deletion itself is delivered, and
   * no event follows it. Where a receiver fails all attempts for an event of a deleted run, the remaining
   * events are dropped, as no caller could delete the hook any more. Throws only the reason of `signal`.
   */
  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#run(signal);
    } finally {
      this.#hasEnded = true;
      this.#tellPassed();
    }
  }

  async #run(signal: AbortSignal): Promise<void> {
    for (let failures = 0;; failures++) {
      try {
        if (this.#previous) await this.#takeOver(this.#previous, signal);
        // After a failure, first check that the delivery log can be written: no outcome may go unrecorded.
        if (failures > 0) this.#checkpoint();
        return await this.#deliver(signal);
      } catch (error) {
        signal.throwIfAborted();
        const { webhookId, runId } = this.#options.hook;
        this.#log.error("a webhook worker failed", { webhook_id: webhookId, run_id: runId, error });
        await this.#options.world.sleep(LIMITS.webhook.workerRestartMs, signal);
      }
    }
  }

  /** The receiver that has answered 410 Gone, while it is the one that events would go to; else null. */
  get gone(): Gone | null {
    const { gone } = this.#state;
    return gone !== null && gone.receiver === this.#options.receiver.mark ? gone : null;
  }

  /**
   * Starts it again after 410 Gone, with the events that come from now on; nothing where it has not ended.
   */
  resume(): void {
    if (this.gone === null) return;
    this.#checkpoint();
    this.#record({ seq: this.#cursorSeq, state: "resume", error: null });
    this.redeliver();
  }

  /** Wakes the worker for a redelivery that the delivery log has for it. */
  redeliver(): void {
    this.#redeliveryScheduled.resolve();
  }

  /** Resolves when every event that its run has now has an outcome, or no outcome follows any more. */
  async passed(signal: AbortSignal): Promise<void> {
    const { timeline, hook } = this.#options;
    const seq = timeline.view.run(hook.runId)?.lastSeq ?? 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#passing.push({ seq, passed: resolve });
    this.#tellPassed();
    await unlessAborted(promise, signal);
  }

  /**
   * Records a cursor that is ahead of the delivery log, so that the next start does not read the same events
   * again.
   */
  saveCursor(): void {
    if (this.#previous) return;
    if (this.#cursorSeq > this.#state.cursorSeq) this.#checkpoint();
  }

  /** Waits until the webhook before has come to the end of its run, and goes on with its cooldowns. */
  async #takeOver(previous: WebhookWorker, signal: AbortSignal): Promise<void> {
    await previous.passed(signal);
    const { cooldown } = this.#options.hook;
    const before = previous.#options.hook.cooldown;
    const isSame = cooldown !== null && before !== null && String(cooldown.per) === String(before.per);
    const cooldowns = isSame ? previous.#cooldowns.all : [];
    const { gone } = previous.#state;
    this.#record({
      ...{ seq: this.#cursorSeq, state: "checkpoint", error: null },
      ...(gone && { gone }),
      ...(cooldowns.length > 0 && { cooldowns, withheld_total: this.#withheld }),
    });
    this.#cooldowns.apply(cooldowns);
    this.#previous = null;
  }

  #tellPassed(): void {
    const isPassed = ({ seq }: { readonly seq: number }) => this.#hasEnded || this.#cursorSeq >= seq;
    for (const { passed } of this.#passing.filter(isPassed)) passed();
    this.#passing = this.#passing.filter((each) => !isPassed(each));
  }

  async #deliver(signal: AbortSignal): Promise<void> {
    const { timeline, hook } = this.#options;
    if (this.#state.cursorSeq > this.#cursorSeq) this.#resetCursor();
    using subscription = timeline.subscribe(hook.runId);
    while (true) {
      this.#redeliveryScheduled = Promise.withResolvers();
      this.#countWakeUps(subscription);
      const hadNew = await this.#deliverNew(signal);
      this.#tellPassed();
      const hadOld = await this.#deliverAgain(signal);
      if (hadNew || hadOld) continue;
      const run = timeline.view.run(hook.runId);
      if (run === undefined || run.deleted) return this.saveCursor();
      // Two events that wake the worker, and no deadline; `signal` ends the wait too.
      const isOpen = await Promise.race([
        subscription.changed(signal),
        this.#redeliveryScheduled.promise.then(() => true),
      ]);
      if (!isOpen) throw new Error("Cannot wait for events: the timeline is closed");
    }
  }

  /** One batch of events past the cursor; false when there is none. */
  async #deliverNew(signal: AbortSignal): Promise<boolean> {
    const { timeline, hook, world } = this.#options;
    const run = timeline.view.run(hook.runId);
    const endSeq = run?.lastSeq ?? 0;
    if (this.#cursorSeq >= endSeq) return false;
    if (this.gone !== null) {
      this.#cursorSeq = endSeq;
      this.#checkpointIfFar();
      return true;
    }
    // An event is sent only when it is on the disk: after a power cut it must still exist. See
    // docs/deployment/data-directory.md#durability.
    await timeline.synced();
    let isIdle = true;
    for (const event of await this.#nextBatch(this.#cursorSeq + 1, endSeq)) {
      const cooling = this.#admitted(event);
      if (cooling !== "none") {
        isIdle = false;
        this.#waitingSinceMs = event.ptsMs;
        const outcome = await this.#deliverEvent(event, cooling, signal);
        this.#waitingSinceMs = null;
        if (outcome === "exhausted" && run?.deleted) return this.#dropRest(run.lastSeq);
        if (outcome === "gone") {
          this.#cursorSeq = event.seq;
          break;
        }
      }
      this.#cursorSeq = event.seq;
    }
    this.#checkpointIfFar();
    // A long range without a match must not block other work.
    if (isIdle) await world.sleep(0, signal);
    return true;
  }

  /**
   * Whether a new event is sent: what its cooldown goes by, null without a cooldown; `none` where it is not
   * sent.
   */
  #admitted(event: StoredEvent | LongEvent): Cooling | null | "none" {
    const { hook, metrics } = this.#options;
    if (!("payload" in event)) return this.#isTooLong(event) ? null : "none";
    const { verdict, cooling } = this.#matcher.judge(event);
    if (verdict === "filtered") metrics.add("service_webhook_filtered_total");
    if (verdict !== "wanted") return "none";
    if (hook.cooldown === null || cooling === null) return null;
    const key = cooldownKey(hook.cooldown, cooling);
    if (!this.#cooldowns.withholds(hook.cooldown, key, cooling.ptsMs)) return { ...cooling, key };
    this.#withheld++;
    metrics.add("service_webhook_withheld_total");
    return "none";
  }

  /** One batch of the redelivery; false when there is none. */
  async #deliverAgain(signal: AbortSignal): Promise<boolean> {
    const { redelivery } = this.#state;
    if (redelivery === undefined || this.gone !== null) return false;
    for (const event of await this.#nextBatch(redelivery.fromSeq, redelivery.toSeq)) {
      const isWanted = "payload" in event
        ? this.#matcher.judge(event).verdict === "wanted"
        : this.#isTooLong(event);
      if (isWanted) {
        const outcome = await this.#deliverEvent(event, null, signal);
        if (outcome === "gone") break;
      } else this.#record({ seq: event.seq + 1, state: "redeliver", error: null, to_seq: redelivery.toSeq });
    }
    return true;
  }

  /** The next events that may match; when there are none, the cursor moves to the end of the range. */
  async #nextBatch(fromSeq: number, toSeq: number): Promise<readonly (StoredEvent | LongEvent)[]> {
    const { timeline, hook } = this.#options;
    const kinds = (kind: string) => mayMatch(hook, kind);
    const batch = timeline.readFirst(hook.runId, { fromSeq, toSeq, kinds });
    if (typeof batch === "number") {
      const long = await timeline.readOneInPieces(batch);
      if (long === undefined) return await this.#nextBatch(batch + 1, toSeq); // damaged
      return ["payload" in long || !this.#mustBeRead(long) ? long : await whole(long)];
    }
    if (batch !== undefined) return batch;
    if (fromSeq > this.#cursorSeq) this.#cursorSeq = toSeq;
    else this.#record({ seq: toSeq + 1, state: "redeliver", error: null, to_seq: toSeq });
    return [];
  }

  /**
   * Attempts until one succeeds or all have failed, and records the outcome. This is where a webhook is
   * retried.
   */
  async #deliverEvent(
    event: StoredEvent | LongEvent,
    cooling: Cooling | null,
    signal: AbortSignal,
  ): Promise<"delivered" | "refused" | "exhausted" | "gone"> {
    const { world, metrics, retryDelaysMs } = this.#options;
    const { seq, kind } = event;
    if (!("payload" in event)) return this.#refuse(event, bodyBytesOf(event));
    const withheld = cooling === null ? 0 : this.#cooldowns.withheldOf(cooling.key);
    const body = this.#encoder.encode(cloudEvent(event, withheld));
    if (body.length > LIMITS.webhook.bodyBytesMax) return this.#refuse(event, body.length);
    // Attempts from before a restart count.
    const attempts = this.#state.retry?.seq === seq ? [...this.#state.retry.attempts] : [];
    // What the receiver asked for with the last answer.
    let askedMs = 0;
    while (true) {
      if (attempts.length > 0) {
        await this.#waitForRetry(Math.max(retryDelaysMs[attempts.length - 1] ?? 0, askedMs), signal);
        metrics.add("service_webhook_retries_total");
      }
      attempts.push(Math.floor(world.now()));
      metrics.add("service_webhook_attempts_total");
      const startedMs = world.monotonicMs();
      const fault = await this.#attempt({ event, body, attempts, signal });
      const told = withheld > 0 ? { withheld } : {};
      const ended = {
        attempts: [...attempts],
        took_ms: Math.round(world.monotonicMs() - startedMs),
        kind,
        ...told,
      };
      if (fault === undefined) {
        this.#recordOutcome({ seq, state: "delivered", error: null, ...ended }, cooling);
        metrics.add("service_webhook_delivered_total");
        return "delivered";
      }
      const error = fault.error.slice(0, LIMITS.webhook.errorCharactersMax);
      if (fault.isGone) {
        this.#end({ seq, error, ...ended });
        return "gone";
      }
      if (attempts.length > LIMITS.webhook.retries) {
        this.#deadLetter({ seq, error, ...ended }, cooling);
        return "exhausted";
      }
      this.#record({ seq, state: "retry", error, attempts: [...attempts], ...told });
      askedMs = Math.min(fault.retryAfterMs ?? 0, LIMITS.webhook.retryAfterMsMax);
    }
  }

  async #waitForRetry(delayMs: number, signal: AbortSignal): Promise<void> {
    const { world } = this.#options;
    this.#nextAttemptMs = Math.floor(world.now() + delayMs);
    try {
      await world.sleep(delayMs, signal);
    } finally {
      this.#nextAttemptMs = null;
    }
  }

  #refuse({ seq, kind }: StoredEvent | LongEvent, bodyBytes: number): "refused" {
    const error = `event of ${bodyBytes} bytes is longer than ${LIMITS.webhook.bodyBytesMax}`;
    this.#deadLetter({ seq, error, attempts: [], kind }, null);
    return "refused";
  }

  #attempt({ event: { runId, seq }, body, attempts, signal }: Attempt): Promise<SendFault> {
    const { receiver, world: { tracing }, hook } = this.#options;
    const headers = deliveryHeaders(receiver.key, `${runId}:${seq}`, attempts.at(-1)!, body);
    if (!tracing.isOn) return receiver.post(headers, body, signal);
    const attributes = {
      "http.request.method": "POST",
      "http.request.resend_count": attempts.length - 1,
      "server.address": URL.parse(hook.url)?.hostname ?? "",
      "service.run.id": runId,
      "service.seq": seq,
      "service.webhook.id": hook.webhookId,
    };
    // A trace of its own, as the request that made the event has long been answered.
    return inRootSpan(tracing, "POST webhook", { kind: "client", attributes }, async (span) => {
      const traceparent = tracing.traceparent();
      const fault = await receiver.post({ ...headers, ...(traceparent && { traceparent }) }, body, signal);
      if (fault !== undefined) span.failed("delivery_failed");
      return fault;
    });
  }

  #deadLetter(letter: Omit<DeliveryRecord, "webhook_id" | "state">, cooling: Cooling | null): void {
    this.#recordOutcome({ ...letter, state: "dead_letter" }, cooling);
    this.#options.metrics.add("service_webhook_dead_letters_total");
  }

  /** Ends the webhook with the event to which its receiver answered 410. */
  #end(last: Omit<DeliveryRecord, "webhook_id" | "state">): void {
    const { hook: { webhookId, runId }, receiver, world } = this.#options;
    const gone = { since_ms: Math.floor(world.now()), receiver: receiver.mark };
    const record = { ...last, state: "gone" as const, gone };
    if (last.seq <= this.#cursorSeq) this.#record(record);
    else this.#recordWithCooldowns(record, []);
    const ids = { webhook_id: webhookId, run_id: runId, seq: last.seq };
    this.#log.warn("a webhook is sent no more events, as its receiver answered 410 Gone", ids);
  }

  /** For a deleted run: moves the cursors past its last event. */
  #dropRest(lastSeq: number): true {
    const { webhookId, runId } = this.#options.hook;
    const unsent = {
      webhook_id: webhookId,
      run_id: runId,
      after_seq: this.#state.cursorSeq,
      last_seq: lastSeq,
    };
    this.#log.warn("dropped the remaining deliveries of a deleted run's webhook", unsent);
    this.#cursorSeq = lastSeq;
    this.#record({ seq: lastSeq + 1, state: "redeliver", error: null, to_seq: lastSeq });
    this.#checkpoint();
    return true;
  }

  /**
   * After a power cut the timeline may have lost events that were delivered. Their sequence numbers are used
   * again, so the cursor moves back to the end of the timeline.
   */
  #resetCursor(): void {
    const { cursorSeq, lastError, failingSinceMs, gone, delivered, deadLetters } = this.#state;
    const seqs = { webhook_id: this.#options.hook.webhookId, from_seq: cursorSeq, to_seq: this.#cursorSeq };
    this.#log.warn("a webhook's cursor was past the end of the timeline and was moved back", seqs);
    const totals = {
      ...{ delivered, dead_letters: deadLetters, failing_since_ms: failingSinceMs },
      ...(gone && { gone }),
    };
    const cooldowns = { cooldowns: this.#state.cooldowns.all, withheld_total: this.#state.withheld };
    this.#record({ seq: this.#cursorSeq, state: "checkpoint", error: lastError, ...totals, ...cooldowns });
  }

  #checkpointIfFar(): void {
    if (this.#cursorSeq - this.#state.cursorSeq >= UNSAVED_EVENTS_MAX) this.#checkpoint();
  }

  #checkpoint(): void {
    this.#recordWithCooldowns({ seq: this.#cursorSeq, state: "checkpoint", error: null }, []);
  }

  /** A redelivery, and an event without a cooldown, changes no cooldown. */
  #recordOutcome(
    record: Omit<DeliveryRecord, "webhook_id"> & { readonly state: "delivered" | "dead_letter" },
    cooling: Cooling | null,
  ): void {
    if (record.seq <= this.#cursorSeq) return this.#record(record);
    const after = cooling && this.#cooldowns.after(cooling.key, cooling.ptsMs, record.state);
    this.#recordWithCooldowns(record, after ? [after] : []);
  }

  /** For a record that moves the cursor: with it the cooldowns are recorded as they are there. */
  #recordWithCooldowns(record: Omit<DeliveryRecord, "webhook_id">, after: readonly CooldownEntry[]): void {
    if (this.#options.hook.cooldown === null) return this.#record(record);
    const cooldowns = [...this.#cooldowns.changed, ...after];
    this.#record({ ...record, cooldowns, withheld_total: this.#withheld });
    this.#cooldowns.apply(after);
  }

  #record(record: Omit<DeliveryRecord, "webhook_id">): void {
    const { deliveries, hook } = this.#options;
    deliveries.append(hook.runId, { webhook_id: hook.webhookId, ...record });
  }

  /**
   * Whether it depends on the payload what becomes of a long event. One that is too long to be sent meets no
   * filter.
   */
  #mustBeRead(event: LongEvent): boolean {
    const { hook } = this.#options;
    const isSendable = bodyBytesOf(event) <= LIMITS.webhook.bodyBytesMax;
    return isSendable || (hook.filter === null && !isForAnyPayload(hook, event.kind));
  }

  /** Whether an event that is not read is given up, as it is too long to be sent. */
  #isTooLong(event: LongEvent): boolean {
    return isForAnyPayload(this.#options.hook, event.kind);
  }

  get #state(): DeliveryState {
    const { deliveries, hook } = this.#options;
    return deliveries.stateOf(hook.runId, hook.webhookId);
  }

  #countWakeUps(subscription: Subscription): void {
    const { metrics } = this.#options;
    const { lagged, events } = subscription.drain();
    // The log is read from the cursor either way, so a subscription that has lagged loses no event.
    if (lagged) metrics.add("service_webhook_notification_lag_total");
    else if (events.length > 1) metrics.add("service_webhook_wake_coalesced_total", events.length - 1);
  }
}

interface Attempt {
  readonly event: StoredEvent;
  readonly body: Uint8Array;
  /** When each was made, this one last. */
  readonly attempts: readonly number[];
  readonly signal: AbortSignal;
}

/** The cursor may run ahead of the delivery log by this many events that are not sent. */
const UNSAVED_EVENTS_MAX = 1024;

/** With the key that its cooldown counts by. */
type Cooling = CoolingEvent & { readonly key: string };

function bodyBytesOf(event: LongEvent): number {
  return cloudEventBytes(event, event.payloadBytes);
}

async function whole(event: LongEvent): Promise<StoredEvent> {
  const { pieces, payloadBytes: _, ...columns } = event;
  return { ...columns, payload: (await Array.fromAsync(pieces)).join("") };
}
