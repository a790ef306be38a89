/** Starts programs for the sandboxed Workers, which may start none: only jobs of known kinds, with checked
 * paths.
 */

import { errorText } from "../../base/log.ts";
import type { Tools } from "../../base/program_paths.ts";
import { timer, unlessAborted } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { endsOf, inputOf, invocationOf, type Reporting, socketEnds, writesOf } from "../jobs/invocation.ts";
import type { Ends } from "../jobs/job.ts";
import { kindOf, type ToolJob } from "../jobs/jobs.ts";
import { type Outcome, type Priority, run, start } from "../process.ts";
import { type BrokerAnswer, type BrokerOrder, orderIn } from "./broker_messages.ts";
import type { LogPipe } from "./log_pipe.ts";
import { type Cage, enclosureOf, streamsOf } from "./cage.ts";
import { Forwarder, type Passage } from "./forwarder.ts";
import { LogPipes, madeBy } from "./log_pipes.ts";
import type { NativePipes } from "./native_pipes.ts";
import { checkedJob, checkSocket, type JobPlaces, JobRefused } from "./job_paths.ts";

export interface BrokerOptions {
  readonly tools: Tools;
  readonly places: JobPlaces;
  /**
   * The cage in which ffmpeg and ffprobe run. Or a function that finds it, for the first job, and every job
   * waits until it is found.
   */
  readonly cage: Cage | (() => Promise<Cage>);
  readonly world: World;
  /**
   * Makes named pipes and widens them, and is disposed with the broker; null where mkfifo makes them, as
   * narrow as pipes are.
   */
  readonly pipes: NativePipes | null;
  /** Programs at the same time for all Workers; the default is far above each bound of the service. */
  readonly programsMax?: number;
}

const PROGRAMS_MAX_DEFAULT = 1024;
/**
 * Share of the programs that live Workers may have: a hundred sessions and the encoders of each Worker need a
 * third of them.
 */
const LIVE_SHARE = 0.5;
/** Live Workers at the same time, those that are closing included. */
const CONNECTIONS_MAX = 64;
/**
 * Longest life of a program whose output is read while it runs, milliseconds: it ends then even when whoever
 * should watch it does not. A live session may take weeks; its decoder is then replaced like any other that
 * ends. A timer takes 24 days at most.
 */
const LIFE_MAX_MS = 20 * 24 * 3600 * 1000;
/**
 * Bytes that the pipe of a decode's frames holds: ten frames. ffmpeg would otherwise stop for each frame
 * until the Worker has read it, which took a quarter of the time of a decode of 480p. With this it stops only
 * where the Worker waits for something else for as long.
 */
const PLANE_PIPE_BYTES = 1 << 20;
/** Refusals of a connection that are logged at most. */
const LOGGED_MAX = 100;

/**
 * ```
 *   service Worker ──orders──▶ ┌────────┐ checks ─▶ arguments ─▶ cage ─▶ prlimit … ffmpeg …
 *   live Worker    ──orders──▶ │ broker │              │
 *                  ◀─answers── └────────┘              │ frames, JPEGs, units: sockets in the temporary folder,
 *   Workers        ◀───────────────────────────────────┘ on which the Workers listen
 * ```
 * Only orders, error output and short results go through the broker, nothing for each frame.
 */
export class Broker implements AsyncDisposable {
  readonly #options: BrokerOptions;
  readonly #connections = new Set<Connection>();
  readonly #programsMax: number;
  readonly #programs = { service: 0, live: 0 };
  readonly #logPipes: LogPipes;
  /** What programs run in; known from the first job on. */
  #surroundings: Promise<Surroundings> | null = null;
  #isClosed = false;

  constructor(options: BrokerOptions) {
    this.#options = options;
    this.#programsMax = options.programsMax ?? PROGRAMS_MAX_DEFAULT;
    this.#logPipes = new LogPipes(options);
  }

  /** Serves the service's Worker at the other end of `port`. Closing kills what runs for it. */
  serve(port: MessagePort): Pick<Connection, "close"> {
    return this.#connect(port, "service");
  }

  /** Kills everything that runs, and waits until it is gone. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await Promise.all(Array.from(this.#connections, (connection) => connection.close()));
    await this.#surroundings?.then(({ forwarder }) => forwarder?.[Symbol.asyncDispose](), () => {});
    await this.#logPipes[Symbol.asyncDispose]();
    this.#options.pipes?.[Symbol.dispose]();
  }

  async #surround(): Promise<Surroundings> {
    const { cage: given, places: { socketDir }, world } = this.#options;
    const cage = typeof given === "function" ? await given() : given;
    const streams = streamsOf(cage);
    if (streams.by !== "forwarder") return { cage, forwarder: null };
    return { cage, forwarder: new Forwarder({ tools: streams.forwarder, socketDir, world }) };
  }

  #connect(port: MessagePort, side: Side): Connection {
    const connection: Connection = new Connection(port, {
      ...this.#options,
      side,
      surroundings: () => this.#surroundings ??= this.#surround(),
      logPipes: this.#logPipes,
      onConnect: (other) => {
        if (side === "live" || this.#isClosed || this.#connections.size >= CONNECTIONS_MAX) return null;
        return this.#connect(other, "live");
      },
      admit: () => this.#admit(side),
      onClosed: () => this.#connections.delete(connection),
    });
    this.#connections.add(connection);
    return connection;
  }

  #admit(side: Side): Disposable {
    if (this.#isClosed) throw new JobRefused("the broker is closing");
    const { service, live } = this.#programs;
    const isFull = service + live >= this.#programsMax ||
      (side === "live" && live >= this.#programsMax * LIVE_SHARE);
    if (isFull) throw new JobRefused("too many programs run already");
    this.#programs[side]++;
    return { [Symbol.dispose]: () => void this.#programs[side]-- };
  }
}

/** What programs run in. */
interface Surroundings {
  readonly cage: Cage;
  /** The forwarder; null where the cage has none. */
  readonly forwarder: Forwarder | null;
}

/** An order for which a program is started. */
type Performed = Extract<BrokerOrder, { type: "run" | "start" }>;

/** Which Worker is at the other end: the one of the service, or one of live sessions. */
type Side = "service" | "live";

interface ConnectionOptions extends BrokerOptions {
  readonly side: Side;
  readonly surroundings: () => Promise<Surroundings>;
  readonly logPipes: LogPipes;
  /** Serves another Worker; null where that is not allowed. */
  readonly onConnect: (port: MessagePort) => Connection | null;
  readonly admit: () => Disposable;
  readonly onClosed: () => void;
}

/** What ends a job: whoever wants it no more, or the end of what it reads from. */
function lostOr(signal: AbortSignal, passage: Passage | null): AbortSignal {
  return passage ? AbortSignal.any([signal, passage.lost]) : signal;
}

function priorityOf(value: number, { nice }: Tools): { readonly priority?: Priority } {
  return nice && value > 0 ? { priority: { nice, value } } : {};
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
  #refusals = 0;

  constructor(port: MessagePort, options: ConnectionOptions) {
    this.#port = port;
    this.#options = options;
    port.onmessage = ({ data, ports }) => {
      const taken = this.#take(data, ports);
      for (const other of ports) if (other !== taken) other.close();
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const kill of this.#kills.values()) kill("killed");
    await Promise.all(this.#running);
    await Promise.all(Array.from(this.#others.values(), (other) => other.close()));
    this.#port.close();
    this.#options.onClosed();
  }

  /** The port that is now in use for another Worker, if any. */
  #take(data: unknown, ports: readonly MessagePort[]): MessagePort | null {
    if (this.#isClosed) return null;
    const order = orderIn(data);
    switch (order?.type) {
      case undefined:
        this.#refuse(idOf(data), "the order has not the form of one");
        return null;
      case "run":
      case "start":
        this.#begin(order);
        return null;
      case "kill":
        this.#kills.get(order.id)?.(order.why);
        return null;
      case "connect": {
        const [port] = ports;
        const other = port && !this.#others.has(order.id) ? this.#options.onConnect(port) : null;
        if (!port || !other) {
          this.#refuse(order.id, "no connection for another Worker");
          return null;
        }
        this.#others.set(order.id, other);
        return port;
      }
      case "disconnect":
        void this.#others.get(order.id)?.close();
        this.#others.delete(order.id);
        return null;
    }
  }

  #begin(order: Performed): void {
    const { id } = order;
    if (this.#kills.has(id)) return this.#refuse(id, "a job of this number runs already");
    const stop = new AbortController();
    let why: Outcome["end"] = "killed";
    this.#kills.set(id, (reason) => {
      if (!stop.signal.aborted) why = reason;
      stop.abort();
    });
    const running = this.#perform(order, stop.signal, () => why)
      // Whoever asked finds nothing of it left.
      .then((outcome) => this.#answer({ type: "done", id, outcome }))
      .catch((error) => {
        const message = errorText(error);
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
    order: Performed,
    signal: AbortSignal,
    why: () => Outcome["end"],
  ): Promise<Outcome> {
    const { side, places, tools, world, pipes } = this.#options;
    const { id, maxStderrBytes } = order;
    const priority = priorityOf(order.nice, tools);
    if (side === "live" && !kindOf(order.job).isLive?.(order.job)) {
      throw new JobRefused(`no ${order.job.kind} for this Worker`);
    }
    using _place = this.#options.admit();
    const around = await unlessAborted(this.#options.surroundings(), signal);
    const streams = streamsOf(around.cage).by;
    if (order.type === "run") {
      const job = await checkedJob(order.job, places, streams);
      if (job.kind === "make_pipe" && pipes) return madeBy(pipes, job);
      using passage = await passageOf(job, around, signal);
      this.#widenPipesOf(job);
      for (const { madeBy, path } of writesOf(job)) if (madeBy === "broker") makeFile(path);
      await using logPipe = await this.#logPipeOf(order, signal);
      const { program, args, launch } = this.#invocationOf(job, around.cage, passage, {
        reporting: reportingOf(order, logPipe),
      });
      const { deadlineMs, maxStdoutBytes, input } = order;
      const bounds = {
        world,
        signal: lostOr(signal, passage),
        deadlineMs,
        maxStdoutBytes,
        maxStderrBytes,
        ...priority,
      };
      return await run(program, args, { ...bounds, ...launch, ...(input !== null && { input }) });
    }
    const job = await checkedJob(order.job, places, streams);
    const ends = this.#socketsOf(order);
    this.#widenPipesOf(job);
    using passage = await passageOf(job, around, signal);
    await using logPipe = await this.#logPipeOf(order, signal);
    const reporting = reportingOf(order, logPipe);
    const { program, args, launch } = this.#invocationOf(job, around.cage, passage, { ends, reporting });
    const tool = start(program, args, {
      ...{
        ...launch,
        signal: lostOr(signal, passage),
        maxStderrBytes,
        hasStdin: false,
        hasStdout: false,
        ...priority,
      },
      ...(order.wantsStderr && { onStderr: (part) => this.#answer({ type: "stderr", id, part }) }),
    });
    using _life = timer(world, LIFE_MAX_MS, () => tool.kill("out_of_time"));
    const ended = await tool.ended;
    const end = signal.aborted ? why() : ended.end;
    return { ...ended, end, stdout: new Uint8Array() };
  }

  #widenPipesOf(job: ToolJob): void {
    for (const { what, path } of writesOf(job)) {
      if (what === "pipe") this.#options.pipes?.widen(path, PLANE_PIPE_BYTES);
    }
  }

  /**
   * The pipe for the log of a decode of recorded media, as long as there are few; null otherwise. The
   * decoders of live media say little, and at once.
   */
  async #logPipeOf({ job, reports }: Performed, signal: AbortSignal): Promise<LogPipe | null> {
    if (!reports || kindOf(job).saysOfFrames !== "recorded") return null;
    return await this.#options.logPipes.make(reports, signal);
  }

  #invocationOf(
    job: ToolJob,
    cage: Cage,
    passage: Passage | null,
    given: { readonly ends?: Ends; readonly reporting: Reporting | null },
  ) {
    const { tools } = this.#options;
    const { program, args, limits, touches, log, environment } = invocationOf(job, tools, given);
    return {
      program,
      args,
      launch: {
        limits,
        enclosure: enclosureOf(cage, program, touches, passage?.words),
        ...(log && { log }),
        ...(environment && { environment }),
      },
    };
  }

  #socketsOf({ job, input, output }: Extract<BrokerOrder, { type: "start" }>): Ends {
    const { hasInput, hasOutput } = endsOf(job);
    if (hasInput !== (input !== null) || hasOutput !== (output !== null)) {
      throw new JobRefused(`a ${job.kind} has other sockets`);
    }
    for (const path of [input, output]) if (path !== null) checkSocket(path, this.#options.places);
    return socketEnds(input, output);
  }

  #refuse(id: number, message: string): void {
    this.#refusals++;
    if (this.#refusals <= LOGGED_MAX) {
      this.#options.world.log.warn("the broker refused an order of a sandboxed Worker", {
        reason: message,
        ...(this.#refusals === LOGGED_MAX && { further: "not logged" }),
      });
    }
    this.#answer({ type: "refused", id, message });
  }

  #answer(answer: BrokerAnswer): void {
    const moved = answer.type === "done" ? [answer.outcome.stdout.buffer as ArrayBuffer] : [];
    this.#port.postMessage(answer, moved);
  }
}

/** The network of a job that reads from a relay; null where it has none or that of the machine. */
async function passageOf(
  job: ToolJob,
  { forwarder }: Surroundings,
  signal: AbortSignal,
): Promise<Passage | null> {
  const { socket = null, url = null } = inputOf(job) ?? {};
  if (forwarder === null || socket === null) return null;
  return await forwarder.open({ socket, port: Number(new URL(url!).port) }, signal);
}

function reportingOf({ reports }: Performed, logPipe: LogPipe | null): Reporting | null {
  return reports && { reports, logPipe: logPipe?.path ?? null };
}

/** Makes an empty file for a program to write into, at a path where nothing is. */
function makeFile(path: string): void {
  const file = Deno.openSync(path, { write: true, createNew: true, mode: 0o600 });
  file.close();
}

/** The number of an order that may have any form; 0 for none. */
function idOf(data: unknown): number {
  const id = (data as { id?: unknown } | null)?.id;
  return Number.isSafeInteger(id) ? id as number : 0;
}
