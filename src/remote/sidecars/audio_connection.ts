/** One TCP connection to the audio sidecar: sends a request and receives its answer, one at a time. */

import type { Address } from "../../contract/setting_parsers.ts";
import {
  decodeResponseHeader,
  RESPONSE_HEADER_BYTES,
  type ResponseHeader,
} from "../../model/sidecars/audio_protocol.ts";
import { unlessAborted } from "../../base/wait.ts";

export interface AudioResponse {
  readonly status: ResponseHeader["status"];
  /** The metadata of the answer in MessagePack, not decoded yet. */
  readonly metadata: Uint8Array;
  readonly audio: Uint8Array;
}

/** The error of a connection that could not be opened or has ended. */
export class AudioConnectionLost extends Error {
  override readonly name = "AudioConnectionLost";

  /** `hasAnswered`: a part of the answer was received. */
  constructor(message: string, readonly hasAnswered: boolean) {
    super(message);
  }
}

export class AudioConnection implements Disposable {
  readonly #conn: Deno.TcpConn;
  #isReusable = true;

  private constructor(conn: Deno.TcpConn) {
    this.#conn = conn;
  }

  /** Opens a connection. Rejects with {@link AudioConnectionLost}, or with the reason of `signal`. */
  static async connect({ hostname, port }: Address, signal: AbortSignal): Promise<AudioConnection> {
    const connecting = Deno.connect({ hostname, port, signal });
    try {
      const conn = await unlessAborted(connecting, signal);
      conn.setNoDelay(true);
      return new AudioConnection(conn);
    } catch (error) {
      connecting.then((late) => late.close(), () => {/* there is nothing to close */});
      signal.throwIfAborted();
      throw new AudioConnectionLost(`The audio sidecar cannot be connected to: ${nameOf(error)}`, false);
    }
  }

  /**
   * Whether another exchange is possible: the last one sent its whole request and received its whole answer.
   */
  get isReusable(): boolean {
    return this.#isReusable;
  }

  /**
   * Sends a request and receives its answer. Rejects with {@link AudioConnectionLost}, a `ProtocolFault` or
   * the reason of `signal`; after that the connection is closed. An answer that comes before the whole
   * request was sent is valid, but the connection is not reused.
   */
  async exchange(request: readonly Uint8Array[], signal: AbortSignal): Promise<AudioResponse> {
    const onAbort = () => this[Symbol.dispose]();
    signal.addEventListener("abort", onAbort, { once: true });
    this.#isReusable = false;
    let isSent = false;
    const sending = this.#send(request).then(
      () => void (isSent = true),
      () => {/* then receiving the answer fails too */},
    );
    try {
      const response = await this.#receive();
      this.#isReusable = isSent;
      return response;
    } catch (error) {
      this[Symbol.dispose]();
      await sending;
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  [Symbol.dispose](): void {
    this.#isReusable = false;
    try {
      this.#conn.close();
    } catch {
      // It was closed before.
    }
  }

  async #send(parts: readonly Uint8Array[]): Promise<void> {
    for (const part of parts) {
      for (let at = 0; at < part.length;) at += await this.#conn.write(part.subarray(at));
    }
  }

  async #receive(): Promise<AudioResponse> {
    const header = decodeResponseHeader(await this.#read(RESPONSE_HEADER_BYTES, false));
    const metadata = await this.#read(header.metadataBytes, true);
    return { status: header.status, metadata, audio: await this.#read(header.audioBytes, true) };
  }

  async #read(length: number, hasAnswered: boolean): Promise<Uint8Array> {
    const bytes = new Uint8Array(length);
    for (let at = 0; at < length;) {
      const count = await this.#conn.read(bytes.subarray(at)).catch(() => null);
      if (count === null) {
        throw new AudioConnectionLost("The audio sidecar cut the connection", hasAnswered || at > 0);
      }
      at += count;
    }
    return bytes;
  }
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : String(error);
}
