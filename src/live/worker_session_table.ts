/** The sessions of one live Worker: hands each order to its session and starts new ones. */

import { AsyncLocalStorage } from "node:async_hooks";
import { quietLog } from "../base/log.ts";
import { realWorld } from "../base/world.ts";
import { JpegEncoders } from "../media/live/jpeg_encoder.ts";
import type { LiveOrder, LiveReport, LiveStart } from "./messages.ts";
import { type SessionHost, WorkerSession } from "./worker_session.ts";

export class WorkerSessionTable {
  readonly #post: (report: LiveReport, moved: readonly ArrayBuffer[]) => void;
  readonly #sessions = new Map<string, WorkerSession>();
  /** Follows everything that a session sets going, so that a stray failure says whose it is. */
  readonly #current = new AsyncLocalStorage<string>();
  #host: SessionHost | null = null;
  /** Shared by the sessions: programs that wait for the next picture; gone with the last session. */
  #encoders: JpegEncoders | null = null;

  constructor(post: (report: LiveReport, moved: readonly ArrayBuffer[]) => void) {
    this.#post = post;
  }

  /** Orders for a session that is gone are ignored. */
  take(order: LiveOrder): void {
    if (order.kind === "start") this.#host ??= this.#hostOf(order.start);
    else if (order.kind === "offer") this.#open(order);
    else if (order.kind === "pull" && !this.#sessions.has(order.settings.sessionId)) this.#open(order);
    else {
      const sessionId = order.kind === "pull" ? order.settings.sessionId : order.sessionId;
      this.#current.run(sessionId, () => this.#sessions.get(sessionId)?.take(order));
    }
  }

  /**
   * Something failed where nobody waited for it: in a package, as what a session awaits ends the session. The session
   * goes on, as what it needs is watched: a publisher that is silent and a decoder that stalls end it in their time.
   */
  onStray(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.#post({ kind: "stray", sessionId: this.#current.getStore() ?? null, message }, []);
  }

  #open(order: Extract<LiveOrder, { kind: "offer" | "pull" }>): void {
    const { sessionId } = order.settings;
    if (!this.#host || this.#sessions.has(sessionId)) return;
    const host = this.#host;
    this.#current.run(sessionId, () => this.#sessions.set(sessionId, new WorkerSession(host, order)));
  }

  #hostOf(start: LiveStart): SessionHost {
    const world = realWorld(quietLog());
    return {
      ...start,
      world,
      post: (report, moved) => this.#post(report, moved),
      encoders: () =>
        this.#encoders ??= new JpegEncoders({ tools: start.tools, world, maxEncoders: ENCODERS_MAX }),
      onGone: (sessionId) => this.#forget(sessionId),
    };
  }

  async #forget(sessionId: string): Promise<void> {
    this.#sessions.delete(sessionId);
    if (this.#sessions.size > 0) return;
    const encoders = this.#encoders;
    this.#encoders = null;
    await encoders?.[Symbol.asyncDispose]();
  }
}

/** One for each size of picture, or of zone, among the sessions of a Worker; a size too many waits for another's place. */
const ENCODERS_MAX = 8;
