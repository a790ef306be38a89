/** Opens the HTTP surface: the app over the use cases, and the servers that listen. */

import type { Config } from "../contract/config.ts";
import type { Metrics } from "../contract/metrics.ts";
import { errorText, type Log } from "../base/log.ts";
import { hasEndedWithin } from "../base/wait.ts";
import type { World } from "../base/world.ts";
import type { PrincipalNames } from "../model/principal_names.ts";
import { type App, createApp, openRequestLimits } from "../http/app.ts";
import type { UseCases } from "../http/route/call.ts";
import { HeldAnswers } from "../http/answers/held_answers.ts";
import { ReceivedBodies } from "../http/requests/received_body.ts";
import { notFree } from "./addresses.ts";
import type { Certificate, Http3Listener } from "../http3/listener.ts";
import { UntakenAnswers } from "../http/answers/untaken_answers.ts";
import { Connections, type LookAtConnections } from "../http/connections.ts";

export interface Http {
  readonly app: App;
  readonly hostname: string;
  readonly port: number;
  /** How many requests came in so far. */
  requests(): number;
  /** Accepts nothing new from here on, and waits for the requests under way, within their grace. */
  drain(): Promise<void>;
}

export interface HttpOptions {
  readonly config: Config;
  readonly names: PrincipalNames;
  readonly useCases: UseCases;
  readonly world: World;
  /** Resolves when everything committed so far is as durable as the configuration promises. */
  readonly synced: () => Promise<void>;
  readonly metrics: Metrics;
  /** Looks at the system's list of connections; absent where that cannot be read. */
  readonly lookAtConnections?: LookAtConnections | undefined;
  /** The certificate of the HTTP/3 listener; null where there is none. */
  readonly certificate: Certificate | null;
}

/** Opens the HTTP surface. Errors: an address cannot be listened on; the message names it and its setting. */
export async function openHttp(
  opening: AsyncDisposableStack,
  { config, names, useCases, world, synced, metrics, lookAtConnections, certificate }: HttpOptions,
): Promise<Http> {
  const connections = opening.use(new Connections(lookAtConnections ?? (() => Promise.resolve(null)), world));
  let http3: Http3Listener | null = null;
  metrics.observeValue("service_http_connections", async () => await connections.open() + (http3?.open ?? 0));
  metrics.observeValue("service_http_connections_total", () => connections.total + (http3?.total ?? 0));
  const limits = openRequestLimits(config, world);
  const bodies = opening.use(new ReceivedBodies(world));
  const heldAnswers = opening.use(new HeldAnswers(world));
  const untaken = opening.use(
    new UntakenAnswers({ world, behind: (clients) => connections.behind(clients) }),
  );
  const alternative = () => http3 && `h3=":${http3.port}"; ma=${ALTERNATIVE_SECONDS}`;
  const app = createApp({
    guard: config,
    names,
    limits,
    connections,
    use: { ...useCases, bodies, untaken },
    world,
    heldAnswers,
    synced,
    alternative,
  });
  let requests = 0;
  const respond: App["respond"] = (...args) => {
    requests++;
    return app.respond(...args);
  };
  if (certificate !== null) {
    const { openHttp3 } = await import("./open_http3.ts");
    const { bindAddr: address } = config.h3;
    http3 = opening.use(
      openHttp3({
        address,
        certificate,
        respond: (request, address) => respond(request, undefined, address),
        world,
      }),
    );
  }
  const server = listen(config, respond, world.log);
  let ended: Promise<void> | null = null;
  // Accepts nothing new from here on.
  const shutdown = () =>
    ended ??= Promise.all([server.shutdown(), http3?.close(CLOSE_GRACE_MS)]).then(() => {});
  opening.defer(async () => {
    if (await hasEndedWithin(world, CANCELLED_MS, shutdown())) return;
    world.log.warn("responses under way did not end in time, dropping them");
  });
  const { hostname, port } = server.addr as Deno.NetAddr;
  connections.listener = { hostname, port };
  const drain = async () => void await hasEndedWithin(world, CLOSE_GRACE_MS, shutdown());
  return { app, hostname, port, requests: () => requests, drain };
}

/** For how many seconds a client may remember that HTTP/3 is there. */
const ALTERNATIVE_SECONDS = 86_400;

function listen({ bindAddr }: Pick<Config, "bindAddr">, respond: App["respond"], log: Log): Deno.HttpServer {
  try {
    return Deno.serve(
      {
        ...bindAddr,
        onListen() {},
        // A body has failed, such as that of a file that became shorter: the runtime cuts the connection, and
        // would print the stack.
        onError(error) {
          log.warn("an answer was cut short", { error: errorText(error) });
          return new Response(null, { status: 500 });
        },
      },
      (request, { remoteAddr }) => respond(request, remoteAddr as Deno.NetAddr),
    );
  } catch (error) {
    throw notFree("SERVICE_BIND_ADDR", bindAddr, error);
  }
}

/** How long requests under way may take when the service closes; after that their work is cancelled. */
const CLOSE_GRACE_MS = 5_000;
/** How long the answers to cancelled requests may take; after that their connections are dropped. */
const CANCELLED_MS = 1_000;
