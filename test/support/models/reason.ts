/** What the tests of reason share: a service with a model behind it, and short ways to its run, its events
 * and its frames.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { findEvent } from "../../../src/model/events/event_table.ts";
import { childProcesses } from "../own_process.ts";
import { type ModelServer, type ModelServerOptions, startModelServer } from "./model_server.ts";
import {
  type Answer,
  CLIPS,
  KEY_A,
  MODEL,
  newRun,
  startService,
  type TestOptions,
  type TestService,
} from "../service.ts";

/**
 * 30 seconds of film with sound, 214x120, 24 frames a second: small, so that decoding it takes little time.
 */
export const FILM = join(CLIPS, "bbb120.mp4");
/** The film of FILM as it came, 854x480, for tests of the size of pictures. */
export const LARGE_FILM = join(CLIPS, "bbb480.mp4");
export const SECOND_MODEL = "Qwen/Qwen3-VL-8B-Instruct";
/** Two frames a second of the film: 60 frames, 12 chunks of 5. */
export const SAMPLED = {
  source_uri: FILM,
  model: MODEL,
  sampling_policy: "fixed",
  fixed_fps: 2,
  chunk_size: 5,
};

export interface StoredEvent {
  readonly seq: number;
  readonly kind: string;
  // deno-lint-ignore no-explicit-any -- tests look into payloads of every kind
  readonly payload: any;
}

export interface ReasonTest extends AsyncDisposable {
  readonly test: TestService;
  readonly model: ModelServer;
  /** Reasons on a new run. */
  reason(body?: Record<string, unknown>): Promise<{ runId: string; answer: Answer; events: StoredEvent[] }>;
}

/** A service whose models are all served by one model server. */
export async function startReason(
  modelOptions: ModelServerOptions = {},
  env: Record<string, string> = {},
  options: TestOptions = {},
): Promise<ReasonTest> {
  const model = startModelServer({ answer: () => SEEN, ...modelOptions });
  const test = await startService(
    { SERVICE_VLLM_BASE_URL: model.url, SERVICE_ACTIVE_STREAM_LIMIT: "100", ...env },
    options,
  );
  return {
    test,
    model,
    reason: (body) => reasonOn(test, body),
    async [Symbol.asyncDispose]() {
      await test[Symbol.asyncDispose]();
      await model[Symbol.asyncDispose]();
    },
  };
}

/** The answer of the model unless a test sets another. */
export const SEEN = seen({});

/** A well-formed answer with these fields changed. */
export function seen(changes: Record<string, unknown>): string {
  return JSON.stringify({
    event_type: "keyframe_keep",
    object_label: "White Rabbit",
    summary: "A rabbit wakes up",
    description: "A large white rabbit comes out of its burrow.",
    confidence: 0.875,
    ...changes,
  });
}

export async function reasonOn(test: TestService, body: Record<string, unknown> = {}, key = KEY_A) {
  const runId = await newRun(test, key);
  const answer = await test.call("POST", `/v1/runs/${runId}/reason`, { ...SAMPLED, ...body }, key);
  return { runId, answer, events: await eventsOf(test, runId, key) };
}

/** Checks each payload against the published schema of its kind. */
export async function eventsOf(test: TestService, runId: string, key = KEY_A): Promise<StoredEvent[]> {
  const { events } = (await test.call("GET", `/v1/runs/${runId}/events`, undefined, key)).json;
  for (const { kind, payload } of events) {
    const { success, error } = findEvent(kind)!.payload.safeParse(payload);
    assert.ok(success, `${kind}: ${error?.message}`);
  }
  return events;
}

// deno-lint-ignore no-explicit-any -- tests look into payloads of every kind
export function payloads(events: readonly StoredEvent[], kind: string): any[] {
  return events.filter((event) => event.kind === kind).map(({ payload }) => payload);
}

/** Kinds in order, a stretch of one kind as `kind*count`. */
export function kindsOf(events: readonly StoredEvent[]): string[] {
  const stretches: { kind: string; count: number }[] = [];
  for (const { kind } of events) {
    if (stretches.at(-1)?.kind === kind) stretches.at(-1)!.count += 1;
    else stretches.push({ kind, count: 1 });
  }
  return stretches.map(({ kind, count }) => count === 1 ? kind : `${kind}*${count}`);
}

/** Checks that there is no file in the temp folder, and no program that works on one. */
export function assertNothingLeft(test: TestService): void {
  const tempDir = join(test.dataDir, "..", "tmp");
  assert.deepEqual([...Deno.readDirSync(tempDir)].map(({ name }) => name), []);
  assert.deepEqual(childProcesses(tempDir), []);
}

/**
 * Open connections to the port of a URL, from the kernel. A server of this runtime does not notice a client
 * that disconnects after a body of some length, so a count of its own would be too high.
 */
export function connectionsTo(url: string): number {
  const port = Number(new URL(url).port).toString(16).toUpperCase().padStart(4, "0");
  const lines = Deno.readTextFileSync("/proc/net/tcp").split("\n");
  return lines.filter((line) => new RegExp(`^ *\\d+: \\S+ \\S+:${port} 01 `).test(line)).length;
}

/** One counter or gauge of `GET /v1/metrics`. */
export async function metric(test: TestService, name: string): Promise<number> {
  const { text } = await test.call("GET", "/v1/metrics");
  const line = text.split("\n").find((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
  return Number(line?.split(" ").at(-1));
}

/** Makes a film out of another; the arguments end with the path of the new one. */
export async function ffmpeg(...args: readonly string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command("ffmpeg", {
    args: ["-v", "error", "-nostdin", "-y", ...args],
  }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
}
