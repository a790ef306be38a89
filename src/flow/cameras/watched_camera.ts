/** One camera that is always watched: connects until it can, goes on for ever, and gets a new run at each
 * roll-over.
 */

import { Refusal } from "../../contract/refusal.ts";
import { abortWith, pause, unlessAborted } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { SourceState } from "../../model/api/sources.ts";
import type { AlwaysOnSource } from "../../model/sources/source_file.ts";
import type { LiveSources } from "../live/camera.ts";
import type { ArmedChange, ArmedSources } from "../sources/armed_sources.ts";
import { reconnectWaitMs } from "../live/reconnect.ts";
import type { LiveSession } from "../live/session.ts";

export interface WatchedCameraOptions {
  readonly source: AlwaysOnSource;
  /** Whose runs they are. */
  readonly principalKey: string;
  readonly live: LiveSources;
  readonly armed: ArmedSources;
  readonly world: World;
}

/** How the source is at the moment. */
export interface CameraLook {
  readonly state: SourceState;
  /** Null without a session. */
  readonly runId: string | null;
  /** Epoch milliseconds; null before the first frame of the session. */
  readonly lastFrameMs: number | null;
  /** Why it gives no frames; null while it does. */
  readonly reason: string | null;
  /** Since when it gives no frames, epoch milliseconds; null while it does. */
  readonly downSinceMs: number | null;
}

/** How long to wait until a roll-over is tried again that the disk has refused. */
const ROLLOVER_RETRY_MS = 10_000;

/**
 * ```
 *   connecting ──▶ live ◀──▶ gap            a session; `Reconnector` ends its gaps
 *     ▲    │        │ its run was ended: stopped or deleted by a caller, quota
 *     │    └▶ failed ◀┘                     no session; wait, and connect again
 *     └────────┘
 * ```
 * See docs/cameras.md#always-on-cameras.
 */
export class WatchedCamera {
  #source: AlwaysOnSource;
  readonly #options: WatchedCameraOptions;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  #session: LiveSession | null = null;
  /** Why the last attempt failed; null before that. */
  #failure: string | null = null;
  #downSinceMs: number;
  /** Aborts when the session is to go on in a new run at once. */
  #renewing = new AbortController();

  constructor(options: WatchedCameraOptions) {
    this.#options = options;
    this.#source = options.source;
    this.#downSinceMs = options.world.now();
    this.#running = this.#run();
  }

  /** As the file has it now. */
  get source(): AlwaysOnSource {
    return this.#source;
  }

  /**
   * The file has other webhooks or armed times for it: its session goes on, with other webhooks in a new run
   * that has them.
   */
  adopt(source: AlwaysOnSource): void {
    const webhooksOf = ({ watch }: AlwaysOnSource) => JSON.stringify(watch.webhooks);
    const isRenewed = webhooksOf(source) !== webhooksOf(this.#source);
    this.#source = source;
    if (isRenewed) this.#renewing.abort();
  }

  /** Without a session there is nothing to tell: the next one begins as the camera is armed then. */
  arm(change: ArmedChange): void {
    this.#session?.arm(change);
  }

  look(): CameraLook {
    const session = this.#session;
    if (session === null) {
      const state = this.#failure === null ? "connecting" : "failed";
      const down = { reason: this.#failure, downSinceMs: this.#downSinceMs };
      return { state, runId: null, lastFrameMs: null, ...down };
    }
    const { runId, gap, activity: { lastFrameMs } } = session;
    const common = { runId, lastFrameMs };
    if (gap) return { state: "gap", ...common, reason: gap.reason, downSinceMs: gap.sinceMs };
    return lastFrameMs === null
      ? { state: "connecting", ...common, reason: null, downSinceMs: session.openedMs }
      : { state: "live", ...common, reason: null, downSinceMs: null };
  }

  /** Stops watching, and leaves the session to the service, which closes. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  /** Stops watching and completes the run, for the reason. */
  async end(reason: string): Promise<void> {
    await this.close();
    await this.#session?.ending.end({ rank: 2, why: "completed", reason });
  }

  async #run(): Promise<void> {
    const { world } = this.#options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#watch();
      if (signal.aborted) return;
      if (!await pause(world, reconnectWaitMs(world, world.now() - this.#downSinceMs), signal)) return;
    }
  }

  /** One session, to its end. */
  async #watch(): Promise<void> {
    const { live, armed, principalKey, world } = this.#options;
    const { signal } = this.#closing;
    const isArmed = () => armed.stateOf(this.#source).isArmed;
    this.#renewing = new AbortController();
    try {
      this.#session = await live.watch(this.#source, principalKey, { isArmed, signal });
    } catch (error) {
      if (!signal.aborted) this.#fail(error);
      return;
    }
    const session = this.#session;
    world.log.info("a camera is watched", { source: this.#source.name, run_id: session.runId });
    const over = new AbortController();
    using _following = abortWith(signal, over);
    const rolling = this.#rollOver(session, over.signal);
    await unlessAborted(session.ending.ended, signal).catch(
      () => {/* the service closes, or the file has changed */},
    );
    over.abort();
    await rolling;
    if (signal.aborted) return;
    this.#session = null;
    this.#failure = "its run was ended; a new one begins soon";
    // A run that had frames is followed by another one at once.
    if (session.activity.lastFrameMs !== null) this.#downSinceMs = world.now();
  }

  #fail(error: unknown): void {
    const { world } = this.#options;
    if (!(error instanceof Refusal)) {
      world.log.error("a camera cannot be watched", { source: this.#source.name, error: String(error) });
    }
    const reason = reasonOf(error);
    if (reason === this.#failure) return;
    this.#failure = reason;
    world.log.warn("a camera cannot be watched", { source: this.#source.name, reason });
  }

  /** Gives the session a new run again and again, until the signal aborts. */
  async #rollOver(session: LiveSession, signal: AbortSignal): Promise<void> {
    const { live, armed, world } = this.#options;
    for (let waitMs = this.#source.watch.rolloverMs;;) {
      await pause(world, waitMs, AbortSignal.any([signal, this.#renewing.signal]));
      if (signal.aborted) return;
      this.#renewing = new AbortController();
      try {
        live.rollOver(session, this.#source, armed.stateOf(this.#source).isArmed);
        waitMs = this.#source.watch.rolloverMs;
      } catch (error) {
        const { name } = this.source;
        if (!(error instanceof Refusal)) {
          world.log.error("a camera got no new run", { source: name, error: String(error) });
        }
        waitMs = ROLLOVER_RETRY_MS;
      }
    }
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Refusal)) return "the service has a fault, see its log";
  const [detail] = error.details;
  if (!detail) return error.message;
  return detail.field === "source_uri" ? detail.message : `${detail.field} ${detail.message}`;
}
