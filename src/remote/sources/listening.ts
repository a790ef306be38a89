/** Where a relay or a tunnel listens for ffmpeg: on a Unix socket behind the forwarder, or on the loopback of
 * the machine.
 */

import type { Server as HttpServer, ServerResponse } from "node:http";
import type { AddressInfo, Server } from "node:net";

/** The port in the network of one job, where nothing else listens, so it may be the same for all. */
const PORT = 8000;

/** Listens for ffmpeg. Returns the host and port at which ffmpeg finds the server. */
export async function listenForFfmpeg(server: Server, socket: string | null): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    if (socket === null) server.listen(0, "127.0.0.1", resolve);
    else server.listen(socket, resolve);
  });
  return `127.0.0.1:${socket === null ? (server.address() as AddressInfo).port : PORT}`;
}

/** Ends all connections of the server and waits until it listens no more. */
export async function stopListening(server: HttpServer): Promise<void> {
  server.closeAllConnections();
  await new Promise<void>((resolve) => server.close(() => resolve()));
}

/**
 * A controller that is aborted when ffmpeg has left. What is fetched for it ends then with this reason, as
 * its server has not failed.
 */
export function readerOf(response: ServerResponse): AbortController {
  const reader = new AbortController();
  response.once("close", () => reader.abort(new Error("the reader has gone")));
  return reader;
}
