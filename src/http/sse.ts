/** The event stream of a run on the wire: Server-Sent Events. Interface 4.4, contract 8.2. */

import { cursorOf, type FollowWire } from "../flow/events/follower.ts";
import type { Listener, Receiver } from "../flow/events/listener.ts";
import { cloudEvent } from "../model/events/cloudevent.ts";
import { parameter, type Route, type RouteCall } from "./call.ts";
import { Rejection, streamed } from "./reply.ts";

export const SSE_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/runs/:id/events/stream",
    summary: "Streams the events of a run as server-sent events.",
    handle: (call) => {
      const { request } = call;
      const after = cursorOf(request.query("after") ?? "0");
      // Contract 13.5: a query value that does not parse is 400 plain, whatever the header says.
      if (after === undefined) throw new Rejection(400, "after must be an unsigned integer");
      const body = new EventBody(call, {
        lastEventId: request.header("last-event-id"),
        after,
        kind: request.query("kind"),
      });
      return streamed(body.stream, "text/event-stream", { "x-accel-buffering": "no" });
    },
  },
];

/**
 * Messages are `id:`, `event:` and one `data:` line, an empty line after each:
 *
 *     id: 7
 *     event: run_created
 *     data: {"specversion":"1.0","id":"run-0…:7",…}
 *
 * Many messages are written into one piece: bytes cost less by the piece than by the message.
 */
export const SSE_WIRE: FollowWire = {
  keepalive: new TextEncoder().encode(": keepalive\n\n"),
  messages: (events) => {
    let text = "";
    for (const event of events) {
      text += `id: ${event.seq}\nevent: ${oneLine(event.kind)}\ndata: ${cloudEvent(event)}\n\n`;
    }
    return new TextEncoder().encode(text);
  },
};

/** A line break in a kind would begin a field of its own. */
function oneLine(kind: string): string {
  return /[\r\n]/.test(kind) ? kind.replaceAll(/[\r\n]/g, " ") : kind;
}

/**
 * The body of one answer. It is read as fast as the connection takes it: with a high water mark of 0 nothing waits
 * here, and bytes are handed on without a copy, the same ones to every caller.
 */
class EventBody implements Receiver, UnderlyingDefaultSource<Uint8Array<ArrayBuffer>> {
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly #listener: Listener;
  #controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;

  constructor(call: RouteCall, query: Parameters<RouteCall["follower"]["follow"]>[2]) {
    this.#listener = call.follower.follow(call.caller, parameter(call, "id"), query, this);
    this.stream = new ReadableStream(this, { highWaterMark: 0 });
  }

  pull(controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>): void {
    this.#controller = controller;
    this.#listener.ask();
  }

  /** The caller hung up. */
  cancel(): void {
    this.#listener.leave();
  }

  give(bytes: Uint8Array<ArrayBuffer>): void {
    this.#controller!.enqueue(bytes);
  }

  end(): void {
    this.#controller!.close();
  }
}
