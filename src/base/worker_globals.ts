/** Imported first by each Worker: takes away what its permissions do not hold. See
 * docs/security/sandbox.md#what-a-worker-finds.
 */

import { entryOf } from "./program_paths.ts";
import { KEPT_DENO, KEPT_GLOBALS, KEPT_NAVIGATOR, namesOf } from "./worker_scope.ts";

// Code that comes later could replace what is used here, so it is taken now and called as it is.
const { apply, defineProperty, deleteProperty, getPrototypeOf, ownKeys, setPrototypeOf } = Reflect;
const { freeze } = Object;
const { NotCapable } = Deno.errors;
const UrlOf = URL;
const hrefOf = Object.getOwnPropertyDescriptor(URL.prototype, "href")!.get!;

// deno-lint-ignore no-explicit-any -- classes of the runtime that have no types
type Untyped = any;

// Its members without a name are the runtime's inner functions.
for (const key of ownKeys(Deno)) if (typeof key === "symbol") deleteProperty(Deno, key);
keepOnly(Deno, KEPT_DENO);
keepOnly(getPrototypeOf(navigator)!, KEPT_NAVIGATOR);
startOwnWorkersOnly();
openNoDescriptors();
reachNoAbstractSockets();
emptyClasses();
// Last, as the modules that were loaded here bring global names.
keepOnly(globalThis, KEPT_GLOBALS);

function keepOnly(target: object, table: Parameters<typeof namesOf>[0]): void {
  const kept = new Set<string | symbol>(namesOf(table));
  for (const key of ownKeys(target)) {
    if (typeof key === "string" && !kept.has(key)) deleteProperty(target, key);
  }
}

/**
 * Lets a Worker start the service's own Workers only: one of another text would have everything again that is
 * taken away here.
 */
function startOwnWorkersOnly(): void {
  const Unrestricted = globalThis.Worker;
  const [decode, live] = [entryOf("decode").href, entryOf("live").href];
  const [relay, schema] = [entryOf("relay").href, entryOf("schema").href];
  function OwnWorker(specifier: string | URL, options?: WorkerOptions): Worker {
    const href = apply(hrefOf, new UrlOf(specifier), []);
    if (href !== decode && href !== live && href !== relay && href !== schema) {
      throw refusal("Only modules of the service may be Workers");
    }
    return new Unrestricted(href, options);
  }
  OwnWorker.prototype = Unrestricted.prototype;
  fix(Unrestricted.prototype, "constructor", OwnWorker);
  fix(globalThis, "Worker", OwnWorker);

  // Its constructor calls that of its parent first, and whoever imports the class gets this one.
  const { Worker: NodeWorker } = builtin("node:worker_threads");
  setPrototypeOf(NodeWorker, refusing("Workers of node:worker_threads are not for this service"));
  freeze(NodeWorker);
}

/**
 * Takes away how a Worker makes a socket of any descriptor of the process: it could reach connections of
 * other callers, and pipes to ffmpeg and to the forwarder.
 */
function openNoDescriptors(): void {
  for (const [binding, name] of [["pipe_wrap", "Pipe"], ["tcp_wrap", "TCP"], ["udp_wrap", "UDP"]] as const) {
    const { prototype } = inner(binding)[name];
    fix(prototype, "open", refusing("Descriptors of the process are not for its Workers"));
  }
}

/**
 * Refuses the sockets that no permission covers: an abstract Unix socket has no path, and a vsock socket no
 * address, for which one could be asked.
 */
function reachNoAbstractSockets(): void {
  const { connect, listen, listenDatagram, serve } = Deno;
  fix(Deno, "connect", (options: Untyped) => connect(withPath(options)));
  fix(Deno, "listen", (options: Untyped) => listen(withPath(options)));
  fix(
    Deno,
    "serve",
    (first: Untyped, second: Untyped) => apply(serve, Deno, [withPath(first), withPath(second)]),
  );
  let isSending = false;
  fix(Deno, "listenDatagram", (options: Untyped) => {
    const conn = listenDatagram(withPath(options, OWN_DATAGRAMS));
    if (!isSending) {
      const prototype = getPrototypeOf(conn) as Deno.DatagramConn;
      const { send } = prototype;
      fix(prototype, "send", function (this: Deno.DatagramConn, data: Uint8Array, to: Untyped) {
        return apply(send, this, [data, withPath(to)]);
      });
      isSending = true;
    }
    return conn;
  });

  const { prototype } = inner("pipe_wrap").Pipe;
  const { bind, connect: connectPipe } = prototype;
  fix(prototype, "bind", function (this: object, path: unknown) {
    return apply(bind, this, [checkedPath(path)]);
  });
  fix(prototype, "connect", function (this: object, request: unknown, path: unknown) {
    return apply(connectPipe, this, [request, checkedPath(path)]);
  });
}

/** The name that `remote/trigger_datagram_sender.ts` gives the socket from which it sends. */
const OWN_DATAGRAMS = "\0service-trigger-";

/** A copy of options whose path, if any, is read once. */
function withPath(options: Untyped, own?: string): Untyped {
  if (typeof options !== "object" || options === null) return options;
  const copy = { ...options };
  // The runtime without the option for them would end the process.
  if (copy.transport === "vsock") throw refusal("Vsock sockets are not for Workers of this service");
  if (copy.path !== undefined) copy.path = checkedPath(copy.path, own);
  return copy;
}

function checkedPath(path: unknown, own = ""): string {
  const text = `${path}`;
  let isOwn = own !== "";
  for (let at = 0; isOwn && at < own.length; at++) isOwn = text[at] === own[at];
  if (text[0] === "\0" && !isOwn) throw refusal("Abstract sockets are not for Workers of this service");
  return text;
}

/**
 * Takes their methods from classes that reach files past the permissions, so that an object of them does
 * nothing. WASI makes links, and reads and writes descriptors; a database keeps what does not fit into its
 * memory in the temporary folder of the system.
 */
function emptyClasses(): void {
  const { WASI } = builtin("node:wasi");
  const { DatabaseSync } = builtin("node:sqlite");
  for (const { prototype } of [WASI, DatabaseSync]) {
    for (let each = prototype; each !== Object.prototype; each = getPrototypeOf(each)) empty(each);
  }
}

function empty(prototype: object): void {
  for (const key of ownKeys(prototype)) {
    if (key !== "constructor") fix(prototype, key, refusing("This class is not for Workers of this service"));
  }
}

function builtin(name: string): Untyped {
  return (globalThis as Untyped).process.getBuiltinModule(name);
}

function inner(name: string): Untyped {
  return (globalThis as Untyped).process.binding(name);
}

/** Sets a member so that nobody can change it any more. */
function fix(target: object, key: PropertyKey, value: unknown): void {
  if (!defineProperty(target, key, { value, writable: false, configurable: false })) {
    throw new Error(`a Worker cannot take away ${String(key)}`);
  }
}

function refusing(message: string): () => never {
  return function () {
    throw refusal(message);
  };
}

function refusal(message: string): Error {
  return new NotCapable(message);
}
