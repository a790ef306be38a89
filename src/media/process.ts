/** Subprocesses: the only place that starts one. Each is bounded in time, output and resources, and is always reaped. */

import type { World } from "../base/world.ts";

/** What the kernel holds a tool to, should our own deadline fail to. */
export interface ResourceLimits {
  /** The `prlimit` program; null leaves the tool unlimited. */
  readonly prlimit: string | null;
  /** CPU time of all threads together, seconds. */
  readonly cpuSeconds: number;
  readonly addressSpaceBytes: number;
  /** The longest regular file that it may write; absent for none at all. */
  readonly fileBytes?: number;
}

export interface RunOptions {
  readonly world: World;
  /** Aborting kills the process; `run` then rejects with the signal's reason. */
  readonly signal: AbortSignal;
  readonly deadlineMs: number;
  /** More than this kills the process; 0 discards stdout. */
  readonly maxStdoutBytes: number;
  /** What comes after this many bytes is read and dropped. */
  readonly maxStderrBytes: number;
  /** What it is given on stdin; absent is no stdin. */
  readonly input?: Uint8Array;
  readonly limits?: ResourceLimits;
}

export interface Outcome {
  /** `out_of_time` is our deadline or the CPU limit, `out_of_space` more stdout or a longer file than was allowed. */
  readonly end: "exited" | "killed" | "out_of_time" | "out_of_space";
  readonly code: number;
  readonly stdout: Uint8Array;
  readonly stderr: string;
}

/**
 * Runs `program` (an absolute path) to its end, with an empty environment and no stdin but `input`. Rejects only when the
 * program cannot be started or `signal` aborts; everything else is an `Outcome`.
 */
export async function run(program: string, args: readonly string[], options: RunOptions): Promise<Outcome> {
  const { world, signal, maxStdoutBytes, input } = options;
  const tool = start(program, args, {
    ...options,
    hasStdin: input !== undefined,
    hasStdout: maxStdoutBytes > 0,
  });
  const written = tool.stdin ? writeAll(tool.stdin, input!) : undefined;
  const finished = new AbortController();
  const deadline = world.sleep(options.deadlineMs, finished.signal)
    .then(() => tool.kill("out_of_time"), () => {/* it finished in time */});
  try {
    const [stdout, ended] = await Promise.all([
      tool.stdout ? head(tool.stdout, maxStdoutBytes, () => tool.kill("out_of_space")) : new Uint8Array(),
      tool.ended,
    ]);
    signal.throwIfAborted();
    return { ...ended, stdout };
  } finally {
    finished.abort();
    tool.kill("killed");
    await Promise.all([tool.ended, deadline, written]);
  }
}

export interface StartOptions {
  /** Aborting kills the process. */
  readonly signal: AbortSignal;
  /** Whether its output is wanted; who wants it reads it to its end or cancels it. */
  readonly hasStdout: boolean;
  /** Whether something is written to it; whoever does so closes it or kills the process. Default: it has no stdin. */
  readonly hasStdin?: boolean;
  /** What comes after this many bytes is read and dropped. */
  readonly maxStderrBytes: number;
  /** Hears what is kept of stderr as it comes. */
  readonly onWords?: (words: Uint8Array) => void;
  readonly limits?: ResourceLimits;
}

/** A process on its way. */
export interface RunningTool {
  /** Pushes back while the process does not read. */
  readonly stdin: WritableStream<Uint8Array> | null;
  /** Pull based: while nobody reads, the process blocks on a full pipe. */
  readonly stdout: ReadableStream<Uint8Array> | null;
  /** Settles when it has ended and was reaped, whatever ended it; never rejects. */
  readonly ended: Promise<Omit<Outcome, "stdout">>;
  /** The first reason given is the one in `ended`. Does nothing to a process that has ended. */
  kill(why: "killed" | "out_of_time" | "out_of_space"): void;
}

/**
 * Starts `program` like `run`, for output that is read as it comes. Nothing here ends it but `signal`, `kill` and the
 * resource limits: whoever starts it sees to its deadline. Throws when it cannot be started.
 */
export function start(program: string, args: readonly string[], options: StartOptions): RunningTool {
  const { signal, hasStdout, maxStderrBytes } = options;
  signal.throwIfAborted();
  const child = limited(program, args, options).spawn();
  let end: Outcome["end"] = "exited";
  const kill = (why: Outcome["end"]) => {
    if (end === "exited") end = why;
    killNow(child);
  };
  const onAbort = () => kill("killed");
  signal.addEventListener("abort", onAbort, { once: true });
  const reaped = async () => {
    const keepFirst = () => {/* the first words name the cause */};
    const words = head(child.stderr, maxStderrBytes, keepFirst, options.onWords);
    const status = await child.status;
    signal.removeEventListener("abort", onAbort);
    const stderr = new TextDecoder().decode(await words.catch(() => new Uint8Array()));
    if (end === "exited" && status.signal !== null) {
      end = ENDS[status.signal] ?? "killed";
    }
    return { end, code: status.code, stderr };
  };
  const stdin = options.hasStdin ? child.stdin : null;
  return { stdin, stdout: hasStdout ? child.stdout : null, ended: reaped(), kill };
}

/** A process that ends before it has read everything says why in its own words. */
async function writeAll(stdin: WritableStream<Uint8Array>, input: Uint8Array): Promise<void> {
  const writer = stdin.getWriter();
  writer.closed.catch(() => {/* told below */});
  await writer.write(input).then(() => writer.close()).catch(() => {/* it has ended */});
}

/** What the kernel sends to a process that has used up a limit. */
const ENDS: Partial<Record<Deno.Signal, Outcome["end"]>> = {
  SIGXCPU: "out_of_time",
  SIGXFSZ: "out_of_space",
};

/** `prlimit` replaces itself by the program, so the process id, and what a kill reaches, stay the same. */
function limited(
  program: string,
  args: readonly string[],
  { limits, hasStdin, hasStdout }: StartOptions,
): Deno.Command {
  const common = {
    clearEnv: true,
    env: { LC_ALL: "C" },
    stdin: hasStdin ? "piped" : "null",
    stdout: hasStdout ? "piped" : "null",
    stderr: "piped",
  } as const;
  if (!limits?.prlimit) return new Deno.Command(program, { ...common, args: [...args] });
  const bounds = [
    // The soft limit comes first, as a signal that tells a used-up limit from any other kill.
    `--cpu=${Math.ceil(limits.cpuSeconds)}:${Math.ceil(limits.cpuSeconds) + 1}`,
    `--as=${limits.addressSpaceBytes}`,
    `--fsize=${limits.fileBytes ?? 0}`,
    "--core=0",
  ];
  return new Deno.Command(limits.prlimit, { ...common, args: [...bounds, "--", program, ...args] });
}

function killNow(child: Deno.ChildProcess): void {
  try {
    child.kill("SIGKILL");
  } catch {
    // It has ended by itself.
  }
}

/** The first `maxBytes` of a stream, read to its end so that the writer never blocks. */
async function head(
  stream: ReadableStream<Uint8Array>,
  maxBytes: number,
  onOverflow: () => void,
  onKept?: (part: Uint8Array) => void,
): Promise<Uint8Array> {
  const kept: Uint8Array[] = [];
  let keptBytes = 0;
  let overflowed = false;
  for await (const chunk of stream) {
    const part = chunk.subarray(0, maxBytes - keptBytes);
    kept.push(part);
    keptBytes += part.length;
    if (part.length > 0) onKept?.(part);
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
