/** A STUN server on loopback that answers every caller with the same address, or not at all. */

import { createSocket } from "node:dgram";
import { classes, Message, methods, parseMessage } from "werift";

export interface StunServer extends AsyncDisposable {
  readonly url: string;
  /** Requests that came. */
  readonly requests: number;
}

/** Starts a STUN server; `mapped` is what it answers with, null is no answer at all. */
export async function startStunServer(mapped: readonly [string, number] | null): Promise<StunServer> {
  const socket = createSocket("udp4");
  let requests = 0;
  socket.on("message", (data, { address, port }) => {
    const request = parseMessage(data);
    if (!request) return;
    requests++;
    if (!mapped) return;
    const response = new Message(methods.BINDING, classes.RESPONSE, request.transactionId);
    response.setAttribute("XOR-MAPPED-ADDRESS", [...mapped]);
    socket.send(response.bytes, port, address);
  });
  await new Promise<void>((resolve) => socket.bind(0, "0.0.0.0", resolve));
  return {
    url: `stun:127.0.0.1:${socket.address().port}`,
    get requests() {
      return requests;
    },
    async [Symbol.asyncDispose]() {
      await new Promise<void>((resolve) => socket.close(resolve));
    },
  };
}
