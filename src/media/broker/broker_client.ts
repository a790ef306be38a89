/** A sandboxed Worker's side of the broker: jobs go to it, input and output go through sockets on which the
 * Worker listens.
 */

import type { World } from "../../base/world.ts";
import type { Outcome, RunningTool } from "../process.ts";
import type { BrokerAnswer, BrokerOrder } from "./broker_messages.ts";
import type { RunJob, StreamJob } from "../jobs/jobs.ts";
import type { JobOptions, StreamOptions, ToolRunner } from "../jobs/runner.ts";
import { endsOf } from "../jobs/invocation.ts";
import { ToolSocket } from "./tool_socket.ts";

export interface BrokerClientOptions {
  readonly port: MessagePort;
  /** Folder for the sockets, which are removed as soon as they are connected. */
  readonly socketDir: string;
  readonly world: Pick<World, "randomBytes">;
}

/** A connection for another Worker. */
export interface BrokerConnection {
  /** The port to transfer to the Worker. */
  readonly port: MessagePort;
  /** Kills what runs for the Worker; to be called when it has ended. */
  close(): void;
}

/** The order without the number that the client gives it. */
type Unnumbered = BrokerOrder extends infer Order ? Order extends { id: number } ? Omit<Order, "id"> : never
  : never;

export class BrokerClient implements ToolRunner, Disposable {
  readonly #options: BrokerClientOptions;
  readonly #waiting = new Map<number, (answer: BrokerAnswer) => void>();
  #lastId = 0;

  constructor(options: BrokerClientOptions) {
    this.#options = options;
    options.port.onmessage = ({ data }: MessageEvent<BrokerAnswer>) => this.#waiting.get(data.id)?.(data);
  }

  async run(job: RunJob, { signal, deadlineMs, input, ...bounds }: JobOptions): Promise<Outcome> {
    signal.throwIfAborted();
    const { maxStdoutBytes, maxStderrBytes, reports = null, nice = 0 } = bounds;
    const id = this.#number();
    const outcome = this.#outcome(id);
    const order = {
      type: "run" as const,
      job,
      deadlineMs,
      maxStdoutBytes,
      maxStderrBytes,
      reports,
      nice,
      input: input ?? null,
    };
    this.#send(id, order);
    const onAbort = () => this.#send(id, { type: "kill", why: "killed" });
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await outcome;
    } finally {
      signal.removeEventListener("abort", onAbort);
      signal.throwIfAborted();
    }
  }

  start(job: StreamJob, options: StreamOptions): RunningTool {
    const { signal, maxStderrBytes, onStderr, reports = null, nice = 0 } = options;
    signal.throwIfAborted();
    const { hasInput, hasOutput } = endsOf(job);
    const input = hasInput ? this.#listen() : null;
    const output = hasOutput ? this.#listen() : null;
    const id = this.#number();
    const outcome = this.#outcome(id, onStderr);
    this.#send(id, {
      ...{ type: "start", job, maxStderrBytes, reports, nice, wantsStderr: onStderr !== undefined },
      ...{ input: input?.path ?? null, output: output?.path ?? null },
    });
    const kill: RunningTool["kill"] = (why) => this.#send(id, { type: "kill", why });
    const onAbort = () => kill("killed");
    signal.addEventListener("abort", onAbort, { once: true });
    const finish = async () => {
      const ended = await outcome.catch((error): Outcome => {
        return { end: "killed", code: NOT_FOUND, stdout: new Uint8Array(), stderr: error.message };
      });
      signal.removeEventListener("abort", onAbort);
      input?.giveUp();
      output?.giveUp();
      return { end: ended.end, code: ended.code, stderr: ended.stderr };
    };
    return { stdin: input?.writable() ?? null, stdout: output?.readable() ?? null, ended: finish(), kill };
  }

  /** A connection for a live Worker, which may have the jobs of live sessions run. */
  connect(): BrokerConnection {
    const { port1, port2 } = new MessageChannel();
    const id = this.#number();
    this.#options.port.postMessage({ type: "connect", id } satisfies BrokerOrder, [port1]);
    return { port: port2, close: () => this.#send(id, { type: "disconnect" }) };
  }

  /** Ends the client: what still runs is not told about any more. */
  [Symbol.dispose](): void {
    this.#options.port.close();
    for (const [id, take] of [...this.#waiting]) {
      take({ type: "failed", id, message: "the broker is closed" });
    }
  }

  #number(): number {
    return ++this.#lastId;
  }

  #send(id: number, order: Unnumbered): void {
    this.#options.port.postMessage({ ...order, id });
  }

  /** Rejects where the broker refuses the order or cannot start the program. */
  #outcome(id: number, onStderr?: (part: Uint8Array) => void): Promise<Outcome> {
    const result = Promise.withResolvers<Outcome>();
    this.#waiting.set(id, (answer) => {
      if (answer.type === "stderr") return onStderr?.(answer.part);
      this.#waiting.delete(id);
      if (answer.type === "done") result.resolve(answer.outcome);
      else result.reject(new Error(`Cannot start a program: ${answer.message}`));
    });
    return result.promise;
  }

  #listen(): StreamSocket {
    const { socketDir, world } = this.#options;
    return new StreamSocket(socketDir, world);
  }
}

/** The input or the output of a program. */
class StreamSocket extends ToolSocket {
  readable(): ReadableStream<Uint8Array> {
    let isClosed = false;
    const close = async () => {
      if (isClosed) return;
      isClosed = true;
      this.giveUp();
      (await this.connection)?.close();
    };
    return new ReadableStream({
      type: "bytes",
      autoAllocateChunkSize: READ_BYTES,
      pull: async (controller) => {
        const { byobRequest } = controller;
        const view = byobRequest!.view!;
        const connection = await this.connection;
        const into = new Uint8Array(view.buffer as ArrayBuffer, view.byteOffset, view.byteLength);
        const got = await connection?.read(into).catch(() => null) ?? null;
        if (got !== null) return byobRequest!.respond(got);
        await close();
        controller.close();
        byobRequest!.respond(0);
      },
      cancel: close,
    });
  }

  writable(): WritableStream<Uint8Array> {
    const close = async () => {
      this.giveUp();
      (await this.connection)?.close();
    };
    return new WritableStream({
      write: async (bytes) => {
        const connection = await this.connection;
        if (!connection) throw new Deno.errors.BrokenPipe("the program has ended");
        for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
      },
      close,
      abort: close,
    });
  }
}

const READ_BYTES = 64 * 1024;
/** The exit code by which prlimit, like a shell, says that there is no such program. */
const NOT_FOUND = 127;
