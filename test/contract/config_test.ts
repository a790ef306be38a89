/** The environment becomes a configuration, or a list of everything that is wrong with it. */

import assert from "node:assert/strict";
import { type Config, ConfigFaults, readConfig, readVariables } from "../../src/contract/config.ts";
import { SETTINGS } from "../../src/contract/settings.ts";

type Env = Record<string, string>;

const KEYS: Env = { SERVICE_API_KEYS: "k1-of-20-characters-" };

Deno.test("a setting is read as its row says", () => {
  const check = (env: Env, read: (config: Config) => unknown, expected: unknown) =>
    assert.deepEqual(read(readConfig({ ...KEYS, ...env })), expected, JSON.stringify(env));

  check({}, (c) => c.bindAddr, { hostname: "127.0.0.1", port: 8080 });
  check({ SERVICE_BIND_ADDR: "0.0.0.0:1" }, (c) => c.bindAddr, { hostname: "0.0.0.0", port: 1 });
  check({ SERVICE_BIND_ADDR: "[::1]:8080" }, (c) => c.bindAddr, { hostname: "::1", port: 8080 });
  check({ SERVICE_BIND_ADDR: "localhost:0" }, (c) => c.bindAddr, { hostname: "localhost", port: 0 });
  check({ SERVICE_API_KEYS: " a ,, b ," }, (c) => c.apiKeys, ["a", "b"]);
  for (const word of ["1", "true", "YES", "On"]) {
    check({ SERVICE_REQUIRE_TENANT_ID: word }, (c) => c.requireTenantId, true);
  }
  for (const word of ["0", "False", "no", "OFF"]) {
    check({ SERVICE_REQUIRE_API_KEY: word }, (c) => c.requireApiKey, false);
  }
  for (const word of ["true", "TRUE", "1"]) {
    check({ SERVICE_ALLOW_REMOTE_HLS: word }, (c) => c.allowRemoteHls, true);
  }
  for (const word of ["yes", "on", "0", "", "maybe"]) {
    check({ SERVICE_ALLOW_INSECURE_HTTP: word }, (c) => c.allowInsecureHttp, false);
  }
  for (const word of ["h1", "h2", "h1h2", "HTTP", "http2"]) {
    check({ SERVICE_TRANSPORT: word }, (c) => c.transport, "h1h2");
  }
  check({ SERVICE_ACTIVE_STREAM_LIMIT: "0" }, (c) => c.activeStreamLimit, 1);
  check({ SERVICE_ACTIVE_STREAM_LIMIT: "99999999999999999999" }, (c) => c.activeStreamLimit, 1024);
  check({ SERVICE_STREAM_TTL_SECS: "60" }, (c) => c.streamTtlMs, 60_000);
  check({ SERVICE_STREAM_TTL_SECS: " 86400 " }, (c) => c.streamTtlMs, 86_400_000);
  check({}, (c) => c.rateLimit, { globalRps: undefined, principalRps: undefined, principalSlots: 2048 });
  check({ SERVICE_RATE_LIMIT_GLOBAL_RPS: "0" }, (c) => c.rateLimit.globalRps, 1);
  check({ SERVICE_RATE_LIMIT_TENANT_RPS: "7" }, (c) => c.rateLimit.principalRps, 7);
  check({ SERVICE_INGEST_FILE_ROOTS: "/a, /b c ,rel" }, (c) => c.ingestFileRoots, ["/a", "/b c", "rel"]);
  check({ SERVICE_INGEST_FILE_ROOTS: "" }, (c) => c.ingestFileRoots, []);
  check({ SERVICE_WEBHOOK_SECRET: "x".repeat(31) }, (c) => c.webhookSecret, undefined);
  check({ SERVICE_WEBHOOK_SECRET: "é".repeat(16) }, (c) => c.webhookSecret, "é".repeat(16));
  check({ SERVICE_WEBHOOK_RETRY_DELAYS_MS: "1,2,3" }, (c) => c.webhookRetryDelaysMs, [1, 2, 3]);
  check({ SERVICE_WEBHOOK_RETRY_DELAYS_MS: "0,5" }, (c) => c.webhookRetryDelaysMs, [0, 5, 5]);
  check({ SERVICE_WEBHOOK_RETRY_DELAYS_MS: "" }, (c) => c.webhookRetryDelaysMs, [250, 1000, 4000]);
  check({ SERVICE_VLLM_BASE_URL: "http://gpu:8000/" }, (c) => c.vllmBaseUrl, "http://gpu:8000");
  check({ SERVICE_SGLANG_BASE_URL: "https://h/x" }, (c) => c.sglangBaseUrl, "https://h/x");
  check({ SERVICE_VLLM_API_KEY: "" }, (c) => c.vllmApiKey, undefined);
  check({ SERVICE_WEBRTC_CROP: " 0.1, 0,0.5 ,1" }, (c) => c.webrtc.crop, {
    x: 0.1,
    y: 0,
    width: 0.5,
    height: 1,
  });
  check({ SERVICE_WEBRTC_CROP: "" }, (c) => c.webrtc.crop, undefined);
  check({ SERVICE_WEBRTC_CROP: "0.5,0.5,0.5001,0.5" }, (c) => c.webrtc.crop?.width, 0.5001);
  check({ SERVICE_NOVELTY_EMBEDDING_ADDR: "tcp://e:9" }, (c) => c.novelty.embeddingAddress, {
    hostname: "e",
    port: 9,
  });
  check({ SERVICE_NOVELTY_EMBEDDING_ADDR: " " }, (c) => c.novelty.embeddingAddress, undefined);
  check({ SERVICE_AUDIO_SIDECAR_ADDR: "a:7790" }, (c) => c.audioSidecar.address, {
    hostname: "a",
    port: 7790,
  });
  check({ SERVICE_AUDIO_SIDECAR_TIMEOUT_MS: "1" }, (c) => c.audioSidecar.timeoutMs, 100);
  check({ SERVICE_NOVELTY_REUSE_THRESHOLD: "0" }, (c) => c.novelty.reuseThreshold, 0);
  check({ SERVICE_WEBRTC_SECOND_PASS_THRESHOLD: "7" }, (c) => c.webrtc.secondPassThreshold, 1);
  check({ SERVICE_WEBRTC_SECOND_PASS_THRESHOLD: "-inf" }, (c) => c.webrtc.secondPassThreshold, 0.7);
  check({ SERVICE_WEBRTC_SECOND_PASS_MODEL: "  " }, (c) => c.webrtc.secondPassModel, undefined);
  check({}, (c) => c.webrtc.stunServers, []);
  check({ SERVICE_WEBRTC_STUN_SERVERS: "stun:a:1,stuns:b" }, (c) => c.webrtc.stunServers, [
    "stun:a:1",
    "stuns:b",
  ]);
  check({ SERVICE_WEBRTC_STUN_SERVERS: "" }, (c) => c.webrtc.stunServers, []);
  check({ SERVICE_DECODE_BACKEND: "GPU" }, (c) => c.decodeBackend, "nvdec-cuda");
  check({ SERVICE_DECODE_BACKEND: "ffmpeg" }, (c) => c.decodeBackend, "cpu-ffmpeg");
  check({ SERVICE_DECODE_BACKEND: "metal" }, (c) => c.decodeBackend, "videotoolbox");
  check({ SERVICE_TRANSPORT: "HTTP3" }, (c) => c.transport, "h3");
  check({ SERVICE_TRANSPORT: "http" }, (c) => c.transport, "h1h2");
  check({ SERVICE_WAL_SYNC: "Group" }, (c) => c.walSync, "group");
  check({ SERVICE_CORS_ALLOWED_ORIGINS: "http://a:1,https://b" }, (c) => c.corsAllowedOrigins, [
    "http://a:1",
    "https://b",
  ]);
  check({ SERVICE_REQUIRE_API_KEY: "0", SERVICE_CORS_ALLOWED_ORIGINS: "*" }, (c) => c.corsAllowedOrigins, [
    "*",
  ]);
  check({ SERVICE_MIRROR_URL: "postgres://u:p@h/db" }, (c) => c.mirror.url, "postgres://u:p@h/db");
  const tls = "postgresql://u@[::1]:5433?sslmode=verify-full";
  check({ SERVICE_MIRROR_URL: tls }, (c) => c.mirror.url, tls);
  check({ RUST_LOG: "" }, (c) => c.logFilter, "info");
  check({ RUST_LOG: "warn,http=trace" }, (c) => c.logFilter, "warn,http=trace");
  check({ SERVICE_GATE_FLICKER_THRESHOLD: ".5" }, (c) => c.gateThresholds.flickerThreshold, 0.5);
});

Deno.test("a setting that breaks its rule is a fault that names the variable", () => {
  const check = (name: string, ...values: string[]) => {
    for (const value of values) {
      const faults = faultsOf({ ...KEYS, [name]: value });
      assert.equal(faults.length, 1, `${name}=${value}: ${faults}`);
      assert.ok(faults[0]!.startsWith(`${name} must be `), faults[0]);
    }
  };

  check(
    "SERVICE_BIND_ADDR",
    "",
    "8080",
    ":8080",
    "h:",
    "h:65536",
    "h:-1",
    "::1:80",
    "[::1]",
    "[zz]:1",
    "http://h:1",
    "a b:1",
  );
  check("SERVICE_REQUIRE_TENANT_ID", "", "y", "2", "enabled");
  check("SERVICE_METRICS_REQUIRE_API_KEY", "nope");
  check("SERVICE_TRANSPORT", "h4", "quic", "", "spdy");
  check("SERVICE_ACTIVE_STREAM_LIMIT", "", "-1", "five", "1.5", "0x10", "1e3");
  check("SERVICE_STREAM_TTL_SECS", "59", "86401", "", "3600s", "NaN");
  check("SERVICE_RATE_LIMIT_GLOBAL_RPS", "", "0.5", "-3");
  check("SERVICE_RATE_LIMIT_TENANT_SLOTS", "0", "");
  check("SERVICE_INFERENCE_GLOBAL_LIMIT", "3000", "x");
  check("SERVICE_INFERENCE_PER_PRINCIPAL_LIMIT", "9", "0");
  check("SERVICE_INFERENCE_BYTE_BUDGET", "1023", "1099511627777");
  check("SERVICE_MEDIA_MEMORY_BUDGET_BYTES", "1024", "268435455");
  check("SERVICE_DECODE_MEMORY_BUDGET_BYTES", "1024", "1073741823");
  check("SERVICE_VLLM_BASE_URL", "", "gpu:8000", "ftp://h", "http://u:p@h", "http://h?x=1");
  check("SERVICE_TRACES_ENDPOINT", "localhost:4317");
  check(
    "SERVICE_MEDIA_ALLOWED_NETWORKS",
    ...[
      "10.0.0.0",
      "10.0.0.0/33",
      "10.0.0/8",
      "010.0.0.0/8",
      "256.0.0.0/8",
      "10.0.0.0/-1",
      "10.0.0.0/08",
      "/8",
    ],
    ...[
      "10.0.0.0/8,",
      ",",
      "10.0.0.0/8;fd00::/8",
      "fd00::/129",
      "fd00::g/8",
      "[fd00::]/8",
      "lan/8",
      "10.0.0.0/8/8",
    ],
  );
  check("SERVICE_CORS_ALLOWED_ORIGINS", "https://a/", "a.example", "https://*.a");
  check(
    "SERVICE_WEBRTC_CROP",
    "0,0,1",
    "0,0,1,1,1",
    "0,0,0,1",
    "0.6,0,0.5,1",
    "-0.1,0,1,1",
    "a,b,c,d",
    "0,0,NaN,1",
    "0,,1,1",
  );
  check("SERVICE_NOVELTY_EMBEDDING_ADDR", "http://e:9", "https://e:9", "e", "tcp://e");
  check("SERVICE_NOVELTY_REUSE_THRESHOLD", "1", "-0.1", "nan", "");
  check("SERVICE_NOVELTY_MAX_CUMULATIVE_DRIFT", "0", "-1", "inf");
  check("SERVICE_NOVELTY_SHADOW_SAMPLE_RATE", "1.1", "-0.01");
  check("SERVICE_NOVELTY_EMBEDDING_TIMEOUT_MS", "0");
  check("SERVICE_NOVELTY_MAX_REUSE_MS", "-1");
  check("SERVICE_WEBRTC_SECOND_PASS_THRESHOLD", "high", "");
  check("SERVICE_GATE_LUMA_SHIFT_THRESHOLD", "-1", "", "0,15");
  check("SERVICE_DECODE_BACKEND", "vulkan", "");
  check("SERVICE_TRIGGER_LOCAL_OUTPUT_SOCKET", "run/x.sock", "~/x.sock");
  check("SERVICE_WEBHOOK_RETRY_DELAYS_MS", "1,2,3,4", "a", "-1", ",");
  check("SERVICE_MIRROR_URL", "http://h", "postgres://", "h:5432", "postgres://h/db", "postgres://u@h/a/b");
  check(
    "SERVICE_MIRROR_URL",
    "postgres://u@h/db?sslmode=maybe",
    "postgres://u@h/db?host=/tmp",
    "postgres://u:%@h",
  );
  check("SERVICE_MIRROR_URL", "postgres://u@h/db?sslmode=require&sslmode=disable", "postgres://u@h/db#x");
  check("SERVICE_MIRROR_MODULE", "pg_own", "x".repeat(64), "é".repeat(32));
  check("SERVICE_WEBRTC_STUN_SERVERS", "stun.example.org");
  check("SERVICE_WEBRTC_TURN_URL", "stun:h");
  check("SERVICE_WAL_SYNC", "always", "");
  check("SERVICE_DATA_DIR", "", " ", "a\0b");
  check("RUST_LOG", "loud=yes", "info,=debug", "[span]=info", "http=");
});

Deno.test("a list of networks names the one that is wrong", () => {
  const [fault] = faultsOf({
    ...KEYS,
    SERVICE_MEDIA_ALLOWED_NETWORKS: "10.0.0.0/8, 192.168.0.0/40,fd00::/8",
  });
  assert.match(fault!, /^SERVICE_MEDIA_ALLOWED_NETWORKS must be .*: "192\.168\.0\.0\/40" is none; /);
});

Deno.test("a list of networks is read once, in every spelling of an address", () => {
  const { mediaAllowedNetworks } = readConfig({
    ...KEYS,
    SERVICE_MEDIA_ALLOWED_NETWORKS: "10.0.0.0/8, ::ffff:192.168.7.0/120",
  });
  assert.deepEqual(mediaAllowedNetworks, [
    { first: [0, 0, 0, 0, 0, 0xffff, 0x0a00, 0], prefix: 104 },
    { first: [0, 0, 0, 0, 0, 0xffff, 0xc0a8, 0x0700], prefix: 120 },
  ]);
});

Deno.test("rules between settings are checked too", () => {
  const check = (env: Env, expected: RegExp) => {
    const faults = faultsOf(env);
    assert.equal(faults.length, 1, faults.join("\n"));
    assert.match(faults[0]!, expected);
  };

  check({}, /^SERVICE_API_KEYS must name at least one key/);
  check({ SERVICE_API_KEYS: " , " }, /^SERVICE_API_KEYS must/);
  check(
    { SERVICE_REQUIRE_API_KEY: "off", SERVICE_REQUIRE_TENANT_ID: "on" },
    /^SERVICE_REQUIRE_TENANT_ID must be off/,
  );
  check(
    { ...KEYS, SERVICE_CORS_ALLOWED_ORIGINS: "https://a,*" },
    /^SERVICE_CORS_ALLOWED_ORIGINS must list exact/,
  );
  check(
    { ...KEYS, SERVICE_INFERENCE_GLOBAL_LIMIT: "3" },
    /^SERVICE_INFERENCE_PER_PRINCIPAL_LIMIT must be at most/,
  );
});

Deno.test("all faults are reported at once, one line each", () => {
  const faults = faultsOf({
    SERVICE_TRANSPORT: "h4",
    SERVICE_STREAM_TTL_SECS: "5\nSERVICE_FORGED must be ignored",
    SERVICE_REQUIRE_API_KEY: "perhaps",
  });
  assert.deepEqual(faults.map((line) => line.split(" ")[0]), [
    "SERVICE_TRANSPORT",
    "SERVICE_REQUIRE_API_KEY",
    "SERVICE_STREAM_TTL_SECS",
  ]);
  for (const line of faults) assert.ok(!line.includes("\n"), line);
});

Deno.test("no secret is ever part of a fault or a warning", () => {
  const secret = "hunter2";
  const envs: Env[] = [
    { SERVICE_MIRROR_URL: `mysql://u:${secret}@h/db` },
    { SERVICE_VLLM_BASE_URL: `http://u:${secret}@h` },
    { SERVICE_API_KEYS: secret, SERVICE_BIND_ADDR: "x", SERVICE_CORS_ALLOWED_ORIGINS: "*" },
    {
      SERVICE_WEBHOOK_SECRET: secret,
      SERVICE_WEBRTC_TURN_CREDENTIAL: secret,
      SERVICE_SGLANG_API_KEY: secret,
      SERVICE_BIND_ADDR: "",
    },
  ];
  for (const env of envs) {
    const faults = faultsOf({ ...KEYS, ...env });
    assert.ok(faults.length > 0);
    assert.ok(!faults.join().includes(secret), faults.join());
  }
  const { warnings } = readConfig({ ...KEYS, SERVICE_WEBHOOK_SECRET: secret });
  assert.match(warnings.join(), /SERVICE_WEBHOOK_SECRET is shorter than 32 bytes/);
  assert.ok(!warnings.join().includes(secret));
});

Deno.test("a variable that no row explains is a warning, not a fault", () => {
  const config = readConfig({ ...KEYS, SERVICE_BIND_ADR: "x", SERVICE_API_KEY: "y", HOME: "/" });
  assert.deepEqual(config.unknownVariables, ["SERVICE_API_KEY", "SERVICE_BIND_ADR"]);
  assert.deepEqual(config.warnings, [
    "SERVICE_API_KEY is not a variable of this service",
    "SERVICE_BIND_ADR is not a variable of this service",
  ]);
});

Deno.test("keys that can be guessed are warned of, without a word of them", () => {
  const warnings = (keys: string) => readConfig({ SERVICE_API_KEYS: keys }).warnings;
  assert.deepEqual(warnings("0123456789abcdefghij"), []);
  const [one, ...others] = warnings("0123456789abcdefghij,0123456789abcdefghi");
  assert.match(one!, /^1 of the keys of SERVICE_API_KEYS is shorter than 20 characters/);
  assert.deepEqual(others, []);
  assert.match(warnings("secret,word").join(), /^2 of the keys of SERVICE_API_KEYS are shorter/);
  assert.doesNotMatch(warnings("secret,word").join(), /secret|word/);
});

Deno.test("the configuration is frozen, its groups and lists too", () => {
  const config = readConfig(KEYS);
  for (const part of [config, config.gateThresholds, config.apiKeys, config.bindAddr, config.warnings]) {
    assert.ok(Object.isFrozen(part));
  }
});

Deno.test("a setting that has no effect yet gives one warning that names it, but only where it is set", () => {
  const warningsOf = (env: Env) => readConfig({ ...KEYS, ...env }).warnings;
  assert.deepEqual(warningsOf({}), []);
  assert.deepEqual(warningsOf({ SERVICE_WEBRTC_DECODE_WORKERS: "5" }), [
    "SERVICE_WEBRTC_DECODE_WORKERS has no effect in this version: each live stream has exactly one",
  ]);
  assert.deepEqual(warningsOf({ SERVICE_MIRROR_URL: " " }), []);
  assert.deepEqual(warningsOf({ SERVICE_FFMPEG_PATH: "ffmpeg" }), []);
  const secret = "postgres://user:hunter2@db/x";
  assert.doesNotMatch(warningsOf({ SERVICE_MIRROR_URL: secret }).join(), /hunter2/);
  for (const [name, { noEffect }] of Object.entries(SETTINGS)) {
    if (noEffect !== undefined) assert.doesNotMatch(noEffect, /\.$/, `${name}: it ends a sentence of others`);
  }
});

function faultsOf(env: Env): readonly string[] {
  try {
    readConfig(env);
  } catch (error) {
    if (error instanceof ConfigFaults) return error.faults;
    throw error;
  }
  return [];
}

Deno.test("every fault names the way out", () => {
  const env = Object.fromEntries(Object.keys(SETTINGS).map((name) => [name, "\0"]));
  const { faults } = readVariables(env);
  assert.ok(faults.length > 40, `${faults.length} faults`);
  for (const fault of faults) assert.match(fault, /; (correct it|set |lower|name each)/, fault);
  const between = (given: Record<string, string>) => readVariables(given).faults.join("\n");
  assert.match(
    between({}),
    /; set SERVICE_API_KEYS, or SERVICE_REQUIRE_API_KEY=false for a service without keys$/,
  );
  assert.match(
    between({ SERVICE_REQUIRE_API_KEY: "0", SERVICE_REQUIRE_TENANT_ID: "1" }),
    /; set SERVICE_REQUIRE_TENANT_ID=false/,
  );
  assert.match(between({ SERVICE_API_KEYS: "k", SERVICE_CORS_ALLOWED_ORIGINS: "*" }), /; name each origin/);
  assert.match(
    between({ SERVICE_API_KEYS: "k", SERVICE_INFERENCE_GLOBAL_LIMIT: "1" }),
    /; lower the first, or raise/,
  );
});
