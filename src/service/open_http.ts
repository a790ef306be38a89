/** Opens the HTTP surface: the app over the use cases, and the server that listens. */

import type { Config } from "../base/config.ts";
import type { Metrics } from "../base/metrics.ts";
import { Deadlines, hasEndedWithin } from "../base/wait.ts";
import type { World } from "../base/world.ts";
import { type App, createApp, openRequestLimits } from "../http/app.ts";
import type { UseCases } from "../http/call.ts";
import { LIMITS } from "../model/limits.ts";
import { Connections, type LookAtConnections } from "../http/connections.ts";

export interface Http {
  readonly app: App;
  readonly hostname: string;
  readonly port: number;
  /** How many came in so far. */
  requests(): number;
}

export interface HttpOptions {
  readonly config: Config;
  readonly useCases: UseCases;
  readonly world: World;
  /** Resolves when everything committed so far is as durable as the configuration promises. */
  readonly synced: () => Promise<void>;
  readonly metrics: Metrics;
  /** Absent where the system's connections are not known. */
  readonly lookAtConnections?: LookAtConnections | undefined;
}

/** Errors: the address cannot be listened on; the message names it and its setting. */
export function openHttp(
  opening: AsyncDisposableStack,
  { config, useCases, world, synced, metrics, lookAtConnections }: HttpOptions,
): Http {
  const connections = opening.use(new Connections(lookAtConnections ?? (() => Promise.resolve(null)), world));
  metrics.observeValue("service_http_connections", () => connections.open());
  metrics.observeValue("service_http_connections_total", () => connections.total);
  const limits = openRequestLimits(config, world);
  const bodyDeadlines = opening.use(new Deadlines(world, LIMITS.body.jsonReadMs));
  const app = createApp({ guard: config, limits, connections, useCases, world, bodyDeadlines, synced });
  let requests = 0;
  const server = listen(config, (request, address) => {
    requests++;
    return app.respond(request, address);
  });
  opening.defer(() => closeServer(server, world));
  const { hostname, port } = server.addr as Deno.NetAddr;
  connections.port = port;
  return { app, hostname, port, requests: () => requests };
}

function listen({ bindAddr }: Pick<Config, "bindAddr">, respond: App["respond"]): Deno.HttpServer {
  try {
    return Deno.serve(
      { ...bindAddr, onListen() {} },
      (request, { remoteAddr }) => respond(request, remoteAddr as Deno.NetAddr),
    );
  } catch (error) {
    const { hostname, port } = bindAddr;
    const address = hostname.includes(":") ? `[${hostname}]:${port}` : `${hostname}:${port}`;
    const why = error instanceof Deno.errors.AddrInUse
      ? "another program listens there already"
      : (error as Error).message;
    throw new Error(`SERVICE_BIND_ADDR must be an address that is free, got ${address}: ${why}`, {
      cause: error,
    });
  }
}

/** How long responses under way may take when the service closes; after that their connections are dropped. */
const CLOSE_GRACE_MS = 5_000;

/** Accepts no new connections from here on; waits for the responses under way, within the grace period. */
async function closeServer(server: Deno.HttpServer, world: World): Promise<void> {
  if (await hasEndedWithin(world, CLOSE_GRACE_MS, server.shutdown())) return;
  world.log.warn(`responses under way did not end within ${CLOSE_GRACE_MS} ms, dropping them`);
}
