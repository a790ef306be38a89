import { deepEqual, equal, ok } from "node:assert/strict";
import {
  backgroundScene,
  espeakVoice,
  RATE,
  type Scene,
  soundScene,
  speechScene,
} from "../../bench/sidecars/audio_scenes.ts";
import { AUDIO_PROFILES, type AudioObservation } from "../../src/model/sidecars/local_audio.ts";
import { measure } from "../../src/sidecar/audio/features.ts";
import { RealFourier } from "../../src/sidecar/audio/fourier.ts";
import { detect, selected } from "../../src/sidecar/audio/detection.ts";
import { labelOf } from "../../src/sidecar/audio/profile_labels.ts";
import { SOUNDS } from "../../src/sidecar/audio/sound_events.ts";
import { seededRandom } from "../support/seeded_random.ts";
import { ESPEAK, needing } from "../support/needs.ts";

const detectionsIn = (samples: Int16Array) => detect(samples, "general", () => 0);

/** Precision and recall of the detector, counted in frames of 10 ms. */
function judged({ samples, speech }: Scene) {
  const named = new Uint8Array(speech.length);
  for (const { start_offset_ms, end_offset_ms } of detectionsIn(samples).voice) {
    named.fill(1, start_offset_ms / 10, end_offset_ms / 10);
  }
  const right = named.filter((is, frame) => is && speech[frame]).length;
  return {
    precision: right / named.filter((is) => is).length,
    recall: right / speech.filter((is) => is).length,
  };
}

Deno.test("the transform is the Fourier transform", () => {
  const random = seededRandom(1);
  for (const size of [8, 64, 1024]) {
    const samples = Float64Array.from({ length: size }, () => random() - 0.5);
    const fourier = new RealFourier(size);
    fourier.transform(samples);
    for (const k of [0, 1, 3, size / 4, size / 2 - 1, size / 2]) {
      let [real, imaginary] = [0, 0];
      for (const [n, sample] of samples.entries()) {
        real += sample * Math.cos(2 * Math.PI * k * n / size);
        imaginary -= sample * Math.sin(2 * Math.PI * k * n / size);
      }
      ok(Math.hypot(fourier.real[k]! - real, fourier.imaginary[k]! - imaginary) < 1e-9, `${size} ${k}`);
    }
  }
});

Deno.test("the measures of a sine are those of a sine", () => {
  const sine = Int16Array.from({ length: RATE }, (_, n) => 16384 * Math.sin(2 * Math.PI * 1000 * n / RATE));
  const { frames, levelDb, peakHz, peakShare, flatness } = measure(sine);
  equal(frames, 100);
  ok(Math.abs(levelDb[50]! + 9.03) < 0.05, `level ${levelDb[50]}`);
  ok(Math.abs(peakHz[50]! - 1000) < 1, `peak ${peakHz[50]}`);
  ok(peakShare[50]! > 0.99 && flatness[50]! < 0.01);
});

Deno.test({
  ...needing(ESPEAK, "voices are found in quiet and over noise, tones and music"),
  fn: () => {
    const check = (background: string | null, snrDb: number, precision: number, recall: number) => {
      const got = judged(speechScene(espeakVoice, background, snrDb, 4242));
      const said = `${background} at ${snrDb} dB: ${JSON.stringify(got)}`;
      ok(got.precision >= precision && got.recall >= recall, said);
    };
    check(null, 0, 0.9, 0.9);
    check("white", 10, 0.85, 0.85);
    check("pink", 10, 0.85, 0.85);
    check("music", 15, 0.8, 0.8);
    check("tone", 10, 0.85, 0.85);
    check("engine", 10, 0.85, 0.85);
  },
});

Deno.test("no voice is found without speech", () => {
  for (const background of ["white", "pink", "hum", "engine", "tone", "clicks", "chirps"]) {
    deepEqual(detectionsIn(backgroundScene(background, 99).samples).voice, [], background);
  }
});

Deno.test("each sound is found where it is, under its name", () => {
  for (const sound of SOUNDS) {
    for (const seed of [501, 502]) {
      const scene = soundScene(sound, seed);
      const named = detectionsIn(scene.samples).sounds.filter(({ label }) => label === sound);
      const found = scene.sounds.filter(({ startMs, endMs }) =>
        named.some((event) => event.start_offset_ms < endMs + 100 && event.end_offset_ms > startMs - 100)
      );
      ok(
        found.length >= scene.sounds.length * 0.75,
        `${sound} ${seed}: ${found.length} of ${scene.sounds.length}`,
      );
      ok(named.every(({ confidence }) => confidence >= 0.5 && confidence <= 1));
    }
  }
});

Deno.test("windows of any length are analyzed, and nothing reaches beyond their end", () => {
  const scene = soundScene("alarm", 7).samples;
  for (const length of [0, 1, 15, 16, 159, 160, 161, 1_000, 4_003, 100_000]) {
    const { voice, sounds } = detectionsIn(scene.subarray(0, length));
    for (const { start_offset_ms, end_offset_ms } of [...voice, ...sounds]) {
      ok(start_offset_ms < end_offset_ms && end_offset_ms <= length / 16, `${length}: ${end_offset_ms}`);
    }
  }
  const loud = Int16Array.from({ length: RATE }, (_, n) => n % 2 ? 32767 : -32768);
  detectionsIn(loud);
});

Deno.test("general profiles name every sound, the others only what they have a name for", () => {
  const labels = (profile: typeof AUDIO_PROFILES[number]) => SOUNDS.map((sound) => labelOf(sound, profile));
  deepEqual(labels("general"), [...SOUNDS]);
  deepEqual(labels("physical_world"), [...SOUNDS]);
  deepEqual(labels("gameplay").filter(Boolean), ["alarm", "music", "impact"]);
  deepEqual(labels("screen_recording").filter(Boolean), ["notification", "alarm", "music", "click"]);
});

Deno.test("of too many observations the most confident remain, speech first, in order of time", () => {
  const make = (start: number, kind: AudioObservation["kind"], confidence: number): AudioObservation => ({
    start_offset_ms: start,
    end_offset_ms: start + 10,
    kind,
    label: "x",
    confidence,
    model: "m",
  });
  const all = [
    make(0, "voice_activity", 0.99),
    make(10, "audio_event", 0.6),
    make(20, "speech", 0.5),
    make(30, "audio_event", 0.9),
    make(40, "audio_event", 0.2),
  ];
  const starts = (maxEvents: number, minConfidence: number) =>
    selected(all, { maxEvents, minConfidence }).map((observation) => observation.start_offset_ms);
  deepEqual(starts(64, 0), [0, 10, 20, 30, 40]);
  deepEqual(starts(64, 0.5), [0, 10, 20, 30]);
  deepEqual(starts(2, 0.35), [20, 30]);
  deepEqual(starts(1, 0), [20]);
});
