/** Webhooks of runs: register, list, delete, send again; and a worker for each hook. Interface 4.5, contract 8.3. */

import type { Metrics } from "../../base/metrics.ts";
import { refuse } from "../../base/refusal.ts";
import { TaskGroup } from "../../base/tasks.ts";
import type { World } from "../../base/world.ts";
import type {
  ListedWebhook,
  RedeliverBody,
  RegisteredWebhook,
  RegisterWebhookBody,
  ScheduledRedelivery,
} from "../../model/api/webhooks.ts";
import type { DeliveryState, Redelivery } from "../../model/webhooks/delivery.ts";
import { event } from "../../model/events/event_table.ts";
import { LIMITS } from "../../model/limits.ts";
import {
  foldWebhook,
  matches,
  mayMatch,
  newWebhookId,
  type Webhook,
  WEBHOOK_KINDS,
  webhookKinds,
  webhookTarget,
} from "../../model/webhooks/webhook.ts";
import { signingKey } from "../../model/webhooks/signature.ts";
import { AddressRefused, type Resolve } from "../../remote/guard/address_guard.ts";
import type { PinnedAgent } from "../../remote/guard/pinned_agent.ts";
import { checkWebhookTarget, WebhookSender, type WebhookSenderOptions } from "../../remote/webhook_sender.ts";
import { DeliveryLog } from "../../store/webhook_deliveries.ts";
import type { Timeline } from "../../store/log/timeline.ts";
import type { Caller } from "../caller.ts";
import { ownedRun } from "../runs/ownership.ts";
import { WebhookWorker } from "./delivery_worker.ts";

/** What deliveries need. */
export interface WebhookSending {
  /** SERVICE_WEBHOOK_SECRET, at least 32 bytes (D15). */
  readonly secret: string;
  readonly agent: PinnedAgent;
  /** The system's resolver unless given. */
  readonly resolve?: Resolve;
}

export interface WebhooksOptions {
  readonly timeline: Timeline;
  readonly dataDir: string;
  readonly world: World;
  readonly metrics: Metrics;
  /** Webhooks are off without it. */
  readonly sending: WebhookSending | undefined;
  readonly retryDelaysMs: readonly number[];
  readonly allowPrivate: boolean;
}

/** A hook with its worker; without one while webhooks are off. */
interface Registered {
  readonly hook: Webhook;
  readonly worker?: WebhookWorker;
  readonly ending: AbortController;
}

export class Webhooks implements AsyncDisposable {
  readonly #options: WebhooksOptions;
  /** Undefined while webhooks are off, or when the log cannot be opened. */
  readonly #deliveries: DeliveryLog | undefined;
  readonly #hooks = new Map<string, Registered>();
  readonly #workers = new TaskGroup();

  /** Rebuilds the hooks from the timeline and goes on delivering where the delivery log ends. */
  constructor(options: WebhooksOptions) {
    this.#options = options;
    const { timeline, metrics } = options;
    this.#deliveries = openDeliveries(options);
    metrics.read("service_webhooks_configured", () => this.#hooks.size);
    const hooks = new Map<string, Webhook>();
    for (const batch of timeline.readAll({ kinds: WEBHOOK_KINDS })) {
      for (const stored of batch) foldWebhook(hooks, stored);
    }
    this.#deliveries?.retain((webhookId) => hooks.has(webhookId));
    for (const hook of hooks.values()) this.#resume(hook);
  }

  /**
   * Errors, in this order: 422 or 404 on `run_id`, 422 on `url`, 422 on `event_kinds`, 503 `webhooks_unavailable`
   * without a root secret, without a delivery log, and at the process-wide limit. A terminal run takes hooks, too.
   */
  async register(caller: Caller, runId: string, body: RegisterWebhookBody): Promise<RegisteredWebhook> {
    const { timeline, world, allowPrivate } = this.#options;
    ownedRun(timeline.view, caller, runId);
    const { url } = webhookTarget(body.url, allowPrivate);
    await this.#checkHost(url, caller.signal);
    const eventKinds = webhookKinds(body.event_kinds ?? []);
    // From here on in one step, so that nobody takes the last place in between.
    ownedRun(timeline.view, caller, runId);
    const { deliveries, sending } = this.#available();
    const webhookId = newWebhookId(world.randomBytes);
    const registeredSeq = this.#commit(deliveries, { webhookId, runId, url, eventKinds });
    this.#start({ webhookId, runId, url, eventKinds, registeredSeq }, deliveries, sending);
    return {
      run_id: runId,
      webhook_id: webhookId,
      url,
      event_kinds: eventKinds,
      registered_seq: registeredSeq,
      signing_secret: signingKey(sending.secret, runId, webhookId).toHex(),
    };
  }

  /** The run's hooks by id; none while webhooks are off (contract 8.3). Errors: 422 or 404 on `run_id`. */
  list(caller: Caller, runId: string): ListedWebhook[] {
    ownedRun(this.#options.timeline.view, caller, runId);
    const deliveries = this.#deliveries;
    if (deliveries === undefined) return [];
    return [...this.#hooks.values()].filter(({ hook }) => hook.runId === runId)
      .map((registered) => listed(registered, deliveries.stateOf(runId, registered.hook.webhookId)))
      .sort((left, right) => left.webhook_id < right.webhook_id ? -1 : 1);
  }

  /** Ends the hook's worker at once. Errors: 422 or 404 on `run_id`, 404 on `webhook_id`. */
  delete(caller: Caller, runId: string, webhookId: string): void {
    const { timeline } = this.#options;
    ownedRun(timeline.view, caller, runId);
    const { ending } = this.#hookOf(runId, webhookId);
    timeline.commit(() => [event("webhook_deleted", runId, { webhook_id: webhookId })]);
    this.#hooks.delete(webhookId);
    ending.abort(new DOMException("The webhook was deleted", "AbortError"));
    this.#deliveries?.forget(webhookId);
  }

  /**
   * Schedules what the hook matched in the range to be sent again, delivered or not, under the same event ids; without
   * bounds that is everything since the registration. Events that the hook has not come to yet are left out, as they
   * are sent anyway. Survives a restart. Errors: 422 or 404 on `run_id`, 404 on `webhook_id`, 422 on `from_seq` when it
   * is past `to_seq`, 409 on `webhook_id` while another redelivery is under way, 503 while webhooks are off.
   */
  async redeliver(
    caller: Caller,
    runId: string,
    webhookId: string,
    body: RedeliverBody,
  ): Promise<ScheduledRedelivery> {
    ownedRun(this.#options.timeline.view, caller, runId);
    const { hook } = this.#hookOf(runId, webhookId);
    const { from_seq, to_seq } = body;
    if (from_seq != null && to_seq != null && from_seq > to_seq) {
      throw refuse.invalid("from_seq", `must not be past to_seq, ${to_seq}: got ${from_seq}`);
    }
    const stateNow = () => this.#idleState(hook);
    const range = {
      fromSeq: Math.max(from_seq ?? 0, hook.registeredSeq + 1),
      toSeq: Math.min(to_seq ?? Infinity, stateNow().cursorSeq),
    };
    const { scheduled, lastSeq } = await this.#count(hook, range, caller.signal);
    if (scheduled > 0) {
      const { worker } = this.#hookOf(runId, webhookId);
      stateNow();
      // It ends with the last match, so that the record of its delivery is also that of the redelivery's end.
      this.#deliveries!.append(runId, {
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

  /** Ends every worker: what it is sending is aborted, and sent again after the next start. */
  async close(): Promise<void> {
    const { world } = this.#options;
    const inTime = new AbortController();
    const deadline = world.sleep(LIMITS.webhook.closeDeadlineMs, inTime.signal).then(
      () => world.log.child("webhooks").error("webhook workers did not end in time"),
      () => {},
    );
    try {
      await Promise.race([this.#workers.close(), deadline]);
      for (const { worker } of this.#hooks.values()) worker?.saveCursor();
    } finally {
      inTime.abort();
      await this.#deliveries?.close();
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #checkHost(url: string, signal: AbortSignal): Promise<void> {
    try {
      await checkWebhookTarget(url, this.#guard, signal);
    } catch (error) {
      if (error instanceof AddressRefused) throw refuse.invalid("url", error.message);
      throw error;
    }
  }

  get #guard(): Pick<WebhookSenderOptions, "world" | "allowPrivate" | "resolve"> {
    const { world, allowPrivate, sending } = this.#options;
    const resolve = sending === undefined ? notAsked : sending.resolve;
    return { world, allowPrivate, ...(resolve && { resolve }) };
  }

  #available(): { deliveries: DeliveryLog; sending: WebhookSending } {
    const { sending } = this.#options;
    const unavailable = (why: string) =>
      refuse.because("webhooks_unavailable", `Webhooks are unavailable: ${why}`);
    if (sending === undefined) throw unavailable("the service has no webhook secret");
    if (this.#deliveries === undefined) throw unavailable("the delivery log cannot be opened");
    if (this.#hooks.size >= LIMITS.webhook.hooksMax) {
      throw unavailable(`the limit of ${LIMITS.webhook.hooksMax} webhooks is reached`);
    }
    return { deliveries: this.#deliveries, sending };
  }

  /** Proves that the delivery log takes records before anybody is promised deliveries; returns the registered seq. */
  #commit(deliveries: DeliveryLog, hook: Omit<Webhook, "registeredSeq">): number {
    const { timeline } = this.#options;
    const { webhookId, runId, url, eventKinds } = hook;
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
      const payload = { webhook_id: webhookId, url, event_kinds: eventKinds };
      return timeline.commit(() => [event("webhook_registered", runId, payload)])[0]!.seq;
    } catch (error) {
      deliveries.forget(webhookId);
      throw error;
    }
  }

  #hookOf(runId: string, webhookId: string): Registered {
    const registered = this.#hooks.get(webhookId);
    if (registered?.hook.runId !== runId) throw refuse.notFound("Webhook", "webhook_id");
    return registered;
  }

  /** The hook's state; refuses while webhooks are off, and while another redelivery is under way. */
  #idleState({ runId, webhookId }: Webhook): DeliveryState {
    const state = this.#deliveries?.stateOf(runId, webhookId);
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
    for (
      const batch of timeline.read(hook.runId, {
        fromSeq,
        toSeq,
        kinds: (kind) => mayMatch(hook, kind),
      })
    ) {
      for (const stored of batch) {
        if (!matches(hook, stored)) continue;
        scheduled++;
        lastSeq = stored.seq;
      }
      await world.sleep(0, signal);
    }
    return { scheduled, lastSeq };
  }

  /** Starts the worker of a hook that was registered before this process. */
  #resume(hook: Webhook): void {
    const { timeline, sending } = this.#options;
    const deliveries = this.#deliveries;
    const run = timeline.view.run(hook.runId);
    if (deliveries === undefined || sending === undefined) {
      if (run?.deleted === false) this.#hooks.set(hook.webhookId, { hook, ending: new AbortController() });
      return;
    }
    if (
      run === undefined ||
      (run.deleted && deliveries.stateOf(hook.runId, hook.webhookId).cursorSeq >= run.lastSeq)
    ) return;
    this.#start(hook, deliveries, sending);
  }

  #start(hook: Webhook, deliveries: DeliveryLog, sending: WebhookSending): void {
    const { world, timeline, metrics, retryDelaysMs } = this.#options;
    const worker = new WebhookWorker({
      hook,
      key: signingKey(sending.secret, hook.runId, hook.webhookId),
      sender: new WebhookSender(hook.url, { ...this.#guard, agent: sending.agent }),
      timeline,
      deliveries,
      world,
      metrics,
      retryDelaysMs,
    });
    const ending = new AbortController();
    this.#hooks.set(hook.webhookId, { hook, worker, ending });
    this.#workers.start(async (closing) => {
      try {
        await worker.run(AbortSignal.any([closing, ending.signal]));
        this.#hooks.delete(hook.webhookId);
      } catch (error) {
        if (!ending.signal.aborted) throw error;
      }
    });
  }
}

/**
 * While webhooks are off nothing will be sent and nobody's name server is asked: every name counts as public, and the
 * registration is refused for the reason that counts.
 */
const notAsked: Resolve = () => Promise.resolve(["1.1.1.1"]);

/** Off, or broken, webhooks must not keep the rest of the service from starting. */
function openDeliveries({ sending, dataDir, world }: WebhooksOptions): DeliveryLog | undefined {
  if (sending === undefined) return undefined;
  try {
    return DeliveryLog.open({ dataDir, world });
  } catch (error) {
    world.log.child("webhooks").error("webhooks are off: cannot open the delivery log", {
      error: String(error),
    });
    return undefined;
  }
}

function listed({ hook, worker }: Registered, state: DeliveryState): ListedWebhook {
  const { redelivery } = state;
  return {
    webhook_id: hook.webhookId,
    url: hook.url,
    event_kinds: hook.eventKinds,
    registered_seq: hook.registeredSeq,
    last_terminal_seq: Math.max(state.cursorSeq, worker?.cursorSeq ?? 0),
    delivered: state.delivered,
    dead_letters: state.deadLetters,
    last_error: state.lastError,
    state: "active",
    recent_dead_letters: state.recentDeadLetters,
    redelivery: redelivery ? { from_seq: redelivery.fromSeq, to_seq: redelivery.toSeq } : null,
  };
}
