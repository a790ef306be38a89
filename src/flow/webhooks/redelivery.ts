/** Schedules events that a webhook has passed to be delivered again. */

import { refuse } from "../../contract/refusal.ts";
import type { World } from "../../base/world.ts";
import type { RedeliverBody, ScheduledRedelivery } from "../../model/api/webhooks.ts";
import type { DeliveryState, Redelivery } from "../../model/webhooks/delivery.ts";
import { mayMatch, type Webhook } from "../../model/webhooks/webhook.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { Caller } from "../caller.ts";
import { ownedRun } from "../runs/ownership.ts";
import { EventMatcher } from "./event_matcher.ts";
import type { HookRegistry } from "./hook_registry.ts";

export interface RedeliverySchedulerOptions {
  readonly timeline: Timeline;
  readonly world: World;
  readonly hooks: HookRegistry;
}

/** See docs/events/webhooks.md#redelivery. */
export class RedeliveryScheduler {
  readonly #options: RedeliverySchedulerOptions;

  constructor(options: RedeliverySchedulerOptions) {
    this.#options = options;
  }

  /**
   * Schedules the events of the range that the hook's filter lets through, delivered, given up or withheld,
   * under the same event ids; without bounds that is everything since the registration. Events that the hook
   * has not reached yet are left out, as they are sent anyway. A webhook whose receiver is gone is started
   * again. The schedule survives a restart. Errors: 422 or 404 on `run_id`, 404 on `webhook_id`, 422 on
   * `from_seq` when it is past `to_seq`, 409 on `webhook_id` while another redelivery is under way, 503 while
   * webhooks are off.
   */
  async schedule(
    caller: Caller,
    runId: string,
    webhookId: string,
    { from_seq, to_seq }: RedeliverBody,
  ): Promise<ScheduledRedelivery> {
    const { timeline, hooks } = this.#options;
    ownedRun(timeline.view, caller, runId);
    const { hook, worker } = hooks.find(runId, webhookId);
    if (from_seq != null && to_seq != null && from_seq > to_seq) {
      throw refuse.invalid("from_seq", `must not be past to_seq, ${to_seq}: got ${from_seq}`);
    }
    // First, so that no event from now on is left out. Without a worker nothing is sent: that is refused
    // below.
    worker?.resume();
    const range = {
      fromSeq: Math.max(from_seq ?? 0, hook.registeredSeq + 1),
      toSeq: Math.min(to_seq ?? Infinity, this.#idleState(hook).cursorSeq),
    };
    const { scheduled, lastSeq } = await this.#count(hook, range, caller.signal);
    if (scheduled > 0) {
      hooks.find(runId, webhookId); // it may have been deleted
      this.#idleState(hook); // again: another redelivery may have been scheduled while this one counted
      // The range ends at the last match, so that the record of its delivery also ends the redelivery.
      hooks.deliveries!.append(runId, {
        webhook_id: webhookId,
        seq: range.fromSeq,
        state: "redeliver",
        error: null,
        to_seq: lastSeq,
      });
      worker?.redeliver();
    }
    return { run_id: runId, webhook_id: webhookId, from_seq: range.fromSeq, to_seq: range.toSeq, scheduled };
  }

  /** The hook's state; refuses while webhooks are off, and while another redelivery is under way. */
  #idleState({ runId, webhookId }: Webhook): DeliveryState {
    const state = this.#options.hooks.deliveries?.stateOf(runId, webhookId);
    if (!state) throw refuse.because("webhooks_unavailable", "Webhooks are unavailable: nothing can be sent");
    if (state.redelivery) {
      const { fromSeq, toSeq } = state.redelivery;
      throw refuse.conflict("webhook_id", `A redelivery of ${fromSeq} to ${toSeq} is under way`);
    }
    return state;
  }

  /** How many events of the range the hook matches, and the last of them. */
  async #count(hook: Webhook, { fromSeq, toSeq }: Redelivery, signal: AbortSignal) {
    const { timeline, world } = this.#options;
    let [scheduled, lastSeq] = [0, 0];
    if (fromSeq > toSeq) return { scheduled, lastSeq };
    const kinds = (kind: string) => mayMatch(hook, kind);
    const matcher = new EventMatcher(hook, timeline);
    for (const batch of timeline.read(hook.runId, { fromSeq, toSeq, kinds })) {
      for (const stored of batch) {
        if (matcher.judge(stored).verdict !== "wanted") continue;
        scheduled++;
        lastSeq = stored.seq;
      }
      await world.sleep(0, signal);
    }
    return { scheduled, lastSeq };
  }
}
