/** Webhooks of runs: registers, lists and deletes them, and has events delivered again. */

import { refuse } from "../../contract/refusal.ts";
import type { World } from "../../base/world.ts";
import type {
  ListedDelivery,
  ListedWebhook,
  RedeliverBody,
  RegisteredWebhook,
  RegisterWebhookBody,
  ScheduledRedelivery,
  SentDelivery,
  WebhookOfRun,
} from "../../model/api/webhooks.ts";
import { event } from "../../model/events/event_table.ts";
import type { RunView } from "../../model/runs/run.ts";
import type { DeliveryState } from "../../model/webhooks/delivery.ts";
import { FieldRules } from "../../model/field_rules.ts";
import { checkedCooldown } from "../../model/webhooks/cooldown.ts";
import { checkedFilter } from "../../model/webhooks/filter.ts";
import { signingKey } from "../../model/webhooks/signature.ts";
import { newWebhookId, type Webhook, webhookKinds, webhookTarget } from "../../model/webhooks/webhook.ts";
import { AddressRefused } from "../../remote/guard/address_guard.ts";
import { checkWebhookTarget } from "../../remote/webhook_sender.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { DeliveryLog } from "../../store/webhook_deliveries.ts";
import type { Caller } from "../caller.ts";
import { cursorNumbers, type ListPage, pageOf, type PageQuery } from "../list_page.ts";
import { ownedRun } from "../runs/ownership.ts";
import { DeliveryReads } from "./deliveries.ts";
import type { HookRegistry, RegisteredHook } from "./hook_registry.ts";
import { RedeliveryScheduler } from "./redelivery.ts";

export interface WebhooksOptions {
  readonly timeline: Timeline;
  readonly world: World;
  readonly hooks: HookRegistry;
  readonly allowPrivate: boolean;
}

/** See docs/events/webhooks.md. A delivery that fails is retried by `WebhookWorker`. */
export class Webhooks {
  readonly #options: WebhooksOptions;
  readonly #redeliveries: RedeliveryScheduler;
  readonly #deliveries: DeliveryReads;

  constructor(options: WebhooksOptions) {
    this.#options = options;
    const { timeline, world, hooks } = options;
    this.#redeliveries = new RedeliveryScheduler({ timeline, world, hooks });
    this.#deliveries = new DeliveryReads({ timeline, hooks });
  }

  /**
   * Errors, in this order: 422 or 404 on `run_id`, 422 on `url`, 422 on `event_kinds`, 422 on every faulty
   * field of `filter` and `cooldown`, 503 `webhooks_unavailable` without a root secret, without a delivery
   * log, at the limit and beyond the share. A terminal run takes hooks, too.
   */
  async register(caller: Caller, runId: string, body: RegisterWebhookBody): Promise<RegisteredWebhook> {
    const { timeline, world, allowPrivate, hooks } = this.#options;
    ownedRun(timeline.view, caller, runId);
    const { url } = webhookTarget(body.url, allowPrivate);
    await this.#checkHost(url, caller.signal);
    const eventKinds = webhookKinds(body.event_kinds ?? []);
    const rules = new FieldRules();
    const filter = checkedFilter(body.filter, rules);
    const cooldown = checkedCooldown(body.cooldown, rules);
    rules.check();
    // No `await` from here on, so that no other registration takes the last place in between.
    ownedRun(timeline.view, caller, runId);
    const delivering = hooks.requireRoom(caller.principalKey);
    const webhookId = newWebhookId(world.randomBytes);
    const wanted = { webhookId, runId, url, eventKinds, filter, cooldown, source: null };
    const registeredSeq = this.#commit(delivering.deliveries, wanted);
    hooks.add({ ...wanted, registeredSeq }, delivering);
    return {
      run_id: runId,
      webhook_id: webhookId,
      url,
      event_kinds: eventKinds,
      filter,
      cooldown,
      registered_seq: registeredSeq,
      signing_secret: signingKey(delivering.sending.secret, runId, webhookId).toHex(),
    };
  }

  /**
   * What signs the deliveries of a webhook, as its registration answered. Errors: 503 `webhooks_unavailable`.
   */
  signingSecret(runId: string, webhookId: string): string {
    return signingKey(this.#options.hooks.requireSecret(), runId, webhookId).toHex();
  }

  /**
   * The run's hooks by id, or a page of them; none while webhooks are off. Errors: 422 or 404 on `run_id`,
   * 422 on `limit`.
   */
  list(caller: Caller, runId: string, query: PageQuery = {}): HookList<ListedWebhook> {
    ownedRun(this.#options.timeline.view, caller, runId);
    const page = pageOf(query);
    const webhooks = this.#listOf(runId);
    if (page === null) return { webhooks };
    const { cursor } = page;
    return pageIn(
      webhooks.filter(({ webhook_id }) => cursor === null || webhook_id > cursor),
      page,
      (hooks) => hooks.at(-1)!.webhook_id,
    );
  }

  #listOf(runId: string): ListedWebhook[] {
    const { hooks } = this.#options;
    const { deliveries } = hooks;
    if (deliveries === undefined) return [];
    return hooks.ofRun(runId)
      .map((registered) => listed(registered, deliveries.stateOf(runId, registered.hook.webhookId)))
      .sort((left, right) => left.webhook_id < right.webhook_id ? -1 : 1);
  }

  /** See {@link HookRegistry.isBehind}. */
  isBehind(run: RunView): boolean {
    return this.#options.hooks.isBehind(run);
  }

  /**
   * The hooks of all runs of the caller that are not deleted, the newest registration first, or a page of
   * them; none while webhooks are off. Errors: 422 on `limit`, `cursor`.
   */
  listAll(caller: Caller, query: PageQuery = {}): HookList<WebhookOfRun> {
    const page = pageOf(query);
    const all = this.#listOfAll(caller);
    if (page === null) return { webhooks: all };
    const [seq = Infinity, given = 0] = cursorNumbers(page, 2) ?? [];
    const rest = [
      ...all.filter(({ registered_seq }) => registered_seq === seq).slice(given),
      ...all.filter(({ registered_seq }) => registered_seq < seq),
    ];
    // A source's webhooks are registered together: the cursor counts those of the same number that were
    // given.
    return pageIn(rest, page, (hooks) => {
      const last = hooks.at(-1)!.registered_seq;
      const before = last === seq ? given : 0;
      return `${last}-${before + hooks.filter(({ registered_seq }) => registered_seq === last).length}`;
    });
  }

  #listOfAll(caller: Caller): WebhookOfRun[] {
    const { timeline: { view }, hooks } = this.#options;
    const { deliveries } = hooks;
    if (deliveries === undefined) return [];
    return hooks.ofPrincipal(caller.principalKey)
      .map((registered) => ({ registered, run: view.run(registered.hook.runId)! }))
      .filter(({ run }) => !run.deleted)
      .map(({ registered, run }) => ({
        run_id: run.runId,
        run_last_seq: run.lastSeq,
        ...listed(registered, deliveries.stateOf(run.runId, registered.hook.webhookId)),
      }))
      .sort((left, right) => right.registered_seq - left.registered_seq);
  }

  /**
   * Ends the hook's worker at once. Errors: 422 or 404 on `run_id`, 404 on `webhook_id`, 409 on it for one of
   * the file of sources.
   */
  delete(caller: Caller, runId: string, webhookId: string): void {
    const { timeline, hooks } = this.#options;
    ownedRun(timeline.view, caller, runId);
    const registered = hooks.find(runId, webhookId);
    if (registered.hook.source !== null) {
      throw refuse.conflict("webhook_id", "Cannot delete the webhook as it is one of the file of sources");
    }
    timeline.commit(() => [event("webhook_deleted", runId, { webhook_id: webhookId })]);
    hooks.remove(registered);
  }

  /** See {@link RedeliveryScheduler.schedule}. */
  redeliver(
    caller: Caller,
    runId: string,
    webhookId: string,
    body: RedeliverBody,
  ): Promise<ScheduledRedelivery> {
    return this.#redeliveries.schedule(caller, runId, webhookId, body);
  }

  /** The file of sources was read again, and what has changed is applied. */
  endRemoved(): void {
    this.#options.hooks.endRemoved();
  }

  /** See {@link DeliveryReads.list}. */
  deliveries(caller: Caller, runId: string, webhookId: string): ListedDelivery[] {
    return this.#deliveries.list(caller, runId, webhookId);
  }

  /** See {@link DeliveryReads.read}. */
  delivery(caller: Caller, runId: string, webhookId: string, seq: number): Promise<SentDelivery> {
    return this.#deliveries.read(caller, runId, webhookId, seq);
  }

  async #checkHost(url: string, signal: AbortSignal): Promise<void> {
    try {
      await checkWebhookTarget(url, this.#options.hooks.guard, signal);
    } catch (error) {
      if (error instanceof AddressRefused) throw refuse.invalid("url", error.message);
      throw error;
    }
  }

  /**
   * Appends a checkpoint first, to know that the delivery log can be written before deliveries are promised;
   * then the registration. Returns the sequence number of the registration.
   */
  #commit(deliveries: DeliveryLog, hook: Omit<Webhook, "registeredSeq">): number {
    const { timeline } = this.#options;
    const { webhookId, runId, url, eventKinds, filter, cooldown } = hook;
    try {
      const seq = timeline.view.lastSeq;
      deliveries.append(runId, { webhook_id: webhookId, seq, state: "checkpoint", error: null });
    } catch {
      throw refuse.because(
        "webhooks_unavailable",
        "Webhooks are unavailable: the delivery log takes no records",
      );
    }
    try {
      const payload = {
        webhook_id: webhookId,
        url,
        event_kinds: eventKinds,
        ...(filter && { filter }),
        ...(cooldown && { cooldown }),
      };
      return timeline.commit(() => [event("webhook_registered", runId, payload)])[0]!.seq;
    } catch (error) {
      deliveries.forget(webhookId);
      throw error;
    }
  }
}

/** `next_cursor` is there for a page alone. */
export interface HookList<Hook> {
  readonly webhooks: readonly Hook[];
  readonly next_cursor?: string | null;
}

/** The first of `rest`. `cursorOf` gets those of the page. */
function pageIn<Hook>(
  rest: readonly Hook[],
  { limit }: ListPage,
  cursorOf: (hooks: readonly Hook[]) => string,
): HookList<Hook> {
  const webhooks = rest.slice(0, limit);
  return { webhooks, next_cursor: rest.length > limit ? cursorOf(webhooks) : null };
}

function listed({ hook, worker }: RegisteredHook, state: DeliveryState): ListedWebhook {
  const { redelivery, retry } = state;
  const gone = worker ? worker.gone : state.gone;
  return {
    webhook_id: hook.webhookId,
    url: hook.url,
    event_kinds: hook.eventKinds,
    filter: hook.filter,
    cooldown: hook.cooldown,
    source: hook.source,
    registered_seq: hook.registeredSeq,
    last_terminal_seq: Math.max(state.cursorSeq, worker?.cursorSeq ?? 0),
    delivered: state.delivered,
    dead_letters: state.deadLetters,
    withheld: worker?.withheld ?? state.withheld,
    withheld_pending: worker?.withheldPending ?? state.cooldowns.pending,
    last_error: state.lastError,
    failing_since_ms: state.failingSinceMs,
    retry: retry
      ? { seq: retry.seq, attempts: retry.attempts, next_attempt_ms: worker?.nextAttemptMs ?? null }
      : null,
    state: gone === null ? "active" : "gone",
    gone_since_ms: gone?.since_ms ?? null,
    recent_dead_letters: state.recentDeadLetters,
    redelivery: redelivery ? { from_seq: redelivery.fromSeq, to_seq: redelivery.toSeq } : null,
  };
}
