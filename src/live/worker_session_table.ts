/** The sessions of one live Worker: passes each order to its session and opens new ones. */

import { AsyncLocalStorage } from "node:async_hooks";
import { errorText, quietLog } from "../base/log.ts";
import { realWorld } from "../base/world.ts";
import { JpegEncoderPool } from "../media/live/jpeg_encoder.ts";
import { BrokerClient } from "../media/broker/broker_client.ts";
import type { LiveOrder, LiveReport, LiveStart } from "./messages/messages.ts";
import { type SessionHost, WorkerSession } from "./worker_session.ts";

export class WorkerSessionTable {
  readonly #post: (report: LiveReport, moved: readonly ArrayBuffer[]) => void;
  readonly #sessions = new Map<string, WorkerSession>();
  /**
   * The session in which the current code runs, so that an uncaught error can be reported with its session.
   */
  readonly #current = new AsyncLocalStorage<string>();
  #host: SessionHost | null = null;
  /** Encoders that all sessions share; closed with the last session. */
  #encoders: JpegEncoderPool | null = null;

  constructor(post: (report: LiveReport, moved: readonly ArrayBuffer[]) => void) {
    this.#post = post;
  }

  /** Passes an order on. Orders for a session that has ended are ignored. */
  take(order: LiveOrder): void {
    if (order.kind === "start") this.#host ??= this.#hostOf(order.start, order.broker);
    else if (order.kind === "offer") this.#open(order);
    else if (order.kind === "pull" && !this.#sessions.has(order.settings.sessionId)) this.#open(order);
    else {
      const sessionId = order.kind === "pull" ? order.settings.sessionId : order.sessionId;
      this.#current.run(sessionId, () => this.#sessions.get(sessionId)?.take(order));
    }
  }

  /**
   * Reports an error that no code caught. It comes from a package, because an error in the session's own code
   * ends the session. The session continues, and if it no longer works its watchdogs end it: publisher
   * liveness and stalled decoders.
   */
  onUncaught(error: unknown): void {
    const message = errorText(error);
    this.#post({ kind: "uncaught", sessionId: this.#current.getStore() ?? null, message }, []);
  }

  #open(order: Extract<LiveOrder, { kind: "offer" | "pull" }>): void {
    const { sessionId } = order.settings;
    if (!this.#host || this.#sessions.has(sessionId)) return;
    const host = this.#host;
    this.#current.run(sessionId, () => this.#sessions.set(sessionId, WorkerSession.open(host, order)));
  }

  #hostOf(start: LiveStart, port: MessagePort): SessionHost {
    const world = realWorld(quietLog());
    const runner = new BrokerClient({ port, socketDir: start.socketDir, world });
    return {
      ...start,
      world,
      runner,
      post: (report, moved) => this.#post(report, moved),
      encoders: () => this.#encoders ??= new JpegEncoderPool({ runner, world, maxEncoders: ENCODERS_MAX }),
      onReleased: (sessionId) => this.#forget(sessionId),
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

/**
 * Most encoders, one for each size of frame or zone among the sessions of a Worker; with more sizes, they
 * wait for each other.
 */
const ENCODERS_MAX = 8;
