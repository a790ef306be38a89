/** Programs that the sidecar starts: input through stdin, time and output bounded, and no process left
 * behind.
 */

import { joinedBytes } from "../base/bytes.ts";
import { timer } from "../base/wait.ts";
import type { World } from "../base/world.ts";

export interface ProgramCall {
  readonly world: World;
  readonly input: Uint8Array;
  readonly deadlineMs: number;
  /** A program that writes more is killed. */
  readonly maxOutputBytes: number;
  readonly signal: AbortSignal;
}

/** Why a program gave no output. */
export class ProgramFailed extends Error {
  override readonly name = "ProgramFailed";

  constructor(readonly kind: "missing" | "late" | "failed", message: string) {
    super(message);
  }
}

/**
 * The output of a program that ends with code 0 and in time. Rejects with `ProgramFailed` or the reason of
 * `signal`.
 */
export async function outputOf(
  program: string,
  args: readonly string[],
  call: ProgramCall,
): Promise<Uint8Array> {
  call.signal.throwIfAborted();
  const child = started(program, args);
  let isLate = false;
  let isTooMuch = false;
  const onAbort = () => kill(child);
  call.signal.addEventListener("abort", onAbort, { once: true });
  using _timer = timer(call.world, call.deadlineMs, () => {
    isLate = true;
    kill(child);
  });
  try {
    const [output, status] = await Promise.all([
      collected(child.stdout, call.maxOutputBytes, () => {
        isTooMuch = true;
        kill(child);
      }),
      child.status,
      written(child.stdin, call.input),
    ]);
    call.signal.throwIfAborted();
    if (isLate) throw new ProgramFailed("late", `it took more than ${call.deadlineMs} ms`);
    if (isTooMuch) throw new ProgramFailed("failed", `it wrote more than ${call.maxOutputBytes} bytes`);
    if (!status.success) throw new ProgramFailed("failed", `it ended with code ${status.code}`);
    return output;
  } finally {
    call.signal.removeEventListener("abort", onAbort);
    kill(child);
    await child.status;
  }
}

function started(program: string, args: readonly string[]): Deno.ChildProcess {
  try {
    return new Deno.Command(program, {
      args: [...args],
      clearEnv: true,
      env: { LC_ALL: "C.UTF-8" },
      stdin: "piped",
      stdout: "piped",
      stderr: "null",
    }).spawn();
  } catch (error) {
    throw new ProgramFailed("missing", error instanceof Error ? error.name : String(error));
  }
}

async function written(stdin: WritableStream<Uint8Array>, input: Uint8Array): Promise<void> {
  const writer = stdin.getWriter();
  try {
    await writer.write(input);
    await writer.close();
  } catch {
    // It ended without reading everything; its exit code says whether that is a fault.
  }
}

async function collected(
  stream: ReadableStream<Uint8Array>,
  maxBytes: number,
  onOverflow: () => void,
): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of stream) {
    if (length + part.length > maxBytes) {
      onOverflow();
      continue;
    }
    parts.push(part);
    length += part.length;
  }
  return joinedBytes(...parts);
}

function kill(child: Deno.ChildProcess): void {
  try {
    child.kill("SIGKILL");
  } catch {
    // It has ended by itself.
  }
}
