/** TABLE of the SERVICE_* variables: what each one may be, its default and its meaning, read once at start. */

import { utf8Length } from "./bytes.ts";
import { FILTER_RULE, readFilter } from "./log.ts";
import {
  absolutePath,
  address,
  boolean,
  clampedFraction,
  clampedInteger,
  corsOrigin,
  crop,
  httpUrl,
  iceUrl,
  integer,
  list,
  mediaToggle,
  number,
  oneOf,
  optional,
  OUTPUT_TOKENS_PER_SECOND_MAX,
  type Parser,
  path,
  postgresUrl,
  retryDelays,
  secondsAsMs,
  secretText,
  type Setting,
  setting,
  sidecarAddress,
  text,
} from "./setting_parsers.ts";

/** Interface 1.2, contract 18, decisions D3, D8 and D9. Rows in the order of the README. */
export const SETTINGS = {
  SERVICE_VLLM_BASE_URL: optional(
    "vllmBaseUrl",
    httpUrl,
    "Primary OpenAI-compatible inference endpoint, without /v1",
    {
      emptyIsUnset: false,
    },
  ),
  SERVICE_VLLM_API_KEY: optional("vllmApiKey", secretText, "Bearer token for the primary endpoint", {
    isSecret: true,
  }),
  SERVICE_SGLANG_BASE_URL: optional(
    "sglangBaseUrl",
    httpUrl,
    "Fallback OpenAI-compatible endpoint, without /v1",
    {
      emptyIsUnset: false,
    },
  ),
  SERVICE_SGLANG_API_KEY: optional("sglangApiKey", secretText, "Bearer token for the fallback endpoint", {
    isSecret: true,
  }),
  SERVICE_CONFIG: setting(
    "backendFile",
    "service.toml",
    path,
    "TOML file of model backends, read only when neither endpoint URL is set; a missing file means no backends",
  ),
  SERVICE_BIND_ADDR: setting("bindAddr", "127.0.0.1:8080", address, "HTTP bind address"),
  SERVICE_TRANSPORT: setting(
    "transport",
    "h1h2",
    {
      ...oneOf({ h1: "h1h2", h2: "h1h2", h1h2: "h1h2", http: "h1h2", http2: "h1h2" }),
      rule: "h1h2, or its aliases h1, h2, http, http2; HTTP/3 (h3, http3) is not built into this server yet",
    },
    "`h1h2`: HTTP/1.1 and HTTP/2 on one listener; HTTP/3 is refused at start",
  ),
  SERVICE_H3_BIND_ADDR: setting("h3.bindAddr", "127.0.0.1:8443", address, "HTTP/3 bind address"),
  SERVICE_H3_TLS_CERT_PATH: setting("h3.tlsCertPath", "deploy/certs/dev.crt", path, "HTTP/3 certificate"),
  SERVICE_H3_TLS_KEY_PATH: setting("h3.tlsKeyPath", "deploy/certs/dev.key", path, "HTTP/3 private key"),
  SERVICE_REQUIRE_API_KEY: setting(
    "requireApiKey",
    "true",
    boolean,
    "Require the x-api-key header; when off, every caller is the principal `public`",
  ),
  SERVICE_API_KEYS: setting(
    "apiKeys",
    "",
    list(secretText),
    "Comma-separated accepted API keys, one per principal",
    {
      isSecret: true,
    },
  ),
  SERVICE_REQUIRE_TENANT_ID: setting(
    "requireTenantId",
    "false",
    boolean,
    "Require the x-tenant-id header, which is metadata only; needs API keys",
  ),
  SERVICE_METRICS_REQUIRE_API_KEY: setting(
    "metricsRequireApiKey",
    "true",
    boolean,
    "Whether `GET /v1/metrics` needs a key even when the other routes do not",
  ),
  SERVICE_CORS_ALLOWED_ORIGINS: setting(
    "corsAllowedOrigins",
    "",
    list(corsOrigin),
    "Comma-separated exact browser origins; `*` only without API keys",
  ),
  SERVICE_RATE_LIMIT_GLOBAL_RPS: optional(
    "rateLimit.globalRps",
    clampedInteger(1, 1_000_000),
    "Requests a second over all callers, health included; unset means no limit",
    { emptyIsUnset: false },
  ),
  SERVICE_RATE_LIMIT_TENANT_RPS: optional(
    "rateLimit.principalRps",
    clampedInteger(1, 1_000_000),
    "Requests a second of one principal; unset means no limit",
    { emptyIsUnset: false },
  ),
  SERVICE_RATE_LIMIT_TENANT_SLOTS: setting(
    "rateLimit.principalSlots",
    "2048",
    integer(1, 10_000_000),
    "Principals that the per-principal limiter keeps track of at once",
  ),
  SERVICE_DATA_DIR: setting(
    "dataDir",
    ".service-data",
    path,
    "Directory of the timeline, blobs and delivery log",
  ),
  SERVICE_WAL_SYNC: setting(
    "walSync",
    "none",
    oneOf({ none: "none", group: "group" }),
    "`none` answers once the operating system has the events, `group` once a shared fdatasync is done",
  ),
  SERVICE_INGEST_FILE_ROOTS: setting(
    "ingestFileRoots",
    "",
    list(path),
    "Comma-separated directories from which a local source_uri may come; each must exist",
  ),
  SERVICE_ACTIVE_STREAM_LIMIT: setting(
    "activeStreamLimit",
    "5",
    clampedInteger(1, 1024),
    "Active runs of one principal, clamped to [1, 1024]",
  ),
  SERVICE_STREAM_TTL_SECS: setting(
    "streamTtlMs",
    "3600",
    secondsAsMs(60, 86_400),
    "Seconds without an event after which a run is expired, [60, 86400]",
  ),
  SERVICE_MEDIA_MEMORY_BUDGET_BYTES: setting(
    "mediaMemoryBudgetBytes",
    "8589934592",
    integer(256 * 2 ** 20, 2 ** 40),
    "Bytes that admitted live media generations may reserve together, 256 MiB to 1 TiB",
  ),
  SERVICE_MEDIA_WORKER_THREAD_BUDGET: setting(
    "mediaWorkerThreadBudget",
    "64",
    clampedInteger(1, 4096),
    "Threads that live media generations may reserve together, clamped to [1, 4096]",
  ),
  SERVICE_INFERENCE_GLOBAL_LIMIT: setting(
    "inference.globalLimit",
    "8",
    integer(1, 1024),
    "Provider calls at once",
  ),
  SERVICE_INFERENCE_PER_PRINCIPAL_LIMIT: setting(
    "inference.perPrincipalLimit",
    "4",
    integer(1, 1024),
    "Provider calls at once for one principal, at most the global limit",
  ),
  SERVICE_INFERENCE_WAITER_LIMIT: setting(
    "inference.waiterLimit",
    "128",
    integer(1, 4096),
    "Queued provider calls",
  ),
  SERVICE_INFERENCE_WAIT_TIMEOUT_MS: setting(
    "inference.waitTimeoutMs",
    "5000",
    integer(1, 120_000),
    "Longest wait of a provider call for admission",
  ),
  SERVICE_INFERENCE_TOKEN_BUDGET: setting(
    "inference.tokenBudget",
    "32768",
    integer(1, 1e8),
    "Output tokens that active provider calls may reserve together",
  ),
  SERVICE_INFERENCE_BYTE_BUDGET: setting(
    "inference.byteBudget",
    "268435456",
    integer(1024, 2 ** 40),
    "Encoded media bytes that active provider calls may reserve together",
  ),
  SERVICE_WEBHOOK_SECRET: optional(
    "webhookSecret",
    secretText,
    "Root of the webhook signing keys, at least 32 bytes; shorter counts as unset, and webhooks are off",
    { isSecret: true },
  ),
  SERVICE_WEBHOOK_RETRY_DELAYS_MS: setting(
    "webhookRetryDelaysMs",
    "250,1000,4000",
    retryDelays,
    "Milliseconds before the three retries of a delivery; the last of a shorter list repeats",
    { emptyIsUnset: true },
  ),
  SERVICE_ALLOW_PRIVATE_WEBHOOKS: setting(
    "allowPrivateWebhooks",
    "false",
    boolean,
    "Admit http: and private addresses as webhook targets, for receivers in the operator's own network",
  ),
  SERVICE_ALLOW_INSECURE_HTTP: setting(
    "allowInsecureHttp",
    "false",
    mediaToggle,
    "Admit http: media sources",
  ),
  SERVICE_ALLOW_UNENCRYPTED_RTSP: setting(
    "allowUnencryptedRtsp",
    "false",
    mediaToggle,
    "Admit rtsp: media sources",
  ),
  SERVICE_ALLOW_REMOTE_HLS: setting("allowRemoteHls", "false", mediaToggle, "Admit remote HLS playlists"),
  SERVICE_ALLOW_INSECURE_TLS: setting(
    "allowInsecureTls",
    "false",
    mediaToggle,
    "Do not verify the certificates of media sources",
  ),
  SERVICE_FFMPEG_PATH: setting("ffmpegPath", "ffmpeg", path, "The ffmpeg program"),
  SERVICE_FFPROBE_PATH: setting("ffprobePath", "ffprobe", path, "The ffprobe program"),
  SERVICE_NVIDIA_SMI_PATH: setting(
    "nvidiaSmiPath",
    "nvidia-smi",
    path,
    "The program that tells whether nvdec is there",
  ),
  SERVICE_DECODE_BACKEND: setting(
    "decodeBackend",
    "auto",
    decodeBackend(),
    "`auto`, `cpu`, `nvdec` or `mlx`",
  ),
  SERVICE_GATE_KEEPALIVE_EVERY_FRAMES: setting(
    "gateThresholds.keepaliveEveryFrames",
    "30",
    integer(0),
    "A frame this far after the last kept one is kept",
  ),
  SERVICE_GATE_SCENE_CUT_HAMMING_THRESHOLD: setting(
    "gateThresholds.sceneCutHammingThreshold",
    "18",
    integer(0),
    "Hash distance to the last kept frame, in bits of 64, from which a frame is a cut",
  ),
  SERVICE_GATE_LUMA_SHIFT_THRESHOLD: setting(
    "gateThresholds.lumaShiftThreshold",
    "0.15",
    threshold(),
    "Change of mean luma since the last kept frame that counts as an exposure shift",
  ),
  SERVICE_GATE_FLICKER_THRESHOLD: setting(
    "gateThresholds.flickerThreshold",
    "0.55",
    threshold(),
    "Suspicious flicker score",
  ),
  SERVICE_GATE_GHOSTING_THRESHOLD: setting(
    "gateThresholds.ghostingThreshold",
    "0.55",
    threshold(),
    "Suspicious ghosting score",
  ),
  SERVICE_GATE_NOISE_VARIANCE_THRESHOLD: setting(
    "gateThresholds.noiseVarianceThreshold",
    "0.55",
    threshold(),
    "Suspicious noise variance score",
  ),
  SERVICE_TENANT_LABEL_MAPS_PATH: optional(
    "labelMapsPath",
    path,
    "JSON file that renames event and object labels",
  ),
  SERVICE_AUDIO_SIDECAR_ADDR: optional(
    "audioSidecar.address",
    sidecarAddress,
    "Audio sidecar, needed for any local audio analysis",
  ),
  SERVICE_AUDIO_SIDECAR_TIMEOUT_MS: setting(
    "audioSidecar.timeoutMs",
    "30000",
    clampedInteger(100, 300_000),
    "Longest live call to the audio sidecar, clamped to [100, 300000]",
  ),
  SERVICE_NOVELTY_EMBEDDING_ADDR: optional(
    "novelty.embeddingAddress",
    sidecarAddress,
    "Embedding sidecar; setting it enables live semantic novelty",
  ),
  SERVICE_NOVELTY_EMBEDDING_TIMEOUT_MS: setting(
    "novelty.embeddingTimeoutMs",
    "2000",
    integer(1),
    "Longest connect, read or write of the embedding sidecar",
  ),
  SERVICE_NOVELTY_REUSE_THRESHOLD: setting(
    "novelty.reuseThreshold",
    "0.01",
    number("a number from 0 to below 1", (value) => value >= 0 && value < 1),
    "Embedding distance up to which a description is reused",
  ),
  SERVICE_NOVELTY_MAX_REUSE_MS: setting(
    "novelty.maxReuseMs",
    "2000",
    integer(0),
    "Media time after which a description is refreshed; 0 disables reuse",
  ),
  SERVICE_NOVELTY_MAX_CUMULATIVE_DRIFT: setting(
    "novelty.maxCumulativeDrift",
    "0.50",
    number("a number above 0", (value) => value > 0),
    "Sum of distances after which a description is refreshed",
  ),
  SERVICE_NOVELTY_SHADOW_SAMPLE_RATE: setting(
    "novelty.shadowSampleRate",
    "0.01",
    number("a number from 0 to 1", (value) => value >= 0 && value <= 1),
    "Fraction of reuses that still ask the model, for comparison only",
  ),
  SERVICE_WEBRTC_CROP: optional(
    "webrtc.crop",
    crop,
    "Default live crop as `x,y,width,height` fractions in [0,1]",
  ),
  SERVICE_WEBRTC_STUN_SERVERS: setting(
    "webrtc.stunServers",
    "stun:stun.l.google.com:19302",
    list(iceUrl("stun")),
    "Comma-separated STUN servers; empty for none",
  ),
  SERVICE_WEBRTC_TURN_URL: optional("webrtc.turnUrl", iceUrl("turn"), "TURN server"),
  SERVICE_WEBRTC_TURN_USERNAME: optional("webrtc.turnUsername", secretText, "User name at the TURN server"),
  SERVICE_WEBRTC_TURN_CREDENTIAL: optional(
    "webrtc.turnCredential",
    secretText,
    "Credential at the TURN server",
    {
      isSecret: true,
    },
  ),
  SERVICE_WEBRTC_MAX_OUTPUT_TOKENS_PER_SECOND: setting(
    "webrtc.maxOutputTokensPerSecond",
    "128",
    integer(0, OUTPUT_TOKENS_PER_SECOND_MAX),
    "Output tokens a second of one live session; 0 for no cap",
  ),
  SERVICE_WEBRTC_DECODE_WORKERS: setting(
    "webrtc.decodeWorkers",
    "1",
    clampedInteger(1, 1),
    "Decode workers of a stream; there is always one",
  ),
  SERVICE_WEBRTC_ANALYSIS_WORKERS: setting(
    "webrtc.analysisWorkers",
    "1",
    clampedInteger(1, 1),
    "Analysis workers of a stream; there is always one",
  ),
  SERVICE_WEBRTC_VLM_WORKERS: setting(
    "webrtc.vlmWorkers",
    "1",
    clampedInteger(1, 1),
    "Inference workers of a stream; there is always one",
  ),
  SERVICE_WEBRTC_FIRST_PASS_MODEL: setting(
    "webrtc.firstPassModel",
    "Qwen/Qwen3-VL-8B-Instruct",
    text,
    "Model that describes live keyframes",
    { emptyIsUnset: true },
  ),
  SERVICE_WEBRTC_SECOND_PASS_MODEL: optional(
    "webrtc.secondPassModel",
    text,
    "Model that is asked when the first is unsure; unset or equal to the first means none",
  ),
  SERVICE_WEBRTC_SECOND_PASS_THRESHOLD: setting(
    "webrtc.secondPassThreshold",
    "0.7",
    clampedFraction(0.7),
    "Confidence below which the second model is asked, clamped to [0, 1]",
  ),
  SERVICE_WEBRTC_SECOND_PASS_MAX_TOKENS: setting(
    "webrtc.secondPassMaxTokens",
    "256",
    integer(1, 4096),
    "Output tokens of the second model",
  ),
  SERVICE_TRIGGER_LOCAL_OUTPUT_SOCKET: optional(
    "triggerLocalOutputSocket",
    absolutePath,
    "Absolute path of the Unix datagram socket that receives the metadata of local trigger actions",
  ),
  SERVICE_MIRROR_URL: optional(
    "mirror.url",
    postgresUrl,
    "postgres:// URL of the mirror database; best effort, never the truth",
    { isSecret: true },
  ),
  SERVICE_MIRROR_MODULE: setting(
    "mirror.module",
    "service",
    text,
    "Name under which the mirror keeps its rows",
    {
      emptyIsUnset: true,
    },
  ),
  SERVICE_EDGE_MAX_ARTIFACT_BYTES: setting(
    "edgeMaxArtifactBytes",
    "34359738368",
    integer(1),
    "Largest model artifact that the edge updater accepts",
  ),
  SERVICE_TRACES_ENDPOINT: optional(
    "tracesEndpoint",
    httpUrl,
    "OTLP gRPC endpoint for spans; when absent, spans are dropped",
  ),
  RUST_LOG: setting(
    "logFilter",
    "info",
    { rule: FILTER_RULE, read: (text) => readFilter(text) && text },
    "Log filter: `level`, `target=level`, comma-separated",
    { emptyIsUnset: true },
  ),
} as const;

export type SettingName = keyof typeof SETTINGS;

type FieldOf<N extends SettingName> = typeof SETTINGS[N]["field"];
type ValueOf<N extends SettingName> = typeof SETTINGS[N] extends Setting<string, infer T> ? T : never;
type Flat = { readonly [N in SettingName as FieldOf<N>]: ValueOf<N> };
type GroupName = keyof Flat extends infer F ? F extends `${infer G}.${string}` ? G : never : never;
type Group<G extends string> = {
  readonly [F in keyof Flat as F extends `${G}.${infer Name}` ? Name : never]: Flat[F];
};

/**
 * The configuration of one process, frozen. Every row of the table is a field here, camelCase, in its group where
 * the row names one: `config.bindAddr`, `config.gateThresholds.flickerThreshold`.
 */
export type Config =
  & { readonly [F in keyof Flat as F extends `${string}.${string}` ? never : F]: Flat[F] }
  & { readonly [G in GroupName]: Group<G> }
  & {
    /** SERVICE_* variables of the environment that no row explains: likely misspelt, so main warns of them. */
    readonly unknownVariables: readonly string[];
    /** What the operator should know although the service can start; one sentence each, no secrets. */
    readonly warnings: readonly string[];
  };

/** Everything that is wrong with the environment, one line per fault. */
export class ConfigFaults extends Error {
  override readonly name = "ConfigFaults";

  constructor(readonly faults: readonly string[]) {
    super(`Cannot start as the configuration has ${faults.length} fault(s):\n${faults.join("\n")}`);
  }
}

/** Reads and checks the whole environment. Throws {@link ConfigFaults} with all faults at once. */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const faults: string[] = [];
  const fields: Record<string, unknown> = {};
  for (const [name, row] of Object.entries(SETTINGS)) {
    const given = env[name];
    const source = given === undefined || (row.emptyIsUnset && given.trim() === "") ? row.default : given;
    const value = source === undefined ? undefined : row.parser.read(source);
    if (source !== undefined && value === undefined) faults.push(faultLine(name, row, source));
    put(fields, row.field, value);
  }
  // A field whose own text is at fault is undefined here, and every rule between fields leaves it alone.
  const read = fields as unknown as { -readonly [F in keyof Config]: Config[F] };
  faults.push(...faultsBetween(read));
  const warnings: string[] = [];
  if (read.webhookSecret !== undefined && utf8Length(read.webhookSecret) < WEBHOOK_SECRET_BYTES_MIN) {
    read.webhookSecret = undefined;
    warnings.push(
      `SERVICE_WEBHOOK_SECRET is shorter than ${WEBHOOK_SECRET_BYTES_MIN} bytes: webhooks are off`,
    );
  }
  read.unknownVariables = Object.keys(env).filter(isUnknown).sort();
  warnings.push(...read.unknownVariables.map((name) => `${name} is not a variable of this service`));
  read.warnings = warnings;
  if (faults.length > 0) throw new ConfigFaults(faults);
  return frozen(read);
}

/** The table as markdown rows `| name | default | meaning |`, for the README. */
export function settingsMarkdown(): string {
  const rows = Object.entries(SETTINGS).map(([name, row]) =>
    `| ${name} | ${row.default ? `\`${row.default}\`` : "unset"} | ${row.meaning.replaceAll("|", "\\|")} |`
  );
  return ["| Variable | Default | Meaning |", "|---|---|---|", ...rows].join("\n");
}

/** D15: a shorter root counts as unset. */
const WEBHOOK_SECRET_BYTES_MIN = 32;

/** Variables with our prefix that other programs of the project read: the client's command line and the gates. */
const VARIABLES_OF_OTHER_PROGRAMS: ReadonlySet<string> = new Set([
  "SERVICE_API_URL",
  "SERVICE_API_KEY",
  "SERVICE_TENANT_ID",
  "SERVICE_CLI_CONFIG",
  "SERVICE_MAX_ALLOC_TOTAL",
  "SERVICE_MAX_CLI_SIZE_BYTES",
  "SERVICE_MAX_API_SIZE_BYTES",
  "SERVICE_MAX_GATE_P95_NS",
]);

function isUnknown(name: string): boolean {
  return name.startsWith("SERVICE_") && !Object.hasOwn(SETTINGS, name) &&
    !VARIABLES_OF_OTHER_PROGRAMS.has(name);
}

/** Rules that take more than one variable. */
function faultsBetween(read: Partial<Config>): string[] {
  const faults: string[] = [];
  const inference = read.inference;
  if (read.requireApiKey === true && read.apiKeys?.length === 0) {
    faults.push("SERVICE_API_KEYS must name at least one key as SERVICE_REQUIRE_API_KEY is on, got none");
  }
  if (read.requireApiKey === false && read.requireTenantId === true) {
    faults.push("SERVICE_REQUIRE_TENANT_ID must be off as SERVICE_REQUIRE_API_KEY is off, got on");
  }
  if (read.requireApiKey === true && read.corsAllowedOrigins?.includes("*")) {
    faults.push(
      'SERVICE_CORS_ALLOWED_ORIGINS must list exact origins as SERVICE_REQUIRE_API_KEY is on, got "*"',
    );
  }
  if (inference && inference.perPrincipalLimit > inference.globalLimit) {
    faults.push(
      `SERVICE_INFERENCE_PER_PRINCIPAL_LIMIT must be at most SERVICE_INFERENCE_GLOBAL_LIMIT ` +
        `(${inference.globalLimit}), got ${inference.perPrincipalLimit}`,
    );
  }
  return faults;
}

function faultLine(name: string, row: Setting<string, unknown>, got: string): string {
  // A password can also stand inside a URL that is no secret by itself.
  const isShown = !row.isSecret && !got.includes("@");
  const short = got.length > 80 ? `${got.slice(0, 80)}…` : got;
  return `${name} must be ${row.parser.rule}, got ${
    isShown ? JSON.stringify(short) : "a value that is not shown"
  }`;
}

function put(fields: Record<string, unknown>, field: string, value: unknown): void {
  const [group, name] = field.split(".");
  if (name === undefined) fields[group!] = value;
  else ((fields[group!] ??= {}) as Record<string, unknown>)[name] = value;
}

function frozen<T extends object>(value: T): T {
  for (const part of Object.values(value)) {
    if (typeof part === "object" && part !== null && !Object.isFrozen(part)) frozen(part);
  }
  return Object.freeze(value);
}

function threshold(): Parser<number> {
  return number("a number of at least 0", (value) => value >= 0);
}

/** Contract 2.3. */
function decodeBackend() {
  return oneOf({
    auto: "auto",
    cpu: "cpu-ffmpeg",
    ffmpeg: "cpu-ffmpeg",
    "cpu-ffmpeg": "cpu-ffmpeg",
    nvdec: "nvdec-cuda",
    cuda: "nvdec-cuda",
    "nvdec-cuda": "nvdec-cuda",
    gpu: "nvdec-cuda",
    mlx: "mlx",
    apple: "mlx",
    metal: "mlx",
    videotoolbox: "mlx",
  });
}
