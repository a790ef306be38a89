/** The registered webhooks of the process, and a delivery worker for each: rebuilt at start, ended at close. */

import { isWithinShare } from "../../base/sharing/fair_share.ts";
import type { Metrics } from "../../base/metrics.ts";
import { type Refusal, refuse } from "../../base/refusal.ts";
import { TaskGroup } from "../../base/tasks.ts";
import { OutOfTime, within } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { LIMITS } from "../../model/limits.ts";
import { signingKey } from "../../model/webhooks/signature.ts";
import { foldWebhook, type Webhook, WEBHOOK_KINDS } from "../../model/webhooks/webhook.ts";
import { EVENTS_REMOVED, type RunView } from "../../model/runs/run.ts";
import type { Resolve } from "../../remote/guard/address_guard.ts";
import type { PinnedAgent } from "../../remote/guard/pinned_agent.ts";
import { WebhookSender, type WebhookSenderOptions } from "../../remote/webhook_sender.ts";
import type { Timeline } from "../../store/log/timeline.ts";
import { DeliveryLog } from "../../store/webhook_deliveries.ts";
import { WebhookWorker } from "./delivery_worker.ts";

/** What deliveries need. */
export interface WebhookSending {
  /** SERVICE_WEBHOOK_SECRET, at least 32 bytes. See docs/events.md#webhook-signatures. */
  readonly secret: string;
  readonly agent: PinnedAgent;
  /** The system's resolver unless given. */
  readonly resolve?: Resolve;
}

export interface HookRegistryOptions {
  readonly timeline: Timeline;
  readonly dataDir: string;
  readonly world: World;
  readonly metrics: Metrics;
  /** Webhooks are off without it. */
  readonly sending: WebhookSending | undefined;
  readonly retryDelaysMs: readonly number[];
  readonly allowPrivate: boolean;
  /** Whether the service has several principals. */
  readonly isShared: boolean;
}

/** A hook with its worker; without a worker while webhooks are off. */
export interface RegisteredHook {
  readonly hook: Webhook;
  readonly worker?: WebhookWorker;
  /** Aborting it ends the worker at once. */
  readonly ending: AbortController;
}

/** What a hook needs so that its events can be delivered. */
export interface Delivering {
  readonly deliveries: DeliveryLog;
  readonly sending: WebhookSending;
}

export class HookRegistry implements AsyncDisposable {
  /** Undefined while webhooks are off, or where the log cannot be opened. */
  readonly deliveries: DeliveryLog | undefined;
  readonly #options: HookRegistryOptions;
  readonly #hooks = new Map<string, RegisteredHook>();
  readonly #workers = new TaskGroup();
  readonly #observing: Disposable;

  private constructor(options: HookRegistryOptions, deliveries: DeliveryLog | undefined) {
    this.#options = options;
    this.#observing = options.timeline.observe(({ runId }, _seq, kind) => {
      if (kind === EVENTS_REMOVED) { for (const hook of this.ofRun(runId)) this.remove(hook); }
    });
    this.deliveries = deliveries;
  }

  /** Rebuilds the hooks from the timeline; each worker continues where the delivery log ends. */
  static open(options: HookRegistryOptions): HookRegistry {
    const registry = new HookRegistry(options, openDeliveries(options));
    const { timeline, metrics } = options;
    metrics.observeValue("service_webhooks_configured", () => registry.#hooks.size);
    metrics.observeValue("service_webhook_oldest_waiting_seconds", () => registry.#oldestWaitingSeconds());
    const hooks = new Map<string, Webhook>();
    for (const batch of timeline.readAll({ kinds: WEBHOOK_KINDS })) {
      for (const stored of batch) foldWebhook(hooks, stored);
    }
    registry.deliveries?.retain((webhookId) => hooks.has(webhookId));
    for (const hook of hooks.values()) registry.#resume(hook);
    return registry;
  }

  /** How outbound connections of webhooks are checked. */
  get guard(): Pick<WebhookSenderOptions, "world" | "allowPrivate" | "resolve"> {
    const { world, allowPrivate, sending } = this.#options;
    const resolve = sending === undefined ? resolveToPublic : sending.resolve;
    return { world, allowPrivate, ...(resolve && { resolve }) };
  }

  /**
   * 503 `webhooks_unavailable` without a secret, without a delivery log, at the process-wide limit of hooks, and where the
   * principal has its share of them.
   */
  requireRoom(principalKey: string): Delivering {
    const { isShared } = this.#options;
    const sending = this.#requireSending();
    if (this.deliveries === undefined) throw unavailable("the delivery log cannot be opened");
    if (this.#hooks.size >= LIMITS.webhook.hooksMax) {
      throw unavailable(`the limit of ${LIMITS.webhook.hooksMax} webhooks is reached`);
    }
    const held = this.#countOf(principalKey);
    if (isShared && !isWithinShare(held, 1, LIMITS.webhook.hooksMax - this.#hooks.size)) {
      throw unavailable(
        `${held} of the ${LIMITS.webhook.hooksMax} webhooks are yours, the others are kept for other callers`,
      );
    }
    return { deliveries: this.deliveries, sending };
  }

  /** The secret that the keys of all hooks follow from; 503 `webhooks_unavailable` without one. */
  requireSecret(): string {
    return this.#requireSending().secret;
  }

  /** 404 on `webhook_id`. */
  find(runId: string, webhookId: string): RegisteredHook {
    const registered = this.#hooks.get(webhookId);
    if (registered?.hook.runId !== runId) throw refuse.notFound("Webhook", "webhook_id");
    return registered;
  }

  /** Whether a webhook of the run has not come to its last event. Never while webhooks are off: nothing is delivered then. */
  isBehind({ runId, lastSeq }: RunView): boolean {
    return this.ofRun(runId).some(({ worker }) => worker !== undefined && worker.cursorSeq < lastSeq);
  }

  ofRun(runId: string): RegisteredHook[] {
    return [...this.#hooks.values()].filter(({ hook }) => hook.runId === runId);
  }

  /** Also those of deleted runs, whose last events may still be on their way. */
  ofPrincipal(principalKey: string): RegisteredHook[] {
    const { view } = this.#options.timeline;
    return [...this.#hooks.values()].filter(({ hook }) =>
      view.run(hook.runId)?.principalKey === principalKey
    );
  }

  /** Registers the hook and starts its worker. */
  add(hook: Webhook, { deliveries, sending }: Delivering): void {
    const { world, timeline, metrics, retryDelaysMs } = this.#options;
    const { runId, webhookId, url } = hook;
    const worker = new WebhookWorker({
      hook,
      key: signingKey(sending.secret, runId, webhookId),
      sender: new WebhookSender(url, { ...this.guard, agent: sending.agent }),
      timeline,
      deliveries,
      world,
      metrics,
      retryDelaysMs,
    });
    const ending = new AbortController();
    this.#hooks.set(webhookId, { hook, worker, ending });
    const deliver = async (closing: AbortSignal) => {
      try {
        await worker.run(AbortSignal.any([closing, ending.signal]));
        this.#hooks.delete(webhookId);
      } catch (error) {
        if (!ending.signal.aborted) throw error;
      }
    };
    // The request that registers the hook has its span, and the worker outlives it.
    world.tracing.within(null, () => this.#workers.start(deliver));
  }

  /** Ends the hook's worker at once and forgets the hook. */
  remove({ hook: { webhookId }, ending }: RegisteredHook): void {
    this.#hooks.delete(webhookId);
    ending.abort(new DOMException("The webhook was deleted", "AbortError"));
    this.deliveries?.forget(webhookId);
  }

  /** Ends every worker. A delivery under way is aborted, and sent again after the next start. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { world } = this.#options;
    this.#observing[Symbol.dispose]();
    try {
      await within(world, LIMITS.webhook.closeDeadlineMs, this.#workers.close()).catch((error) => {
        if (!(error instanceof OutOfTime)) throw error;
        world.log.child("webhooks").error("webhook workers did not end in time");
      });
      for (const { worker } of this.#hooks.values()) worker?.saveCursor();
    } finally {
      await this.deliveries?.close();
    }
  }

  #requireSending(): WebhookSending {
    const { sending } = this.#options;
    if (sending === undefined) throw unavailable("the service has no webhook secret");
    return sending;
  }

  #oldestWaitingSeconds(): number {
    const nowMs = this.#options.world.now();
    const ages = Array.from(this.#hooks.values(), ({ worker }) => nowMs - (worker?.waitingSinceMs ?? nowMs));
    return ages.reduce((oldest, ageMs) => Math.max(oldest, ageMs), 0) / 1000;
  }

  #countOf(principalKey: string): number {
    return this.ofPrincipal(principalKey).length;
  }

  /** Starts the worker of a hook that was registered before this process started. */
  #resume(hook: Webhook): void {
    const { timeline, sending } = this.#options;
    const { deliveries } = this;
    const run = timeline.view.run(hook.runId);
    if (deliveries === undefined || sending === undefined) {
      if (run?.deleted === false) this.#hooks.set(hook.webhookId, { hook, ending: new AbortController() });
      return;
    }
    const isFinished = run === undefined ||
      (run.deleted && deliveries.stateOf(hook.runId, hook.webhookId).cursorSeq >= run.lastSeq);
    if (!isFinished) this.add(hook, { deliveries, sending });
  }
}

/**
 * The resolver while webhooks are off: no name server is asked, as nothing will be sent. Every name resolves to a public
 * address, so that a registration is refused because webhooks are off and not because of its host.
 */
const resolveToPublic: Resolve = () => Promise.resolve(["1.1.1.1"]);

/** A delivery log that cannot be opened switches webhooks off; the rest of the service still starts. */
function unavailable(why: string): Refusal {
  return refuse.because("webhooks_unavailable", `Webhooks are unavailable: ${why}`);
}

function openDeliveries({ sending, dataDir, world }: HookRegistryOptions): DeliveryLog | undefined {
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
