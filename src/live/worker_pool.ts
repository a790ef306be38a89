/** The HTTP thread's side of the live Workers: they are started on demand, and replaced when one fails. */

import { entryOf, PROJECT } from "../base/program_paths.ts";
import { hasEndedWithin, timer } from "../base/wait.ts";
import type { World } from "../base/world.ts";
import type { MediaInput } from "../media/input.ts";
import type { MediaInfo } from "../media/media_info.ts";
import type { CandidateSender } from "../model/live/candidate.ts";
import type { Offer } from "../model/live/offer.ts";
import type { BrokerConnection } from "../media/broker/broker_client.ts";
import type {
  LiveOrder,
  LiveReport,
  LiveStart,
  SessionReport,
  SessionSettings,
  WithoutSessionId,
} from "./messages/messages.ts";

/** What a session starts with: the offer of a publisher, or a source to pull. */
export type Opening =
  | CandidateSender & { readonly kind: "offer"; readonly offer: Offer }
  | { readonly kind: "pull"; readonly input: MediaInput; readonly info: MediaInfo };

/** One session as the HTTP thread sees it. */
export interface SessionPort {
  /** Sends an order; does nothing once the session is closed. */
  send(order: SessionOrder): void;
  /**
   * Asks the Worker to release everything that the session has; resolves when it has done so, or when the
   * Worker has ended. Later calls return the same promise.
   */
  close(): Promise<void>;
}

/** An order without the session's id, which the port adds. */
export type SessionOrder = WithoutSessionId<Exclude<LiveOrder, { kind: "start" | "offer" | "close" }>>;

/** Opens live sessions in Workers; the tests have one without Workers. */
export interface LiveWorkers extends AsyncDisposable {
  /**
   * Opens a session. All its reports go to `onReport`, never before this has returned; the last one is
   * `closed` or `refused`. If no Worker can be started, the session is `ended` by a fault.
   */
  open(settings: SessionSettings, opening: Opening, onReport: (report: SessionReport) => void): SessionPort;
}

export interface LiveWorkerPoolOptions {
  readonly start: LiveStart;
  /** Connects each Worker with the broker, which starts programs for it. */
  readonly connect: () => BrokerConnection;
  /** Folders that the Workers may read besides their own code. */
  readonly readable: readonly string[];
  readonly world: World;
  /** The largest number of Workers; one for each processor is sensible. */
  readonly workersMax: number;
}

/** Milliseconds after which a Worker without a session ends: it takes some 50 MB. */
const IDLE_MS = 60_000;
/** Milliseconds that a Worker may take to start, and to close its sessions when the service ends. */
const START_MS = 15_000;
const CLOSE_MS = 10_000;

/**
 * ```
 *   open ──▶ the Worker with the fewest sessions (a new one while there are fewer than `workersMax` and none is idle)
 *   a Worker without a session for `IDLE_MS` ──▶ it ends
 *   a Worker that fails ──▶ each of its sessions: `ended` (worker_fault), `closed`; the next `open` starts another
 * ```
 */
export class LiveWorkerPool implements LiveWorkers {
  readonly #options: LiveWorkerPoolOptions;
  readonly #workers = new Set<LiveWorker>();
  #isClosed = false;

  constructor(options: LiveWorkerPoolOptions) {
    this.#options = options;
  }

  open(
    settings: SessionSettings,
    opening: Opening,
    onReport: (report: SessionReport) => void,
  ): SessionPort {
    if (this.#isClosed) throw new Error("Cannot open a live session as the service is closing");
    return this.#leastLoaded().open(settings, opening, onReport);
  }

  /** Closes the open sessions, waits for a limited time, then ends the Workers. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await Promise.all(Array.from(this.#workers, (worker) => worker.close(CLOSE_MS)));
    this.#workers.clear();
  }

  #leastLoaded(): LiveWorker {
    const [least] = Array.from(this.#workers).sort((one, other) => one.sessions - other.sessions);
    if (least && (least.sessions === 0 || this.#workers.size >= this.#options.workersMax)) return least;
    const worker: LiveWorker = LiveWorker.start(this.#options, () => this.#workers.delete(worker));
    this.#workers.add(worker);
    return worker;
  }
}

interface OpenSession {
  readonly onReport: (report: SessionReport) => void;
  readonly closed: PromiseWithResolvers<void>;
}

/** One Worker and its sessions. */
class LiveWorker {
  readonly #worker: Worker;
  readonly #options: LiveWorkerPoolOptions;
  readonly #onEnd: () => void;
  readonly #sessions = new Map<string, OpenSession>();
  /** Orders that came before the Worker had loaded; null from then on. */
  #early: LiveOrder[] | null = [];
  readonly #loading: Disposable;
  /** The timer that ends the Worker, while it has no session. */
  #idling: Disposable | null = null;
  readonly #broker: BrokerConnection;
  #hasEnded = false;

  private constructor(worker: Worker, options: LiveWorkerPoolOptions, onEnd: () => void) {
    this.#worker = worker;
    this.#options = options;
    this.#onEnd = onEnd;
    this.#broker = options.connect();
    worker.onmessage = ({ data }: MessageEvent<LiveReport>) => this.#onReport(data);
    worker.onmessageerror = () => this.#end("a report could not be read");
    worker.onerror = (event) => {
      event.preventDefault();
      this.#end(event.message);
    };
    this.#loading = timer(
      options.world,
      START_MS,
      () => this.#end(`it did not load within ${START_MS} ms`),
    );
  }

  /** Starts a Worker; `onEnd` is called once, when it has ended for whatever reason. */
  static start(options: LiveWorkerPoolOptions, onEnd: () => void): LiveWorker {
    const { start, readable } = options;
    const worker = new Worker(entryOf("live"), {
      type: "module",
      name: "live",
      deno: {
        permissions: {
          read: [...readable, new URL("wasm/", PROJECT), start.socketDir],
          write: [start.socketDir],
          run: false,
          net: true,
          sys: ["networkInterfaces", "cpus"],
          env: false,
          ffi: false,
          import: false,
        },
      },
    });
    return new LiveWorker(worker, options, onEnd);
  }

  get sessions(): number {
    return this.#sessions.size;
  }

  open(
    settings: SessionSettings,
    opening: Opening,
    onReport: (report: SessionReport) => void,
  ): SessionPort {
    const { sessionId } = settings;
    const session: OpenSession = { onReport, closed: Promise.withResolvers<void>() };
    let isClosing = false;
    this.#sessions.set(sessionId, session);
    this.#idling?.[Symbol.dispose]();
    this.#post({ ...opening, settings });
    return {
      send: (order) => {
        if (this.#sessions.has(sessionId)) this.#post({ ...order, sessionId } as LiveOrder);
      },
      close: () => {
        if (!isClosing && this.#sessions.has(sessionId)) this.#post({ kind: "close", sessionId });
        isClosing = true;
        return session.closed.promise;
      },
    };
  }

  /** Closes the Worker's sessions, for at most `timeoutMs`, then ends the Worker. */
  async close(timeoutMs: number): Promise<void> {
    const sessions = Array.from(this.#sessions, ([sessionId, session]) => {
      this.#post({ kind: "close", sessionId });
      return session.closed.promise;
    });
    await hasEndedWithin(this.#options.world, timeoutMs, Promise.all(sessions));
    this.#end("the service is closing");
  }

  #post(order: LiveOrder): void {
    if (this.#hasEnded) return;
    if (this.#early) this.#early.push(order);
    else this.#worker.postMessage(order);
  }

  #onReport(report: LiveReport): void {
    if (report.kind === "ready") return this.#onReady();
    if (report.kind === "uncaught") return this.#logUncaught(report);
    const session = this.#sessions.get(report.sessionId);
    if (!session) return;
    if (report.kind === "closed" || report.kind === "refused") this.#forget(report.sessionId);
    session.onReport(report);
  }

  #logUncaught({ sessionId, message }: Extract<LiveReport, { kind: "uncaught" }>): void {
    this.#options.world.log.warn("uncaught error in a live worker", {
      session_id: sessionId,
      error: message,
    });
  }

  #onReady(): void {
    this.#loading[Symbol.dispose]();
    const early = this.#early ?? [];
    this.#early = null;
    const { port } = this.#broker;
    const { start } = this.#options;
    this.#worker.postMessage({ kind: "start", start, broker: port } satisfies LiveOrder, [port]);
    for (const order of early) this.#worker.postMessage(order);
  }

  #forget(sessionId: string): void {
    this.#sessions.get(sessionId)?.closed.resolve();
    this.#sessions.delete(sessionId);
    if (this.#sessions.size > 0 || this.#hasEnded) return;
    this.#idling?.[Symbol.dispose]();
    this.#idling = timer(this.#options.world, IDLE_MS, () => this.#end("it has no session"));
  }

  /** Ends the Worker, and with it all its sessions. */
  #end(why: string): void {
    if (this.#hasEnded) return;
    const reason = this.#early ? "spawn_failure" : "unexpected_exit";
    const fault = { stage: "decode", reason } as const; // the first stage of all that were in the Worker
    this.#hasEnded = true;
    this.#loading[Symbol.dispose]();
    this.#idling?.[Symbol.dispose]();
    this.#worker.terminate();
    this.#broker.close();
    this.#onEnd();
    for (const [sessionId, session] of [...this.#sessions]) {
      this.#forget(sessionId);
      session.onReport({ kind: "ended", sessionId, cause: "worker_fault", message: why, fault });
      session.onReport({ kind: "closed", sessionId });
    }
  }
}
