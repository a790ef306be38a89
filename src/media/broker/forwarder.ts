/** The forwarder as the broker sees it: gives each job on a stream a network in which it reaches its relay
 * only. See docs/security/sandbox.md#forwarder.
 */

import { linesOf } from "../../base/bytes.ts";
import { OutOfTime, within } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { type RunningTool, start } from "../process.ts";

/** How its process is started. The permissions for its folder stand between the options and the entry. */
export interface ForwarderCommand {
  readonly program: string;
  readonly options: readonly string[];
  readonly entry: string;
}

/** Programs of util-linux that the forwarder needs, as plain data. */
export interface ForwarderTools {
  readonly unshare: string;
  readonly setpriv: string;
  readonly nsenter: string;
  readonly command: ForwarderCommand;
}

/** What the service writes to the process, a line of JSON each. */
export type ForwarderOrder =
  | {
    readonly type: "open";
    readonly id: number;
    /** The Unix socket on which the relay listens. */
    readonly socket: string;
    /** The port of 127.0.0.1 inside at which it is reached. */
    readonly port: number;
  }
  | { readonly type: "close"; readonly id: number };

/** What the process answers to an `open`, a line of JSON each. */
export type ForwarderAnswer =
  | {
    readonly type: "opened";
    readonly id: number;
    readonly pid: number;
    /** The number of the descriptor, in the process, that is the namespace. */
    readonly namespace: number;
  }
  | { readonly type: "failed"; readonly id: number; readonly message: string };

/** The network of one job. Disposing it ends its connections. */
export interface Passage extends Disposable {
  /** The words before a command that is to be in this network. */
  readonly words: readonly string[];
  /** Aborts when the forwarder has ended: the job then reads nothing any more. */
  readonly lost: AbortSignal;
}

export interface ForwarderOptions {
  readonly tools: ForwarderTools;
  /** The folder of the sockets to which it may connect. */
  readonly socketDir: string;
  readonly world: World;
}

/** Longest wait for an answer, milliseconds: a start of Deno on a busy machine, and some more. */
const ANSWER_DEADLINE_MS = 10_000;
const STDERR_BYTES_MAX = 4096;

/**
 * The forwarder. Its process is started with the first job that needs it, and again with the next one after
 * it has ended.
 */
export class Forwarder implements AsyncDisposable {
  readonly #options: ForwarderOptions;
  #running: Running | null = null;
  #lastId = 0;
  #isClosed = false;

  constructor(options: ForwarderOptions) {
    this.#options = options;
  }

  /**
   * Gives a job its network. Errors: the process does not start, makes no namespace, or does not answer in
   * time; the reason of `signal`.
   */
  async open(
    { socket, port }: { readonly socket: string; readonly port: number },
    signal: AbortSignal,
  ): Promise<Passage> {
    if (this.#isClosed) throw new Error("the forwarder of streams is closed");
    const running = this.#running ??= this.#start();
    const id = ++this.#lastId;
    const close = () => running.send({ type: "close", id });
    try {
      const { pid, namespace } = await within(
        this.#options.world,
        ANSWER_DEADLINE_MS,
        running.ask({ type: "open", id, socket, port }),
        signal,
      );
      const { nsenter } = this.#options.tools;
      return {
        words: [
          ...[nsenter, `--user=/proc/${pid}/ns/user`, `--net=/proc/${pid}/fd/${namespace}`],
          ...["--preserve-credentials", "--"],
        ],
        lost: running.lost,
        [Symbol.dispose]: close,
      };
    } catch (error) {
      close();
      if (error instanceof OutOfTime) running.kill();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#running?.end();
  }

  #start(): Running {
    const running: Running = new Running(this.#options, () => {
      if (this.#running === running) this.#running = null;
    });
    return running;
  }
}

type NetworkOfJob = Extract<ForwarderAnswer, { type: "opened" }>;

/** One process of the forwarder. */
class Running {
  readonly #tool: RunningTool;
  readonly #orders: WritableStreamDefaultWriter<Uint8Array>;
  readonly #asked = new Map<number, PromiseWithResolvers<NetworkOfJob>>();
  readonly #lost = new AbortController();
  readonly #ended: Promise<void>;
  #isWanted = true;

  constructor({ tools, socketDir, world }: ForwarderOptions, onEnd: () => void) {
    const { unshare, setpriv, command: { program, options, entry } } = tools;
    // Deno splits the paths of a permission at commas.
    const folder = socketDir.replaceAll(",", ",,");
    const words = [
      ...[setpriv, "--pdeathsig", "KILL"],
      ...[unshare, "--user", "--map-root-user", "--net", "--ipc", "--uts"],
      // What it needs to make namespaces of its own, and to bring their interfaces up.
      ...[setpriv, "--pdeathsig", "KILL", "--no-new-privs", "--inh-caps=-all"],
      ...["--bounding-set=-all,+sys_admin,+net_admin", "--"],
      ...[program, ...options, `--allow-read=${folder}`, `--allow-write=${folder}`, entry],
    ];
    this.#tool = start(program, [], {
      ...{ signal: new AbortController().signal, hasStdin: true, hasStdout: true },
      maxStderrBytes: STDERR_BYTES_MAX,
      enclosure: { commandLine: () => words, hasProcesses: true, givesSignalsAsCodes: false },
      // It keeps no cache, and needs no home.
      environment: { DENO_DIR: "/dev/null", DENO_NO_UPDATE_CHECK: "1", NO_COLOR: "1" },
    });
    this.#orders = this.#tool.stdin!.getWriter();
    this.#orders.closed.catch(() => {/* told by the end of the process */});
    const answers = this.#readAnswers(this.#tool.stdout!).catch((error) => {
      this.#tool.kill("killed");
      return error;
    });
    this.#ended = this.#tool.ended.then(async ({ code, stderr }) => {
      await Promise.all([answers, this.#orders.abort().catch(() => {/* closed with the process */})]);
      onEnd();
      const reason = new Error(
        `the forwarder of streams has ended: ${stderr.trim().split("\n").at(-1) || code}`,
      );
      if (this.#isWanted) world.log.warn(reason.message, { code });
      for (const { reject } of this.#asked.values()) reject(reason);
      this.#asked.clear();
      this.#lost.abort(reason);
    });
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  ask(order: Extract<ForwarderOrder, { type: "open" }>): Promise<NetworkOfJob> {
    const asked = Promise.withResolvers<NetworkOfJob>();
    asked.promise.catch(() => {/* whoever asked may have gone */});
    this.#asked.set(order.id, asked);
    this.send(order);
    return asked.promise;
  }

  send(order: ForwarderOrder): void {
    if (this.#lost.signal.aborted) return;
    if (order.type === "close") this.#asked.delete(order.id);
    this.#orders.write(new TextEncoder().encode(`${JSON.stringify(order)}\n`)).catch(
      () => {/* it has ended */},
    );
  }

  kill(): void {
    this.#tool.kill("killed");
  }

  async end(): Promise<void> {
    this.#isWanted = false;
    this.kill();
    await this.#ended;
  }

  async #readAnswers(stdout: ReadableStream<Uint8Array>): Promise<void> {
    for await (const line of linesOf(stdout)) {
      const answer: ForwarderAnswer = JSON.parse(line);
      const asked = this.#asked.get(answer.id);
      this.#asked.delete(answer.id);
      if (answer.type === "opened") asked?.resolve(answer);
      else asked?.reject(new Error(answer.message));
    }
  }
}
