/** Replaces the process by one whose environment holds no settings and whose system calls are filtered; the
 * settings come through a pipe.
 */

import { join } from "node:path";
import { cText } from "../base/bytes.ts";
import type { Log } from "../base/log.ts";
import { PROJECT } from "../base/program_paths.ts";

/** The argument of a compiled service that makes it the process of `process/forwarder_process.ts`. */
export const FORWARD_STREAMS = "--forward-streams";

/** Follows the arguments of a process whose settings are on its standard input. */
export const ENVIRONMENT_ON_STDIN = "--environment-on-stdin";

/**
 * The variables that Deno, the dynamic linker and the search for programs need; everything else is taken out
 * of the environment.
 */
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
/** The bytes that a pipe holds, so that all of it can be written before anybody reads. */
const PIPE_BYTES = 64 * 1024;
/** Linux's number of `F_SETPIPE_SZ`; any user may make a pipe this large. */
const SET_PIPE_SIZE = 1031;
const PIPE_BYTES_MAX = 1 << 20;

/**
 * Left alone, the runtime lets a heap grow to four times what is in use, and by 48 MB of young objects: one
 * caller who sent large requests in a loop made the process grow by 200 MB, of which 27 MB were in use. With
 * these options, which only the start of a process can set, it is 80 MB. See
 * docs/security/load.md#large-requests. The third one lets `process/spare_memory.ts` collect.
 *
 * The last one: where many objects of a kind outlive their first collection, as those of clients that connect
 * do, the engine would make all later ones of that kind among the old objects, which only a full collection
 * frees, those of each event for each client too.
 */
export const HEAP_OPTIONS =
  "--heap-growing-percent=100,--max-semi-space-size=8,--expose-gc,--no-allocation-site-pretenuring";
const RUNTIME_OPTIONS = "DENO_V8_FLAGS";

/**
 * For the C library (mallopt(3)), which would give each thread an area of its own and keep what is freed in
 * it: frames, pictures and clips of four cameras left two of 64 MB. With these, large pieces go back to the
 * system at once, and threads share two areas.
 */
const ALLOCATOR_OPTIONS = [
  "glibc.malloc.arena_max=2",
  "glibc.malloc.mmap_threshold=131072",
  "glibc.malloc.trim_threshold=1048576",
].join(":");
const ALLOCATOR = "GLIBC_TUNABLES";

/** Linux's numbers of `PR_SET_NO_NEW_PRIVS`, `PR_SET_SECCOMP` and `SECCOMP_MODE_FILTER`. */
const NO_NEW_PRIVILEGES = 38;
const SET_FILTER = 22;
const FILTER_MODE = 2n;
const FILTER_INSTRUCTION_BYTES = 8;
/** The filter of system calls, built by `scripts/build_seccomp.ts`. */
const FILTER = new URL(`seccomp/${Deno.build.arch}-service.bpf`, PROJECT);
/** The bit in the mode of a file by which the program runs with the rights of its owner. */
const SET_USER_ID = 0o4000;

const SETTINGS_TOO_LONG = "the settings are longer than a pipe holds";

type Variables = Readonly<Record<string, string>>;

export interface Environment {
  readonly variables: Variables;
  /**
   * Why the environment still holds the settings, so that `/proc/<pid>/environ` shows them; null if it does
   * not.
   */
  readonly exposed: string | null;
  /**
   * Why the process and the programs that it starts have no filter of system calls; null if they have one.
   */
  readonly unfiltered: string | null;
}

/**
 * The variables that the process was started with. `/proc/<pid>/environ` shows them to every program of the
 * same user for as long as the process lives, so the process first replaces itself (execve): same id, same
 * arguments, same streams but for standard input, which is the pipe.
 *
 * ```
 *   started with settings ──pipe: all variables──▶ execve ──▶ started with PATH, HOME … and `--environment-on-stdin`
 * ```
 *
 * The new process bounds how far its heaps grow, too, and its system calls and those of all that it starts
 * are filtered.
 */
export function readEnvironmentOnce(): Environment {
  if (Deno.args.at(-1) === ENVIRONMENT_ON_STDIN) return { ...JSON.parse(allOfStdin()), exposed: null };
  const variables = Deno.env.toObject();
  // Returns only if it fails.
  const failure = startOver(variables);
  const hasSettings = Object.keys(variables).some((name) => !KEPT.has(name));
  return { variables, exposed: hasSettings ? failure : null, unfiltered: failure };
}

/** Says in the log what `readEnvironmentOnce` could not do. */
export function warnOfExposure(log: Log, { exposed, unfiltered }: Environment): void {
  if (exposed !== null) {
    log.warn(`the environment of the process keeps the settings, secrets included: ${exposed}`);
  }
  if (unfiltered !== null) log.warn(`the service runs without a filter of its system calls: ${unfiltered}`);
}

/** Replaces the process. Returns why it is not possible. */
function startOver(variables: Variables): string {
  if (Deno.build.os !== "linux") return "this needs Linux";
  if (Deno.permissions.querySync({ name: "ffi" }).state !== "granted") {
    return "it has no permission --allow-ffi";
  }
  try {
    using libc = openLibc();
    const { pipe2, fcntl, write, close, dup2, execve } = libc.symbols;
    const unfiltered = filterCalls(libc.symbols, variables);
    const settings = new TextEncoder().encode(JSON.stringify({ variables, unfiltered }));
    if (settings.length > PIPE_BYTES_MAX) return SETTINGS_TOO_LONG;
    const ends = new Int32Array(2);
    if (pipe2(ends, CLOSE_ON_EXEC) !== 0) return "no pipe can be made";
    const [readEnd, writeEnd] = ends as unknown as [number, number];
    const isLarge = settings.length > PIPE_BYTES;
    if (isLarge && fcntl(writeEnd, SET_PIPE_SIZE, PIPE_BYTES_MAX) < 0) {
      return SETTINGS_TOO_LONG;
    }
    if (Number(write(writeEnd, settings, BigInt(settings.length))) !== settings.length) {
      return "the settings cannot be written into a pipe";
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

/**
 * Filters the system calls of this thread, and with `execve` those of the process and of all that it starts.
 * Returns why there is no filter; null where there is one. No program gets further rights by being started
 * then, which a bubblewrap that is setuid needs: it counts more than the filter.
 */
function filterCalls({ prctl }: Libc, { PATH = "" }: Variables): string | null {
  try {
    if (PATH.split(":").some((folder) => isSetUserId(join(folder, "bwrap")))) {
      return "bubblewrap is a setuid program here, which could not be one with a filter";
    }
    const filter = Deno.readFileSync(FILTER);
    const program = new DataView(new ArrayBuffer(16)); // struct sock_fprog
    program.setUint16(0, filter.length / FILTER_INSTRUCTION_BYTES, true);
    const address = Deno.UnsafePointer.value(Deno.UnsafePointer.of(filter));
    program.setBigUint64(8, BigInt(address), true);
    const none = new Uint8Array();
    if (
      prctl(NO_NEW_PRIVILEGES, 1n, none, 0n, 0n) !== 0 ||
      prctl(SET_FILTER, FILTER_MODE, program, 0n, 0n) !== 0
    ) {
      return "the kernel or the container allows none";
    }
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function isSetUserId(path: string): boolean {
  try {
    return (Deno.statSync(path).mode! & SET_USER_ID) !== 0;
  } catch {
    return false; // there is none
  }
}

/** Marks the descriptors that the process was started with: they would be open in every program. */
function closeOnExec(fcntl: (descriptor: number, command: number, value: number) => number): void {
  for (const { name } of Deno.readDirSync("/proc/self/fd")) {
    if (Number(name) > STDERR) fcntl(Number(name), SET_FLAGS, FLAG_CLOSE_ON_EXEC);
  }
}

type Libc = ReturnType<typeof openLibc>["symbols"];

function openLibc() {
  const libc = Deno.dlopen("libc.so.6", {
    pipe2: { parameters: ["buffer", "i32"], result: "i32" },
    fcntl: { parameters: ["i32", "i32", "i32"], result: "i32" },
    write: { parameters: ["i32", "buffer", "usize"], result: "isize" },
    close: { parameters: ["i32"], result: "i32" },
    dup2: { parameters: ["i32", "i32"], result: "i32" },
    prctl: { parameters: ["i32", "u64", "buffer", "u64", "u64"], result: "i32" },
    execve: { parameters: ["buffer", "buffer", "buffer"], result: "i32" },
  });
  return { symbols: libc.symbols, [Symbol.dispose]: () => libc.close() };
}

/**
 * A list of texts as C has it: addresses, and a null address at the end. `texts` must live as long as
 * `pointers`.
 */
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
