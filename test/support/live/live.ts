/** Publishes to a service over WHIP; the service has fake live Workers. */

import assert from "node:assert/strict";
import {
  FakeLiveWorkers,
  type FakeLiveWorkersOptions,
  type FakeWorkerSession,
  offerText,
} from "./fake_live_workers.ts";
import { type Answer, KEY_A, startService, type TestOptions, type TestService } from "../service.ts";
import { until } from "../until.ts";

export const WHIP = "/v1/stream/whip";
/** Policy for `attach` with which the model may be asked at any time. */
export const NO_CAP = { max_output_tokens_per_second: 0 };

export interface LiveTest extends TestService {
  readonly workers: FakeLiveWorkers;
}

export async function startLive(
  env: Record<string, string> = {},
  { workers: workerOptions = {}, ...options }: TestOptions & { readonly workers?: FakeLiveWorkersOptions } =
    {},
): Promise<LiveTest> {
  let workers = new FakeLiveWorkers(workerOptions);
  const test = await startService(env, {
    ...options,
    liveWorkers: () => workers = new FakeLiveWorkers(workerOptions),
  });
  return Object.defineProperty(test, "workers", { get: () => workers }) as LiveTest;
}

export interface Publishing {
  readonly offer?: string | Uint8Array<ArrayBuffer>;
  /** The value of `x-attach-config`; a string is sent unchanged. */
  readonly attach?: unknown;
  readonly key?: string | null;
  readonly headers?: Record<string, string>;
}

export function offer(
  test: TestService,
  { offer = offerText(), attach, key = KEY_A, headers = {} }: Publishing = {},
): Promise<Answer> {
  return test.send(WHIP, {
    method: "POST",
    headers: {
      "content-type": "application/sdp",
      ...(key !== null && { "x-api-key": key }),
      ...(attach !== undefined &&
        { "x-attach-config": typeof attach === "string" ? attach : encoded(attach) }),
      ...headers,
    },
    body: offer,
  });
}

/** Unpadded base64url of JSON. */
export function encoded(value: unknown): string {
  return new TextEncoder().encode(JSON.stringify(value)).toBase64({
    alphabet: "base64url",
    omitPadding: true,
  });
}

export interface Published {
  readonly runId: string;
  readonly sessionId: string;
  readonly path: string;
  readonly etag: string;
  /** The Worker's side of the session. */
  readonly worker: FakeWorkerSession;
}

/** A session that was accepted. */
export async function publish(test: LiveTest, publishing: Publishing = {}): Promise<Published> {
  const { status, headers, text } = await offer(test, publishing);
  assert.equal(status, 201, text);
  const path = headers.get("location")!;
  return {
    runId: headers.get("x-service-run-id")!,
    sessionId: path.slice(WHIP.length + 1),
    path,
    etag: headers.get("etag")!,
    worker: test.workers.last,
  };
}

/** Shows so many pictures one after the other, each when the one before was dealt with. */
export async function show({ worker }: Published, first: number, count: number): Promise<void> {
  for (let index = first; index < first + count; index++) {
    const before = worker.acknowledged.pictures;
    worker.picture(index);
    await until(`picture ${index}`, () => worker.acknowledged.pictures > before);
  }
}

export function deleteSession(
  test: TestService,
  { path }: Pick<Published, "path">,
  key: string | null = KEY_A,
) {
  return test.send(path, { method: "DELETE", headers: key === null ? {} : { "x-api-key": key } });
}

export function trickle(
  test: TestService,
  { path }: Pick<Published, "path">,
  body: string | Uint8Array<ArrayBuffer>,
  { key = KEY_A, ifMatch, headers = {} }: {
    readonly key?: string;
    readonly ifMatch?: string;
    readonly headers?: Record<string, string>;
  } = {},
) {
  return test.send(path, {
    method: "PATCH",
    headers: {
      "x-api-key": key,
      "content-type": "application/trickle-ice-sdpfrag",
      ...(ifMatch !== undefined && { "if-match": ifMatch }),
      ...headers,
    },
    body,
  });
}

export function prompt(test: TestService, { path }: Pick<Published, "path">, body: unknown, key = KEY_A) {
  return test.call("PATCH", `${path}/prompt`, body, key);
}

export async function runsOf(test: TestService, key = KEY_A): Promise<{ run_id: string; status: string }[]> {
  return (await test.call("GET", "/v1/runs", undefined, key)).json;
}

/** The value of one metric; `labels` as they are written in the metrics text, such as `outcome="clean"`. */
export async function metric(test: TestService, name: string, labels = ""): Promise<number> {
  const { text } = await test.call("GET", "/v1/metrics");
  const start = labels === "" ? `${name} ` : `${name}{${labels}} `;
  const line = text.split("\n").find((line) => line.startsWith(start));
  assert.ok(line, `no metric ${start}`);
  return Number(line.slice(start.length));
}
