/** The live Workers from the HTTP thread's side: started when they are needed, and replaced when one dies. */

import type { World } from "../base/world.ts";
import type { MediaInput } from "../media/input.ts";
import type { MediaInfo } from "../media/probe.ts";
import type {
  LiveOrder,
  LiveReport,
  LiveStart,
  SessionReport,
  SessionSettings,
  WithoutSessionId,
} from "./messages.ts";

/** How a session begins. */
export type Opening =
  | { readonly kind: "offer"; readonly offer: string }
  | { readonly kind: "pull"; readonly input: MediaInput; readonly info: MediaInfo };

/** One session as its generation sees it. */
export interface SessionPort {
  /** Does nothing once the session is closed. */
  send(order: SessionOrder): void;
  /**
   * Asks the Worker to let go of everything the session has; resolves when it has, or when it is no more. Calling it again
   * gives the same promise.
   */
  close(): Promise<void>;
}

/** An order without the session's id, which the port knows. */
export type SessionOrder = WithoutSessionId<Exclude<LiveOrder, { kind: "start" | "offer" | "close" }>>;

/** Where live sessions run. */
export interface LiveWorkers extends AsyncDisposable {
  /**
   * Opens a session. Every report of it goes to `onReport`, never before this returned; the last one is `closed` or
   * `refused`. Where no Worker can be started it is `ended` by a fault.
   */
  open(settings: SessionSettings, opening: Opening, onReport: (report: SessionReport) => void): SessionPort;
}

export interface LiveWorkerPoolOptions {
  readonly start: LiveStart;
  /** Folders that the Workers may read besides their own code. */
  readonly readable: readonly string[];
  readonly world: World;
  /** Workers at most; one a processor is sensible. */
  readonly workersMax: number;
}

/** How long a Worker may take to start, and to close all it has when the service ends. */
const START_MS = 15_000;
const CLOSE_MS = 10_000;

/**
 * ```
 *   open ──▶ the Worker with the fewest sessions (a new one while there are fewer than `workersMax` and none is idle)
 *   a Worker that dies ──▶ each of its sessions: `ended` (worker_fault), `closed`; the next `open` starts another
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

  /** Ends what is still open, waits a little, then ends the Workers. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await Promise.all(Array.from(this.#workers, (worker) => worker.close(CLOSE_MS)));
    this.#workers.clear();
  }

  #leastLoaded(): LiveWorker {
    const [least] = Array.from(this.#workers).sort((one, other) => one.sessions - other.sessions);
    if (least && (least.sessions === 0 || this.#workers.size >= this.#options.workersMax)) return least;
    const worker: LiveWorker = new LiveWorker(this.#options, () => this.#workers.delete(worker));
    this.#workers.add(worker);
    return worker;
  }
}

interface OpenSession {
  readonly onReport: (report: SessionReport) => void;
  readonly closed: PromiseWithResolvers<void>;
}

/** One Worker and the sessions that it has. */
class LiveWorker {
  readonly #worker: Worker;
  readonly #options: LiveWorkerPoolOptions;
  readonly #onDead: () => void;
  readonly #sessions = new Map<string, OpenSession>();
  /** Orders that came before the Worker had loaded; null from then on. */
  #early: LiveOrder[] | null = [];
  readonly #loaded = new AbortController();
  #isDead = false;

  constructor(options: LiveWorkerPoolOptions, onDead: () => void) {
    this.#options = options;
    this.#onDead = onDead;
    const { start, readable } = options;
    const { ffmpeg, mkfifo, prlimit } = start.tools;
    this.#worker = new Worker(new URL("./live_worker.ts", import.meta.url), {
      type: "module",
      name: "live",
      deno: {
        permissions: {
          read: [...readable, new URL("../../wasm/", import.meta.url), start.tempDir],
          write: [start.tempDir],
          run: [ffmpeg, mkfifo, prlimit].filter((path) => path !== null),
          net: true,
          sys: ["networkInterfaces", "cpus"],
          env: false,
          ffi: false,
          import: false,
        },
      },
    });
    this.#worker.onmessage = ({ data }: MessageEvent<LiveReport>) => this.#onReport(data);
    this.#worker.onmessageerror = () => this.#die("a report could not be read");
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.#die(event.message);
    };
    options.world.sleep(START_MS, this.#loaded.signal).then(
      () => this.#die(`it did not load within ${START_MS} ms`),
      () => {},
    );
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

  /** Closes its sessions, for as long as `patienceMs`, then ends it. */
  async close(patienceMs: number): Promise<void> {
    const inTime = new AbortController();
    const sessions = Array.from(this.#sessions, ([sessionId, session]) => {
      this.#post({ kind: "close", sessionId });
      return session.closed.promise;
    });
    const late = this.#options.world.sleep(patienceMs, inTime.signal).catch(() => {});
    await Promise.race([Promise.all(sessions), late]);
    inTime.abort();
    this.#die("the service is closing");
  }

  #post(order: LiveOrder): void {
    if (this.#isDead) return;
    if (this.#early) this.#early.push(order);
    else this.#worker.postMessage(order);
  }

  #onReport(report: LiveReport): void {
    if (report.kind === "ready") return this.#begin();
    if (report.kind === "stray") return this.#logStray(report);
    const session = this.#sessions.get(report.sessionId);
    if (!session) return;
    if (report.kind === "closed" || report.kind === "refused") this.#forget(report.sessionId);
    session.onReport(report);
  }

  #logStray({ sessionId, message }: Extract<LiveReport, { kind: "stray" }>): void {
    this.#options.world.log.warn("a live session left a failure unattended", {
      session_id: sessionId,
      error: message,
    });
  }

  #begin(): void {
    this.#loaded.abort();
    const early = this.#early ?? [];
    this.#early = null;
    this.#worker.postMessage({ kind: "start", start: this.#options.start } satisfies LiveOrder);
    for (const order of early) this.#worker.postMessage(order);
  }

  #forget(sessionId: string): void {
    this.#sessions.get(sessionId)?.closed.resolve();
    this.#sessions.delete(sessionId);
  }

  /** Its sessions end, as nobody answers for them any more. */
  #die(why: string): void {
    if (this.#isDead) return;
    this.#isDead = true;
    this.#loaded.abort();
    this.#worker.terminate();
    this.#onDead();
    for (const [sessionId, session] of [...this.#sessions]) {
      this.#forget(sessionId);
      session.onReport({ kind: "ended", sessionId, cause: "worker_fault", message: why });
      session.onReport({ kind: "closed", sessionId });
    }
  }
}
