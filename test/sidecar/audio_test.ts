import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { join } from "node:path";
import { espeakVoice, speechScene } from "../../bench/sidecars/audio_scenes.ts";
import { quietLog } from "../../src/base/log.ts";
import { Metrics } from "../../src/contract/metrics.ts";
import { realWorld } from "../../src/base/world.ts";
import {
  decodeFailure,
  decodeResponseHeader,
  encodeAnalyze,
} from "../../src/model/sidecars/audio_protocol.ts";
import { SidecarFailed, type SidecarFailure } from "../../src/model/sidecars/local_audio.ts";
import { readWav, wavOf } from "../../src/model/sidecars/wav.ts";
import { type AnalyzeCall, AudioSidecar } from "../../src/remote/sidecars/audio_sidecar.ts";
import { readAudioSettings } from "../../src/sidecar/audio/audio_settings.ts";
import { ESPEAK, needing } from "../support/needs.ts";
import { startReferenceSidecar } from "../support/sidecars/reference_sidecar.ts";

const SILENCE = wavOf(new Int16Array(16_000), 16_000);

function client(port: number) {
  const world = realWorld(quietLog());
  const sidecar = new AudioSidecar({
    address: { hostname: "127.0.0.1", port },
    world,
    metrics: new Metrics(),
  });
  return {
    analyze: (wav: Uint8Array, changed: Partial<AnalyzeCall> = {}) =>
      sidecar.analyze({
        wav,
        profile: "general",
        engine: "auto",
        maxEvents: 64,
        minConfidence: 0,
        sourceStartMs: 0,
        timeoutMs: 30_000,
        signal: new AbortController().signal,
        ...changed,
      }),
    speak: (text: string) =>
      sidecar.synthesize({ text, timeoutMs: 30_000, signal: new AbortController().signal }),
    [Symbol.dispose]: () => sidecar[Symbol.dispose](),
  };
}

function failsWith(reason: SidecarFailure, message = /./) {
  return (error: unknown) => {
    ok(error instanceof SidecarFailed, String(error));
    match(error.message, message);
    return error.reason === reason;
  };
}

/** Somebody speaks for about half of its 20 s. */
function spokenWindow() {
  const scene = speechScene(espeakVoice, null, 0, 31);
  return wavOf(scene.samples, 16_000);
}

/** An OpenAI-compatible endpoint that answers as told and keeps what it was asked. */
function openTranscriber(answer: (request: Request) => Response | Promise<Response>) {
  const asked: { form: FormData; authorization: string | null; wav: ReturnType<typeof readWav> }[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const form = await request.formData();
    const wav = readWav(new Uint8Array(await (form.get("file") as File).arrayBuffer()));
    asked.push({ form, authorization: request.headers.get("authorization"), wav });
    return await answer(request);
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}/v1/audio/transcriptions`,
    asked,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

Deno.test("the reference sidecar answers the service's client, ends when told to, and says how busy it is", async () => {
  await using process = await startReferenceSidecar();
  using audio = client(process.port);
  const { result } = await audio.analyze(SILENCE);
  deepEqual(result.observations, [{
    start_offset_ms: 0,
    end_offset_ms: 1000,
    kind: "audio_event",
    label: "silence",
    confidence: 1,
    model: "sound-events-1",
  }]);
  deepEqual(result.capacity, { active: 0, queued: 0, limit: 1 });
  equal(result.speech_engine, "none");
  equal(result.audio_duration_ms, 1000);
  equal(result.audio_bytes, SILENCE.length);
  ok(result.processing_ms > 0);
  deepEqual((await audio.analyze(SILENCE, { profile: "gameplay" })).result.observations, []);
  equal(await process.end(), 0);
});

Deno.test("what cannot be used is refused with its reason, and the next request is served", async () => {
  await using process = await startReferenceSidecar({ AUDIO_SIDECAR_ESPEAK_PROGRAM: "/no/such/espeak" });
  using audio = client(process.port);
  await rejects(
    audio.analyze(wavOf(new Int16Array(100), 44_100)),
    failsWith("decode", /16000 samples a second/),
  );
  await rejects(audio.analyze(wavOf(new Int16Array(62 * 16_000), 16_000)), failsWith("decode", /62000 ms/));
  await rejects(
    audio.analyze(SILENCE, { engine: "whisper" }),
    failsWith("model_load", /whisper is not configured/),
  );
  await rejects(audio.speak("hello"), failsWith("model_load", /espeak-ng/));
  await audio.analyze(SILENCE, { engine: "none" });
  await audio.analyze(wavOf(new Int16Array(0), 16_000));
});

Deno.test("a header that breaks the protocol is answered once and ends the connection, garbage as well", async () => {
  await using process = await startReferenceSidecar();
  const exchange = async (bytes: Uint8Array) => {
    using conn = await Deno.connect({ hostname: "127.0.0.1", port: process.port });
    await conn.write(bytes);
    return new Uint8Array(await new Response(conn.readable).arrayBuffer());
  };
  const request = {
    profile: "general",
    engine: "none",
    sourceStartMs: 0,
    maxEvents: 1,
    minConfidence: 0,
  } as const;
  for (
    const bytes of [encodeAnalyze({ ...request, maxEvents: 65 }, SILENCE)[0]!, new Uint8Array(32).fill(0x47)]
  ) {
    const answer = await exchange(bytes);
    const { status, metadataBytes } = decodeResponseHeader(answer.subarray(0, 16));
    equal(status, "bad_request");
    equal(decodeFailure(answer.subarray(16, 16 + metadataBytes)).reason, "decode");
    equal(answer.length, 16 + metadataBytes);
  }
  using audio = client(process.port);
  await audio.analyze(SILENCE);
});

Deno.test({
  ...needing(
    ESPEAK,
    "speech is found, transcribed by the endpoint where it is found, and spoken by espeak-ng",
  ),
  fn: async () => {
    await using transcriber = openTranscriber(() =>
      Response.json({
        text: "open the window",
        language: "english",
        segments: [
          { start: 0.2, end: 0.9, text: " open the window", avg_logprob: -0.25, no_speech_prob: 0.01 },
          { start: 0.9, end: 1.0, text: "nobody says this", no_speech_prob: 0.95 },
        ],
      })
    );
    await using process = await startReferenceSidecar({
      AUDIO_SIDECAR_ASR_URL: transcriber.url,
      AUDIO_SIDECAR_ASR_API_KEY: "key-1",
      AUDIO_SIDECAR_ASR_MODEL: "small",
      AUDIO_SIDECAR_ASR_ENGINE: "moonshine",
    });
    using audio = client(process.port);
    const { result } = await audio.analyze(spokenWindow());
    const voices = result.observations.filter(({ kind }) => kind === "voice_activity");
    const spoken = result.observations.filter(({ kind }) => kind === "speech");
    ok(voices.length > 0 && spoken.length === transcriber.asked.length && spoken.length > 0);
    equal(result.speech_engine, "moonshine");
    deepEqual(result.models, ["voice-activity-1", "sound-events-1", "small"]);
    for (const { start_offset_ms, transcript, language, confidence, label } of spoken) {
      ok(voices.some((voice) => Math.abs(voice.start_offset_ms - 150 + 200 - start_offset_ms) <= 150));
      deepEqual([transcript, language, label], ["open the window", "english", "speech"]);
      ok(Math.abs(confidence - Math.exp(-0.25)) < 1e-9);
    }
    const [{ form, authorization, wav }] = transcriber.asked as [typeof transcriber.asked[0]];
    deepEqual([form.get("model"), form.get("response_format"), authorization], [
      "small",
      "verbose_json",
      "Bearer key-1",
    ]);
    ok(typeof wav !== "string" && wav.sampleRateHz === 16_000 && wav.durationMs > 300);

    const before = transcriber.asked.length;
    await audio.analyze(spokenWindow(), { engine: "none" });
    await audio.analyze(SILENCE);
    equal(transcriber.asked.length, before);
    await rejects(audio.analyze(SILENCE, { engine: "sensevoice" }), failsWith("model_load"));

    const speech = await audio.speak("Three people wait at the door. [[x]] -v evil");
    const shape = readWav(speech.wav);
    ok(typeof shape !== "string" && shape.durationMs > 1000 && shape.sampleRateHz === speech.sampleRateHz);
    equal(speech.model, "espeak-ng");
  },
});

Deno.test({
  ...needing(
    ESPEAK,
    "an endpoint that fails fails the window with a reason that names no address and no key",
  ),
  fn: async () => {
    const check = async (answer: () => Response, reason: SidecarFailure) => {
      await using transcriber = openTranscriber(answer);
      await using process = await startReferenceSidecar({
        AUDIO_SIDECAR_ASR_URL: transcriber.url,
        AUDIO_SIDECAR_ASR_API_KEY: "key-1",
      });
      using audio = client(process.port);
      await rejects(audio.analyze(spokenWindow()), (error) => {
        ok(!/key-1|127\.0\.0\.1/.test(String(error)));
        return failsWith(reason)(error);
      });
    };
    await check(() => new Response("no", { status: 500 }), "inference");
    await check(() => new Response("{}"), "malformed_response");
    await check(() => new Response("not json"), "malformed_response");
    await check(
      () => new Response(null, { status: 302, headers: { location: "http://127.0.0.1:1/" } }),
      "inference",
    );
    await check(() => new Response("x".repeat(2 ** 20 + 1)), "inference");
  },
});

Deno.test({
  ...needing(
    ESPEAK,
    "one request more than may wait is refused as overloaded, and what nobody waits for is given up",
  ),
  fn: async () => {
    const released = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    await using transcriber = openTranscriber(async () => {
      arrived.resolve();
      await released.promise;
      return Response.json({ text: "" });
    });
    await using process = await startReferenceSidecar({
      AUDIO_SIDECAR_ASR_URL: transcriber.url,
      AUDIO_SIDECAR_QUEUE: "0",
    });
    using audio = client(process.port);
    const abort = new AbortController();
    const first = audio.analyze(spokenWindow(), { signal: abort.signal });
    await arrived.promise;
    await rejects(audio.analyze(SILENCE), failsWith("overloaded"));
    abort.abort(new Error("called off"));
    await rejects(first, /called off/);
    // The only permit comes back although the endpoint still thinks.
    while (await audio.analyze(SILENCE).then(() => false, failsWith("overloaded"))) { /* not yet */ }
    released.resolve();
  },
});

Deno.test({
  ...needing(
    ESPEAK,
    "whisper.cpp is given the audio through stdin, and its words are taken without its marks",
  ),
  fn: async () => {
    const folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "service-sidecar-" }));
    try {
      const program = join(folder, "whisper-cli");
      Deno.writeTextFileSync(
        program,
        `#!/bin/sh\nwc -c > ${folder}/bytes\necho "$@" > ${folder}/args\necho " two"; echo words\n`,
      );
      Deno.chmodSync(program, 0o755);
      await using process = await startReferenceSidecar({
        AUDIO_SIDECAR_WHISPER_PROGRAM: program,
        AUDIO_SIDECAR_WHISPER_MODEL: "/models/tiny.bin",
      });
      using audio = client(process.port);
      const { result } = await audio.analyze(spokenWindow(), { engine: "whisper" });
      const spoken = result.observations.filter(({ kind }) => kind === "speech");
      ok(spoken.length > 0 && spoken.every(({ transcript }) => transcript === "two words"));
      equal(spoken[0]!.model, "whisper.cpp/tiny.bin");
      match(Deno.readTextFileSync(join(folder, "args")), /^-m \/models\/tiny\.bin -f - /);
      ok(Number(Deno.readTextFileSync(join(folder, "bytes"))) > 44);
    } finally {
      Deno.removeSync(folder, { recursive: true });
    }
  },
});

Deno.test("a sidecar whose address is taken ends, and names the address", async () => {
  using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const address = `127.0.0.1:${taken.addr.port}`;
  await rejects(
    startReferenceSidecar({ AUDIO_SIDECAR_BIND_ADDR: address }),
    new RegExp(`Cannot listen on ${address}: .*in use`),
  );
});

Deno.test("the settings of the sidecar have defaults, and every fault is named", () => {
  const { bindAddr, inFlight, queue, timeoutMs, espeakProgram, asrUrl } = readAudioSettings({});
  deepEqual({ bindAddr: { ...bindAddr }, inFlight, queue, timeoutMs, espeakProgram, asrUrl }, {
    bindAddr: { hostname: "127.0.0.1", port: 7790 },
    inFlight: 1,
    queue: 8,
    timeoutMs: 120_000,
    espeakProgram: "espeak-ng",
    asrUrl: undefined,
  });
  const check = (env: Record<string, string>, ...names: string[]) => {
    const faults = (() => {
      try {
        readAudioSettings(env);
        return "";
      } catch (error) {
        return (error as Error).message;
      }
    })();
    for (const name of names) match(faults, new RegExp(name));
    equal(faults.split("\n").length, names.length, faults);
  };
  check({ AUDIO_SIDECAR_BIND_ADDR: "here", AUDIO_SIDECAR_IN_FLIGHT: "0" }, "BIND_ADDR", "IN_FLIGHT");
  check({ AUDIO_SIDECAR_ASR_ENGINE: "auto" }, "ASR_ENGINE must be one of whisper");
  check({ AUDIO_SIDECAR_ASR_URL: "ftp://x" }, "ASR_URL");
  check({ AUDIO_SIDECAR_WHISPER_PROGRAM: "whisper-cli" }, "set together");
  check({
    AUDIO_SIDECAR_ASR_URL: "http://x/y",
    AUDIO_SIDECAR_WHISPER_PROGRAM: "w",
    AUDIO_SIDECAR_WHISPER_MODEL: "m",
  }, "not both");
});
