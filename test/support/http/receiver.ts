/** A real HTTP server that takes webhook deliveries, keeps their exact bytes, and answers as the test sets.
 */

import { createHmac } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Buffer } from "node:buffer";

/** One request as it came. */
export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** The body as JSON. */
  // deno-lint-ignore no-explicit-any -- tests look into events of every shape
  readonly event: any;
  /** Number of this request for the same event, from 1. */
  readonly attempt: number;
}

/** A status, with headers or without; no answer at all; or a connection that is closed. */
export type Answer = number | { status: number; headers: Record<string, string> } | "hang" | "cut";

export class Receiver implements AsyncDisposable {
  readonly received: Received[] = [];
  /** Asked for every request, once its body is complete. */
  answer: (received: Received) => Answer | Promise<Answer> = () => 204;
  readonly #server = createServer((request, response) => void this.#take(request, response));
  readonly #attempts = new Map<string, number>();
  #waiting: (() => void)[] = [];

  static async start(): Promise<Receiver> {
    const receiver = new Receiver();
    await new Promise<void>((resolve) => receiver.#server.listen(0, "127.0.0.1", resolve));
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook?a=b%20c`;
  }

  /** Sequence numbers in the order in which they came, repeated attempts included. */
  get seqs(): number[] {
    return this.received.map(({ event }) => event.sequence);
  }

  /** Resolves as soon as `isDone` holds; it is asked after every request. */
  async waitFor(isDone: () => boolean): Promise<void> {
    while (!isDone()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Uint8Array[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk);
    } catch {
      return; // the service has given the request up, as one that closes does
    }
    const body = new Uint8Array(Buffer.concat(chunks));
    const event = JSON.parse(new TextDecoder().decode(body));
    const attempt = (this.#attempts.get(event.id) ?? 0) + 1;
    this.#attempts.set(event.id, attempt);
    const received: Received = {
      method: request.method!,
      path: request.url!,
      headers: request.headers as Record<string, string>,
      body,
      event,
      attempt,
    };
    this.received.push(received);
    const answer = await this.answer(received);
    if (answer === "cut") request.socket.destroy();
    else if (answer !== "hang") {
      const { status, headers } = typeof answer === "number" ? { status: answer, headers: {} } : answer;
      response.writeHead(status, headers).end(status === 204 ? undefined : "as you say");
    }
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}

/**
 * What is wrong with the signatures of a request under the hook's `signing_secret`; empty when nothing is.
 */
export function signatureFaults({ headers, body, event }: Received, signingSecret: string): string[] {
  const key = Buffer.from(signingSecret, "hex");
  const own = `v1=${createHmac("sha256", key).update(body).digest("hex")}`;
  const signed = Buffer.concat([
    Buffer.from(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.`),
    body,
  ]);
  const standard = `v1,${createHmac("sha256", key).update(signed).digest("base64")}`;
  const expected: Record<string, string> = {
    "content-type": "application/cloudevents+json",
    "content-length": String(body.length),
    "x-service-event-id": event.id,
    "x-service-signature": own,
    "webhook-id": event.id,
    "webhook-signature": standard,
  };
  return Object.entries(expected).filter(([name, value]) => headers[name] !== value)
    .map(([name, value]) => `${name}: ${headers[name]} instead of ${value}`);
}
