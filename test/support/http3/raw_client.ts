/** A QUIC connection on which a test sends HTTP/3 byte by byte, right or wrong. */

import { ByteSource } from "../../../src/http3/wire/byte_source.ts";
import { FRAME, frame, FrameReader } from "../../../src/http3/wire/frames.ts";
import { decodeFields } from "../../../src/http3/qpack/field_decoder.ts";
import { TEST_ROOT } from "../http/tls_server.ts";

export interface RawAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

/** The control stream's type and empty settings. */
export const CONTROL = new Uint8Array([0, FRAME.SETTINGS, 0]);

export class RawHttp3 implements Disposable {
  readonly #connection: Deno.QuicConn;
  /** The garbage collector closes a stream that nobody holds. */
  readonly #open: unknown[] = [];
  /**
   * The code with which the other side has closed, or the name of the error with which the connection was
   * lost.
   */
  readonly closed: Promise<number | string>;

  private constructor(connection: Deno.QuicConn) {
    this.#connection = connection;
    this.closed = connection.closed.then(({ closeCode }) => closeCode, (error) => String(error));
  }

  static async open(port: number, alpnProtocols = ["h3"]): Promise<RawHttp3> {
    return new RawHttp3(
      await Deno.connectQuic({ hostname: "127.0.0.1", port, caCerts: [TEST_ROOT], alpnProtocols }),
    );
  }

  /** Sends on a stream of its own, which stays open unless `ends`. */
  async send(bytes: Uint8Array, ends = false): Promise<WritableStreamDefaultWriter<Uint8Array>> {
    const writer = (await this.#connection.createUnidirectionalStream()).getWriter();
    writer.closed.catch(() => {});
    this.#open.push(writer);
    await writer.write(bytes);
    if (ends) await writer.close();
    return writer;
  }

  /** Begins a request with these bytes. */
  async begin(bytes: Uint8Array, ends = true): Promise<RawRequest> {
    const stream = await this.#connection.createBidirectionalStream({ waitUntilAvailable: true });
    const writer = stream.writable.getWriter();
    writer.closed.catch(() => {});
    await writer.write(bytes);
    if (ends) await writer.close();
    this.#open.push(stream);
    return new RawRequest(writer, stream.readable);
  }

  /** The frames that the server sends on its control stream, as they come. */
  async *control(): AsyncGenerator<{ type: number; payload: Uint8Array }> {
    for await (const stream of this.#connection.incomingUnidirectionalStreams) {
      const source = new ByteSource(stream);
      if (!await source.reach(1) || source.take(1)[0] !== 0) throw new Error("no control stream");
      const frames = new FrameReader(source);
      for (let head = await frames.next(); head !== null; head = await frames.next()) {
        yield { type: head.type, payload: await frames.whole(head) };
      }
    }
  }

  [Symbol.dispose](): void {
    this.#connection.close();
  }
}

export class RawRequest {
  readonly writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly readable: ReadableStream<Uint8Array>;

  constructor(writer: WritableStreamDefaultWriter<Uint8Array>, readable: ReadableStream<Uint8Array>) {
    this.writer = writer;
    this.readable = readable;
  }

  data(text: string): Promise<void> {
    return this.writer.write(frame(FRAME.DATA, new TextEncoder().encode(text)));
  }

  /**
   * Status 0 where the stream ends without an answer. Throws where the connection ends before the answer
   * does.
   */
  async answer(): Promise<RawAnswer> {
    const frames = new FrameReader(new ByteSource(this.readable));
    let status = 0;
    let headers = new Headers();
    let body = "";
    for (let head = await frames.next(); head !== null; head = await frames.next()) {
      const payload = await frames.whole(head);
      if (head.type === FRAME.DATA) body += new TextDecoder().decode(payload);
      if (head.type !== FRAME.HEADERS) continue;
      const [[, statusText], ...fields] = decodeFields(payload, 65536) as [readonly [string, string]];
      status = Number(statusText);
      headers = new Headers(fields as unknown as [string, string][]);
    }
    return { status, headers, body };
  }
}
