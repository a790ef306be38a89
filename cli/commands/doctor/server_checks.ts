/** What can be asked of the server without writing anything: does it answer, who is it, which clock, key,
 * models, metrics.
 */

import type { Client, JsonObject } from "../../../client/mod.ts";
import { CliError, failureOf } from "../../failure.ts";
import { VERSION } from "../../program_name.ts";
import { openStream, shortText } from "../../http.ts";
import type { Session } from "../../session.ts";
import { failure, type Finding, gigabytes, ok, unseen, warning } from "./finding.ts";

type SystemAnswer = Awaited<ReturnType<Client["getSystem"]>>;

/** So little room that a server refuses what is large, or soon everything. */
const DISK_WARNING_BYTES = 10e9;
const DISK_FAILURE_BYTES = 1e9;
const CLOCK_WARNING_MS = 5_000;
/** Signatures of webhooks with an older time are refused as a rule. */
const CLOCK_FAILURE_MS = 300_000;

/** Whether it answers, and how its clock goes. Throws where it does not answer. */
export async function checkServer(session: Session): Promise<readonly Finding[]> {
  const { settings, signal } = session;
  const startMs = Date.now();
  const response = await openStream(settings, { path: "/v1/health", accept: "application/json", signal });
  const { status } = await answerOf(session, response);
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

/** The JSON object of a short answer; empty where it is none. */
async function answerOf({ settings: { url }, signal }: Session, response: Response): Promise<JsonObject> {
  const text = await shortText(response, { url, signal });
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
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

/** Versions, decoders and free disk, which a server of another version may not tell. */
export async function checkSystem({ signal }: Session, client: Client): Promise<readonly Finding[]> {
  try {
    const { version, deno, ffmpeg, decoder_faults, decode_backend, disk } = await client.getSystem({
      signal,
    });
    return [
      version === VERSION
        ? ok("version", `${version} here and there, on Deno ${deno}`)
        : warning("version", `${version} there, ${VERSION} here`, "use the program of the server's version"),
      serverFfmpeg(ffmpeg, decode_backend),
      ...serverDecoding(decoder_faults),
      serverDisk(disk),
    ];
  } catch (error) {
    signal.throwIfAborted();
    const why = error instanceof Error ? error.message : String(error);
    return [
      unseen("version", why),
      unseen("server's ffmpeg", "its version and its decoders cannot be seen from here"),
      unseen("server's disk", "how much is free there cannot be seen from here"),
    ];
  }
}

/** Without one of these, recordings or streams of many cameras and phones cannot be decoded. */
const NEEDED_CODECS = ["h264", "hevc", "vp8", "vp9", "aac", "opus"];

function serverFfmpeg(ffmpeg: SystemAnswer["ffmpeg"], backend: SystemAnswer["decode_backend"]): Finding {
  const check = "server's ffmpeg";
  if (ffmpeg === undefined) return unseen(check, "that server does not tell its version and its decoders");
  if (ffmpeg === null) {
    return failure(check, "it does not answer", "see the log there; SERVICE_FFMPEG_PATH names the program");
  }
  const { version, codecs } = ffmpeg;
  const detail = `${version ?? "unknown version"} decodes ${codecs.join(", ")}` +
    (backend ? `; recordings on ${backend}` : "");
  const missing = NEEDED_CODECS.filter((codec) => !codecs.includes(codec));
  if (missing.length === 0) return ok(check, detail);
  const advice = `install an ffmpeg there that decodes ${missing.join(", ")}`;
  return missing.includes("h264") ? failure(check, detail, advice) : warning(check, detail, advice);
}

/** What the server has tried its ffmpeg for. A server of another version may not tell. */
function serverDecoding(faults: SystemAnswer["decoder_faults"]): Finding[] {
  const advice = "install another ffmpeg there; docs/deployment.md#trials-of-ffmpeg says what it needs";
  return (faults ?? []).map(({ cannot, reason }) =>
    failure("server's ffmpeg", `it cannot ${cannot}: ${reason}`, advice)
  );
}

function serverDisk(disk: SystemAnswer["disk"]): Finding {
  const check = "server's disk";
  if (disk === null) return unseen(check, "its system does not tell how much is free");
  const detail = `${gigabytes(disk.free_bytes)} of ${gigabytes(disk.total_bytes)} are free`;
  const advice = "make room there: what cannot be written is refused";
  if (disk.free_bytes < DISK_FAILURE_BYTES) return failure(check, detail, advice);
  return disk.free_bytes < DISK_WARNING_BYTES ? warning(check, detail, advice) : ok(check, detail);
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

/** The named sources of the caller, which a server of another version may not have. */
export async function checkSources({ signal }: Session, client: Client): Promise<Finding> {
  const check = "sources";
  try {
    const [sources, { reasons }] = await Promise.all([
      client.listSources({ signal }),
      client.getSystemHealth({ signal }),
    ]);
    if (reasons.some(({ code }) => code === "sources_file_faulty")) {
      const advice = "the server's log names the faults of SERVICE_SOURCES_CONFIG";
      return failure(check, "the file of sources has a fault, so an earlier one counts", advice);
    }
    const down = sources.filter(({ state }) => state === "gap" || state === "failed");
    const detail = `${sources.length} are named for you`;
    if (down.length === 0) return ok(check, detail);
    const [{ name, reason }] = down as [typeof down[number]];
    return warning(
      check,
      `${detail}, ${down.length} give no frames; ${name}: ${reason}`,
      "`sources` lists them all",
    );
  } catch (error) {
    signal.throwIfAborted();
    return unseen(check, error instanceof Error ? error.message : String(error));
  }
}

/** The models, the one of live sessions, and each model server with a fault; and which model may be tried. */
export async function checkModels(
  session: Session,
  client: Client,
): Promise<{ readonly findings: readonly Finding[]; readonly toTry: string | undefined }> {
  const { signal } = session;
  const all = await client.listModels({ signal });
  const has = (availability: string) => all.filter((model) => model.availability === availability);
  const usable = [...has("ready"), ...has("saturated")];
  const { backends, live_model: live } = await systemOf(client, signal);
  return {
    findings: [
      modelsFinding(all.length, usable.map(({ id }) => id)),
      ...liveModel(live, await unknownModels(client, signal)),
      ...faultyServers(backends),
    ],
    toTry: usable.find(({ id }) => id === live?.id)?.id ?? usable[0]?.id,
  };
}

/** A server of another version may not tell. */
async function systemOf(client: Client, signal: AbortSignal): Promise<Partial<SystemAnswer>> {
  try {
    return await client.getSystem({ signal });
  } catch {
    signal.throwIfAborted();
    return {};
  }
}

/** What the server's health says of models that their servers do not know. */
async function unknownModels(client: Client, signal: AbortSignal): Promise<readonly string[]> {
  const { reasons } = await client.getSystemHealth({ signal });
  return reasons.filter(({ code }) => code === "model_unknown").map(({ text }) => text);
}

function modelsFinding(count: number, usable: readonly string[]): Finding {
  if (usable.length > 0) {
    return ok("models", `${usable.length} of ${count} can be asked, such as ${usable[0]}`);
  }
  return warning(
    "models",
    "none can be reached",
    "set SERVICE_VLLM_BASE_URL or a backend file on the server; without a model frames are measured only",
  );
}

/** A model that its server does not know describes nothing. */
function liveModel(live: SystemAnswer["live_model"], reasons: readonly string[]): readonly Finding[] {
  if (live == null) return [];
  const check = "live model";
  if (live.is_known !== false) return [ok(check, live.id)];
  return [failure(
    check,
    reasons[0] ?? `its server does not know ${live.id}`,
    "set SERVICE_WEBRTC_FIRST_PASS_MODEL there to a model that its server has",
  )];
}

/** One finding a server, whatever its number of models. */
function faultyServers(backends: SystemAnswer["backends"] = []): readonly Finding[] {
  return backends.flatMap(({ name, provider, circuit, fault, is_slow }) => {
    const check = `model server ${name ?? provider}`;
    if (fault != null) {
      return [warning(check, fault, "see that it runs, and that its address and its key are right")];
    }
    if (circuit === "open") {
      return [
        warning(check, "it is skipped for now, because its last calls failed", "the server's log says why"),
      ];
    }
    return is_slow === true
      ? [warning(check, "too many of its answers took longer than 5 s", "give it more room, or ask it less")]
      : [];
  });
}

/** What the metrics say of the decoder's cage, of the log and of capacity. */
export async function checkMetrics({ settings, signal }: Session): Promise<readonly Finding[]> {
  let text: string;
  try {
    const response = await openStream(settings, { path: "/v1/metrics", accept: "text/plain", signal });
    text = await shortText(response, { url: settings.url, signal });
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
        "install bubblewrap on the server; docs/security/cage.md has why",
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
