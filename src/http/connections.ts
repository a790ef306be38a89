/** The connections of HTTP clients: who hangs up while a request is under way, how many are open, how many
 * there were.
 */

import { abortWith, OutOfTime, timer, within } from "../base/wait.ts";
import type { World } from "../base/world.ts";

/** What a look at the system's list of connections to one port says. */
export interface ConnectionsSeen {
  readonly open: number;
  /** Clients asked about that have closed their connection, or whose connection is gone. */
  readonly gone: readonly string[];
  /** Clients asked about that have not acknowledged more than a little of what was sent. */
  readonly behind: readonly string[];
}

/** Where the service listens: an address, not a name. */
export type ListenedAt = Pick<Deno.NetAddr, "hostname" | "port">;

/**
 * Looks for the clients (`address port`) of a listener; null where the system has no list of connections. The
 * list is read outside of the sandbox.
 */
export type LookAtConnections = (
  listener: ListenedAt,
  clients: readonly string[],
) => Promise<ConnectionsSeen | null>;

/** Why a request is aborted whose client is gone. */
export class ClientGone extends Error {
  override readonly name = "ClientGone";
}

/**
 * Work must end within 2 s after its client is gone. A look takes some 5 ms, as Linux goes through a table of
 * all connections that there could be, and one at 5,000 connections takes 50 to 100 ms of the thread outside
 * of the sandbox (measured on 22 November 2026), so the pauses get longer where looks do, to a twentieth of
 * that thread.
 */
const PAUSE_MIN_MS = 750;
const PAUSE_MAX_MS = 1_500;
const PAUSE_FOR_LOOK = 20;
/** A look is made for requests that have waited this long: most are answered before. */
const WAITED_MIN_MS = 250;
const LOOK_DEADLINE_MS = 2_000;
const LATE = Symbol("a look that is late");

/** How many connections are remembered as counted. */
const REMEMBERED_MAX = 16_384;

/**
 * Deno 2.9 does not see the end of a HTTP/1.1 connection behind the body of a request that is under way,
 * unless that has a few hundred bytes and came together with the head (measured on 26 November 2026). While
 * requests with a body wait, the system is asked for their connections up to four times in three seconds;
 * other requests, and those that are answered soon, cost nothing.
 */
export class Connections implements AsyncDisposable {
  readonly #world: Pick<World, "sleep" | "log" | "monotonicMs">;
  readonly #lookAt: LookAtConnections;
  readonly #waiting = new Map<string, Set<Watch>>();
  /** Oldest first. */
  readonly #counted = new Set<string>();
  #total = 0;
  #timer: Disposable | undefined;
  #lookUnderWay: Promise<void> | undefined;
  #isClosed = false;
  readonly #warned = new Set<string>();
  #pauseMs = PAUSE_MIN_MS;
  /** Port 0 until it listens. */
  listener: ListenedAt = { hostname: "0.0.0.0", port: 0 };

  constructor(lookAt: LookAtConnections, world: Pick<World, "sleep" | "log" | "monotonicMs">) {
    this.#lookAt = lookAt;
    this.#world = world;
  }

  /**
   * A signal that aborts when the client at this address is gone, or with the signal of its `request`.
   * Dispose it when its request is answered.
   */
  watch(address: Deno.NetAddr, request: AbortSignal): Disposable & { readonly signal: AbortSignal } {
    const client = clientName(address);
    const controller = new AbortController();
    abortWith(request, controller); // for good: a body may be written long after the answer has begun
    const ofClient = this.#waiting.get(client) ?? new Set();
    const watch = { controller, sinceMs: this.#world.monotonicMs() };
    this.#waiting.set(client, ofClient.add(watch));
    this.#schedule();
    return {
      signal: controller.signal,
      // A timer that runs is left: the next request needs it again.
      [Symbol.dispose]: () => {
        ofClient.delete(watch);
        if (ofClient.size === 0 && this.#waiting.get(client) === ofClient) this.#waiting.delete(client);
      },
    };
  }

  /** Counts the connection of a request, unless an earlier request of it was counted. */
  count(address: Deno.NetAddr): void {
    const client = clientName(address);
    if (this.#counted.has(client)) return;
    this.#total++;
    this.#counted.add(client);
    if (this.#counted.size > REMEMBERED_MAX) this.#counted.delete(this.#counted.values().next().value!);
  }

  /** Connections that have sent a request. */
  get total(): number {
    return this.#total;
  }

  /**
   * How many connections are open, those that never sent a request too; NaN where the system does not tell.
   */
  async open(): Promise<number> {
    const seen = await this.#look([...this.#counted]);
    // another connection may get its port
    for (const client of seen?.gone ?? []) this.#counted.delete(client);
    return seen?.open ?? NaN;
  }

  /**
   * Which of these clients have not acknowledged more than a little of what was sent to them; null where that
   * is not known.
   */
  async behind(clients: readonly string[]): Promise<ReadonlySet<string> | null> {
    const seen = await this.#look(clients);
    return seen && new Set(seen.behind);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#stop();
    await this.#lookUnderWay;
  }

  #schedule(): void {
    if (this.#timer ?? this.#lookUnderWay) return;
    if (this.#isClosed || this.#waiting.size === 0) return;
    this.#timer = timer(this.#world, this.#pauseMs, () => {
      this.#stop();
      this.#lookUnderWay = this.#endThoseGone().finally(() => {
        this.#lookUnderWay = undefined;
        this.#schedule();
      });
    });
  }

  async #endThoseGone(): Promise<void> {
    const startMs = this.#world.monotonicMs();
    const hasWaited = ({ sinceMs }: Watch) => startMs - sinceMs >= WAITED_MIN_MS;
    if (!this.#waiting.values().some((watches) => watches.values().some(hasWaited))) return;
    // A client may begin another request meanwhile, so those that are asked about are kept.
    const asked = new Map([...this.#waiting].map(([client, watches]) => [client, [...watches]]));
    const seen = await this.#look([...asked.keys()]);
    const tookMs = this.#world.monotonicMs() - startMs;
    this.#pauseMs = Math.min(Math.max(PAUSE_MIN_MS, tookMs * PAUSE_FOR_LOOK), PAUSE_MAX_MS);
    for (const client of seen?.gone ?? []) {
      for (const { controller } of asked.get(client) ?? []) {
        controller.abort(new ClientGone("the client has disconnected"));
      }
    }
  }

  async #look(clients: readonly string[]): Promise<ConnectionsSeen | null> {
    const seen = await within(this.#world, LOOK_DEADLINE_MS, this.#lookAt(this.listener, clients)).catch((
      error,
    ) => error instanceof OutOfTime ? LATE : null);
    if (seen === LATE) {
      this.#warnOnce(
        `a look at the system's list of connections took longer than ${LOOK_DEADLINE_MS} ms: ` +
          "clients who hang up are noticed later than usual",
      );
      return null;
    }
    if (seen === null) {
      this.#warnOnce("the system does not list its connections: some clients who hang up are not noticed");
    }
    return seen;
  }

  #warnOnce(message: string): void {
    if (this.#warned.has(message)) return;
    this.#warned.add(message);
    this.#world.log.warn(message);
  }

  #stop(): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
  }
}

/** One request under way. */
interface Watch {
  readonly controller: AbortController;
  readonly sinceMs: number;
}

/** As {@link LookAtConnections} names a client. */
export function clientName({ hostname, port }: Deno.NetAddr): string {
  return `${hostname} ${port}`;
}
