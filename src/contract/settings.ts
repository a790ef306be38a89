/** TABLE of the SERVICE_* variables: the values that each one takes, its default and its meaning. */

import { FILTER_RULE, readFilter } from "../base/log.ts";
import {
  absolutePath,
  address,
  boolean,
  clampedFraction,
  clampedInteger,
  corsOrigin,
  crop,
  hostName,
  httpUrl,
  iceUrl,
  integer,
  list,
  mediaToggle,
  networks,
  nonBlankText,
  number,
  oneOf,
  optional,
  OUTPUT_TOKENS_PER_SECOND_MAX,
  type Parser,
  path,
  postgresUrl,
  retryDelays,
  schemaName,
  secondsAsMs,
  secretText,
  setting,
  sidecarAddress,
} from "./setting_parsers.ts";

const ONE_WORKER = "each live stream has exactly one";

/** The shortest webhook secret in bytes; shorter is unset. See docs/events/webhooks.md#webhook-signatures. */
export const WEBHOOK_SECRET_BYTES_MIN = 32;
/** The shortest API key that is not warned of at the start, in characters. */
export const API_KEY_CHARACTERS_WARNED = 20;

/** The rows in the order in which docs/reference/settings.md lists them. */
export const SETTINGS = {
  SERVICE_VLLM_BASE_URL: optional(
    "vllmBaseUrl",
    httpUrl,
    "First OpenAI-compatible model endpoint; it may end in /v1",
    {
      emptyIsUnset: false,
    },
  ),
  SERVICE_VLLM_API_KEY: optional("vllmApiKey", secretText, "Bearer token for the first endpoint", {
    isSecret: true,
  }),
  SERVICE_SGLANG_BASE_URL: optional(
    "sglangBaseUrl",
    httpUrl,
    "Second OpenAI-compatible model endpoint; it may end in /v1. Used when the first one fails",
    {
      emptyIsUnset: false,
    },
  ),
  SERVICE_SGLANG_API_KEY: optional("sglangApiKey", secretText, "Bearer token for the second endpoint", {
    isSecret: true,
  }),
  SERVICE_CONFIG: setting(
    "backendFile",
    "service.toml",
    path,
    "TOML file of model backends; read only when neither endpoint URL is set, and a missing file means no backends",
  ),
  SERVICE_SOURCES_CONFIG: setting(
    "sourcesFile",
    "sources.toml",
    path,
    "TOML file of named sources and of cameras that are always watched; read again when it changes, and a missing file means none",
  ),
  SERVICE_BIND_ADDR: setting(
    "bindAddr",
    "127.0.0.1:8080",
    address,
    "Address and port on which the HTTP server listens",
  ),
  SERVICE_TRANSPORT: setting(
    "transport",
    "h1h2",
    {
      ...oneOf({ h1: "h1h2", h2: "h1h2", h1h2: "h1h2", http: "h1h2", http2: "h1h2", h3: "h3", http3: "h3" }),
      rule: "h1h2, or its aliases h1, h2, http, http2; or h3, or its alias http3",
    },
    "`h1h2`: HTTP/1.1 and HTTP/2 on one listener; `h3`: HTTP/3 on a second one besides (experimental)",
  ),
  SERVICE_H3_BIND_ADDR: setting(
    "h3.bindAddr",
    "127.0.0.1:8443",
    address,
    "UDP address and port of the HTTP/3 listener, with SERVICE_TRANSPORT=h3",
  ),
  SERVICE_H3_TLS_CERT_PATH: setting(
    "h3.tlsCertPath",
    "deploy/certs/dev.crt",
    path,
    "PEM file with the certificate of the HTTP/3 listener, and with those between it and an authority",
  ),
  SERVICE_H3_TLS_KEY_PATH: setting(
    "h3.tlsKeyPath",
    "deploy/certs/dev.key",
    path,
    "PEM file with the private key of that certificate",
  ),
  SERVICE_REQUIRE_API_KEY: setting(
    "requireApiKey",
    "true",
    boolean,
    "Whether a request needs an API key; without this every caller is the principal `public`",
  ),
  SERVICE_API_KEYS: setting(
    "apiKeys",
    "",
    list(secretText),
    "Accepted API keys, comma-separated; each key is a principal of its own",
    {
      isSecret: true,
    },
  ),
  SERVICE_REQUIRE_TENANT_ID: setting(
    "requireTenantId",
    "false",
    boolean,
    "Whether a request needs the `x-tenant-id` header, which is recorded and nothing else; API keys must be required too",
  ),
  SERVICE_METRICS_REQUIRE_API_KEY: setting(
    "metricsRequireApiKey",
    "true",
    boolean,
    "Whether `GET /v1/metrics` needs a key, even when the other routes do not",
  ),
  SERVICE_CORS_ALLOWED_ORIGINS: setting(
    "corsAllowedOrigins",
    "",
    list(corsOrigin),
    "Browser origins that may call the service, comma-separated and exact; `*` only without API keys",
  ),
  SERVICE_ALLOWED_HOSTS: setting(
    "allowedHosts",
    "",
    list(hostName),
    "Host names besides loopback names and addresses under which the service may be called without API keys, comma-separated",
  ),
  SERVICE_RATE_LIMIT_GLOBAL_RPS: optional(
    "rateLimit.globalRps",
    clampedInteger(1, 1_000_000),
    "Requests a second of all callers together, health checks included; unset means no limit",
    { emptyIsUnset: false },
  ),
  SERVICE_RATE_LIMIT_TENANT_RPS: optional(
    "rateLimit.principalRps",
    clampedInteger(1, 1_000_000),
    "Requests a second of each principal; unset means no limit",
    { emptyIsUnset: false },
  ),
  SERVICE_RATE_LIMIT_TENANT_SLOTS: setting(
    "rateLimit.principalSlots",
    "2048",
    integer(1, 10_000_000),
    "Principals that the limit for each principal keeps count of at once; further ones are refused until one has been idle",
  ),
  SERVICE_DATA_DIR: setting(
    "dataDir",
    ".service-data",
    path,
    "Folder of the timeline, the blobs, the search index and the webhook delivery log",
  ),
  SERVICE_UPLOAD_ROOT: optional(
    "uploadRoot",
    path,
    "Folder of the uploads, of the service's own user and closed to others; unset: `uploads` in SERVICE_DATA_DIR",
  ),
  SERVICE_WAL_SYNC: setting(
    "walSync",
    "none",
    oneOf({ none: "none", group: "group" }),
    "When a request is answered: `none` once the operating system has its events, `group` once an fdatasync has put them on the disk",
  ),
  SERVICE_INGEST_FILE_ROOTS: setting(
    "ingestFileRoots",
    "",
    list(path),
    "Folders whose files a `source_uri` may name, comma-separated; each must exist",
  ),
  SERVICE_ACTIVE_STREAM_LIMIT: setting(
    "activeStreamLimit",
    "5",
    clampedInteger(1, 1024),
    "Active runs that each principal may have at once",
  ),
  SERVICE_STREAM_TTL_SECS: setting(
    "streamTtlMs",
    "3600",
    secondsAsMs(60, 86_400),
    "Seconds without an event after which a run counts as expired",
  ),
  SERVICE_STORAGE_QUOTA_BYTES: optional(
    "storageQuotaBytes",
    integer(2 ** 20),
    "Bytes that each principal may store in uploads, blobs and log records; unset means no limit",
  ),
  SERVICE_RETENTION_RUN_HOURS: optional(
    "retention.runHours",
    integer(1, 876_000),
    "Hours after the last activity of a run that has ended at which its events are removed; unset means never",
  ),
  SERVICE_RETENTION_RUN_BYTES: optional(
    "retention.runBytes",
    integer(2 ** 20),
    "Bytes that the records of all runs may have; beyond, runs that have ended are removed, the oldest of whoever has most",
  ),
  SERVICE_RETENTION_ENDED_RUNS: optional(
    "retention.endedRuns",
    integer(1),
    "Runs that have ended which each principal may keep; beyond, its oldest that are not on hold are removed",
  ),
  SERVICE_RETENTION_PICTURE_HOURS: optional(
    "retention.pictureHours",
    integer(1, 876_000),
    "Hours after which pictures are removed, while the events that name them stay; unset means with their runs",
  ),
  SERVICE_RETENTION_PICTURE_BYTES: optional(
    "retention.pictureBytes",
    integer(2 ** 20),
    "Bytes that all pictures may have; beyond, the oldest of whoever has most are removed, while the events stay",
  ),
  SERVICE_RETENTION_CLIP_HOURS: optional(
    "retention.clipHours",
    integer(1, 876_000),
    "Hours after which clips are removed, while the events that name them stay; unset means with their runs",
  ),
  SERVICE_RETENTION_CLIP_BYTES: optional(
    "retention.clipBytes",
    integer(2 ** 20),
    "Bytes that all clips may have; beyond, the oldest of whoever has most are removed, while the events stay",
  ),
  SERVICE_RETENTION_SOUND_HOURS: optional(
    "retention.soundHours",
    integer(1, 876_000),
    "Hours after which sounds are removed, while the events that name them stay; unset means with their runs",
  ),
  SERVICE_RETENTION_SOUND_BYTES: optional(
    "retention.soundBytes",
    integer(2 ** 20),
    "Bytes that all sounds may have; beyond, the oldest of whoever has most are removed, while the events stay",
  ),
  SERVICE_RETENTION_UPLOAD_HOURS: optional(
    "retention.uploadHours",
    integer(1, 876_000),
    "Hours after which an upload is removed that no run needs; unset means never",
  ),
  SERVICE_RETENTION_UPLOAD_BYTES: optional(
    "retention.uploadBytes",
    integer(2 ** 20),
    "Bytes that all uploads may have; beyond, the oldest of whoever has most are removed that no run needs",
  ),
  SERVICE_RETENTION_FREE_BYTES: optional(
    "retention.freeBytes",
    integer(2 ** 20),
    "Bytes that are to stay free on the disk of the data directory; below, ended runs are removed, the oldest of whoever has most",
  ),
  SERVICE_MEDIA_MEMORY_BUDGET_BYTES: setting(
    "mediaMemoryBudgetBytes",
    "8589934592",
    integer(256 * 2 ** 20, 2 ** 40),
    "Bytes of memory that all live sessions may reserve together",
  ),
  SERVICE_DECODE_MEMORY_BUDGET_BYTES: optional(
    "decodeMemoryBudgetBytes",
    integer(2 ** 30, 2 ** 40),
    "Bytes of memory that decodes of recorded media, clips and all probes may take together; unset means 4 GiB and 1 GiB more for each processor",
  ),
  SERVICE_MEDIA_WORKER_THREAD_BUDGET: setting(
    "mediaWorkerThreadBudget",
    "64",
    clampedInteger(1, 4096),
    "Threads that all live sessions may reserve together",
  ),
  SERVICE_INFERENCE_GLOBAL_LIMIT: setting(
    "inference.globalLimit",
    "8",
    integer(1, 1024),
    "Model calls at once",
  ),
  SERVICE_INFERENCE_PER_PRINCIPAL_LIMIT: setting(
    "inference.perPrincipalLimit",
    "4",
    integer(1, 1024),
    "Model calls of one principal at once; at most SERVICE_INFERENCE_GLOBAL_LIMIT",
  ),
  SERVICE_INFERENCE_WAITER_LIMIT: setting(
    "inference.waiterLimit",
    "128",
    integer(1, 4096),
    "Model calls that may wait for admission; further ones are refused at once",
  ),
  SERVICE_INFERENCE_WAIT_TIMEOUT_MS: setting(
    "inference.waitTimeoutMs",
    "5000",
    integer(1, 120_000),
    "Milliseconds after which a model call that waits for admission is refused",
  ),
  SERVICE_INFERENCE_TOKEN_BUDGET: setting(
    "inference.tokenBudget",
    "32768",
    integer(1, 1e8),
    "Output tokens that the model calls under way may reserve together",
  ),
  SERVICE_INFERENCE_BYTE_BUDGET: setting(
    "inference.byteBudget",
    "268435456",
    integer(1024, 2 ** 40),
    "Bytes of encoded media that the model calls under way may reserve together",
  ),
  SERVICE_WEBHOOK_SECRET: optional(
    "webhookSecret",
    { ...secretText, rule: `${secretText.rule} of ${WEBHOOK_SECRET_BYTES_MIN} bytes or more` },
    `Secret from which the signing keys of webhooks are derived; without it webhooks are off; a shorter one counts as not set`,
    { isSecret: true },
  ),
  SERVICE_WEBHOOK_RETRY_DELAYS_MS: setting(
    "webhookRetryDelaysMs",
    "250,1000,4000",
    retryDelays,
    "Milliseconds before each retry of a webhook delivery; the last of a shorter list repeats",
    { emptyIsUnset: true },
  ),
  SERVICE_WEBHOOK_TIMEOUT_MS: setting(
    "webhookTimeoutMs",
    "10000",
    clampedInteger(100, 60_000),
    "Milliseconds that an attempt of a webhook delivery may take, name look-up included",
  ),
  SERVICE_ALLOW_PRIVATE_WEBHOOKS: setting(
    "allowPrivateWebhooks",
    "false",
    boolean,
    "Admit `http:` URLs and private addresses as webhook targets, for receivers in the operator's own network",
  ),
  SERVICE_ALLOW_INSECURE_HTTP: setting(
    "allowInsecureHttp",
    "false",
    mediaToggle,
    "Admit `http:` media sources",
  ),
  SERVICE_ALLOW_UNENCRYPTED_RTSP: setting(
    "allowUnencryptedRtsp",
    "false",
    mediaToggle,
    "Admit `rtsp:` media sources",
  ),
  SERVICE_ALLOW_REMOTE_HLS: setting(
    "allowRemoteHls",
    "false",
    mediaToggle,
    "Admit remote HLS playlists as media sources",
  ),
  SERVICE_ALLOW_INSECURE_TLS: setting(
    "allowInsecureTls",
    "false",
    mediaToggle,
    "Accept media sources whose TLS certificate does not verify",
  ),
  SERVICE_MEDIA_ALLOWED_NETWORKS: setting(
    "mediaAllowedNetworks",
    "",
    networks,
    "Networks in which media sources may be although they are private or loopback, such as that of the cameras",
  ),
  SERVICE_DECODER_CAGE: setting(
    "decoderCage",
    "auto",
    oneOf({ auto: "auto", required: "required", off: "off" }),
    "How ffmpeg and ffprobe are caged: `auto` as strongly as the machine allows, `required` refuses to start without " +
      "namespaces of their own, and HLS and RTSP sources without a forwarder, `off` by limits only",
  ),
  SERVICE_FFMPEG_PATH: setting("ffmpegPath", "ffmpeg", path, "Path or name of the ffmpeg program"),
  SERVICE_FFPROBE_PATH: setting("ffprobePath", "ffprobe", path, "Path or name of the ffprobe program"),
  SERVICE_NVIDIA_SMI_PATH: setting(
    "nvidiaSmiPath",
    "nvidia-smi",
    path,
    "Path or name of the program that lists the NVIDIA graphics cards, which `auto` asks before it tries one",
  ),
  SERVICE_DECODE_BACKEND: setting(
    "decodeBackend",
    "auto",
    decodeBackend(),
    "What decodes recorded video: `cpu`, or the hardware behind `nvdec`, `vaapi` or `videotoolbox`; `auto` is the first of these " +
      "that works. Where it does not work, the CPU decodes",
  ),
  SERVICE_GATE_KEEPALIVE_EVERY_FRAMES: setting(
    "gateThresholds.keepaliveEveryFrames",
    "30",
    integer(0),
    "Number of frames after the last kept frame at which a frame is kept in any case",
  ),
  SERVICE_GATE_SCENE_CUT_HAMMING_THRESHOLD: setting(
    "gateThresholds.sceneCutHammingThreshold",
    "18",
    integer(0),
    "Bits out of 64 by which the perceptual hash of a frame must differ from that of the last kept frame to count as a scene cut",
  ),
  SERVICE_GATE_LUMA_SHIFT_THRESHOLD: setting(
    "gateThresholds.lumaShiftThreshold",
    "0.15",
    threshold(),
    "Change of the mean luma since the last kept frame from which a frame counts as an exposure shift",
  ),
  SERVICE_GATE_FLICKER_THRESHOLD: setting(
    "gateThresholds.flickerThreshold",
    "0.55",
    threshold(),
    "Flicker score from which a frame is suspicious",
  ),
  SERVICE_GATE_GHOSTING_THRESHOLD: setting(
    "gateThresholds.ghostingThreshold",
    "0.55",
    threshold(),
    "Ghosting score from which a frame is suspicious",
  ),
  SERVICE_GATE_NOISE_VARIANCE_THRESHOLD: setting(
    "gateThresholds.noiseVarianceThreshold",
    "0.55",
    threshold(),
    "Noise variance score from which a frame is suspicious",
  ),
  SERVICE_TENANT_LABEL_MAPS_PATH: optional(
    "labelMapsPath",
    path,
    "JSON file that renames the labels of events and objects for each tenant",
  ),
  SERVICE_AUDIO_SIDECAR_ADDR: optional(
    "audioSidecar.address",
    sidecarAddress,
    "Audio sidecar; without it there is no local audio analysis",
  ),
  SERVICE_AUDIO_SIDECAR_TIMEOUT_MS: setting(
    "audioSidecar.timeoutMs",
    "30000",
    clampedInteger(100, 300_000),
    "Milliseconds that a call to the audio sidecar for a live session may take",
  ),
  SERVICE_LIVE_MODEL_TIMEOUT_MS: setting(
    "liveModelTimeoutMs",
    "30000",
    clampedInteger(1_000, 300_000),
    "Milliseconds that a model may take for a picture or a clip of a live session; the second model has as long again",
  ),
  SERVICE_NOVELTY_EMBEDDING_ADDR: optional(
    "novelty.embeddingAddress",
    sidecarAddress,
    "Embedding sidecar; with it live sessions reuse the description of a scene that has not changed",
  ),
  SERVICE_NOVELTY_EMBEDDING_TIMEOUT_MS: setting(
    "novelty.embeddingTimeoutMs",
    "2000",
    integer(1),
    "Milliseconds that connecting to the embedding sidecar, a write or a read may take",
  ),
  SERVICE_NOVELTY_REUSE_THRESHOLD: setting(
    "novelty.reuseThreshold",
    "0.01",
    number("a number from 0 to below 1", (value) => value >= 0 && value < 1),
    "Distance between two embeddings up to which the description of the earlier keyframe is reused",
  ),
  SERVICE_NOVELTY_MAX_REUSE_MS: setting(
    "novelty.maxReuseMs",
    "2000",
    integer(0),
    "Milliseconds of media time after which a description is made anew; 0 turns reuse off",
  ),
  SERVICE_NOVELTY_MAX_CUMULATIVE_DRIFT: setting(
    "novelty.maxCumulativeDrift",
    "0.50",
    number("a number above 0", (value) => value > 0),
    "Sum of the distances since the last description from which it is made anew",
  ),
  SERVICE_NOVELTY_SHADOW_SAMPLE_RATE: setting(
    "novelty.shadowSampleRate",
    "0.01",
    number("a number from 0 to 1", (value) => value >= 0 && value <= 1),
    "Fraction of the reuses for which the model is asked all the same, for comparison only",
  ),
  SERVICE_WEBRTC_CROP: optional(
    "webrtc.crop",
    crop,
    "Region of the picture that live sessions analyze by default, as fractions `x,y,width,height`",
  ),
  SERVICE_WEBRTC_MEDIA_IDLE_SECS: setting(
    "webrtc.mediaIdleMs",
    "60",
    secondsAsMs(5, 86_400),
    "Seconds without a media packet after which a live session ends; a pulled source that never gave a frame ends likewise",
  ),
  SERVICE_WEBRTC_STUN_SERVERS: setting(
    "webrtc.stunServers",
    "",
    list(iceUrl("stun")),
    "STUN servers, comma-separated: they tell sessions behind a router under which address they are seen",
  ),
  SERVICE_WEBRTC_TURN_URL: optional("webrtc.turnUrl", iceUrl("turn"), "TURN server"),
  SERVICE_WEBRTC_TURN_USERNAME: optional("webrtc.turnUsername", secretText, "User name for the TURN server"),
  SERVICE_WEBRTC_TURN_CREDENTIAL: optional(
    "webrtc.turnCredential",
    secretText,
    "Password for the TURN server",
    {
      isSecret: true,
    },
  ),
  SERVICE_WEBRTC_MAX_OUTPUT_TOKENS_PER_SECOND: setting(
    "webrtc.maxOutputTokensPerSecond",
    "128",
    integer(0, OUTPUT_TOKENS_PER_SECOND_MAX),
    "Output tokens a second that each live session may use by default; 0 for no cap",
  ),
  SERVICE_WEBRTC_DECODE_WORKERS: setting(
    "webrtc.decodeWorkers",
    "1",
    clampedInteger(1, 1),
    "Decoders of each live stream",
    { noEffect: ONE_WORKER },
  ),
  SERVICE_WEBRTC_ANALYSIS_WORKERS: setting(
    "webrtc.analysisWorkers",
    "1",
    clampedInteger(1, 1),
    "Analysis workers of each live stream",
    { noEffect: ONE_WORKER },
  ),
  SERVICE_WEBRTC_VLM_WORKERS: setting(
    "webrtc.vlmWorkers",
    "1",
    clampedInteger(1, 1),
    "Model calls of each live stream at once",
    { noEffect: ONE_WORKER },
  ),
  SERVICE_WEBRTC_FIRST_PASS_MODEL: optional(
    "webrtc.firstPassModel",
    nonBlankText,
    "Model that describes the keyframes of live sessions; unset means the only model of the backend file, else `Qwen/Qwen3-VL-8B-Instruct`, or the one that the server has instead",
  ),
  SERVICE_WEBRTC_SECOND_PASS_MODEL: optional(
    "webrtc.secondPassModel",
    nonBlankText,
    "Model that is asked when the first one is unsure; unset, or the same as the first, means none",
  ),
  SERVICE_WEBRTC_SECOND_PASS_THRESHOLD: setting(
    "webrtc.secondPassThreshold",
    "0.7",
    clampedFraction(0.7),
    "Confidence of the first answer below which the second model is asked",
  ),
  SERVICE_WEBRTC_SECOND_PASS_MAX_TOKENS: setting(
    "webrtc.secondPassMaxTokens",
    "256",
    integer(1, 4096),
    "Output tokens that an answer of the second model may have",
  ),
  SERVICE_TRIGGER_LOCAL_OUTPUT_SOCKET: optional(
    "triggerLocalOutputSocket",
    absolutePath,
    "Unix datagram socket that receives the metadata of local trigger actions",
  ),
  SERVICE_MIRROR_URL: optional(
    "mirror.url",
    postgresUrl,
    "PostgreSQL database that receives a copy of feedback and of the descriptions of live sessions",
    { isSecret: true },
  ),
  SERVICE_MIRROR_MODULE: setting(
    "mirror.module",
    "service",
    schemaName,
    "Schema of the mirror database that has the tables, made when it is missing",
    { emptyIsUnset: true },
  ),
  SERVICE_BACKUP_S3_ENDPOINT: setting(
    "backupS3.endpoint",
    "https://s3.amazonaws.com",
    httpUrl,
    "S3-compatible storage to which `service backup s3://…` writes; the service itself does not read it, nor the next three",
  ),
  SERVICE_BACKUP_S3_REGION: setting(
    "backupS3.region",
    "us-east-1",
    nonBlankText,
    "Region that requests to that storage are signed for",
  ),
  SERVICE_BACKUP_S3_ACCESS_KEY_ID: optional(
    "backupS3.accessKeyId",
    secretText,
    "Access key of that storage",
    { isSecret: true },
  ),
  SERVICE_BACKUP_S3_SECRET_ACCESS_KEY: optional(
    "backupS3.secretAccessKey",
    secretText,
    "Secret of that access key",
    { isSecret: true },
  ),
  SERVICE_TRACES_ENDPOINT: optional(
    "traces.endpoint",
    httpUrl,
    "OTLP gRPC endpoint that receives trace spans",
  ),
  SERVICE_TRACES_SAMPLE_RATIO: setting(
    "traces.sampleRatio",
    "1",
    number("a number from 0 to 1", (value) => value >= 0 && value <= 1),
    "Of the traces that begin here, how many are recorded; one that a caller began is recorded as its traceparent says",
    { emptyIsUnset: true },
  ),
  RUST_LOG: setting(
    "logFilter",
    "info",
    { rule: FILTER_RULE, read: (text) => readFilter(text) && text },
    "Log filter: directives `level`, `target` or `target=level`, comma-separated",
    { emptyIsUnset: true },
  ),
} as const;

export type SettingName = keyof typeof SETTINGS;

function threshold(): Parser<number> {
  return number("a number of at least 0", (value) => value >= 0);
}

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
    vaapi: "vaapi",
    mlx: "videotoolbox",
    apple: "videotoolbox",
    metal: "videotoolbox",
    videotoolbox: "videotoolbox",
  });
}
