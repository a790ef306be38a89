/** Subprocesses: the only place that starts one. Each is bounded in time, output and resources, and is always reaped. */

import type { World } from "../base/world.ts";

/** What the kernel holds a tool to, should our own deadline fail to. A tool never writes a regular file. */
export interface ResourceLimits {
  /** The `prlimit` program; null leaves the tool unlimited. */
  readonly prlimit: string | null;
  /** CPU time of all threads together, seconds. */
  readonly cpuSeconds: number;
  readonly addressSpaceBytes: number;
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
  readonly limits?: ResourceLimits;
}

export interface Outcome {
  /** `out_of_time` is our deadline or the CPU limit, `out_of_space` more stdout than was allowed. */
  readonly end: "exited" | "killed" | "out_of_time" | "out_of_space";
  readonly code: number;
  readonly stdout: Uint8Array;
  readonly stderr: string;
}

/**
 * Runs `program` (an absolute path) to its end, with an empty environment and no stdin. Rejects only when the
 * program cannot be started or `signal` aborts; everything else is an `Outcome`.
 */
export async function run(program: string, args: readonly string[], options: RunOptions): Promise<Outcome> {
  options.signal.throwIfAborted();
  const child = limited(program, args, options).spawn();

  let end: Outcome["end"] = "exited";
  const finished = new AbortController();
  const kill = (why: Outcome["end"]) => {
    if (end === "exited") end = why;
    killNow(child);
  };
  const onAbort = () => kill("killed");
  options.signal.addEventListener("abort", onAbort, { once: true });
  const deadline = options.world.sleep(options.deadlineMs, finished.signal)
    .then(() => kill("out_of_time"), () => {/* it finished in time */});
  try {
    const [stdout, stderr, status] = await Promise.all([
      options.maxStdoutBytes > 0
        ? head(child.stdout, options.maxStdoutBytes, () => kill("out_of_space"))
        : new Uint8Array(),
      head(child.stderr, options.maxStderrBytes, () => {/* keep the first words, they name the cause */}),
      child.status,
    ]);
    options.signal.throwIfAborted();
    if (end === "exited" && status.signal !== null) {
      end = status.signal === "SIGXCPU" ? "out_of_time" : "killed";
    }
    return { end, code: status.code, stdout, stderr: new TextDecoder().decode(stderr) };
  } finally {
    finished.abort();
    options.signal.removeEventListener("abort", onAbort);
    killNow(child);
    await Promise.all([child.status, deadline]);
  }
}

/** `prlimit` replaces itself by the program, so the process id, and what a kill reaches, stay the same. */
function limited(
  program: string,
  args: readonly string[],
  { limits, maxStdoutBytes }: RunOptions,
): Deno.Command {
  const common = {
    clearEnv: true,
    env: { LC_ALL: "C" },
    stdin: "null",
    stdout: maxStdoutBytes > 0 ? "piped" : "null",
    stderr: "piped",
  } as const;
  if (!limits?.prlimit) return new Deno.Command(program, { ...common, args: [...args] });
  const bounds = [
    // The soft limit comes first, as a signal that tells a used-up limit from any other kill.
    `--cpu=${Math.ceil(limits.cpuSeconds)}:${Math.ceil(limits.cpuSeconds) + 1}`,
    `--as=${limits.addressSpaceBytes}`,
    "--fsize=0",
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
): Promise<Uint8Array> {
  const kept: Uint8Array[] = [];
  let keptBytes = 0;
  let overflowed = false;
  for await (const chunk of stream) {
    const part = chunk.subarray(0, maxBytes - keptBytes);
    kept.push(part);
    keptBytes += part.length;
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
