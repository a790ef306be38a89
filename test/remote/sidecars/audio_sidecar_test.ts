import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { quietLog } from "../../../src/base/log.ts";
import { Metrics } from "../../../src/contract/metrics.ts";
import { realWorld, type World } from "../../../src/base/world.ts";
import {
  SIDECAR_FAILURES,
  SidecarFailed,
  type SidecarFailure,
} from "../../../src/model/sidecars/local_audio.ts";
import { wavOf } from "../../../src/model/sidecars/wav.ts";
import { type AnalyzeCall, AudioSidecar } from "../../../src/remote/sidecars/audio_sidecar.ts";
import {
  type AudioDouble,
  type AudioScript,
  MALFORMED,
  observation,
  observed,
  openAudioDouble,
  refused,
  spoken,
} from "../../support/sidecars/audio_sidecar.ts";
import { until } from "../../support/until.ts";
import { NEVER_ABORTED } from "../../../src/base/wait.ts";

const WAV = wavOf(new Int16Array(16_000), 16_000);

/** A client of `double` with a clock that only the test moves; its timers end only with `elapse`. */
function client(double: Pick<AudioDouble, "port">) {
  const real = realWorld(quietLog());
  const clock = { ms: 1_000 };
  const timers: (() => void)[] = [];
  const world: World = {
    ...real,
    monotonicMs: () => clock.ms,
    sleep: (_ms, signal) =>
      new Promise((resolve, reject) => {
        timers.push(resolve);
        signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
      }),
  };
  const metrics = new Metrics();
  const sidecar = new AudioSidecar({ address: { hostname: "127.0.0.1", port: double.port }, world, metrics });
  return {
    sidecar,
    clock,
    /** Ends all running timers. */
    elapse: () => timers.splice(0).forEach((end) => end()),
    analyze: (changed: Partial<AnalyzeCall> = {}) => sidecar.analyze({ ...CALL, ...changed }),
    speak: (text = "hello") => sidecar.synthesize({ text, timeoutMs: 1000, signal: NEVER_ABORTED }),
    async metric(name: string) {
      const line = (await metrics.text()).split("\n").find((line) =>
        line.startsWith(`service_pipeline_${name} `)
      );
      return Number(line?.split(" ").at(-1));
    },
    [Symbol.dispose]: () => sidecar[Symbol.dispose](),
  };
}

const CALL: AnalyzeCall = {
  wav: WAV,
  profile: "gameplay",
  engine: "sensevoice",
  maxEvents: 7,
  minConfidence: 0.25,
  sourceStartMs: 123_456,
  timeoutMs: 1000,
  signal: NEVER_ABORTED,
};

function failsWith(reason: SidecarFailure, message = /./) {
  return (error: unknown) => {
    ok(error instanceof SidecarFailed, String(error));
    match(error.message, message);
    return error.reason === reason;
  };
}

Deno.test("an analysis is returned, the request has the caller's parameters, and everything is counted", async () => {
  await using double = openAudioDouble(observed([observation(0, 500), observation(500, 900)]));
  using audio = client(double);
  const { result } = await audio.analyze({ extractionMs: 40 });
  deepEqual(result.observations, [observation(0, 500), observation(500, 900)]);
  const [{ operation, audioBytes, wav, ...asked }] = double.requests as [typeof double.requests[0]];
  equal(operation, "analyze");
  equal(audioBytes, WAV.length);
  equal(typeof wav === "string" ? wav : wav.durationMs, 1000);
  const { profile, engine, maxEvents, minConfidence, sourceStartMs } = CALL;
  deepEqual({ ...asked, profile, engine, maxEvents, minConfidence, sourceStartMs }, asked);
  const counted = {
    local_audio_windows_total: 1,
    local_audio_observations_total: 2,
    local_audio_duration_ms_total: 1000,
    local_audio_analysis_failures_total: 0,
    local_audio_sidecar_active: 1,
    local_audio_sidecar_queue_depth: 2,
    local_audio_sidecar_capacity: 3,
    local_audio_processing_latency_ms_sum: 40,
    local_audio_decode_latency_ms_sum: 1,
    local_audio_vad_latency_ms_sum: 2,
    local_audio_classifier_latency_ms_sum: 3,
    local_audio_asr_latency_ms_sum: 4,
    local_audio_round_trip_latency_ms_count: 1,
    local_audio_real_time_factor_milli_sum: 10,
  };
  for (const [name, value] of Object.entries(counted)) equal(await audio.metric(name), value, name);
  deepEqual(double.faults, []);
});

Deno.test("a text becomes speech, and its metadata must match the WAV", async () => {
  await using double = openAudioDouble(spoken());
  using audio = client(double);
  const { wav, ...speech } = await audio.speak("hello, ü");
  deepEqual(speech, { model: "double-voice", sampleRateHz: 22_050, processingMs: 5 });
  equal(wav.length, 44 + 44_100);
  equal(double.requests[0]!.text, "hello, ü");
  equal(await audio.metric("local_audio_tts_bytes_total"), 44 + 44_100);
  for (const bad of [new Uint8Array(10), new Uint8Array(), wavOf(new Int16Array(5), 8_000)]) {
    double.answer(spoken(bad));
    await rejects(audio.speak(), failsWith("malformed_response"));
    audio.clock.ms += 5_000;
  }
  equal(await audio.metric("local_audio_tts_attempts_total"), 4);
  equal(await audio.metric("local_audio_tts_successes_total"), 1);
  equal(await audio.metric("local_audio_tts_failures_total"), 3);
});

Deno.test("a refusal arrives with its reason, and the connection stays open for the next call", async () => {
  await using double = openAudioDouble();
  using audio = client(double);
  const check = async (script: AudioScript, reason: SidecarFailure) => {
    double.answer(script);
    await rejects(audio.analyze(), failsWith(reason, /fails on request/));
    equal(await audio.metric(`local_audio_failures_total{reason="${reason}"}`), ++seen[reason]!);
    audio.clock.ms += 5_000;
  };
  const seen: Record<string, number> = Object.fromEntries(SIDECAR_FAILURES.map((reason) => [reason, 0]));
  for (const reason of SIDECAR_FAILURES) await check(refused(reason), reason);
  await check(refused("overloaded", "overloaded"), "overloaded");
  await check(refused("decode", "bad_request"), "decode");
  await check(refused("a reason of tomorrow"), "inference");
  double.answer(observed([]));
  await audio.analyze();
  equal(double.accepted, 1);
});

Deno.test("an answer that breaks the protocol is not used, closes the connection and starts a back-off", async () => {
  for (const [what, script] of Object.entries(MALFORMED)) {
    await using double = openAudioDouble(script);
    using audio = client(double);
    await rejects(audio.analyze(), failsWith("malformed_response"), what);
    await until("the connections are closed", () => double.open === 0);
    await rejects(audio.analyze(), failsWith("reconnect", /not called for another/), what);
    equal(double.requests.length, 1, what);
  }
});

Deno.test("a sidecar that cannot be reached is tried again after 100 ms, then twice as long, at most 5 s", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  listener.close();
  using audio = client({ port });
  for (const backOffMs of [100, 200, 400, 800, 1600, 3200, 5000, 5000]) {
    await rejects(audio.analyze(), failsWith("reconnect", /cannot be connected/));
    audio.clock.ms += backOffMs - 1;
    await rejects(audio.analyze(), failsWith("reconnect", /another 1 ms/));
    audio.clock.ms += 1;
  }
});

Deno.test("a sidecar that does not answer in time, or answers with a failure, is not called for a while", async () => {
  await using double = openAudioDouble(() => "hang");
  using audio = client(double);
  const late = async (timeoutMs: number) => {
    const before = double.requests.length;
    const call = rejects(audio.analyze({ timeoutMs }), failsWith("timeout"));
    await until("the request has arrived", () => double.requests.length === before + 1);
    audio.clock.ms += timeoutMs;
    audio.elapse();
    await call;
  };
  await late(999); // too short to say anything about the sidecar
  await late(1_000);
  await rejects(audio.analyze(), failsWith("reconnect", /another 100 ms/));
  audio.clock.ms += 100;
  for (const [reason, backOffMs] of [["inference", 200], ["overloaded", 400]] as const) {
    double.answer(refused(reason));
    await rejects(audio.analyze(), failsWith(reason));
    await rejects(audio.analyze(), failsWith("reconnect", new RegExp(`another ${backOffMs} ms`)));
    audio.clock.ms += backOffMs;
  }
  // what one request asks for: the next one is served at once
  for (const reason of ["decode", "model_load"] as const) {
    double.answer(refused(reason));
    await rejects(audio.analyze(), failsWith(reason));
  }
  double.answer(observed([]));
  await audio.analyze();
  equal(double.requests.length, 7);
});

Deno.test("an answer makes the back-off short again", async () => {
  await using double = openAudioDouble(() => "cut");
  using audio = client(double);
  for (const backOffMs of [100, 200]) {
    await rejects(audio.analyze(), failsWith("reconnect", /cut/));
    audio.clock.ms += backOffMs;
  }
  double.answer(observed([]));
  await audio.analyze();
  double.answer(() => "cut");
  await rejects(audio.analyze(), failsWith("reconnect"));
  await rejects(audio.analyze(), failsWith("reconnect", /another 100 ms/));
});

Deno.test("connections are kept, used by one call at a time, and replaced when they are found to be closed", async () => {
  await using double = openAudioDouble();
  using audio = client(double);
  await audio.analyze();
  await audio.analyze();
  equal(double.accepted, 1);

  const held = Promise.withResolvers<void>();
  double.answer(async (request, index) => {
    await held.promise;
    return await observed([])(request, index);
  });
  const calls = Array.from({ length: 12 }, () => audio.analyze());
  await until("the requests have arrived", () => double.requests.length === 2 + 8);
  held.resolve();
  await Promise.all(calls);
  equal(double.accepted, 8);
  equal(new Set(double.requests.slice(2, 10).map(({ connection }) => connection)).size, 8);

  double.dropConnections();
  await until("the connections are closed", () => double.open === 0);
  await audio.analyze();
  equal(double.accepted, 9);
});

Deno.test("a kept connection is replaced once, and only if nothing of an answer was received", async () => {
  await using double = openAudioDouble();
  using audio = client(double);
  await audio.analyze();
  double.answer(() => "cut");
  await rejects(audio.analyze(), failsWith("reconnect"));
  equal(double.requests.length, 3); // the kept connection and a new one

  audio.clock.ms += 100;
  double.answer(observed([]));
  await audio.analyze();
  double.answer(async (request, index) => {
    const whole = await observed([])(request, index) as Uint8Array;
    setTimeout(() => double.dropConnections(), 5);
    return whole.subarray(0, 20);
  });
  await rejects(audio.analyze(), failsWith("reconnect"));
  equal(double.requests.length, 5);
});

Deno.test("a call that times out or is aborted closes its connection, and does not delay other calls", async () => {
  await using double = openAudioDouble(() => "hang");
  using audio = client(double);
  const late = rejects(audio.analyze(), failsWith("timeout", /1000 ms/));
  await until("the requests have arrived", () => double.requests.length === 1);
  audio.elapse();
  await late;
  await until("the connections are closed", () => double.open === 0);

  const abort = new AbortController();
  const aborted = rejects(audio.analyze({ signal: abort.signal }), /nobody waits/);
  await until("the requests have arrived", () => double.requests.length === 2);
  abort.abort(new Error("nobody waits"));
  await aborted;
  await until("the connections are closed", () => double.open === 0);
  await rejects(audio.analyze({ signal: abort.signal }), /nobody waits/);
  equal(await audio.metric("local_audio_analysis_failures_total"), 1);

  double.answer(observed([]));
  await audio.analyze();
});

Deno.test("with too many waiting callers the next is refused as overloaded, and closing ends all of them", async () => {
  await using double = openAudioDouble(() => "hang");
  using audio = client(double);
  const calls = Array.from({ length: 8 + 64 }, () => audio.analyze().catch((error) => error.reason));
  await until("the requests have arrived", () => double.requests.length === 8);
  await rejects(audio.analyze(), failsWith("overloaded"));
  audio.sidecar[Symbol.dispose]();
  const reasons = new Set(await Promise.all(calls));
  deepEqual([...reasons].sort(), ["overloaded", "reconnect"]);
  await until("the connections are closed", () => double.open === 0);
});

Deno.test("input that the sidecar would refuse is refused before anything is sent", async () => {
  await using double = openAudioDouble();
  using audio = client(double);
  const stereo = WAV.slice();
  new DataView(stereo.buffer).setUint16(22, 2, true);
  new DataView(stereo.buffer).setUint16(32, 4, true);
  for (
    const wav of [new Uint8Array(), new Uint8Array(100), stereo, wavOf(new Int16Array(2 * 2 ** 20), 16_000)]
  ) {
    await rejects(audio.analyze({ wav }), failsWith("decode"));
  }
  for (const text of ["", "ü".repeat(8193)]) await rejects(audio.speak(text), failsWith("decode"));
  equal(double.accepted, 0);
});
