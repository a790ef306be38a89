/** The process of the forwarder: for each job on a stream a network namespace, in which only that job's relay
 * answers.
 */

import { errorText } from "../base/log.ts";
import { linesOf } from "../base/bytes.ts";
import type { ForwarderAnswer, ForwarderOrder } from "../media/broker/forwarder.ts";

/** Connections of one job: more than ffmpeg opens for a playlist of a hundred variants. */
const CONNECTIONS_MAX = 256;
/** Connections of all jobs together. */
const CONNECTIONS_ALL_MAX = 4096;
const FROM_RELAY_BYTES = 64 * 1024;
const TO_RELAY_BYTES = 4 * 1024;

/**
 * Linux's numbers: `CLONE_NEWNET`, `O_CLOEXEC`, `AF_INET`, `SOCK_STREAM`, `SIOCSIFFLAGS`, `IFF_UP |
 * IFF_RUNNING`.
 */
const NEW_NETWORK = 0x40000000;
const CLOSE_ON_EXEC = 0o2000000;
const AF_INET = 2;
const SOCK_STREAM = 1;
const SET_INTERFACE_FLAGS = 0x8914n;
const UP = 0x41;
/** A C structure `ifreq`: a name, and the flags after 16 bytes. */
const INTERFACE_BYTES = 40;
const INTERFACE_FLAGS_AT = 16;

const OWN_NETWORK = new TextEncoder().encode("/proc/thread-self/ns/net\0");

/**
 * ```
 *   ffmpeg of a job ─tcp→ 127.0.0.1:port ┐ of the job's own namespace
 *                                        └ this process ─unix socket→ relay or tunnel of that job, in the service
 * ```
 * A socket stays in the network namespace of the thread that made it, and all of Deno's code runs on one
 * thread: so one process listens in as many namespaces as there are jobs. It was started as root of a user
 * namespace, and ends when nobody holds its standard input any more: with the service, whatever ends that.
 * What it passes on it does not read.
 */
export async function forwardStreams(): Promise<never> {
  const networks = new Networks();
  const jobs = new Map<number, JobNetwork>();
  const answer = (line: ForwarderAnswer) => writeAll(Deno.stdout, `${JSON.stringify(line)}\n`);
  for await (const line of linesOf(Deno.stdin.readable)) {
    const order: ForwarderOrder = JSON.parse(line);
    const { id } = order;
    if (order.type === "close") {
      jobs.get(id)?.close();
      jobs.delete(id);
      continue;
    }
    try {
      const { namespace, listener } = networks.make(order.port);
      jobs.set(id, new JobNetwork(order.socket, listener, () => networks.drop(namespace)));
      answer({ type: "opened", id, pid: Deno.pid, namespace });
    } catch (error) {
      answer({ type: "failed", id, message: errorText(error) });
    }
  }
  Deno.exit(0);
}

function writeAll(to: typeof Deno.stdout, text: string): void {
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length;) at += to.writeSync(bytes.subarray(at));
}

/** Makes network namespaces that have nothing but 127.0.0.1. */
class Networks {
  readonly #libc = openLibc();
  readonly #own: number;

  constructor() {
    // The functions that are open stay, and no others can be opened.
    Deno.permissions.revokeSync({ name: "ffi" });
    this.#own = this.#openOwn();
  }

  /** A new namespace, as a descriptor, and a listener in it. */
  make(port: number): { readonly namespace: number; readonly listener: Deno.TcpListener } {
    if (this.#libc.unshare(NEW_NETWORK) !== 0) throw new Error("no network namespace can be made");
    let namespace = -1;
    try {
      namespace = this.#openOwn();
      this.#bringLoopbackUp();
      return { namespace, listener: Deno.listen({ hostname: "127.0.0.1", port }) };
    } catch (error) {
      if (namespace >= 0) this.drop(namespace);
      throw error;
    } finally {
      // A thread in the wrong namespace would listen for the wrong job.
      if (this.#libc.setns(this.#own, NEW_NETWORK) !== 0) Deno.exit(1);
    }
  }

  /** Gives up a namespace; it is gone when no process and no socket is in it any more. */
  drop(namespace: number): void {
    this.#libc.close(namespace);
  }

  #openOwn(): number {
    const descriptor = this.#libc.open(OWN_NETWORK, CLOSE_ON_EXEC);
    if (descriptor < 0) throw new Error("the own network namespace cannot be opened");
    return descriptor;
  }

  #bringLoopbackUp(): void {
    const socket = this.#libc.socket(AF_INET, SOCK_STREAM | CLOSE_ON_EXEC, 0);
    if (socket < 0) throw new Error("no socket can be made");
    const loopback = new Uint8Array(INTERFACE_BYTES);
    loopback.set(new TextEncoder().encode("lo"));
    new DataView(loopback.buffer).setUint16(INTERFACE_FLAGS_AT, UP, true);
    const result = this.#libc.ioctl(socket, SET_INTERFACE_FLAGS, loopback);
    this.#libc.close(socket);
    if (result !== 0) throw new Error("the loopback interface cannot be brought up");
  }
}

function openLibc() {
  return Deno.dlopen("libc.so.6", {
    unshare: { parameters: ["i32"], result: "i32" },
    setns: { parameters: ["i32", "i32"], result: "i32" },
    open: { parameters: ["buffer", "i32"], result: "i32" },
    close: { parameters: ["i32"], result: "i32" },
    socket: { parameters: ["i32", "i32", "i32"], result: "i32" },
    ioctl: { parameters: ["i32", "u64", "buffer"], result: "i32" },
  }).symbols;
}

/** The namespace of one job, and its connections. */
class JobNetwork {
  static #all = 0;
  readonly #socket: string;
  readonly #listener: Deno.TcpListener;
  readonly #drop: () => void;
  readonly #open = new Set<Deno.Conn>();
  #joined = 0;

  constructor(socket: string, listener: Deno.TcpListener, drop: () => void) {
    this.#socket = socket;
    this.#listener = listener;
    this.#drop = drop;
    void this.#accept();
  }

  close(): void {
    this.#listener.close();
    for (const connection of this.#open) closeNow(connection);
    this.#drop();
  }

  async #accept(): Promise<void> {
    try {
      for await (const client of this.#listener) {
        if (this.#joined >= CONNECTIONS_MAX || JobNetwork.#all >= CONNECTIONS_ALL_MAX) closeNow(client);
        else void this.#join(client);
      }
    } catch {
      // No descriptor is left: this job reads no further.
    }
  }

  async #join(client: Deno.TcpConn): Promise<void> {
    this.#joined++;
    JobNetwork.#all++;
    this.#open.add(client);
    let relay: Deno.UnixConn | null = null;
    try {
      relay = await Deno.connect({ transport: "unix", path: this.#socket });
      this.#open.add(relay);
      await Promise.all([
        pass(client, relay, new Uint8Array(TO_RELAY_BYTES)),
        pass(relay, client, new Uint8Array(FROM_RELAY_BYTES)),
      ]);
    } catch {
      // One of them has gone, and the other goes with it.
    } finally {
      for (const connection of [client, relay]) {
        if (connection === null) continue;
        this.#open.delete(connection);
        closeNow(connection);
      }
      this.#joined--;
      JobNetwork.#all--;
    }
  }
}

/** Passes everything on to the end, one buffer at a time. */
async function pass(from: Deno.Conn, to: Deno.Conn, buffer: Uint8Array): Promise<void> {
  for (;;) {
    const got = await from.read(buffer);
    if (got === null) return await to.closeWrite();
    for (let at = 0; at < got;) at += await to.write(buffer.subarray(at, got));
  }
}

function closeNow(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch {
    // It is closed already.
  }
}

if (import.meta.main) await forwardStreams();
