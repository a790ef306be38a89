/** The service's side of the relay Workers: they are started on demand, and replaced when one fails. */

import { entryOf } from "../../base/program_paths.ts";
import type { Refusal } from "../../contract/refusal.ts";
import { hasEndedWithin, timer } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { sourceFault } from "../../model/sources/remote_source.ts";
import { HlsProgress } from "./hls_progress.ts";
import type { Sink } from "./prefetch.ts";
import type { RelayOrder, RelayReport, RelaySaid } from "./relay_messages.ts";
import type { CountDatagrams } from "./rtp_datagrams.ts";
import type { RelayedSource, RelayedStream, RelaySettings, SourceRelay, SourceRelays } from "./relays.ts";

export interface RelayWorkersOptions extends RelaySettings {
  readonly world: World;
  /** Where relays listen for ffmpeg. */
  readonly socketDir: string;
  readonly countDatagrams: CountDatagrams;
  /** The largest number of Workers. */
  readonly workersMax: number;
}

/** A Worker without a source ends after this time. */
const IDLE_MS = 60_000;
/** How long a Worker may take to start, to close a source, and to say what it knows. */
const START_MS = 15_000;
const CLOSE_MS = 10_000;
const TOLD_MS = 1_000;

/**
 * ```
 *   openStream, fetchFile ──▶ the Worker with the fewest sources (a new one while there are fewer than `workersMax` and none is idle)
 *   a Worker without a source for `IDLE_MS` ──▶ it ends
 *   a Worker that fails ──▶ each of its sources has no more media; the next one starts another
 * ```
 */
export class RelayWorkers implements SourceRelays {
  readonly #options: RelayWorkersOptions;
  readonly #workers = new Set<RelayWorker>();
  #isClosed = false;

  constructor(options: RelayWorkersOptions) {
    this.#options = options;
  }

  async openStream(source: RelayedSource, options: RelayedStream, signal: AbortSignal): Promise<SourceRelay> {
    signal.throwIfAborted();
    const relay = new WorkerRelay(this.#leastLoaded(), this.#options.world, signal);
    await relay.open(source, options);
    return relay;
  }

  async fetchFile(source: RelayedSource, sink: Sink, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await using relay = new WorkerRelay(this.#leastLoaded(), this.#options.world, signal);
    await relay.fetch(source, sink);
  }

  /** Ends the Workers; their sources must have been closed. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    for (const worker of [...this.#workers]) worker.end("the service is closing");
    return Promise.resolve();
  }

  #leastLoaded(): RelayWorker {
    if (this.#isClosed) throw new Error("Cannot open a source as the service is closing");
    const [least] = Array.from(this.#workers).sort((one, other) => one.sources - other.sources);
    if (least && (least.sources === 0 || this.#workers.size >= this.#options.workersMax)) return least;
    const worker: RelayWorker = new RelayWorker(this.#options, () => this.#workers.delete(worker));
    this.#workers.add(worker);
    return worker;
  }
}

/** A report on one source, or that its Worker has ended. */
type SourceReport = Exclude<RelayReport, { kind: "ready" | "datagrams" | "log" }> | {
  readonly kind: "gone";
  readonly why: string;
};

/** One Worker and its sources. */
class RelayWorker {
  readonly #options: RelayWorkersOptions;
  readonly #onEnd: () => void;
  readonly #worker: Worker;
  readonly #sources = new Map<number, (report: SourceReport) => void>();
  readonly #loading: Disposable;
  #idling: Disposable | null = null;
  /** Orders that came before the Worker had loaded; null from then on. */
  #early: RelayOrder[] | null;
  #lastId = 0;
  #hasEnded = false;

  /** `onEnd` is called once, when the Worker has ended for whatever reason. */
  constructor(options: RelayWorkersOptions, onEnd: () => void) {
    const { socketDir, allowInsecureTls, allowedNetworks, world } = options;
    this.#options = options;
    this.#onEnd = onEnd;
    this.#early = [{ kind: "start", settings: { allowInsecureTls, allowedNetworks } }];
    this.#worker = new Worker(entryOf("relay"), {
      type: "module",
      name: "relay",
      deno: {
        permissions: {
          // Listening on a Unix socket needs both.
          ...{ read: [socketDir], write: [socketDir] },
          ...{ net: true, sys: ["ca"], run: false, env: false, ffi: false, import: false },
        },
      },
    });
    this.#worker.onmessage = ({ data }: MessageEvent<RelayReport>) => this.#onReport(data);
    this.#worker.onmessageerror = () => this.end("a report could not be read");
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.end(event.message);
    };
    this.#loading = timer(world, START_MS, () => this.end(`it did not load within ${START_MS} ms`));
  }

  get sources(): number {
    return this.#sources.size;
  }

  /** The number of a new source, whose reports go to `onReport`. */
  add(onReport: (report: SourceReport) => void): number {
    const id = ++this.#lastId;
    this.#sources.set(id, onReport);
    this.#idling?.[Symbol.dispose]();
    return id;
  }

  post(order: RelayOrder, moved: ArrayBuffer[] = []): void {
    if (this.#hasEnded) return;
    if (this.#early) this.#early.push(order);
    else this.#worker.postMessage(order, moved);
  }

  /** Ends the Worker, and with it all its sources. */
  end(why: string): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#loading[Symbol.dispose]();
    this.#idling?.[Symbol.dispose]();
    this.#worker.terminate();
    this.#onEnd();
    if (this.#sources.size > 0) this.#options.world.log.error("a relay worker has failed", { error: why });
    for (const onReport of this.#sources.values()) onReport({ kind: "gone", why });
    this.#sources.clear();
  }

  #onReport(report: RelayReport): void {
    const { world, countDatagrams } = this.#options;
    if (report.kind === "datagrams") countDatagrams(report.outcome, report.datagrams);
    else if (report.kind === "log") world.log[report.level](report.message, report.fields);
    else if (report.kind === "ready") {
      this.#loading[Symbol.dispose]();
      const early = this.#early ?? [];
      this.#early = null;
      for (const order of early) this.post(order);
    } else {
      this.#sources.get(report.id)?.(report);
      if (report.kind === "closed") this.#forget(report.id);
    }
  }

  #forget(id: number): void {
    this.#sources.delete(id);
    if (this.#sources.size > 0 || this.#hasEnded) return;
    this.#idling?.[Symbol.dispose]();
    this.#idling = timer(this.#options.world, IDLE_MS, () => this.end("it has no source"));
  }
}

/** One source in a Worker. */
class WorkerRelay implements SourceRelay {
  url = "";
  readonly progress = new HlsProgress();
  readonly #worker: RelayWorker;
  readonly #id: number;
  readonly #world: World;
  readonly #signal: AbortSignal;
  readonly #done = Promise.withResolvers<void>();
  readonly #closed = Promise.withResolvers<void>();
  readonly #onAbort = () => {
    this.#done.reject(this.#signal.reason);
    this.#close();
  };
  #said: RelaySaid = { fault: null, end: null, parts: [] };
  #told = Promise.withResolvers<void>();
  #sink: Sink = () => Promise.resolve();
  #isClosing = false;

  constructor(worker: RelayWorker, world: World, signal: AbortSignal) {
    this.#worker = worker;
    this.#world = world;
    this.#signal = signal;
    this.#done.promise.catch(() => {/* whoever waits for it gets it */});
    this.#id = worker.add((report) => this.#onReport(report));
    signal.addEventListener("abort", this.#onAbort);
  }

  get fault(): Refusal | undefined {
    return this.#said.fault === null ? undefined : sourceFault(this.#said.fault);
  }

  get end(): string | undefined {
    return this.#said.end ?? undefined;
  }

  async open({ remote, named }: RelayedSource, { before, ...options }: RelayedStream): Promise<void> {
    const order = { id: this.#id, source: remote.kind, url: remote.url.href, named: named ?? null };
    this.#worker.post({ kind: "open", ...order, options: { ...options, before: before && before.parts } });
    try {
      await this.#done.promise;
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  async fetch({ remote, named }: RelayedSource, sink: Sink): Promise<void> {
    this.#sink = sink;
    this.#worker.post({
      kind: "fetch",
      id: this.#id,
      source: remote.kind,
      url: remote.url.href,
      named: named ?? null,
    });
    await this.#done.promise;
  }

  async told(): Promise<void> {
    if (this.#isClosing) return;
    this.#told = Promise.withResolvers();
    this.#worker.post({ kind: "ask", id: this.#id });
    await hasEndedWithin(this.#world, TOLD_MS, this.#told.promise);
  }

  /** Waits until the Worker has closed it, for a limited time. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#close();
    await hasEndedWithin(this.#world, CLOSE_MS, this.#closed.promise);
  }

  #close(): void {
    if (this.#isClosing) return;
    this.#isClosing = true;
    this.#signal.removeEventListener("abort", this.#onAbort);
    this.#worker.post({ kind: "close", id: this.#id });
  }

  #onReport(report: SourceReport): void {
    if (report.kind === "opened") {
      this.url = report.url;
      this.#hear(report.said);
      this.#done.resolve();
    } else if (report.kind === "said") {
      this.#hear(report.said);
      if (report.isAnswer) this.#told.resolve();
    } else if (report.kind === "bytes") void this.#take(report.bytes);
    else if (report.kind === "fetched") this.#done.resolve();
    else if (report.kind === "refused") this.#done.reject(sourceFault(report.reason));
    else if (report.kind === "failed") this.#done.reject(new Error(`A relay failed: ${report.message}`));
    else {
      if (report.kind === "gone") {
        this.#said = { ...this.#said, end: "its relay has failed" };
        this.#isClosing = true;
        this.#signal.removeEventListener("abort", this.#onAbort);
        this.#done.reject(new Error(`A relay Worker failed: ${report.why}`));
      }
      this.#told.resolve();
      this.#closed.resolve();
    }
  }

  #hear(said: RelaySaid): void {
    this.#said = said;
    for (const part of said.parts) this.progress.note(part);
  }

  async #take(bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    try {
      await this.#sink(bytes);
      this.#worker.post({ kind: "taken", id: this.#id, room: bytes.buffer }, [bytes.buffer]);
    } catch (error) {
      this.#done.reject(error);
    }
  }
}
