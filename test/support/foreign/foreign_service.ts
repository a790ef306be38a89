/** A service in a process of its own for clients that are not ours, with a model and an audio sidecar that
 * say always the same.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { startServer } from "../../../scripts/server.ts";
import { TempFolder } from "../media.ts";
import { type ModelServer, startModelServer } from "../models/model_server.ts";
import { payloads, type StoredEvent } from "../models/reason.ts";
import { type Answer, CLIPS, KEY_A } from "../service.ts";
import { type AudioDouble, openAudioDouble } from "../sidecars/audio_sidecar.ts";
import { until } from "../until.ts";

export interface ForeignService extends AsyncDisposable {
  readonly url: string;
  readonly folder: string;
  readonly model: ModelServer;
  readonly sidecar: AudioDouble;
  call(method: string, path: string, body?: unknown): Promise<Answer>;
  events(runId: string): Promise<StoredEvent[]>;
  /** The run's terminal event, once it is there. */
  terminal(runId: string): Promise<StoredEvent>;
  /** The sum over all labels of one metric. */
  metric(name: string): Promise<number>;
}

/** Seconds without media after which a session ends here. */
export const MEDIA_IDLE_SECS = 5;

/** Starts a service; `settings` are added to its own, `sources` is the text of the file of named sources. */
export async function startForeignService(
  settings: Readonly<Record<string, string>> = {},
  sources = "",
): Promise<ForeignService> {
  await using opening = new AsyncDisposableStack();
  const folder = opening.use(new TempFolder()).path;
  const sourcesFile = join(folder, "sources.toml");
  Deno.writeTextFileSync(sourcesFile, sources);
  let described = 0;
  const model = opening.use(startModelServer({
    answer: () => `Picture ${described++} shows a meadow.`,
    toleratesFaults: true,
  }));
  const sidecar = opening.use(openAudioDouble());
  const server = opening.use(
    await startServer({
      SERVICE_API_KEYS: KEY_A,
      SERVICE_DATA_DIR: join(folder, "data"),
      SERVICE_INGEST_FILE_ROOTS: CLIPS,
      SERVICE_VLLM_BASE_URL: model.url,
      SERVICE_AUDIO_SIDECAR_ADDR: sidecar.address,
      SERVICE_ACTIVE_STREAM_LIMIT: "100",
      SERVICE_WEBRTC_STUN_SERVERS: "",
      SERVICE_WEBRTC_MEDIA_IDLE_SECS: `${MEDIA_IDLE_SECS}`,
      SERVICE_ALLOW_UNENCRYPTED_RTSP: "true",
      SERVICE_MEDIA_ALLOWED_NETWORKS: "127.0.0.0/8",
      SERVICE_SOURCES_CONFIG: sourcesFile,
      ...settings,
    }),
  );
  const { url } = server;
  const open = opening.move();

  const call = async (method: string, path: string, body?: unknown): Promise<Answer> => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${KEY_A}`, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const { status, headers } = response;
    const text = await response.text();
    const isJson = headers.get("content-type")?.startsWith("application/json");
    return { status, headers, text, json: isJson ? JSON.parse(text) : null };
  };
  const events = async (runId: string): Promise<StoredEvent[]> => {
    const { status, text, json } = await call("GET", `/v1/runs/${runId}/events`);
    assert.equal(status, 200, text);
    return json.events;
  };
  return {
    url,
    folder,
    model,
    sidecar,
    call,
    events,
    async terminal(runId) {
      let found: StoredEvent | undefined;
      await until(`run ${runId} has its terminal event`, async () => {
        found = (await events(runId)).find(({ kind }) => kind === "run_completed" || kind === "run_failed");
        return found !== undefined;
      });
      return found!;
    },
    async metric(name) {
      const { text } = await call("GET", "/v1/metrics");
      const lines = text.split("\n").filter((line) =>
        line.startsWith(`${name} `) || line.startsWith(`${name}{`)
      );
      assert.ok(lines.length > 0, `no metric ${name}`);
      return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
    },
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

/** The end of a terminal event as `<kind> <reason>`. */
export function endOf({ kind, payload }: StoredEvent): string {
  return `${kind} ${payload.reason}`;
}

/** Times of the kept pictures, from the first one on. */
export function keyframeTimes(events: readonly StoredEvent[]): number[] {
  const times = payloads(events, "keyframe_stored").map(({ pts_ms }) => pts_ms);
  return times.map((time) => time - times[0]);
}
