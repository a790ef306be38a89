import { deepEqual, equal, match, throws } from "node:assert/strict";
import { encode } from "@msgpack/msgpack";
import { joinedBytes } from "../../../src/base/bytes.ts";
import {
  decodeAnalysis,
  decodeFailure,
  decodeRequestHeader,
  decodeResponseHeader,
  decodeSpeech,
  encodeAnalyze,
  encodeResponse,
  encodeSynthesize,
  ProtocolFault,
} from "../../../src/model/sidecars/audio_protocol.ts";
import { AUDIO_PROFILES, type LocalAudio, SPEECH_ENGINES } from "../../../src/model/sidecars/local_audio.ts";
import { wavOf } from "../../../src/model/sidecars/wav.ts";
import { seededRandom } from "../../support/seeded_random.ts";

const CAPACITY = { active: 1, queued: 0, limit: 1 };
const OBSERVATION = {
  start_offset_ms: 0,
  end_offset_ms: 60_000,
  kind: "speech" as const,
  label: "speech",
  confidence: 1,
  model: "m",
  transcript: "said",
  language: "en",
  emotion: null,
};
const ANALYSIS: LocalAudio = {
  profile: "general",
  speech_engine: "whisper",
  models: ["m"],
  observations: [OBSERVATION],
  audio_duration_ms: 1000.5,
  audio_bytes: 32_044,
  queue_wait_ms: 0,
  stages: { decode_ms: 0.5, vad_ms: 1, classifier_ms: 2, asr_ms: 3 },
  capacity: CAPACITY,
  processing_ms: 6.5,
};

const REQUEST = {
  profile: "physical_world",
  engine: "whisper",
  sourceStartMs: 2 ** 40 + 3,
  maxEvents: 64,
  minConfidence: 0.35,
} as const;

Deno.test("a request to analyze is laid out byte for byte as documented", () => {
  const wav = wavOf(new Int16Array(2), 16_000);
  const [header, body] = encodeAnalyze(REQUEST, wav);
  const expected = "56584155" + "01010306" + "00000000" + "0000010000000003" + "00000030" + "00000000" +
    "00400dac";
  equal(header!.toHex(), expected);
  equal(body, wav);
});

Deno.test("a request to speak names a profile and an engine without a meaning, and counts the bytes of its text", () => {
  const [header, text] = encodeSynthesize("grüß");
  equal(
    header!.toHex(),
    "56584155" + "01020205" + "00000000" + "0000000000000000" + "00000000" + "00000006" + "00010000",
  );
  equal(new TextDecoder().decode(text), "grüß");
  deepEqual(decodeRequestHeader(header!), { operation: "synthesize", audioBytes: 0, textBytes: 6 });
});

Deno.test("the request arrives, for every profile, engine and confidence", () => {
  for (const profile of AUDIO_PROFILES) {
    for (const engine of SPEECH_ENGINES) {
      for (const minConfidence of [0, 0.0001, 0.35, 0.99994, 1]) {
        const [header] = encodeAnalyze({ ...REQUEST, profile, engine, minConfidence }, new Uint8Array(9));
        const arrived = { ...REQUEST, profile, engine, minConfidence: Math.round(minConfidence * 1e4) / 1e4 };
        deepEqual(decodeRequestHeader(header!), {
          operation: "analyze",
          ...arrived,
          audioBytes: 9,
          textBytes: 0,
        });
      }
    }
  }
});

Deno.test("a header that breaks a rule is refused by the name of the field", () => {
  const check = (change: (view: DataView) => void, expected: RegExp) => {
    const header = encodeAnalyze(REQUEST, new Uint8Array(1))[0]!;
    change(new DataView(header.buffer));
    throws(
      () => decodeRequestHeader(header),
      (error) => error instanceof ProtocolFault && expected.test(error.message),
    );
  };
  check((view) => view.setUint8(0, 0), /the magic/);
  check((view) => view.setUint8(4, 2), /the version/);
  check((view) => view.setUint8(5, 0), /operation/);
  check((view) => view.setUint8(5, 3), /operation/);
  check((view) => view.setUint8(6, 4), /the profile/);
  check((view) => view.setUint8(7, 7), /the engine/);
  check((view) => view.setUint8(9, 1), /the flags/);
  check((view) => view.setUint8(11, 1), /the reserved/);
  check((view) => view.setUint32(20, 0), /length of the audio/);
  check((view) => view.setUint32(20, 4 * 2 ** 20 + 1), /length of the audio/);
  check((view) => view.setUint32(24, 1), /length of the text/);
  check((view) => view.setUint16(28, 0), /most observations/);
  check((view) => view.setUint16(28, 65), /most observations/);
  check((view) => view.setUint16(30, 10_001), /least confidence/);
  check((view) => view.setUint8(5, 2), /length of the audio/); // speaks, but has audio
});

Deno.test("an answer arrives unchanged", () => {
  const read = (parts: Uint8Array[]) => {
    const bytes = joinedBytes(...parts);
    const header = decodeResponseHeader(bytes.subarray(0, 16));
    equal(bytes.length, 16 + header.metadataBytes + header.audioBytes);
    return { status: header.status, metadata: bytes.subarray(16, 16 + header.metadataBytes) };
  };
  const analysis = read(encodeResponse("ok", ANALYSIS));
  equal(analysis.status, "ok");
  deepEqual(decodeAnalysis(analysis.metadata), ANALYSIS);
  const speech = { model: "v", sample_rate_hz: 22_050, processing_ms: 5, capacity: CAPACITY };
  deepEqual(decodeSpeech(read(encodeResponse("ok", speech, new Uint8Array(3))).metadata), speech);
  const failure = { reason: "model_load", message: "none", capacity: CAPACITY } as const;
  const failed = read(encodeResponse("overloaded", failure));
  equal(failed.status, "overloaded");
  deepEqual(decodeFailure(failed.metadata), failure);
  equal(decodeFailure(encode({ ...failure, reason: "nobody knows" })).reason, "inference");
  equal(decodeFailure(encode({ reason: "decode", message: "" })).reason, "decode");
});

Deno.test("an analysis is taken up to every limit and refused beyond it, by the name of the key", () => {
  const check = (changed: Record<string, unknown>, expected?: RegExp) => {
    const packed = encode({ ...ANALYSIS, ...changed });
    if (expected) {
      throws(() => decodeAnalysis(packed), (error) => {
        match((error as Error).message, expected);
        return error instanceof ProtocolFault;
      });
    } else decodeAnalysis(packed);
  };
  const observed = (changed: Record<string, unknown>, expected?: RegExp) =>
    check({ observations: [{ ...OBSERVATION, ...changed }] }, expected);
  check({ extra: 1 }, /extra/);
  check({ models: Array(16).fill("m") });
  check({ models: Array(17).fill("m") }, /models/);
  check({ models: ["m".repeat(256)] });
  check({ models: ["ü".repeat(129)] }, /models.*256 bytes/);
  check({ profile: "game" }, /profile/);
  check({ speech_engine: "sense_voice" }, /speech_engine/);
  check({ speech_engine: "lfm25_audio" }, /speech_engine/);
  check({ observations: Array(64).fill(OBSERVATION) });
  check({ observations: Array(65).fill(OBSERVATION) }, /array length/i);
  check({ audio_duration_ms: -1 }, /audio_duration_ms/);
  check({ audio_duration_ms: NaN }, /audio_duration_ms/);
  check({ audio_bytes: 1.5 }, /audio_bytes/);
  check({ capacity: { active: 0, queued: 0 } }, /capacity.limit/);
  check({ stages: { ...ANALYSIS.stages, other_ms: 1 } }, /other_ms/);
  observed({ surprise: 1 }, /surprise/);
  observed({ end_offset_ms: 0 }, /end after it starts/);
  observed({ end_offset_ms: 60_001 }, /end_offset_ms/);
  observed({ start_offset_ms: -1 }, /start_offset_ms/);
  observed({ kind: "music" }, /kind/);
  observed({ label: "" }, /label/);
  observed({ label: "x".repeat(128) });
  observed({ label: "x".repeat(129) }, /label/);
  observed({ confidence: 1.001 }, /confidence/);
  observed({ transcript: "x".repeat(16_384), language: "x".repeat(64), emotion: "x".repeat(64) });
  observed({ transcript: "x".repeat(16_385) }, /length/);
  observed({ language: "x".repeat(65) }, /language/);
  observed({ emotion: "x".repeat(65) }, /emotion/);
  observed({ transcript: undefined });
});

Deno.test("any bytes give at most a ProtocolFault", () => {
  const random = seededRandom(11);
  const valid = joinedBytes(...encodeResponse("ok", ANALYSIS));
  const nested = new Uint8Array(400_000).fill(0x91);
  const readers = [decodeAnalysis, decodeSpeech, decodeFailure];
  const refuses = (read: (bytes: Uint8Array) => unknown, bytes: Uint8Array) => {
    try {
      read(bytes);
    } catch (error) {
      if (!(error instanceof ProtocolFault)) throw error;
    }
  };
  for (const read of readers) refuses(read, nested);
  for (let round = 0; round < 5_000; round += 1) {
    const bytes = round % 2 === 0
      ? Uint8Array.from({ length: 32 + Math.floor(random() * 64) }, () => Math.floor(random() * 256))
      : valid.slice();
    bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
    refuses(decodeResponseHeader, bytes.subarray(0, 16));
    refuses(decodeRequestHeader, bytes.subarray(0, 32));
    for (const read of readers) refuses(read, bytes.subarray(16));
  }
});
