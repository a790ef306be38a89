/** The HTTP surface: dispatch to the routes, and the checks and headers around each of them. */

import { Hono, type HonoRequest } from "hono";
import { getPath } from "hono/utils/url";
import type { World } from "../base/world.ts";
import { LIMITS } from "../contract/limits.ts";
import { Refusal, refuse } from "../contract/refusal.ts";
import { IDEMPOTENCY_KEY } from "../model/idempotency_key.ts";
import { requestId } from "../model/identifiers.ts";
import type { PrincipalNames } from "../model/principal_names.ts";
import { PrincipalBuckets, TokenBucket } from "../sharing/rate_limit.ts";
import { BrowserGuard, type BrowserGuardOptions } from "./admission/browser_guard.ts";
import { isOnLoopback } from "./admission/client_address.ts";
import { Cors } from "./admission/cors.ts";
import { type Admission, Guard, type GuardOptions, tenantOf } from "./admission/guard.ts";
import { compressed } from "./answers/compress.ts";
import type { HeldAnswers } from "./answers/held_answers.ts";
import { expectTls, refusal, Rejection } from "./answers/reply.ts";
import { ClientGone, clientName, type Connections } from "./connections.ts";
import { answerOnce } from "./idempotency.ts";
import { RequestSpans } from "./request_spans.ts";
import type { HttpCaller, RouteCall, RouteUses } from "./route/call.ts";
import type { Once, Route } from "./route/route.ts";
import { ROUTES } from "./routes/route_table.ts";
import { whipOptions } from "./routes/whip.ts";

export interface AppOptions {
  readonly guard: GuardOptions & BrowserGuardOptions;
  readonly names: Pick<PrincipalNames, "ofKey">;
  readonly limits: RequestLimits;
  readonly connections: Connections;
  readonly use: RouteUses;
  readonly world: World;
  readonly heldAnswers: HeldAnswers;
  /**
   * Resolves when everything committed so far is as durable as configured. See
   * docs/deployment/data-directory.md#durability.
   */
  readonly synced: () => Promise<void>;
  /** The value of `alt-svc` in answers over TCP: where else the service can be reached; null for nowhere. */
  readonly alternative: () => string | null;
}

/** What limits a request besides its API key: the origins that may call, and the rates. */
export interface RequestLimits {
  readonly cors: Cors;
  /** Throws 429 where all callers together exceed the global rate. */
  takeGlobal(): void;
  /** Throws 429 where the principal exceeds its rate. */
  takePrincipal(principalKey: string): void;
}

/** The limits of the configuration; one that is not set refuses nothing. */
export function openRequestLimits(
  config: {
    corsAllowedOrigins: readonly string[];
    rateLimit: { globalRps: number | undefined; principalRps: number | undefined; principalSlots: number };
  },
  world: Pick<World, "monotonicMs">,
): RequestLimits {
  const { globalRps, principalRps, principalSlots } = config.rateLimit;
  const nowMs = () => world.monotonicMs();
  const globalBucket = globalRps === undefined ? undefined : new TokenBucket(globalRps, nowMs);
  const principalBuckets = principalRps === undefined
    ? undefined
    : new PrincipalBuckets({ ratePerSecond: principalRps, slots: principalSlots, nowMs });
  return {
    cors: new Cors(config.corsAllowedOrigins),
    takeGlobal: () => globalBucket?.take(),
    takePrincipal: (principalKey) => principalBuckets?.take(principalKey),
  };
}

/** Passed through Hono to each handler. */
interface Env {
  Bindings: {
    readonly caller: HttpCaller;
    /** The response to a HEAD request with the body that GET would give. */
    whole?: Response;
  };
}

/** The whole HTTP surface as one function of a request, for `Deno.serve` and for tests without a socket. */
export interface App {
  /**
   * `client` is the other end of a TCP connection; without it only the request itself tells that the client
   * is gone. `address` is that of the client, of any connection.
   */
  respond(request: Request, client?: Deno.NetAddr, address?: string): Response | Promise<Response>;
}

/**
 * The guard runs before the router, not as its middleware: an unknown route without a key is 401, and Hono
 * calls a route with a single handler without building a chain.
 */
export function createApp(options: AppOptions): App {
  const guard = new Guard(options.guard, options.names, () => options.world.monotonicMs());
  const browsers = new BrowserGuard(options.guard);
  const { limits } = options;
  const routes = new Hono<Env>();
  for (const route of ROUTES) {
    routes.on(route.method, route.path, ({ req, env }) => {
      const response = answer(route, env.caller, req);
      return req.method === "HEAD" ? keepWhole(env, response) : response;
    });
  }
  const unmatched = unmatchedRequests();
  routes.notFound(({ req, env }) =>
    req.method === "HEAD"
      ? keepWhole(env, unmatched.fetch(new Request(req.url, { headers: req.raw.headers }), env))
      : unmatched.fetch(req.raw, env)
  );
  routes.onError((error, { env, req }) => {
    const response = failure(error, env.caller.requestId, req.raw);
    if (req.method === "HEAD") env.whole = response;
    return response;
  });
  const { use, world } = options;
  const spans = new RequestSpans(world.tracing);
  let requests = 0;

  return {
    respond(request, client, address = client?.hostname) {
      if (client) options.connections.count(client);
      const caller = new RequestCaller(
        requestId(++requests),
        request,
        address,
        client && { client, connections: options.connections },
      );
      const response = spans.isOn
        ? spans.around(request, caller, () => admitted(caller, request))
        : admitted(caller, request);
      return response instanceof Promise
        ? answeredLate(caller, request, response, client)
        : answeredAtOnce(caller, finished(request, caller, response, client));
    },
  };

  async function answeredLate(
    caller: RequestCaller,
    request: Request,
    response: Promise<Response>,
    client: Deno.NetAddr | undefined,
  ): Promise<Response> {
    try {
      return finished(request, caller, await response, client);
    } finally {
      caller[Symbol.dispose]();
    }
  }

  /**
   * The order of the checks: global limit, host and origin, `OPTIONS`, key, the principal's limit, then the
   * routes. See docs/api.md#authentication.
   */
  function admitted(caller: RequestCaller, request: Request): Response | Promise<Response> {
    try {
      limits.takeGlobal();
      if (request.url.length > LIMITS.body.urlCharacters) throw new Rejection(414, "The URL is too long");
      browsers.admit(request);
      const preflight = limits.cors.preflight(request);
      if (preflight) return preflight;
      if (request.method === "OPTIONS") {
        const described = whipOptions(pathOf(request.url));
        if (described) return described;
      }
      const path = getPath(request); // the path that the router sees
      const admission = guard.admit({ path, headers: request.headers, address: caller.address });
      if (admission.isAuthenticated) limits.takePrincipal(admission.principalKey);
      caller.setPrincipal(admission);
    } catch (error) {
      return failure(error, caller.requestId, request);
    }
    return request.method === "HEAD" ? head(request, caller) : routes.fetch(request, { caller });
  }

  /**
   * Hono drops the body of a response to HEAD, and then the server would send `content-length: 0`. The server
   * itself sends the headers that belong to the body, does not send the body, and cancels it, which ends the
   * listener of an event stream.
   */
  async function head(request: Request, caller: HttpCaller): Promise<Response> {
    const env: Env["Bindings"] = { caller };
    const bare = await routes.fetch(request, env);
    return env.whole ?? bare;
  }

  function finished(
    request: Request,
    { held }: RequestCaller,
    response: Response,
    client: Deno.NetAddr | undefined,
  ): Response {
    const answered = compressed(request, response);
    const final = held ? options.heldAnswers.untilTaken(answered, held) : answered;
    limits.cors.expose(request, final);
    expectTls(request, final);
    const alternative = client && options.alternative();
    if (alternative) final.headers.set("alt-svc", alternative);
    return final;
  }

  function answer(route: Route, caller: HttpCaller, request: HonoRequest): Response | Promise<Response> {
    if (spans.isOn) spans.matched(request.raw, route.path, request.param("id"));
    const call: RouteCall = { caller, request, use };
    if (takesKeys(route)) {
      const key = request.raw.headers.get(IDEMPOTENCY_KEY);
      if (key !== null) return answerOnce(route, key, call, options.synced);
    }
    const response = route.handle(call);
    return route.method === "GET" ? response : afterSync(response);
  }

  async function afterSync(response: Response | Promise<Response>): Promise<Response> {
    const answered = await response;
    await options.synced();
    return answered;
  }

  /**
   * A refusal is answered with its reason. Any other error is a bug: it is logged once, and the response has
   * no detail. The error of a client that has disconnected is not a bug, and its response is dropped.
   */
  function failure(error: unknown, requestId: string, request: Request): Response {
    const { method, url, signal } = request;
    if (error instanceof Rejection) return error.response(request, requestId);
    if (error instanceof Refusal) return refusal(error, requestId);
    const about = { request_id: requestId, method, path: pathOf(url) };
    if (error instanceof ClientGone) {
      options.world.log.debug("the client has disconnected", about);
      // Read by a client that closed only its sending side.
      return new Rejection(400, "The client closed its side of the connection before it was answered")
        .response(request, requestId);
    }
    if (signal.aborted && error === signal.reason) {
      options.world.log.debug("the client has disconnected", about);
    } else {
      options.world.log.error("request failed", {
        ...about,
        error: error instanceof Error ? error.stack ?? error.message : String(error),
      });
    }
    return refusal(refuse.because("internal_error", "An internal error occurred"), requestId);
  }
}

function takesKeys(route: Route): route is Route & { readonly once: Once } {
  return route.once !== undefined;
}

function answeredAtOnce(caller: Disposable, response: Response): Response {
  caller[Symbol.dispose]();
  return response;
}

async function keepWhole(env: Env["Bindings"], response: Response | Promise<Response>): Promise<Response> {
  env.whole = await response;
  return new Response(null, { status: env.whole.status });
}

/** The path of an absolute URL as it was sent, for the log. */
function pathOf(url: string): string {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  const end = url.slice(start).search(/[?#]/);
  return end < 0 ? url.slice(start) : url.slice(start, start + end);
}

/** The caller of one request; it has no principal until the guard has admitted it. */
class RequestCaller implements HttpCaller, Disposable {
  principalKey = "";
  readonly #request: Request;
  readonly #watching: { readonly client: Deno.NetAddr; readonly connections: Connections } | undefined;
  #signal: AbortSignal | undefined;
  #held: DisposableStack | undefined;
  #watch: ReturnType<Connections["watch"]> | undefined;

  constructor(
    readonly requestId: string,
    request: Request,
    readonly address: string | undefined,
    watching?: { readonly client: Deno.NetAddr; readonly connections: Connections },
  ) {
    this.#request = request;
    this.#watching = watching;
  }

  /** What is given back when the answer has gone; undefined where that is nothing. */
  get held(): Disposable | undefined {
    return this.#held;
  }

  holdUntilAnswered(held: Disposable): void {
    this.#held ??= new DisposableStack();
    this.#held.use(held);
  }

  /** A getter, as making the signal costs time and most requests never need it. */
  get signal(): AbortSignal {
    return this.#signal ??= this.#signalOfClient();
  }

  [Symbol.dispose](): void {
    this.#watch?.[Symbol.dispose]();
  }

  #signalOfClient(): AbortSignal {
    const { signal, body } = this.#request;
    if (body === null || this.#watching === undefined) return signal;
    this.#watch = this.#watching.connections.watch(this.#watching.client, signal);
    return this.#watch.signal;
  }

  get client(): string | undefined {
    return this.#watching && clientName(this.#watching.client);
  }

  get isOnLoopback(): boolean {
    return isOnLoopback(this.address, this.#request.headers);
  }

  /** A getter, as few requests need it. */
  get tenantId(): string | null {
    return tenantOf(this.#request.headers);
  }

  setPrincipal({ principalKey }: Admission): void {
    this.principalKey = principalKey;
  }
}

/**
 * Answers what no route matches: 405 with `Allow` where the path is known, else 404. A separate router, so
 * that every request of a route has one match and needs no chain.
 */
function unmatchedRequests(): Hono<Env> {
  const unmatched = new Hono<Env>();
  for (const [path, routes] of Map.groupBy(ROUTES, (route) => route.path)) {
    const methods = routes.flatMap(({ method }) => method === "GET" ? ["GET", "HEAD"] : [method]);
    const rejection = new Rejection(405, "Method not allowed", { allow: methods.toSorted().join(", ") });
    unmatched.all(path, ({ req, env }) => rejection.response(req.raw, env.caller.requestId));
  }
  const rejection = new Rejection(404, "No such route");
  unmatched.notFound(({ req, env }) => rejection.response(req.raw, env.caller.requestId));
  return unmatched;
}
