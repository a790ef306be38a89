/** Following a run as it grows: what is in the log first, then what comes, for as long as the caller listens. */

import { utf8Length } from "../../base/bytes.ts";
import type { Metrics } from "../../base/metrics.ts";
import { TaskGroup } from "../../base/tasks.ts";
import type { World } from "../../base/world.ts";
import { FieldRules, quoted } from "../../model/field_rules.ts";
import { LIMITS } from "../../model/limits.ts";
import type { Timeline } from "../../store/log/timeline.ts";
import type { Caller } from "../caller.ts";
import { Feed, type Wire } from "./feed.ts";
import { Listener, type Listeners, type Receiver } from "./listener.ts";
import { ownedRun } from "../runs/ownership.ts";
import { KeepaliveTimer } from "./keepalive_timer.ts";

/** How events and the sign of life are written for those who follow; made by http, as flow knows no format. */
export interface FollowWire extends Wire {
  readonly keepalive: Uint8Array<ArrayBuffer>;
}

export interface FollowQuery {
  /** The header as it came: it goes before `after`. */
  readonly lastEventId?: string | undefined;
  /** Only events with a greater seq; 0 replays everything. */
  readonly after: number;
  /** Only events of exactly this kind; filtered-out events move the cursor like any other (contract 8.2). */
  readonly kind?: string | undefined;
}

export interface FollowerOptions {
  readonly timeline: Timeline;
  readonly world: World;
  readonly metrics: Metrics;
  readonly wire: FollowWire;
}

/**
 * Everyone who follows a run. Those with the same run and kind share a feed:
 *
 *     commit ─▶ ring ─▶ feed: reads the log once, writes the messages once
 *                         │ piece ▶ piece ▶ piece            at most 16 that a listener has not taken
 *                         ├─▶ listener in step: gets the same bytes as all others
 *                         ├─▶ listener with a full queue: cut off, reads the log when it has room again
 *                         └─▶ new listener: reads the log from its cursor, then joins
 *
 * Nobody waits for a listener, and a stalled one holds on to nothing but a number.
 */
export class Follower implements AsyncDisposable, Listeners {
  readonly #options: FollowerOptions;
  readonly #feeds = new Map<string, Feed>();
  readonly #tasks = new TaskGroup();
  readonly #silence: KeepaliveTimer<Listener>;
  readonly #counts = { listeners: 0, events: 0, replayed: 0, lapped: 0, stalls: 0 };
  #isClosed = false;

  constructor(options: FollowerOptions) {
    this.#options = options;
    const { metrics, world } = options;
    this.#silence = new KeepaliveTimer(world, LIMITS.sse.keepaliveMs, (listener) => listener.signOfLife());
    metrics.read("service_sse_subscribers_active", () => this.#counts.listeners);
    metrics.read("service_sse_events_total", () => this.#counts.events);
    metrics.read("service_sse_replayed_events_total", () => this.#counts.replayed);
    metrics.read("service_sse_notification_lag_total", () => this.#counts.lapped);
    metrics.read("service_sse_output_queue_stalls_total", () => this.#counts.stalls);
  }

  /**
   * A listener to a run of the caller; it holds nothing until it is asked for the first time, so one that is never
   * read (a HEAD request) costs nothing. 422 for a run id, kind or Last-Event-ID that cannot be, 404 for a run that is
   * missing, foreign or deleted. A run that is deleted later goes on being followed: `run_deleted` is an event too.
   */
  follow(caller: Caller, runId: string, query: FollowQuery, receiver: Receiver): Listener {
    const run = ownedRun(this.#options.timeline.view, caller, runId);
    const rules = new FieldRules();
    const cursor = query.lastEventId === undefined ? query.after : cursorOf(query.lastEventId);
    if (cursor === undefined) {
      rules.fault("Last-Event-ID", `must be an unsigned integer: got ${quoted(query.lastEventId!)}`);
    }
    if (query.kind !== undefined) {
      const { minimum, maximum } = LIMITS.sse.kindBytes;
      const bytes = utf8Length(query.kind);
      if (bytes < minimum || bytes > maximum) {
        rules.fault("kind", `must be ${minimum} to ${maximum} bytes: got ${bytes}`);
      }
    }
    rules.check();
    return new Listener(this, run.runId, query.kind, cursor!, receiver);
  }

  /** Ends every stream after the message that is under way; a listener's cursor is then that of its last message. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    for (const feed of [...this.#feeds.values()]) feed.end();
    await this.#tasks.close();
  }

  /** For a listener that begins: its feed, or undefined when there will be none any more. */
  enter(listener: Listener): Feed | undefined {
    if (this.#isClosed) return undefined;
    const { runId, kind } = listener;
    const key = `${runId} ${kind ?? ""}`;
    let feed = this.#feeds.get(key);
    if (feed === undefined) {
      const { timeline, world, metrics, wire } = this.#options;
      const made = new Feed({
        timeline,
        world,
        wire,
        runId,
        kind,
        onLapped: (listeners) => void (this.#counts.lapped += listeners),
        onStall: () => void this.#counts.stalls++,
        onSent: (latencyMs) => metrics.observe("service_sse_commit_to_send_latency_ms", latencyMs),
        onEmpty: () => void this.#feeds.delete(key),
      });
      this.#feeds.set(key, made);
      this.#tasks.start((signal) => made.run(signal));
      feed = made;
    }
    this.#counts.listeners++;
    this.#silence.heard(listener);
    return feed;
  }

  /** For a listener that got bytes, with how many events are in them and how many of those are from before it came. */
  gave(listener: Listener, events: number, replayed: number): void {
    this.#counts.events += events;
    this.#counts.replayed += replayed;
    this.#silence.heard(listener);
  }

  failed({ runId }: Listener, error: unknown): void {
    const text = error instanceof Error ? error.stack ?? error.message : String(error);
    this.#options.world.log.error("cannot follow a run", { run_id: runId, error: text });
  }

  left(listener: Listener): void {
    this.#counts.listeners--;
    this.#silence.forget(listener);
  }

  get keepalive(): Uint8Array<ArrayBuffer> {
    return this.#options.wire.keepalive;
  }
}

const CURSOR_MAX = 2n ** 64n - 1n;

/** A cursor as text, or undefined when it is no unsigned 64-bit integer; those past 2^53 are after every event. */
export function cursorOf(text: string): number | undefined {
  return /^\d{1,64}$/.test(text) && BigInt(text) <= CURSOR_MAX ? Number(text) : undefined;
}
