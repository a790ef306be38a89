/** The only place that starts subprocesses. Each is bounded in time, output and resources, and is always
 * reaped.
 */

import { gatherFor, timer } from "../base/wait.ts";
import type { World } from "../base/world.ts";

/** Limits that the kernel enforces, in case our own deadline does not work. `toolLimits` makes them. */
export interface ResourceLimits {
  /** The `prlimit` program; null runs the tool without limits. */
  readonly prlimit: string | null;
  /** CPU time of all threads together, seconds. */
  readonly cpuSeconds: number;
  /** Limits of memory; absent for none. */
  readonly memory?: MemoryLimits;
  /** The longest regular file that it may write; absent for none at all. */
  readonly fileBytes?: number;
}

/** The limits of a program's memory. Where the kernel does not count one of them, the others hold. */
export interface MemoryLimits {
  /** Bytes of the stack of each thread. */
  readonly stackBytes: number;
  /** Memory that it may write, without its libraries, whether filled or not. */
  readonly dataBytes: number;
  /** All addresses that it may have, most of which have no memory behind them. */
  readonly addressSpaceBytes: number;
}

/** What is put around a program when it is started. `media/broker/cage.ts` makes it. */
export interface Enclosure {
  /** The whole command line; `limits` are the words that set the limits of what follows them. */
  commandLine(limits: readonly string[], args: readonly string[]): readonly string[];
  /**
   * Whether its outermost process gives the signal that ended the program as an exit code, like a shell: 128
   * and the signal's number.
   */
  readonly givesSignalsAsCodes: boolean;
  /**
   * Whether it has processes of its own around the program. They and the program form a process group, which
   * is killed as a whole: while the enclosure is being built, the end of the outermost process does not yet
   * end the others.
   */
  readonly hasProcesses: boolean;
}

/** A lower priority than that of the service. */
export interface Priority {
  /** The `nice` program. */
  readonly nice: string;
  /** The value for `nice`, from 1 to 19. */
  readonly value: number;
}

export interface RunOptions {
  readonly world: World;
  /** Aborting kills the process; `run` then rejects with the signal's reason. */
  readonly signal: AbortSignal;
  readonly deadlineMs: number;
  /** More output than this kills the process; 0 discards stdout. */
  readonly maxStdoutBytes: number;
  /** Error output after this many bytes is read and dropped. */
  readonly maxStderrBytes: number;
  /** The bytes of its stdin; absent is no stdin. */
  readonly input?: Uint8Array;
  /** Environment of the program, besides `LC_ALL`; default nothing. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly log?: LogReader;
  readonly limits?: ResourceLimits;
  /** What starts the program inside of it; absent for none. */
  readonly enclosure?: Enclosure;
  readonly priority?: Priority;
}

/** Reads error output while a program runs, and says what of it is kept. */
export interface LogReader {
  read(part: Uint8Array): Uint8Array;
  /** To be called when all of the error output has come; gives what is kept of its rest. */
  end(): Uint8Array;
}

export interface Outcome {
  /**
   * How the program ended. `out_of_time`: our deadline, which a busy machine reaches as well. `out_of_cpu`:
   * the limit of processor time, which only the program itself reaches. `out_of_space`: more stdout or a
   * longer file than was allowed.
   */
  readonly end: "exited" | "killed" | "out_of_time" | "out_of_cpu" | "out_of_space";
  readonly code: number;
  readonly stdout: Uint8Array;
  readonly stderr: string;
}

/**
 * Runs `program` (an absolute path) to its end. Its environment is `LC_ALL` and `environment`, its stdin is
 * `input` or nothing. Rejects only when the program cannot be started or `signal` aborts; everything else is
 * an `Outcome`.
 */
export async function run(program: string, args: readonly string[], options: RunOptions): Promise<Outcome> {
  const { world, signal, deadlineMs, maxStdoutBytes, input } = options;
  const tool = start(program, args, {
    ...options,
    hasStdin: input !== undefined,
    hasStdout: maxStdoutBytes > 0,
  });
  const written = tool.stdin ? writeAll(tool.stdin, input!) : undefined;
  try {
    using _deadline = timer(world, deadlineMs, () => tool.kill("out_of_time"));
    const [stdout, ended] = await Promise.all([
      tool.stdout ? head(tool.stdout, maxStdoutBytes, () => tool.kill("out_of_space")) : new Uint8Array(),
      tool.ended,
    ]);
    signal.throwIfAborted();
    return { ...ended, stdout };
  } finally {
    tool.kill("killed");
    await Promise.all([tool.ended, written]);
  }
}

export interface StartOptions {
  /** Environment of the program, besides `LC_ALL`; default nothing. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Aborting kills the process. */
  readonly signal: AbortSignal;
  /** Whether its output is wanted. The caller then reads it to its end or cancels it. */
  readonly hasStdout: boolean;
  /** Whether it has a stdin; default no. The caller then closes it or kills the process. */
  readonly hasStdin?: boolean;
  /** Error output after this many bytes is read and dropped. */
  readonly maxStderrBytes: number;
  /** Called with each part of stderr as soon as it comes, also with what is dropped. */
  readonly onStderr?: (part: Uint8Array) => void;
  /** What reads the error output first, before `maxStderrBytes` and `onStderr` count; absent for none. */
  readonly log?: LogReader;
  readonly limits?: ResourceLimits;
  /** What starts the program inside of it; absent for none. */
  readonly enclosure?: Enclosure;
  readonly priority?: Priority;
}

/** A process that is running. */
export interface RunningTool {
  /** Applies back pressure while the process does not read. */
  readonly stdin: WritableStream<Uint8Array> | null;
  /** Pull based: while nobody reads, the process blocks on a full pipe. */
  readonly stdout: ReadableStream<Uint8Array> | null;
  /** Resolves when the process has ended and was reaped, whatever ended it; never rejects. */
  readonly ended: Promise<Omit<Outcome, "stdout">>;
  /** The first `why` of several calls is the one in `ended`. Does nothing to a process that has ended. */
  kill(why: "killed" | "out_of_time" | "out_of_space"): void;
}

/**
 * Starts `program` like `run`, for output that is read while it runs. Only `signal`, `kill` and the resource
 * limits end it: the caller needs a deadline of its own. Throws when the program cannot be started.
 */
export function start(program: string, args: readonly string[], options: StartOptions): RunningTool {
  const { signal, hasStdout, maxStderrBytes } = options;
  signal.throwIfAborted();
  const child = limited(program, args, options).spawn();
  if (options.priority && options.enclosure?.hasProcesses) lowerSession(child.pid, options.priority.value);
  let end: Outcome["end"] = "exited";
  let isReaped = false;
  const kill = (why: Outcome["end"]) => {
    if (end === "exited") end = why;
    if (!isReaped) killNow(child.pid, options.enclosure?.hasProcesses ?? false);
  };
  const onAbort = () => kill("killed");
  signal.addEventListener("abort", onAbort, { once: true });
  const reaped = async () => {
    const onOverflow = () => {/* the first lines name the cause, so the rest is dropped */};
    const log = options.log ? readBy(options.log, child.stderr) : child.stderr;
    const errorOutput = head(log, maxStderrBytes, onOverflow, options.onStderr);
    const status = await child.status;
    isReaped = true;
    signal.removeEventListener("abort", onAbort);
    const stderr = new TextDecoder().decode(await errorOutput.catch(() => new Uint8Array()));
    if (end === "exited" && status.signal !== null) {
      end = ENDS[status.signal] ?? "killed";
    }
    if (end === "exited" && options.enclosure?.givesSignalsAsCodes) {
      end = ENDS_BY_CODE[status.code] ?? "exited";
    }
    return { end, code: status.code, stderr };
  };
  const stdin = options.hasStdin ? child.stdin : null;
  return { stdin, stdout: hasStdout ? child.stdout : null, ended: reaped(), kill };
}

/**
 * Ignores a failed write: a process that ends before it has read everything gives its reason in the outcome.
 */
async function writeAll(stdin: WritableStream<Uint8Array>, input: Uint8Array): Promise<void> {
  const writer = stdin.getWriter();
  writer.closed.catch(() => {/* see below */});
  await writer.write(input).then(() => writer.close()).catch(() => {/* the process has ended */});
}

/** The signals that the kernel sends to a process that has used up a limit. */
const ENDS: Partial<Record<Deno.Signal, Outcome["end"]>> = {
  SIGXCPU: "out_of_cpu",
  SIGXFSZ: "out_of_space",
};

/**
 * How a process ended by its exit code: the codes for the signals in ENDS, and those of a program that broke
 * down or was killed inside its enclosure.
 */
const ENDS_BY_CODE: Readonly<Record<number, Outcome["end"]>> = {
  [128 + 24]: "out_of_cpu",
  [128 + 25]: "out_of_space",
  ...Object.fromEntries([4, 6, 7, 8, 9, 11, 31].map((signal) => [128 + signal, "killed"])),
};

/**
 * The command line of a program with its priority and its limits. `nice` and `prlimit` replace themselves by
 * the program (exec), so the process id stays the same and a kill reaches it.
 */
function limited(
  program: string,
  args: readonly string[],
  { limits, enclosure, priority, environment, hasStdin, hasStdout }: StartOptions,
): Deno.Command {
  const words = limitWords(limits);
  const commandLine = enclosure?.commandLine(words, args) ?? [...words, program, ...args];
  const [first, ...rest] = [...priorityWords(priority), ...commandLine];
  return new Deno.Command(first!, {
    args: rest,
    // Makes it the leader of a process group, and takes the terminal from it.
    detached: enclosure?.hasProcesses ?? false,
    clearEnv: true,
    env: { LC_ALL: "C", ...environment },
    stdin: hasStdin ? "piped" : "null",
    stdout: hasStdout ? "piped" : "null",
    stderr: "piped",
  });
}

function priorityWords(priority: Priority | undefined): string[] {
  return priority ? [priority.nice, "-n", String(priority.value)] : [];
}

/**
 * Lowers the priority of a program in a session of its own. Where the kernel shares out the processors by
 * session (autogroup), `nice` counts only inside of a session, and the session has a value itself. Elsewhere
 * this changes nothing.
 */
function lowerSession(pid: number, value: number): void {
  try {
    using session = Deno.openSync(`/proc/${pid}/autogroup`, { write: true });
    session.writeSync(new TextEncoder().encode(String(value)));
  } catch {
    // The kernel has none, or takes one change in a tenth of a second from a user who is not root.
  }
}

export function limitWords(limits: ResourceLimits | undefined): string[] {
  if (!limits?.prlimit) return [];
  return [
    limits.prlimit,
    // The soft limit sends SIGXCPU one second before the hard limit kills: so a used-up limit differs from
    // other kills.
    `--cpu=${Math.ceil(limits.cpuSeconds)}:${Math.ceil(limits.cpuSeconds) + 1}`,
    ...memoryWords(limits.memory),
    `--fsize=${limits.fileBytes ?? 0}`,
    "--core=0",
    "--",
  ];
}

function memoryWords(memory: MemoryLimits | undefined): string[] {
  if (!memory) return [];
  return [
    `--stack=${memory.stackBytes}`,
    `--data=${memory.dataBytes}`,
    `--as=${memory.addressSpaceBytes}`,
  ];
}

function killNow(pid: number, withGroup: boolean): void {
  try {
    Deno.kill(withGroup ? -pid : pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}

/**
 * A log is read again after this time if what came was short: the pipe takes 45 frames' worth of ffmpeg's
 * log.
 */
const LOG_PAUSE_MS = 2;
const LOG_PIECE_BYTES = 16 << 10;

/**
 * What `log` keeps of a stream. All pieces are read into the same memory: the stream's own reader would take
 * 64 KB anew for every few bytes.
 */
async function* readBy(log: LogReader, stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader({ mode: "byob" });
  try {
    let memory = new ArrayBuffer(LOG_PIECE_BYTES);
    for (;;) {
      const { value: part, done } = await reader.read(new Uint8Array(memory));
      if (done) break;
      const kept = log.read(part);
      memory = part.buffer;
      if (kept.length > 0) yield kept;
      // A program writes its log in pieces of a few bytes, and each reading costs more than all that is done
      // with a piece.
      if (part.length < LOG_PIECE_BYTES) await gatherFor(LOG_PAUSE_MS);
    }
  } finally {
    await reader.cancel();
    const rest = log.end();
    if (rest.length > 0) yield rest;
  }
}

/**
 * The first `maxBytes` of a stream. It is read to its end, so that the writer never blocks, and `onPart` gets
 * all of it.
 */
async function head(
  stream: AsyncIterable<Uint8Array>,
  maxBytes: number,
  onOverflow: () => void,
  onPart?: (part: Uint8Array) => void,
): Promise<Uint8Array> {
  const kept: Uint8Array[] = [];
  let keptBytes = 0;
  let overflowed = false;
  for await (const chunk of stream) {
    const part = chunk.subarray(0, maxBytes - keptBytes);
    kept.push(part);
    keptBytes += part.length;
    onPart?.(chunk);
    if (part.length < chunk.length && !overflowed) {
      overflowed = true;
      onOverflow();
    }
  }
  const result = new Uint8Array(keptBytes);
  let at = 0;
  for (const part of kept) {
    result.set(part, at);
    at += part.length;
  }
  return result;
}
