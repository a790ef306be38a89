/** One TCP connection to a sidecar that speaks bytes: whole messages out and in, and the news that it was cut. */

import type { Address } from "../../base/setting_parsers.ts";
import { unlessAborted } from "../../base/wait.ts";

/** There is no connection, or there is none any more. The message names neither address nor content. */
export class ConnectionCut extends Error {
  override readonly name = "ConnectionCut";
}

/** All methods reject with a {@link ConnectionCut} or the reason of their signal; then the connection is closed. */
export class SidecarConnection implements Disposable {
  readonly #conn: Deno.TcpConn;

  private constructor(conn: Deno.TcpConn) {
    this.#conn = conn;
  }

  static async open({ hostname, port }: Address, signal: AbortSignal): Promise<SidecarConnection> {
    const connecting = Deno.connect({ hostname, port, signal });
    try {
      const conn = await unlessAborted(connecting, signal);
      conn.setNoDelay(true);
      return new SidecarConnection(conn);
    } catch (error) {
      connecting.then((late) => late.close(), () => {/* it never was */});
      signal.throwIfAborted();
      const why = error instanceof Error ? error.name : String(error);
      throw new ConnectionCut(`cannot be connected to: ${why}`);
    }
  }

  async send(parts: readonly Uint8Array[], signal: AbortSignal): Promise<void> {
    await this.#unlessCut(signal, async () => {
      for (const part of parts) {
        for (let at = 0; at < part.length;) at += await this.#conn.write(part.subarray(at));
      }
    });
  }

  /** Exactly `length` bytes. */
  async receive(length: number, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = new Uint8Array(length);
    await this.#unlessCut(signal, async () => {
      for (let at = 0; at < length;) {
        const count = await this.#conn.read(bytes.subarray(at));
        if (count === null) throw new Deno.errors.UnexpectedEof();
        at += count;
      }
    });
    return bytes;
  }

  [Symbol.dispose](): void {
    try {
      this.#conn.close();
    } catch {
      // It was closed before.
    }
  }

  /** Closing the connection is what ends a transfer that takes too long. */
  async #unlessCut(signal: AbortSignal, transfer: () => Promise<void>): Promise<void> {
    const onAbort = () => this[Symbol.dispose]();
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      await transfer();
    } catch {
      this[Symbol.dispose]();
      signal.throwIfAborted();
      throw new ConnectionCut("cut the connection");
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }
}
