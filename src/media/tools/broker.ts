/** Starts programs for the sandboxed Workers, which may start none: only jobs of known kinds, with checked paths. */

import type { Tools } from "../../base/program_paths.ts";
import type { World } from "../../base/world.ts";
import { type Outcome, run, start } from "../process.ts";
import { type BrokerAnswer, type BrokerOrder, brokerOrder } from "./broker_messages.ts";
import type { ToolJob } from "./job.ts";
import { checkedJob, checkSocket, type JobPlaces, JobRefused } from "./job_paths.ts";
import { type Ends, endsOf, invocationOf, socketEnds } from "./templates.ts";

export interface BrokerOptions {
  readonly tools: Tools;
  readonly places: JobPlaces;
  readonly world: World;
}

/** Programs at the same time for all Workers; each bound of the service is far below. */
const PROGRAMS_MAX = 1024;
/** Live Workers at the same time, those that are closing included. */
const CONNECTIONS_MAX = 64;
/** A live Worker that was taken over cannot read recorded media through a decode. */
const LIVE_KINDS: ReadonlySet<ToolJob["kind"]> = new Set([
  "make_pipe",
  "live_decode",
  "live_pull",
  "encode_jpegs",
]);

/**
 * ```
 *   service Worker ──orders──▶ ┌────────┐ checks ─▶ templates ─▶ prlimit ffmpeg …
 *   live Worker    ──orders──▶ │ broker │              │
 *                  ◀─answers── └────────┘              │ frames, JPEGs, units: sockets in the temporary folder,
 *   Workers        ◀───────────────────────────────────┘ on which the Workers listen
 * ```
 * Only orders, error output and short results go through the broker, nothing for each frame.
 */
export class Broker implements AsyncDisposable {
  readonly #options: BrokerOptions;
  readonly #connections = new Set<Connection>();
  #isClosed = false;
  #programs = 0;

  constructor(options: BrokerOptions) {
    this.#options = options;
  }

  /** Serves the service's Worker at the other end of `port`. */
  serve(port: MessagePort): void {
    this.#connect(port, null);
  }

  /** Kills everything that runs, and waits until it is gone. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await Promise.all(Array.from(this.#connections, (connection) => connection.close()));
  }

  #connect(port: MessagePort, kinds: ReadonlySet<ToolJob["kind"]> | null): Connection {
    const connection: Connection = new Connection(port, {
      ...this.#options,
      kinds,
      onConnect: (other) => {
        if (kinds !== null || this.#isClosed || this.#connections.size >= CONNECTIONS_MAX) return null;
        return this.#connect(other, LIVE_KINDS);
      },
      admit: () => {
        if (this.#isClosed) throw new JobRefused("the broker is closing");
        if (this.#programs >= PROGRAMS_MAX) throw new JobRefused(`${PROGRAMS_MAX} programs run already`);
        this.#programs++;
        return { [Symbol.dispose]: () => void this.#programs-- };
      },
      onClosed: () => this.#connections.delete(connection),
    });
    this.#connections.add(connection);
    return connection;
  }
}

interface ConnectionOptions extends BrokerOptions {
  /** The kinds of jobs that it may have run; null for all. */
  readonly kinds: ReadonlySet<ToolJob["kind"]> | null;
  /** Serves another Worker; null where that is not allowed. */
  readonly onConnect: (port: MessagePort) => Connection | null;
  readonly admit: () => Disposable;
  readonly onClosed: () => void;
}

type Kill = (why: Outcome["end"]) => void;

/** One Worker and what runs for it. */
class Connection {
  readonly #port: MessagePort;
  readonly #options: ConnectionOptions;
  readonly #kills = new Map<number, Kill>();
  readonly #running = new Set<Promise<void>>();
  readonly #others = new Map<number, Connection>();
  #isClosed = false;

  constructor(port: MessagePort, options: ConnectionOptions) {
    this.#port = port;
    this.#options = options;
    port.onmessage = ({ data, ports }) => this.#take(data, ports);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const kill of this.#kills.values()) kill("killed");
    await Promise.all(this.#running);
    await Promise.all(Array.from(this.#others.values(), (other) => other.close()));
    this.#port.close();
    this.#options.onClosed();
  }

  #take(data: unknown, ports: readonly MessagePort[]): void {
    if (this.#isClosed) return;
    const read = brokerOrder.safeParse(data);
    if (!read.success) return this.#refuse(idOf(data), "the order has not the form of one");
    const order = read.data;
    switch (order.type) {
      case "run":
      case "start":
        return this.#begin(order);
      case "kill":
        return this.#kills.get(order.id)?.(order.why);
      case "connect": {
        const other = ports.length === 1 && !this.#others.has(order.id)
          ? this.#options.onConnect(ports[0]!)
          : null;
        if (other) this.#others.set(order.id, other);
        else this.#refuse(order.id, "no connection for another Worker");
        return;
      }
      case "disconnect": {
        void this.#others.get(order.id)?.close();
        this.#others.delete(order.id);
        return;
      }
    }
  }

  #begin(order: Extract<BrokerOrder, { type: "run" | "start" }>): void {
    const { id } = order;
    if (this.#kills.has(id)) return this.#refuse(id, "a job of this number runs already");
    const stop = new AbortController();
    let why: Outcome["end"] = "killed";
    this.#kills.set(id, (reason) => {
      if (!stop.signal.aborted) why = reason;
      stop.abort();
    });
    const running = this.#perform(order, stop.signal, () => why)
      .catch((error) => {
        const message = error instanceof Error ? error.message : String(error);
        if (error instanceof JobRefused) this.#refuse(id, message);
        else if (stop.signal.aborted) {
          this.#answer({
            type: "done",
            id,
            outcome: { end: why, code: 0, stdout: new Uint8Array(), stderr: "" },
          });
        } else this.#answer({ type: "failed", id, message });
      })
      .finally(() => {
        this.#kills.delete(id);
        this.#running.delete(running);
      });
    this.#running.add(running);
  }

  async #perform(
    order: Extract<BrokerOrder, { type: "run" | "start" }>,
    signal: AbortSignal,
    why: () => Outcome["end"],
  ): Promise<void> {
    const { kinds, places, tools, world } = this.#options;
    const { id, maxStderrBytes } = order;
    if (kinds !== null && !kinds.has(order.job.kind)) {
      throw new JobRefused(`no ${order.job.kind} for this Worker`);
    }
    using _place = this.#options.admit();
    if (order.type === "run") {
      const job = await checkedJob(order.job, places);
      if (job.kind === "encode_clip" || job.kind === "copy_clip") await makeFile(job.file);
      const { program, args, limits } = invocationOf(job, tools);
      const { deadlineMs, maxStdoutBytes, input } = order;
      const bounds = { world, signal, deadlineMs, maxStdoutBytes, maxStderrBytes, limits };
      const outcome = await run(program, args, { ...bounds, ...(input !== null && { input }) });
      return this.#answer({ type: "done", id, outcome });
    }
    const job = await checkedJob(order.job, places);
    const ends = await this.#socketsOf(order);
    const { program, args, limits } = invocationOf(job, tools, ends);
    const tool = start(program, args, {
      ...{ signal, limits, maxStderrBytes, hasStdin: false, hasStdout: false },
      ...(order.wantsStderr && { onStderr: (part) => this.#answer({ type: "stderr", id, part }) }),
    });
    const ended = await tool.ended;
    const end = signal.aborted ? why() : ended.end;
    this.#answer({ type: "done", id, outcome: { ...ended, end, stdout: new Uint8Array() } });
  }

  async #socketsOf({ job, input, output }: Extract<BrokerOrder, { type: "start" }>): Promise<Ends> {
    const { hasInput, hasOutput } = endsOf(job);
    if (hasInput !== (input !== null) || hasOutput !== (output !== null)) {
      throw new JobRefused(`a ${job.kind} has other sockets`);
    }
    for (const path of [input, output]) if (path !== null) await checkSocket(path, this.#options.places);
    return socketEnds(input, output);
  }

  #refuse(id: number, message: string): void {
    this.#options.world.log.warn("the broker refused an order of a sandboxed Worker", { reason: message });
    this.#answer({ type: "refused", id, message });
  }

  #answer(answer: BrokerAnswer): void {
    const moved = answer.type === "done" ? [answer.outcome.stdout.buffer as ArrayBuffer] : [];
    this.#port.postMessage(answer, moved);
  }
}

/** Makes an empty file for a program to write into, at a path where nothing is. */
async function makeFile(path: string): Promise<void> {
  const file = await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
  file.close();
}

/** Of an order that may have any form. */
function idOf(data: unknown): number {
  const id = (data as { id?: unknown } | null)?.id;
  return Number.isSafeInteger(id) ? id as number : 0;
}
