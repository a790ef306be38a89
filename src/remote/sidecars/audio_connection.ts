/** One TCP connection to the audio sidecar: a request goes out, an answer comes back, one at a time. */

import type { Address } from "../../base/setting_parsers.ts";
import {
  decodeResponseHeader,
  RESPONSE_HEADER_BYTES,
  type ResponseHeader,
} from "../../model/sidecars/audio_protocol.ts";
import { unlessAborted } from "../../base/wait.ts";

export interface AudioResponse {
  readonly status: ResponseHeader["status"];
  /** MessagePack that nobody has looked into. */
  readonly metadata: Uint8Array;
  readonly audio: Uint8Array;
}

/** There is no connection, or there is none any more. */
export class LineCut extends Error {
  override readonly name = "LineCut";

  /** `hasAnswered`: something of an answer had come. */
  constructor(message: string, readonly hasAnswered: boolean) {
    super(message);
  }
}

export class AudioLine implements Disposable {
  readonly #conn: Deno.TcpConn;
  #isReusable = true;

  private constructor(conn: Deno.TcpConn) {
    this.#conn = conn;
  }

  /** Rejects with a {@link LineCut}, or with the reason of `signal`. */
  static async connect({ hostname, port }: Address, signal: AbortSignal): Promise<AudioLine> {
    const connecting = Deno.connect({ hostname, port, signal });
    try {
      const conn = await unlessAborted(connecting, signal);
      conn.setNoDelay(true);
      return new AudioLine(conn);
    } catch (error) {
      connecting.then((late) => late.close(), () => {/* it never was */});
      signal.throwIfAborted();
      throw new LineCut(`The audio sidecar cannot be connected to: ${nameOf(error)}`, false);
    }
  }

  /** Whether the last exchange left the connection where the next one can begin. */
  get isReusable(): boolean {
    return this.#isReusable;
  }

  /**
   * Rejects with a {@link LineCut}, a `ProtocolFault` or the reason of `signal`; then the line is of no use any more. An
   * answer that comes before the request was taken is an answer all the same, but the last one.
   */
  async exchange(request: readonly Uint8Array[], signal: AbortSignal): Promise<AudioResponse> {
    const onAbort = () => this[Symbol.dispose]();
    signal.addEventListener("abort", onAbort, { once: true });
    this.#isReusable = false;
    let isSent = false;
    const sending = this.#send(request).then(
      () => void (isSent = true),
      () => {/* the answer fails to come */},
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
        throw new LineCut("The audio sidecar cut the connection", hasAnswered || at > 0);
      }
      at += count;
    }
    return bytes;
  }
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : String(error);
}
