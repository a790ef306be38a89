/** What a request holds until its answer has gone: permits for work whose result stays in memory meanwhile.
 */

import { Deadlines } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { LIMITS } from "../../contract/limits.ts";

/**
 * The answers that hold something. Disposing it gives up the deadlines of those that are still being taken.
 */
export class HeldAnswers implements Disposable {
  readonly #stalling: Deadlines;

  constructor(world: Pick<World, "sleep" | "monotonicMs">) {
    this.#stalling = new Deadlines(world, LIMITS.answer.stalledMs);
  }

  /**
   * The answer, after which `held` is given back: when its last piece was taken, when its client has gone,
   * and when no piece was taken for so long that its connection is cut. Of a refusal it is given back at
   * once.
   */
  untilTaken(response: Response, held: Disposable): Response {
    if (response.body === null || !response.ok) {
      held[Symbol.dispose]();
      return response;
    }
    const { status, headers } = response;
    const body = new HeldBody(response.body, held, this.#stalling);
    return new Response(new ReadableStream(body, { highWaterMark: 0 }), { status, headers });
  }

  [Symbol.dispose](): void {
    this.#stalling[Symbol.dispose]();
  }
}

/** Passes the pieces of a body on, one when the one before was taken. */
class HeldBody implements UnderlyingDefaultSource<Uint8Array<ArrayBuffer>> {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;
  readonly #held: Disposable;
  readonly #deadlines: Deadlines;
  #controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;
  #stalling: Disposable | undefined;

  constructor(body: ReadableStream<Uint8Array<ArrayBuffer>>, held: Disposable, deadlines: Deadlines) {
    this.#reader = body.getReader();
    this.#held = held;
    this.#deadlines = deadlines;
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
    this.#stalling = this.#deadlines.start(() => {
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
