/** What can be asked of the server without writing anything: does it answer, who is it, which clock, key, models, metrics. */

import type { Client } from "../../../client/mod.ts";
import { CliError, failureOf } from "../../failure.ts";
import { openStream } from "../../http.ts";
import type { Session } from "../../session.ts";
import { failure, type Finding, ok, unseen, warning } from "./finding.ts";

const CLOCK_WARNING_MS = 5_000;
/** Signatures of webhooks with an older time are refused as a rule. */
const CLOCK_FAILURE_MS = 300_000;

/** Whether it answers, and how its clock goes. Throws where it does not answer. */
export async function checkServer({ settings, signal }: Session): Promise<readonly Finding[]> {
  const startMs = Date.now();
  const response = await openStream(settings, { path: "/v1/health", accept: "application/json", signal });
  const { status } = await response.json().catch(() => ({ status: undefined }));
  const tookMs = Date.now() - startMs;
  if (status !== "ok") {
    const advice = "--url has to name the address of the service itself";
    return [failure("server", `${settings.url} answers, but not as this service does`, advice)];
  }
  return [
    ok("server", `${settings.url} answered in ${tookMs} ms`),
    clock(response.headers.get("date"), startMs + tookMs / 2),
  ];
}

/** The header has whole seconds. */
function clock(date: string | null, nowMs: number): Finding {
  if (date === null || Number.isNaN(Date.parse(date))) {
    return unseen("clock", "the server's answer has no time");
  }
  const apartMs = Math.abs(Date.parse(date) + 500 - nowMs);
  const detail = apartMs <= 1_000
    ? "the same here and there"
    : `${(apartMs / 1000).toFixed(0)} s apart from the server's`;
  const advice = "set the clocks by NTP: times of events and signatures of webhooks depend on them";
  if (apartMs > CLOCK_FAILURE_MS) return failure("clock", detail, advice);
  return apartMs > CLOCK_WARNING_MS ? warning("clock", detail, advice) : ok("clock", detail);
}

export async function checkVersion({ settings, signal }: Session): Promise<Finding> {
  try {
    const response = await openStream(settings, {
      path: "/openapi.json",
      accept: "application/json",
      signal,
    });
    const { info } = await response.json();
    if (typeof info?.version === "string") return ok("version", `the server's API is ${info.version}`);
  } catch {
    signal.throwIfAborted();
  }
  return unseen("version", "the server does not tell its version");
}

/** Whether the key is accepted. */
export async function checkKey({ settings, signal }: Session, client: Client): Promise<Finding> {
  const source = settings.sources.api_key;
  try {
    const runs = await client.listRuns({ signal });
    return settings.apiKey === undefined
      ? warning(
        "key",
        "the server takes requests without a key",
        "set SERVICE_API_KEYS there unless it is for you alone",
      )
      : ok("key", `accepted (from the ${source}); ${runs.length} runs are yours`);
  } catch (error) {
    signal.throwIfAborted();
    const { message, hint } = failureOf(error, settings.url);
    return failure(
      "key",
      settings.apiKey === undefined ? "none is given, and one is needed" : message,
      hint ?? "",
    );
  }
}

export async function checkModels(
  session: Session,
  client: Client,
): Promise<{ finding: Finding; ready: string[] }> {
  const all = await client.listModels({ signal: session.signal });
  const ready = all.filter(({ availability }) => availability === "ready").map(({ id }) => id);
  const saturated = all.filter(({ availability }) => availability === "saturated").map(({ id }) => id);
  const finding = ready.length > 0
    ? ok("models", `${ready.length} of ${all.length} are ready, such as ${ready[0]}`)
    : saturated.length > 0
    ? warning(
      "models",
      `${saturated.length} answer slowly, none is ready`,
      "ask later, or give the backend more room",
    )
    : warning(
      "models",
      "none can be reached",
      "set SERVICE_VLLM_BASE_URL or a backend file on the server; without a model frames are measured only",
    );
  return { finding, ready: [...ready, ...saturated] };
}

/** What the metrics say of the decoder's cage, of the log and of capacity. */
export async function checkMetrics({ settings, signal }: Session): Promise<readonly Finding[]> {
  let text: string;
  try {
    const response = await openStream(settings, { path: "/v1/metrics", accept: "text/plain", signal });
    text = await response.text();
  } catch (error) {
    signal.throwIfAborted();
    const why = error instanceof CliError ? error.message : String(error);
    return [unseen("metrics", `they cannot be read: ${why}`)];
  }
  const value = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
  const level = /^service_decoder_cage\{level="(\w+)"\} 1$/m.exec(text)?.[1];
  const damaged = value("service_timeline_damaged_records_total");
  const threads = value("service_media_capacity_worker_thread_limit");
  const used = value("service_media_capacity_worker_threads_reserved");
  return [
    level === undefined
      ? unseen("decoder cage", "the server does not say in what its ffmpeg runs")
      : level === "off"
      ? warning(
        "decoder cage",
        "the server's ffmpeg runs in none",
        "install bubblewrap on the server; docs/security.md has why",
      )
      : ok("decoder cage", level),
    damaged > 0
      ? failure(
        "event log",
        `${damaged} damaged records were set aside`,
        "the server's log names them; check its disk",
      )
      : ok("event log", "no damaged records"),
    Number.isNaN(threads)
      ? unseen("live capacity", "the server does not say")
      : ok("live capacity", `${used} of ${threads} threads are reserved`),
  ];
}
