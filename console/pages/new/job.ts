/** The analysis under way: it goes on while the reader looks at other pages, and ends when it is cancelled or
 * the tab is closed.
 */

import { type ReadonlySignal, signal } from "@preact/signals";
import { DEFAULT_MODEL, MAX_FRAMES, USUAL_QUESTION } from "../../../client/mod.ts";
import type { Crop } from "./crop.tsx";
import { client, whenCallerChanges } from "../../service/session.ts";
import { describedEvents } from "./described.ts";

/** What is to be analyzed, and how. */
export interface Wishes {
  readonly source: File | string;
  /** Null: deterministic, no model is asked. */
  readonly prompted: Prompted | null;
}

export interface Prompted {
  readonly model: string;
  /** Empty: the built-in one. */
  readonly prompt: string;
  readonly framesASecond: number;
  /** Of each chunk, how many the model is shown. */
  readonly picturesAChunk: number;
  readonly crop: Crop | null;
  readonly outputSchema: Readonly<Record<string, unknown>> | null;
}

export interface Job {
  readonly name: string;
  readonly step:
    | "upload"
    | "decode"
    | "describe"
    | "done"
    | "failed"
    | "cancelled";
  readonly runId: string | null;
  /** Bytes of an upload. */
  readonly sent: number;
  readonly size: number;
  /** What the model has said so far. */
  readonly chunks: number;
  readonly lastWords: string | null;
  readonly lastMs: number;
  readonly failure: unknown;
}

const present = signal<Job | null>(null);
let ending: AbortController | null = null;

whenCallerChanges(() => {
  ending?.abort();
  ending = null;
  present.value = null;
});

export const job: ReadonlySignal<Job | null> = present;

export function isRunning(of: Job | null): boolean {
  return of !== null && ["upload", "decode", "describe"].includes(of.step);
}

/** Resolves with the run, or null when it failed or was cancelled, which `job` tells of. */
export async function startJob(wishes: Wishes): Promise<string | null> {
  ending?.abort();
  const mine = ending = new AbortController();
  const { source } = wishes;
  present.value = {
    name: typeof source === "string" ? source : source.name,
    step: typeof source === "string" ? "decode" : "upload",
    runId: null,
    sent: 0,
    size: typeof source === "string" ? 0 : source.size,
    chunks: 0,
    lastWords: null,
    lastMs: 0,
    failure: undefined,
  };
  const change = (changes: Partial<Job>) => {
    if (ending === mine) present.value = { ...present.peek()!, ...changes };
  };
  try {
    const runId = await work(wishes, mine.signal, change);
    change({ step: "done" });
    return runId;
  } catch (failure) {
    change(
      mine.signal.aborted ? { step: "cancelled" } : { step: "failed", failure },
    );
    return null;
  }
}

/** Stops the work on the service, too; what was found until then stays in the run. */
export function cancelJob(): void {
  ending?.abort();
}

export function forgetJob(): void {
  present.value = null;
}

async function work(
  { source, prompted }: Wishes,
  signal: AbortSignal,
  change: (changes: Partial<Job>) => void,
): Promise<string> {
  const service = client.peek();
  const source_uri = typeof source === "string"
    ? source
    : (await service.uploadFile(source, (sent, size) => change({ sent, size: size ?? sent }), { signal }))
      .file_path;
  change({ step: "decode" });
  const { run_id: runId } = await service.createRun(prompted ? { model: prompted.model } : {}, { signal });
  change({ runId });
  if (prompted === null) {
    await service.ingestRun(runId, { source_uri, max_frames: MAX_FRAMES }, {
      signal,
    });
    await service.analyzeRun(runId, { model: DEFAULT_MODEL, complete: true, include_frame_metadata: false }, {
      signal,
    });
    return runId;
  }
  const following = new AbortController();
  void follow(runId, AbortSignal.any([signal, following.signal]), change);
  try {
    await service.reason(runId, {
      source_uri,
      model: prompted.model,
      sampling_policy: "fixed",
      fixed_fps: prompted.framesASecond,
      max_frames: MAX_FRAMES,
      chunk_size: USUAL_QUESTION.chunk_size,
      semantic_frames_per_chunk: prompted.picturesAChunk,
      include_frame_metadata: false,
      ...(prompted.prompt !== "" && { semantic_prompt: prompted.prompt }),
      ...(prompted.crop && { crop: prompted.crop }),
      ...(prompted.outputSchema && { output_schema: prompted.outputSchema }),
    }, { signal });
  } finally {
    following.abort();
  }
  return runId;
}

/** What the model says while the request is under way. Without it the request goes on all the same. */
async function follow(
  runId: string,
  signal: AbortSignal,
  change: (changes: Partial<Job>) => void,
): Promise<void> {
  let chunks = 0;
  try {
    for await (const { words, endMs } of describedEvents(runId, signal)) {
      chunks += 1;
      change({ step: "describe", chunks, lastWords: words, lastMs: endMs });
    }
  } catch {
    // ended, or not reachable for the moment
  }
}
