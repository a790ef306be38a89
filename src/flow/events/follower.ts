/** Follows runs as they grow: a client gets the events in the log first, then the new ones as they are
 * appended.
 */

import { utf8Length } from "../../base/bytes.ts";
import { ReadingTurns } from "../../sharing/reading_turns.ts";
import { RateLimited } from "../../sharing/rate_limit.ts";
import type { Metrics } from "../../contract/metrics.ts";
import { TaskGroup } from "../../base/tasks.ts";
import type { World } from "../../base/world.ts";
import { FieldRules, quoted } from "../../model/field_rules.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { Caller } from "../caller.ts";
import { Feed, type Wire } from "./feed.ts";
import { type KindFilter, Listener, type Listeners, type Receiver } from "./listener.ts";
import { ownedRun } from "../runs/ownership.ts";
import { KeepaliveTimer } from "./keepalive_timer.ts";

/** How events and keepalives are encoded. Made by http, as flow knows no wire format. */
export interface FollowWire extends Wire {
  readonly keepalive: Uint8Array<ArrayBuffer>;
}

export interface FollowQuery {
  /** The Last-Event-ID header as it was received; it has precedence over `after`. */
  readonly lastEventId?: string | undefined;
  /** Only events with a greater seq; 0 replays everything. */
  readonly after: number;
  /** Other events move the cursor all the same. See docs/events.md#event-stream. */
  readonly filter: KindFilter;
}

export interface FollowerOptions {
  readonly timeline: Timeline;
  readonly world: World;
  readonly metrics: Metrics;
  readonly wire: FollowWire;
}

/**
 * The owner of all listeners. Listeners to the same run and kinds share a feed:
 *
 *     commit ─▶ ring ─▶ feed: reads the log once, encodes the messages once
 *                         │ batch ▶ batch ▶ batch            at most 16 that a listener has not taken
 *                         ├─▶ listener that follows the feed: gets the same bytes as all others
 *                         ├─▶ listener with a full queue: cut off, reads the log when it has room again
 *                         └─▶ new listener: reads the log from its cursor, then follows the feed
 *
 * No other work waits for a listener, and a stalled listener holds no memory but its cursor.
 */
export class Follower implements AsyncDisposable, Listeners {
  readonly #options: FollowerOptions;
  readonly #feeds = new Map<string, Feed>();
  readonly #tasks = new TaskGroup();
  readonly #keepalives: KeepaliveTimer<Listener>;
  /** How many listeners each principal has; only those that have one. */
  readonly #ofPrincipal = new Map<string, number>();
  readonly #turns: ReadingTurns;
  readonly #counts = { listeners: 0, events: 0, replayed: 0, lagged: 0, stalls: 0 };
  #isClosed = false;

  constructor(options: FollowerOptions) {
    this.#options = options;
    const { metrics, world } = options;
    this.#turns = new ReadingTurns(world);
    this.#keepalives = new KeepaliveTimer(
      world,
      LIMITS.sse.keepaliveMs,
      (listener) => listener.sendKeepalive(),
    );
    metrics.observeValue("service_sse_subscribers_active", () => this.#counts.listeners);
    metrics.observeValue("service_sse_events_total", () => this.#counts.events);
    metrics.observeValue("service_sse_replayed_events_total", () => this.#counts.replayed);
    metrics.observeValue("service_sse_notification_lag_total", () => this.#counts.lagged);
    metrics.observeValue("service_sse_output_queue_stalls_total", () => this.#counts.stalls);
  }

  /**
   * A listener to a run of the caller. It holds nothing until its first request, so a listener that is never
   * read (a HEAD request) costs nothing. 429 while the principal has as many as it may have. 422 for an
   * invalid run id, kind or Last-Event-ID; 404 for a run that is missing, deleted or of another principal. A
   * run that is deleted later is still followed: `run_deleted` is an event too.
   */
  follow(caller: Caller, runId: string, query: FollowQuery, receiver: Receiver): Listener {
    const run = ownedRun(this.#options.timeline.view, caller, runId);
    const rules = new FieldRules();
    const cursor = query.lastEventId === undefined ? query.after : cursorOf(query.lastEventId);
    if (cursor === undefined) {
      rules.fault("Last-Event-ID", `must be an unsigned integer: got ${quoted(query.lastEventId!)}`);
    }
    const { kind, withoutKind } = query.filter;
    for (const [name, value] of [["kind", kind], ["without_kind", withoutKind]] as const) {
      if (value === undefined) continue;
      const { minimum, maximum } = LIMITS.sse.kindBytes;
      const bytes = utf8Length(value);
      if (bytes < minimum || bytes > maximum) {
        rules.fault(name, `must be ${minimum} to ${maximum} bytes: got ${bytes}`);
      }
    }
    rules.check();
    const { principalKey } = caller;
    if (this.#isFull(principalKey)) {
      throw new RateLimited(
        RETRY_AFTER_SECONDS,
        `Cannot open more than ${LIMITS.sse.streamsPerPrincipal} event streams at once; close some first`,
      );
    }
    return new Listener(this, receiver, {
      principalKey,
      runId: run.runId,
      filter: query.filter,
      cursor: cursor!,
    });
  }

  /** Ends every stream after the message under way, so that a client can resume after its last message. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    for (const feed of [...this.#feeds.values()]) feed.end();
    await this.#tasks.close();
  }

  join(listener: Listener): Feed | undefined {
    const { principalKey, runId, filter } = listener;
    // Full again: many that were admitted at the same time may start together.
    if (this.#isClosed || this.#isFull(principalKey)) return undefined;
    const key = JSON.stringify([runId, filter.kind, filter.withoutKind]);
    let feed = this.#feeds.get(key);
    if (feed === undefined) {
      const { timeline, world, metrics, wire } = this.#options;
      const made = new Feed({
        timeline,
        world,
        wire,
        runId,
        filter,
        onLag: (listeners) => void (this.#counts.lagged += listeners),
        onStall: () => void this.#counts.stalls++,
        onSent: (latencyMs) => metrics.observe("service_sse_commit_to_send_latency_ms", latencyMs),
        onEmpty: () => void this.#feeds.delete(key),
      });
      this.#feeds.set(key, made);
      this.#tasks.start((signal) => made.run(signal));
      feed = made;
    }
    this.#counts.listeners++;
    this.#ofPrincipal.set(principalKey, (this.#ofPrincipal.get(principalKey) ?? 0) + 1);
    this.#keepalives.add(listener);
    return feed;
  }

  turn({ principalKey }: Listener): Promise<void> | undefined {
    return this.#turns.take(principalKey);
  }

  /** An even part of what all streams of the principal may have read. */
  readBytesOf({ principalKey }: Listener): number {
    const even = Math.floor(READ_BYTES_OF_PRINCIPAL / this.#ofPrincipal.get(principalKey)!);
    return Math.min(READ_BYTES_MAX, even);
  }

  onSent(listener: Listener, events: number, replayed: number): void {
    this.#counts.events += events;
    this.#counts.replayed += replayed;
    this.#keepalives.restart(listener);
  }

  onFailure({ runId }: Listener, error: unknown): void {
    const text = error instanceof Error ? error.stack ?? error.message : String(error);
    this.#options.world.log.error("cannot follow a run", { run_id: runId, error: text });
  }

  leave(listener: Listener): void {
    const { principalKey } = listener;
    this.#counts.listeners--;
    const left = this.#ofPrincipal.get(principalKey)! - 1;
    if (left > 0) this.#ofPrincipal.set(principalKey, left);
    else this.#ofPrincipal.delete(principalKey);
    this.#keepalives.remove(listener);
  }

  get keepalive(): Uint8Array<ArrayBuffer> {
    return this.#options.wire.keepalive;
  }

  #isFull(principalKey: string): boolean {
    return (this.#ofPrincipal.get(principalKey) ?? 0) >= LIMITS.sse.streamsPerPrincipal;
  }
}

/**
 * How much of the log is read at once, and for all streams of a principal together: as text, encoded and in
 * pieces, it is in memory several times.
 */
const READ_BYTES_MAX = 1024 * 1024;
const READ_BYTES_OF_PRINCIPAL = 2 * 1024 * 1024;

/** Streams are long, so a client that finds all of them taken should not ask often. */
const RETRY_AFTER_SECONDS = 10;

const CURSOR_MAX = 2n ** 64n - 1n;

/**
 * A cursor of a query, or undefined when it is no unsigned 64-bit integer. A cursor above 2^53 is after every
 * event.
 */
export function cursorOf(text: string): number | undefined {
  return /^\d{1,64}$/.test(text) && BigInt(text) <= CURSOR_MAX ? Number(text) : undefined;
}
