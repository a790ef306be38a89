/** The registered webhooks of the process, and a delivery worker for each: rebuilt at start, ended at close.
 */

import { isWithinShare } from "../../sharing/fair_share.ts";
import type { Metrics } from "../../contract/metrics.ts";
import { Refusal, refuse } from "../../contract/refusal.ts";
import { TaskGroup } from "../../base/tasks.ts";
import { OutOfTime, within } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { LIMITS } from "../../contract/limits.ts";
import { signingKey } from "../../model/webhooks/signature.ts";
import { event } from "../../model/events/event_table.ts";
import {
  foldWebhook,
  type Webhook,
  WEBHOOK_KINDS,
  type WebhookOfSource,
} from "../../model/webhooks/webhook.ts";
import { EVENTS_REMOVED, isTerminal, type RunView } from "../../model/runs/run.ts";
import type { Resolve } from "../../remote/guard/address_guard.ts";
import type { PinnedAgent } from "../../remote/guard/pinned_agent.ts";
import { WebhookSender, type WebhookSenderOptions } from "../../remote/webhook_sender.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import { DeliveryLog } from "../../store/webhook_deliveries.ts";
import type { NamedSources } from "../sources/named_sources.ts";
import { WebhookWorker } from "./delivery_worker.ts";
import { type HookReceiver, receiverOf, SourceReceiver } from "./receivers.ts";

/** What deliveries need. */
export interface WebhookSending {
  /** SERVICE_WEBHOOK_SECRET, at least 32 bytes. See docs/events/webhooks.md#webhook-signatures. */
  readonly secret: string;
  readonly agent: PinnedAgent;
  /** SERVICE_WEBHOOK_TIMEOUT_MS. */
  readonly timeoutMs: number;
  /** The system's resolver unless given. */
  readonly resolve?: Resolve;
}

export interface HookRegistryOptions {
  readonly timeline: Timeline;
  readonly dataDir: string;
  readonly named: NamedSources;
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
  readonly receiver?: HookReceiver;
  /** Aborting it ends the worker at once. */
  readonly ending: AbortController;
}

/** What a hook needs so that its events can be delivered. */
export interface Delivering {
  readonly deliveries: DeliveryLog;
  readonly sending: WebhookSending;
}

/**
 * How long a webhook of the file of sources goes on in a run that is over: longer than an explanation may
 * take. See docs/live/events.md#enrichment.
 */
const LINGER_MS = LIMITS.live.enrichDeadlineMs.maximum + 30_000;

export class HookRegistry implements AsyncDisposable {
  /** Undefined while webhooks are off, or where the log cannot be opened. */
  readonly deliveries: DeliveryLog | undefined;
  readonly #options: HookRegistryOptions;
  readonly #hooks = new Map<string, RegisteredHook>();
  readonly #workers = new TaskGroup();
  readonly #observing: Disposable;
  /** Hooks of the file of sources that end soon. */
  readonly #retiring = new Set<string>();

  private constructor(options: HookRegistryOptions, deliveries: DeliveryLog | undefined) {
    this.#options = options;
    this.#observing = options.timeline.observe(({ runId }, seq, kind, payload) => {
      if (kind === EVENTS_REMOVED) { for (const hook of this.ofRun(runId)) this.remove(hook); }
      if (kind !== "webhook_registered" || typeof payload !== "string") return;
      const registered = new Map<string, Webhook>();
      foldWebhook(registered, { seq, runId, kind, payload });
      for (const hook of registered.values()) {
        // After the commit, as its worker reads the timeline.
        if (hook.source !== null) queueMicrotask(() => this.#startOfSource(hook));
      }
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
   * What sending needs. Errors: 503 `webhooks_unavailable` without a secret, without a delivery log, at the
   * process-wide limit of hooks, and where the principal has its share of them.
   */
  requireRoom(principalKey: string): Delivering {
    const { isShared } = this.#options;
    const sending = this.#requireSending();
    if (this.deliveries === undefined) throw unavailable("the delivery log cannot be opened");
    const all = [...this.#hooks.values()].filter(({ hook }) => hook.source === null);
    if (all.length >= LIMITS.webhook.hooksMax) {
      throw unavailable(`the limit of ${LIMITS.webhook.hooksMax} webhooks is reached`);
    }
    const held = this.#countOf(principalKey);
    if (isShared && !isWithinShare(held, 1, LIMITS.webhook.hooksMax - all.length)) {
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

  /**
   * Whether a webhook of the run has not come to its last event. Never while webhooks are off: nothing is
   * delivered then.
   */
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
    const { webhookId } = hook;
    const receiver = this.#receiverOf(hook, sending);
    if (receiver === null) return this.#drop(hook, deliveries);
    const before = this.#newestOf(hook.source);
    const previous = before?.worker;
    const options = { hook, receiver, timeline, deliveries, world, metrics, retryDelaysMs, previous };
    const worker = new WebhookWorker(options);
    const ending = new AbortController();
    this.#hooks.set(webhookId, { hook, worker, receiver, ending });
    this.#start(ending, async (signal) => {
      await worker.run(signal);
      this.#hooks.delete(webhookId);
    });
    if (before) this.#retireSoon(before);
  }

  /**
   * Runs until the service closes or the hook is removed. The request that registers a hook has its span, and
   * this outlives it.
   */
  #start(ending: AbortController, work: (signal: AbortSignal) => Promise<void>): void {
    const untilRemoved = async (closing: AbortSignal) => {
      try {
        await work(AbortSignal.any([closing, ending.signal]));
      } catch (error) {
        if (!ending.signal.aborted) throw error;
      }
    };
    this.#options.world.tracing.within(null, () => this.#workers.start(untilRemoved));
  }

  /** Null for one of the file of sources that is no longer in it. */
  #receiverOf({ runId, webhookId, url, source }: Webhook, sending: WebhookSending): HookReceiver | null {
    const { named } = this.#options;
    const open = (url: string) =>
      new WebhookSender(url, { ...this.guard, agent: sending.agent, timeoutMs: sending.timeoutMs });
    if (source !== null) return SourceReceiver.of(() => named.webhook(source), open);
    return receiverOf(open(url), signingKey(sending.secret, runId, webhookId));
  }

  /** The hook of the same webhook of the file that was registered last. */
  #newestOf(source: WebhookOfSource | null): RegisteredHook | undefined {
    return [...this.#hooks.values()].findLast(({ hook }) =>
      source !== null && hook.source?.name === source.name && hook.source.webhook === source.webhook
    );
  }

  /** Starts a hook of the file of sources whose registration is committed. */
  #startOfSource(hook: Webhook): void {
    const { sending } = this.#options;
    const { deliveries } = this;
    if (deliveries && sending) this.add(hook, { deliveries, sending });
    else this.#hooks.set(hook.webhookId, { hook, ending: new AbortController() });
  }

  /** Ends a hook of the file of sources when its run is over and its last events are delivered. */
  #retireSoon(registered: RegisteredHook): void {
    const { hook: { webhookId, runId }, worker, ending } = registered;
    const { world, timeline } = this.#options;
    if (!worker || this.#retiring.has(webhookId)) return;
    this.#retiring.add(webhookId);
    this.#start(ending, async (signal) => {
      await worker.passed(signal);
      await world.sleep(LINGER_MS, signal);
      await worker.passed(signal);
      this.#retiring.delete(webhookId);
      const run = timeline.view.run(runId);
      // A run without an end gets it at the next start.
      if (run && !run.deleted && isTerminal(run.state)) this.#endOfSource(registered);
    });
  }

  #endOfSource(registered: RegisteredHook): void {
    const { hook: { webhookId, runId } } = registered;
    try {
      this.#options.timeline.commit(() => [event("webhook_deleted", runId, { webhook_id: webhookId })]);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error; // it is tried again after the next start
    }
    this.remove(registered);
  }

  /** Drops a webhook that is no longer in the file: nothing more can be sent of it. */
  #drop(hook: Webhook, deliveries: DeliveryLog): void {
    const { timeline, world } = this.#options;
    const { runId, webhookId, source } = hook;
    const run = timeline.view.run(runId);
    const after_seq = deliveries.stateOf(runId, webhookId).cursorSeq;
    const unsent = { webhook_id: webhookId, run_id: runId, source, after_seq, last_seq: run?.lastSeq };
    world.log.child("webhooks").warn("dropped a webhook that is no longer in the file of sources", unsent);
    if (run && !run.deleted) this.#endOfSource({ hook, ending: new AbortController() });
    else deliveries.forget(webhookId);
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

  /** How many webhooks the principal has registered. */
  #countOf(principalKey: string): number {
    return this.ofPrincipal(principalKey).filter(({ hook }) => hook.source === null).length;
  }

  /** Ends the hooks whose webhook is no longer in the file, when their runs are over. */
  endRemoved(): void {
    for (const registered of this.#hooks.values()) {
      const { receiver } = registered;
      if (receiver instanceof SourceReceiver && !receiver.isInFile) this.#retireSoon(registered);
    }
  }

  /** What signs the deliveries of a hook. Errors: 503 `webhooks_unavailable`. */
  keyOf({ hook: { runId, webhookId }, receiver }: RegisteredHook): Uint8Array {
    return receiver?.key ?? signingKey(this.requireSecret(), runId, webhookId);
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
 * The resolver while webhooks are off: no name server is asked, as nothing will be sent. Every name resolves
 * to a public address, so that a registration is refused because webhooks are off and not because of its
 * host.
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
