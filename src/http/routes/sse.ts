/** The event stream of a run as Server-Sent Events. See docs/events.md#event-stream. */

import * as z from "zod";
import { cursorOf, type FollowWire } from "../../flow/events/follower.ts";
import type { EncodedPieces, Listener, Receiver } from "../../flow/events/listener.ts";
import { cloudEvent, envelopeHead, onOneLine } from "../../model/events/cloudevent.ts";
import { count } from "../../model/events/payload_shapes.ts";
import { Rejection, streamed } from "../answers/reply.ts";
import type { SentBytes } from "../answers/untaken_answers.ts";
import { parameter, type RouteCall, type UseCases } from "../route/call.ts";
import type { Route } from "../route/route.ts";

/** One message of the event stream, as a reader of server-sent events gives it. */
const SENT_EVENT = () =>
  z.object({
    id: z.string().regex(/^\d+$/).describe("The sequence number of the event"),
    event: z.string().min(1).describe("The kind of the event"),
    data: z.string().describe("The event as JSON, see CloudEvent").meta({
      contentMediaType: "application/json",
    }),
  });

export const SSE_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/runs/:id/events/stream",
    id: "subscribeEvents",
    tag: "events",
    summary: "Streams the events of a run as server-sent events.",
    query: {
      after: { description: "Only events behind this sequence number", schema: count },
      kind: { description: "Only events of this kind", schema: () => z.string() },
      without_kind: { description: "Every kind but this one", schema: () => z.string() },
    },
    headers: ["last-event-id"],
    answers: {
      200: {
        description:
          "Server-sent events: `id` is the sequence number, `event` the kind, `data` a CloudEvent; " +
          "comments keep the connection alive",
        content: { "text/event-stream": SENT_EVENT },
      },
    },
    failures: [400, 404, 422, 500],
    handle: (call) => {
      const { request } = call;
      const after = cursorOf(request.query("after") ?? "0");
      // 400 as plain text, even where the Last-Event-ID header is valid. See docs/api.md#plain-rejections.
      if (after === undefined) throw new Rejection(400, "after must be an unsigned integer");
      const body = new EventBody(call, {
        lastEventId: request.header("last-event-id"),
        after,
        filter: { kind: request.query("kind"), withoutKind: request.query("without_kind") },
      });
      return streamed(body.stream, "text/event-stream", { "x-accel-buffering": "no" });
    },
  },
];

/**
 * Each message has the lines `id:`, `event:` and `data:`, and an empty line after it:
 *
 *     id: 7
 *     event: run_created
 *     data: {"specversion":"1.0","id":"run-0…:7",…}
 *
 * A client whose cursor is before events that retention removed first gets one of the type `cursor_expired`,
 * without an `id`.
 *
 * Many messages are encoded into one array, as a write of one large array costs less than many small ones. Of
 * a larger one than a piece copies are made once for all clients: what a client has not taken yet keeps a
 * piece, and not all of it.
 */
export const SSE_WIRE: FollowWire = {
  keepalive: new TextEncoder().encode(": keepalive\n\n"),
  expired: (runId, cursor, firstSeq) => {
    const data = JSON.stringify({ run_id: runId, cursor, first_seq: firstSeq });
    return new TextEncoder().encode(`event: cursor_expired\ndata: ${data}\n\n`);
  },
  messages: (events) => {
    let text = "";
    for (const event of events) {
      text += `id: ${event.seq}\nevent: ${oneLine(event.kind)}\ndata: ${cloudEvent(event)}\n\n`;
    }
    return inPieces(new TextEncoder().encode(text));
  },
  async *longMessage(event) {
    const encoder = new TextEncoder();
    yield encoder.encode(`id: ${event.seq}\nevent: ${oneLine(event.kind)}\ndata: ${envelopeHead(event)}`);
    for await (const piece of event.pieces) yield* inPieces(encoder.encode(onOneLine(piece)));
    yield encoder.encode("}\n\n");
  },
};

/** A line break in a kind would start a new field. */
function oneLine(kind: string): string {
  return /[\r\n]/.test(kind) ? kind.replaceAll(/[\r\n]/g, " ") : kind;
}

/** What one write takes. */
const PIECE_BYTES = 32 * 1024;

function inPieces(bytes: Uint8Array<ArrayBuffer>): EncodedPieces {
  if (bytes.length <= PIECE_BYTES) return [bytes];
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) pieces.push(bytes.slice(at, at + PIECE_BYTES));
  return pieces;
}

/**
 * The body of one response, read as fast as the client takes it. With a high water mark of 0 nothing is
 * queued in the stream, and pieces are passed on without a copy, the same arrays to every client.
 */
class EventBody implements Receiver, UnderlyingDefaultSource<Uint8Array<ArrayBuffer>> {
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly #listener: Listener;
  readonly #sent: SentBytes;
  /** What the listener has sent last, in the order of sending. */
  #rest: EncodedPieces = [];
  #controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;

  constructor(call: RouteCall, query: Parameters<UseCases["follower"]["follow"]>[2]) {
    this.#listener = call.use.follower.follow(call.caller, parameter(call, "id"), query, this);
    this.#sent = call.use.untaken.open({
      ...{ principalKey: call.caller.principalKey, client: call.caller.client },
      resume: () => this.#resume(),
    });
    this.stream = new ReadableStream(this, { highWaterMark: 0 });
  }

  pull(controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>): void {
    this.#controller = controller;
    if (this.#sent.mayGoOn()) this.#goOn();
  }

  /** The client has disconnected. */
  cancel(): void {
    this.#rest = [];
    this.#sent[Symbol.dispose]();
    this.#listener.leave();
  }

  send([piece, ...rest]: EncodedPieces): void {
    this.#rest = rest;
    this.#sent.add(piece!.length);
    this.#controller!.enqueue(piece!);
  }

  end(): void {
    this.#sent[Symbol.dispose]();
    for (const piece of this.#rest) this.#controller!.enqueue(piece); // to the end of the message
    this.#controller!.close();
  }

  #goOn(): void {
    if (this.#rest.length === 0) this.#listener.request();
    else this.send(this.#rest);
  }

  #resume(): void {
    try {
      this.#goOn();
    } catch (error) {
      this.#controller!.error(error);
    }
  }
}
