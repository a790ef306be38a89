/** What a request holds until its answer has gone: permits for work whose result stays in memory meanwhile. */

import { type Sleeper, timer } from "../../base/wait.ts";
import { LIMITS } from "../../model/limits.ts";

/**
 * The answer, after which `held` is given back: when its last piece was taken, when its client has gone, and when no piece was taken for
 * so long that its connection is cut. Of a refusal it is given back at once.
 */
export function heldUntilTaken(response: Response, held: Disposable, world: Sleeper): Response {
  if (response.body === null || !response.ok) {
    held[Symbol.dispose]();
    return response;
  }
  const { status, headers } = response;
  return new Response(new ReadableStream(new HeldBody(response.body, held, world), { highWaterMark: 0 }), {
    status,
    headers,
  });
}

/** Passes the pieces of a body on, one when the one before was taken. */
class HeldBody implements UnderlyingDefaultSource<Uint8Array<ArrayBuffer>> {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;
  readonly #held: Disposable;
  readonly #world: Sleeper;
  #controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;
  #stalling: Disposable | undefined;

  constructor(body: ReadableStream<Uint8Array<ArrayBuffer>>, held: Disposable, world: Sleeper) {
    this.#reader = body.getReader();
    this.#held = held;
    this.#world = world;
  }

  start(controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>): void {
    this.#controller = controller;
    this.#await();
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>): Promise<void> {
    this.#stalling?.[Symbol.dispose]();
    try {
      const { done, value } = await this.#reader.read();
      if (!done) {
        controller.enqueue(value);
        return this.#await();
      }
      this.#end();
      controller.close();
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  async cancel(reason: unknown): Promise<void> {
    this.#end();
    await this.#reader.cancel(reason);
  }

  /** Until the client takes the next piece. */
  #await(): void {
    this.#stalling = timer(this.#world, LIMITS.answer.stalledMs, () => {
      const stalled = new DOMException("The client took nothing of its answer", "TimeoutError");
      this.#controller!.error(stalled);
      this.cancel(stalled).catch(() => {}); // what is left of the body is not needed
    });
  }

  #end(): void {
    this.#stalling?.[Symbol.dispose]();
    this.#held[Symbol.dispose]();
  }
}
