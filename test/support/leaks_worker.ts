/** Tries from inside a Worker of the service what its permissions alone would let pass; tells each outcome.
 */

import "../../src/base/worker_globals.ts";
import type { Probe } from "./probe_worker.ts";

/** What the test hands in. */
export interface LeaksOrder {
  /** A folder in which this Worker may write. */
  readonly folder: string;
  /** A name at which somebody listens for streams, with NUL before it. */
  readonly abstract: string;
  /** Address of an abstract socket for datagrams. */
  readonly abstractDatagrams: string;
}

// deno-lint-ignore no-explicit-any -- what the types of a Worker do not have
type Untyped = any;

const scope = globalThis as Untyped;

/** Milliseconds that an attempt has which says nothing. */
const SILENCE_MS = 2000;
/** Numbers of descriptors to try: more than the test process has open. */
const DESCRIPTORS = 200;
/** Past the folder of the code, in a way that the parser of addresses leaves as it is. */
const UPWARDS = "..%2f".repeat(20);

scope.onmessage = async ({ data }: MessageEvent<LeaksOrder>) => scope.postMessage(await attempts(data));

const builtin = (name: string): Untyped => scope.process.getBuiltinModule(`node:${name}`);

/** The first event of something of Node: its error is thrown. */
async function answered(emitter: Untyped, ...events: string[]): Promise<unknown> {
  try {
    return await new Promise((resolve, reject) => {
      emitter.on("error", reject);
      for (const event of events) emitter.on(event, () => resolve(event));
      setTimeout(() => reject(new Error("silence")), SILENCE_MS);
    });
  } finally {
    emitter.destroy?.();
    emitter.close?.();
  }
}

/** A path that is harmless when it is looked at first. */
function changingPath(path: string): object {
  let looks = 0;
  return { toString: () => looks++ === 0 ? "/nonexistent" : path };
}

async function attempts(order: LeaksOrder): Promise<Record<string, Probe>> {
  const { folder, abstract, abstractDatagrams } = order;
  const nodeWorker = () => builtin("worker_threads").Worker;
  const code = new URL("../../src/", import.meta.url).href;
  const tries: Record<string, () => unknown> = {
    "a Worker of text": () => new Worker("data:text/javascript,", { type: "module" }),
    "a Worker of text, with another startsWith": () => {
      const { startsWith } = String.prototype;
      String.prototype.startsWith = () => true;
      try {
        return new Worker("data:text/javascript,", { type: "module" });
      } finally {
        String.prototype.startsWith = startsWith;
      }
    },
    "a Worker of text, with another URL": () => {
      const { URL } = globalThis;
      scope.URL = class {
        href = code;
      };
      try {
        return new Worker("data:text/javascript,", { type: "module" });
      } finally {
        scope.URL = URL;
      }
    },
    "a Worker of text, from a text that changes": () => {
      let looks = 0;
      const text = { toString: () => looks++ === 0 ? `${code}live/live_worker.ts` : "data:text/javascript," };
      const worker = new Worker(text as unknown as URL, { type: "module" });
      worker.terminate();
      if (looks > 1) return worker;
      throw new Deno.errors.NotCapable("it was looked at once");
    },
    "a Worker of a file of its own": () => {
      Deno.writeTextFileSync(`${folder}/own.mjs`, "");
      return new Worker(`file://${folder}/own.mjs`, { type: "module" });
    },
    "a Worker of a file of its own, past the code": () =>
      new Worker(`${code}${UPWARDS}${folder.slice(1)}/own.mjs`, { type: "module" }),
    "a Worker of another module of the code": () =>
      new Worker(`${code}service/service_worker.ts`, { type: "module" }),
    "a Worker of Node, of text": () => new (nodeWorker())("", { eval: true }),
    "a Worker of Node, of an address": () => new (nodeWorker())(new URL("data:text/javascript,")),
    "a Worker of Node, as another class": () =>
      Reflect.construct(nodeWorker(), ["", { eval: true }], class {}),
    "a Worker of Node, extended": () =>
      Reflect.construct(class extends nodeWorker() {}, ["", { eval: true }]),
    "a Worker of Node, with its parent again": () => {
      Reflect.setPrototypeOf(nodeWorker(), builtin("events").EventEmitter);
      return new (nodeWorker())("", { eval: true });
    },
    "an abstract socket": () => Deno.connect({ transport: "unix", path: abstract }),
    "an abstract socket, by a path that changes": () =>
      Deno.connect({ transport: "unix", path: changingPath(abstract) as Untyped }),
    "an abstract socket, listening": () => Deno.listen({ transport: "unix", path: `${abstract}-own` }),
    "an abstract socket, serving": () => Deno.serve({ path: `${abstract}-own` }, () => new Response()),
    "an abstract socket, serving by options behind": () =>
      (Deno.serve as Untyped)(() => new Response(), { path: `${abstract}-own` }),
    "an abstract socket for datagrams": () =>
      Deno.listenDatagram({ transport: "unixpacket", path: `${abstract}-own` }),
    "a datagram to an abstract socket": async () => {
      const conn = Deno.listenDatagram({ transport: "unixpacket", path: `${folder}/own.sock` });
      try {
        await conn.send(new Uint8Array(1), { transport: "unixpacket", path: abstractDatagrams });
      } finally {
        conn.close();
      }
    },
    "an abstract socket, by Node": () => answered(builtin("net").connect({ path: abstract }), "connect"),
    "an abstract socket, by Node's HTTP": () =>
      answered(builtin("http").get({ socketPath: abstract, path: "/" }), "response", "socket"),
    "an abstract socket, listening by Node": () =>
      answered(builtin("net").createServer().listen({ path: `${abstract}-own` }), "listening"),
    "a vsock socket": () => Deno.connect({ transport: "vsock", cid: 1, port: 42999 } as Untyped),
    "a vsock socket, listening": () => Deno.listen({ transport: "vsock", cid: -1, port: 42999 } as Untyped),
    "descriptors of the process, as sockets": () => {
      for (let fd = 0; fd < DESCRIPTORS; fd++) {
        try {
          new (builtin("net").Socket)({ fd });
        } catch (error) {
          if (!/Unsupported fd type/.test((error as Error).message)) throw error;
        }
      }
    },
    "descriptors of the process, listened on": async () => {
      const { port1: open } = new MessageChannel();
      open.close();
      const server = builtin("net").createServer();
      return await answered(server.listen({ fd: firstSocket() }), "listening");
    },
    "descriptors of the process, as files": () => {
      for (let fd = 3; fd < DESCRIPTORS; fd++) {
        try {
          builtin("fs").readSync(fd, new Uint8Array(1), 0, 1, 0);
          return fd;
        } catch (error) {
          if ((error as Untyped).code !== "EBADF") throw error;
        }
      }
      throw new Deno.errors.NotCapable("none of them is open here");
    },
    "links by WASI": () => {
      const wasi = new (builtin("wasi").WASI)({ version: "preview1", preopens: { "/": folder } });
      const memory = new WebAssembly.Memory({ initial: 1 });
      wasi.initialize({ exports: { memory } });
      new TextEncoder().encodeInto("/etclink", new Uint8Array(memory.buffer));
      wasi.wasiImport.path_symlink(0, 4, 3, 4, 4);
      return Deno.readTextFileSync(`${folder}/link/passwd`);
    },
    "calls of WASI": () => new (builtin("wasi").WASI)({ version: "preview1" }).getImportObject(),
    "a database": () => new (builtin("sqlite").DatabaseSync)(":memory:").exec("pragma temp_store = 1"),
    "a statement of a database": () => new (builtin("sqlite").DatabaseSync)(":memory:").prepare("select 1"),
    "a link": () => builtin("fs").symlinkSync("/etc", `${folder}/link`),
    "a signal to the parent": () => Deno.kill(Deno.ppid, "SIGCONT"),
    "a signal to the parent, by Node": () => scope.process.kill(Deno.ppid, 0),
    "a program, by Node": () => builtin("child_process").spawnSync("/bin/true").error.message,
    "the inspector": () => builtin("inspector").open(0),
    "a heap snapshot": () => builtin("v8").writeHeapSnapshot(`${folder}/../heap`),
    "an add-on": () => scope.process.dlopen({}, `${folder}/x.node`),
    "the priority": () => builtin("os").setPriority(0, 1),
    "a module outside": () => import(["file:///etc", "passwd.mjs"].join("/")),
    "a module of the network": () => import(["http://127.0.0.1:1", "x.mjs"].join("/")),
  };
  const probes: Record<string, Probe> = {};
  for (const [name, attempt] of Object.entries(tries)) {
    try {
      await attempt();
      probes[name] = { outcome: "ok" };
    } catch (error) {
      probes[name] = { outcome: (error as Error).name, detail: (error as Error).message };
    }
  }
  const found: Record<string, unknown> = {
    "the Cache API": scope.caches ?? scope.CacheStorage ?? scope.Cache,
    "WebGPU": scope.navigator.gpu ?? scope.GPU ?? scope.GPUAdapter ?? scope.OffscreenCanvas,
    "the inner functions": (Deno as Untyped).internal ??
      Object.getOwnPropertySymbols(Deno).find((key) => (Deno as Untyped)[key]?.core !== undefined),
  };
  for (const [name, value] of Object.entries(found)) {
    probes[`gone: ${name}`] = { outcome: value === undefined ? "gone" : "there" };
  }
  try {
    builtin("v8").setFlagsFromString("--allow-natives-syntax");
    new Function("return %IsSmi(1)")();
    probes["gone: options of the engine"] = { outcome: "there" };
  } catch {
    probes["gone: options of the engine"] = { outcome: "gone" };
  }
  return probes;
}

/** The number of a descriptor that is a socket or a pipe of the process. */
function firstSocket(): number {
  const { guessHandleType } = scope.process.binding("util");
  for (let fd = 3; fd < DESCRIPTORS; fd++) {
    if (/PIPE|TCP/.test(guessHandleType?.(fd) ?? "")) return fd;
  }
  return 1;
}
