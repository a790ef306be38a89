/** Replaces the process by one whose environment holds no settings; the new one gets them through a pipe. */

import { cText } from "./base/bytes.ts";
import type { Log } from "./base/log.ts";

/** The argument of a compiled service that makes it the process of `forwarder_process.ts`. */
export const FORWARD_STREAMS = "--forward-streams";

/** Follows the arguments of a process whose settings are on its standard input. */
export const ENVIRONMENT_ON_STDIN = "--environment-on-stdin";

/** What Deno, the dynamic linker and the search for programs need; everything else is taken out of the environment. */
const KEPT = new Set([
  ...["PATH", "HOME", "TMPDIR", "LANG", "TZ", "NO_COLOR", "XDG_CACHE_HOME", "RUST_BACKTRACE"],
  ...["LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "DENO_DIR", "DENO_NO_UPDATE_CHECK"],
]);

/** Linux's number of `O_CLOEXEC`. */
const CLOSE_ON_EXEC = 0o2000000;
const STDIN = 0;
const STDERR = 2;
/** Linux's numbers of `F_SETFD` and `FD_CLOEXEC`. */
const SET_FLAGS = 2;
const FLAG_CLOSE_ON_EXEC = 1;
/** What a pipe holds, so that all of it can be written before anybody reads. */
const PIPE_BYTES = 64 * 1024;
/** Linux's number of `F_SETPIPE_SZ`; any user may make a pipe this large. */
const SET_PIPE_SIZE = 1031;
const PIPE_BYTES_MAX = 1 << 20;

/**
 * Left alone, the runtime lets a heap grow to four times what is in use, and by 48 MB of young objects: one caller who sent
 * large requests in a loop made the process grow by 200 MB, of which 27 MB were in use. With these options, which only the
 * start of a process can set, it is 80 MB. See docs/security.md#large-requests. The third one lets `spare_memory.ts` collect.
 *
 * The last one: where many objects of a kind outlive their first collection, as those of clients that connect do, the engine would
 * make all later ones of that kind among the old objects, which only a full collection frees, those of each event for each client too.
 */
export const HEAP_OPTIONS =
  "--heap-growing-percent=100,--max-semi-space-size=8,--expose-gc,--no-allocation-site-pretenuring";
const RUNTIME_OPTIONS = "DENO_V8_FLAGS";

/**
 * For the C library (mallopt(3)), which would give each thread an area of its own and keep what is freed in it: frames, pictures and clips
 * of four cameras left two of 64 MB. With these, large pieces go back to the system at once, and threads share two areas.
 */
const ALLOCATOR_OPTIONS = [
  "glibc.malloc.arena_max=2",
  "glibc.malloc.mmap_threshold=131072",
  "glibc.malloc.trim_threshold=1048576",
].join(":");
const ALLOCATOR = "GLIBC_TUNABLES";

type Variables = Readonly<Record<string, string>>;

export interface Environment {
  readonly variables: Variables;
  /** Why the environment still holds the settings, so that `/proc/<pid>/environ` shows them; null if it does not. */
  readonly exposed: string | null;
}

/**
 * The variables that the process was started with. `/proc/<pid>/environ` shows them to every program of the same user for as
 * long as the process lives, so the process first replaces itself (execve): same id, same arguments, same streams but for
 * standard input, which is the pipe.
 *
 * ```
 *   started with settings ──pipe: all variables──▶ execve ──▶ started with PATH, HOME … and `--environment-on-stdin`
 * ```
 *
 * The new process bounds how far its heaps grow, too.
 */
export function readEnvironmentOnce(): Environment {
  if (Deno.args.at(-1) === ENVIRONMENT_ON_STDIN) {
    return { variables: JSON.parse(allOfStdin()), exposed: null };
  }
  const variables = Deno.env.toObject();
  if (Object.keys(variables).every((name) => KEPT.has(name))) return { variables, exposed: null };
  // Returns only if it fails.
  return { variables, exposed: startOver(variables) };
}

/** Says in the log what `readEnvironmentOnce` could not do. */
export function warnOfExposure(log: Log, { exposed }: Environment): void {
  if (exposed === null) return;
  log.warn(`the environment of the process keeps the settings, secrets included: ${exposed}`);
}

/** Returns why it is not possible. */
function startOver(variables: Variables): string {
  if (Deno.build.os !== "linux") return "they can be taken out on Linux only";
  if (Deno.permissions.querySync({ name: "ffi" }).state !== "granted") {
    return "it has no permission --allow-ffi";
  }
  const settings = new TextEncoder().encode(JSON.stringify(variables));
  if (settings.length > PIPE_BYTES_MAX) return "they are longer than a pipe holds";
  try {
    using libc = openLibc();
    const { pipe2, fcntl, write, close, dup2, execve } = libc.symbols;
    const ends = new Int32Array(2);
    if (pipe2(ends, CLOSE_ON_EXEC) !== 0) return "no pipe can be made";
    const [readEnd, writeEnd] = ends as unknown as [number, number];
    const isLarge = settings.length > PIPE_BYTES;
    if (isLarge && fcntl(writeEnd, SET_PIPE_SIZE, PIPE_BYTES_MAX) < 0) {
      return "they are longer than a pipe holds";
    }
    if (Number(write(writeEnd, settings, BigInt(settings.length))) !== settings.length) {
      return "they cannot be written into a pipe";
    }
    close(writeEnd);
    if (dup2(readEnd, STDIN) !== STDIN) return "standard input cannot be replaced";
    const commandLine = Deno.readTextFileSync("/proc/self/cmdline").split("\0").slice(0, -1);
    const kept = Object.entries(variables).filter(([name]) => KEPT.has(name));
    const args = textArray([...commandLine, ENVIRONMENT_ON_STDIN]);
    // What the operator sets comes last, and counts.
    const options = [HEAP_OPTIONS, variables[RUNTIME_OPTIONS] ?? []].flat().join();
    const allocator = [ALLOCATOR_OPTIONS, variables[ALLOCATOR] ?? []].flat().join(":");
    const env = textArray(
      [...kept, [RUNTIME_OPTIONS, options] as const, [ALLOCATOR, allocator] as const]
        .map(([name, value]) => `${name}=${value}`),
    );
    closeOnExec(fcntl);
    execve(cText(Deno.execPath()), args.pointers, env.pointers);
    // Mentioning the texts here keeps them in memory up to here.
    return `the program cannot be started again with ${args.texts.length} arguments, ${env.texts.length} variables`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Descriptors that the process was started with would otherwise be open in every program that it starts. */
function closeOnExec(fcntl: (descriptor: number, command: number, value: number) => number): void {
  for (const { name } of Deno.readDirSync("/proc/self/fd")) {
    if (Number(name) > STDERR) fcntl(Number(name), SET_FLAGS, FLAG_CLOSE_ON_EXEC);
  }
}

function openLibc() {
  const libc = Deno.dlopen("libc.so.6", {
    pipe2: { parameters: ["buffer", "i32"], result: "i32" },
    fcntl: { parameters: ["i32", "i32", "i32"], result: "i32" },
    write: { parameters: ["i32", "buffer", "usize"], result: "isize" },
    close: { parameters: ["i32"], result: "i32" },
    dup2: { parameters: ["i32", "i32"], result: "i32" },
    execve: { parameters: ["buffer", "buffer", "buffer"], result: "i32" },
  });
  return { symbols: libc.symbols, [Symbol.dispose]: () => libc.close() };
}

/** A list of texts as C has it: addresses, and a null address at the end. `texts` must live as long as `pointers`. */
function textArray(list: readonly string[]) {
  const texts = list.map(cText);
  const addresses = texts.map((text) => BigInt(Deno.UnsafePointer.value(Deno.UnsafePointer.of(text))));
  return { texts, pointers: new BigUint64Array([...addresses, 0n]) };
}

function allOfStdin(): string {
  const decoder = new TextDecoder();
  const buffer = new Uint8Array(PIPE_BYTES);
  let text = "";
  for (let got = Deno.stdin.readSync(buffer); got !== null; got = Deno.stdin.readSync(buffer)) {
    text += decoder.decode(buffer.subarray(0, got), { stream: true });
  }
  return text;
}
