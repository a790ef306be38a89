/** Windows of audio with known content, generated from a seed: speech over synthetic noise, tones and music.
 */

import { seededRandom } from "../../test/support/seeded_random.ts";
import { readWav, wavSamples } from "../../src/model/sidecars/wav.ts";

export const RATE = 16_000;
const FRAME = 160;

export interface Scene {
  readonly name: string;
  readonly samples: Int16Array<ArrayBuffer>;
  /**
   * For each 10 ms: 1 if somebody speaks, 2 in a pause of less than 300 ms, which counts as speech, else 0.
   */
  readonly speech: Uint8Array<ArrayBuffer>;
  /** The other sounds, times in milliseconds. */
  readonly sounds: readonly { readonly label: string; readonly startMs: number; readonly endMs: number }[];
}

/** Samples of a part of a scene; full scale is 1. */
type Signal = Float64Array<ArrayBuffer>;

/** Speaks a text; returns samples at 16 kHz in [-1, 1]. */
export type Voice = (text: string, random: () => number) => Signal;

const SENTENCES = [
  "The delivery truck is parked in bay four and the driver is waiting for a signature.",
  "Please remember to close the window before you leave.",
  "Seven people walked past the camera, then turned left at the corner.",
  "I think the second machine stopped a moment ago.",
  "What time does the next train to the airport leave?",
  "Save the document, open the settings page and choose the other account.",
  "No, that was not me.",
  "Watch out!",
  "She sells fresh fish and vegetables at the market every Thursday.",
  "Attention please, the building will close in fifteen minutes.",
];

const ESPEAK_VOICES = [
  "en-us",
  "en-gb",
  "en-us+f2",
  "en-us+f4",
  "en-gb+m3",
  "en-us+m7",
  "de",
  "fr",
  "es+f3",
  "it+m2",
];

/** Speaks with a random voice, rate and pitch of espeak-ng. */
export function espeakVoice(text: string, random: () => number): Signal {
  const { success, stdout } = new Deno.Command("espeak-ng", {
    args: [
      "--stdout",
      ...["-v", ESPEAK_VOICES[Math.floor(random() * ESPEAK_VOICES.length)]!],
      ...["-s", String(Math.round(120 + random() * 120))],
      ...["-p", String(Math.round(20 + random() * 60))],
      text,
    ],
  }).outputSync();
  if (!success) throw new Error("espeak-ng failed");
  return resampled(stdout);
}

/** Voices of flite, made from recordings of people: two for the tuning and two for the measurement. */
export const FLITE_TUNING = ["slt", "rms"];
export const FLITE_JUDGING = ["awb", "kal16"];

/** Voices of flite. They need an ffmpeg with libflite. */
export function fliteVoice(voices: readonly string[]): Voice {
  return (text, random) => flite(text, voices[Math.floor(random() * voices.length)]!);
}

function flite(text: string, voice: string): Signal {
  const quoted = text.replaceAll(/[^A-Za-z0-9 ]/g, " ");
  const { success, stdout, stderr } = new Deno.Command("ffmpeg", {
    args: ["-nostdin", "-v", "error", "-f", "lavfi", "-i", `flite=text='${quoted}':voice=${voice}`]
      .concat(["-ac", "1", "-ar", String(RATE), "-f", "wav", "-c:a", "pcm_s16le", "-"]),
  }).outputSync();
  if (!success) throw new Error(`ffmpeg cannot speak: ${new TextDecoder().decode(stderr)}`);
  return resampled(stdout);
}

/** A WAV of any sample rate as a signal at 16 kHz. */
export function resampled(wav: Uint8Array): Signal {
  const shape = readWav(wav);
  if (typeof shape === "string") throw new Error(shape);
  const samples = wavSamples(wav, shape);
  const length = Math.floor(samples.length * RATE / shape.sampleRateHz);
  return Float64Array.from({ length }, (_, index) => {
    const at = index * shape.sampleRateHz / RATE;
    const left = Math.floor(at);
    const [a, b] = [samples[left] ?? 0, samples[left + 1] ?? 0];
    return (a + (b - a) * (at - left)) / 32768;
  });
}

/** Background sounds, for speech or alone; each returns `length` samples with a level of about -20 dB. */
export const BACKGROUNDS: Readonly<Record<string, (length: number, random: () => number) => Signal>> = {
  white: (length, random) => scaled(noise(length, random), 0.1),
  pink: (length, random) => scaled(pink(length, random), 0.1),
  hum: (length, random) =>
    scaled(harmonics(length, random() < 0.5 ? 50 : 60, [1, 0.6, 0.5, 0.3, 0.2], random), 0.1),
  engine: (length, random) => {
    const base = 35 + random() * 60;
    const wobble = random() * 6;
    return scaled(
      swept(length, (t) => base + wobble * Math.sin(t * 0.9), [1, 0.8, 0.7, 0.4, 0.3, 0.2]).map((x) =>
        x + 0.2 * (random() - 0.5)
      ),
      0.1,
    );
  },
  tone: (length, random) => scaled(harmonics(length, 300 + random() * 2500, [1], random), 0.1),
  music: (length, random) => scaled(melody(length, random), 0.1),
  clicks: (length, random) => {
    const signal: Signal = new Float64Array(length);
    for (let at = 0; at < length; at += Math.round(RATE * (0.15 + random() * 0.5))) {
      const hit = {
        at,
        gain: 0.4 + random() * 0.5,
        decayS: 0.004 + random() * 0.01,
        hz: 800 + random() * 3000,
      };
      strike(signal, hit, random);
    }
    return signal;
  },
  rattle: (length, random) => {
    const rate = 2 + random() * 9;
    const [centre, depth] = [300 + random() * 3000, 0.6 + random() * 0.4];
    const [low, high] = [centre / 2, centre * 1.5];
    return scaled(
      banded(noise(length, random), low, high).map((x, n) =>
        x * (1 - depth + depth * Math.max(0, Math.sin(2 * Math.PI * rate * n / RATE)) ** 2)
      ),
      0.1,
    );
  },
  warble: (length, random) => {
    const signal: Signal = new Float64Array(length);
    for (let at = 0; at < length; at += Math.round(RATE * (0.5 + random() * 2))) {
      const [from, ratio, seconds] = [200 + random() * 2000, 0.4 + random() * 2, 0.2 + random() * 2];
      const glide = swept(
        Math.round(RATE * seconds),
        (t) => from * ratio ** (t / seconds),
        [1, random() * 0.5, random() * 0.3],
      );
      add(signal, at, faded(scaled(glide, 0.1)));
    }
    return signal;
  },
  film: (length, random) => {
    const film = filmSound();
    const offset = Math.floor(random() * film.length);
    return scaled(Float64Array.from({ length }, (_, n) => film[(offset + n) % film.length]!), 0.1);
  },
  chirps: (length, random) => {
    const signal: Signal = new Float64Array(length);
    for (let at = 0; at < length; at += Math.round(RATE * (0.3 + random()))) {
      const from = 1500 + random() * 2000;
      const bird = swept(
        Math.round(RATE * (0.05 + random() * 0.15)),
        (t) => from + 6000 * t * (random() < 0.5 ? -1 : 1),
        [1],
      );
      add(signal, at, scaled(bird, 0.1));
    }
    return signal;
  },
};

/** The sound of the film in fixtures/: an orchestra, birds, effects, no speech. */
const filmSound = once(() => {
  const path = new URL("../../fixtures/clips/bbb480.mp4", import.meta.url).pathname;
  const { stdout } = new Deno.Command("ffmpeg", {
    args: [
      "-nostdin",
      "-v",
      "error",
      "-i",
      path,
      "-ac",
      "1",
      "-ar",
      String(RATE),
      "-f",
      "wav",
      "-c:a",
      "pcm_s16le",
      "-",
    ],
  }).outputSync();
  return resampled(stdout);
});

function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => made ??= make();
}

/**
 * 20 s of spoken sentences with pauses over one background. The speech is `snrDb` louder than the background,
 * and 12 to 30 dB below full scale.
 */
export function speechScene(voice: Voice, background: string | null, snrDb: number, seed: number): Scene {
  const random = seededRandom(seed);
  const length = RATE * 20;
  const speech: Signal = new Float64Array(length);
  for (let at = Math.round(RATE * random() * 2); at < length;) {
    const said = trimmed(voice(SENTENCES[Math.floor(random() * SENTENCES.length)]!, random));
    if (at + said.length > length) break;
    add(speech, at, scaled(said, 0.06));
    at += said.length + Math.round(RATE * (0.4 + random() ** 2 * 3.5));
  }
  const truth = speechFrames(speech);
  const gain = 10 ** (-(random() * 12) / 20) * 1.2;
  const underGain = 0.06 / 0.1 * 10 ** (-snrDb / 20);
  const under = background
    ? BACKGROUNDS[background]!(length, random).map((x) => x * underGain)
    : new Float64Array(length);
  return {
    name: `${background ?? "quiet"} ${snrDb} dB`,
    samples: quantized(inRoom(speech, under, gain, random)),
    speech: truth,
    sounds: [],
  };
}

/** 20 s of a background alone. */
export function backgroundScene(background: string, seed: number): Scene {
  const random = seededRandom(seed);
  const gain = 10 ** (-(random() * 20) / 20);
  const signal = BACKGROUNDS[background]!(RATE * 20, random);
  return {
    name: `${background} alone`,
    samples: quantized(inRoom(new Float64Array(signal.length), signal, gain, random)),
    speech: new Uint8Array(2000),
    sounds: [],
  };
}

/** 20 s with one kind of sound at known times over very quiet noise. */
export function soundScene(label: string, seed: number): Scene {
  const random = seededRandom(seed);
  const length = RATE * 20;
  const signal = noise(length, random).map((x) => x * 10 ** (-(50 + random() * 0.001) / 20));
  const sounds: { label: string; startMs: number; endMs: number }[] = [];
  const put = (startMs: number, sound: Signal) => {
    add(signal, Math.round(startMs * RATE / 1000), sound);
    sounds.push({ label, startMs, endMs: startMs + sound.length / RATE * 1000 });
  };
  const seconds = (count: number) => Math.round(RATE * count);
  const loud = () => 10 ** (-(14 + random() * 16) / 20);
  switch (label) {
    case "silence":
      return {
        name: label,
        samples: new Int16Array(length),
        speech: new Uint8Array(2000),
        sounds: [{ label, startMs: 0, endMs: 20_000 }],
      };
    case "tone":
      put(
        2000 + random() * 3000,
        scaled(harmonics(seconds(3 + random() * 6), 200 + random() * 3000, [1], random), loud()),
      );
      break;
    case "beep":
      for (let at = 1000 + random() * 1000; at < 18_000; at += 2500 + random() * 3000) {
        put(
          at,
          faded(
            scaled(
              harmonics(
                seconds(0.12 + random() * 0.5),
                500 + random() * 2500,
                random() < 0.5 ? [1] : [1, 0.3, 0.2],
                random,
              ),
              loud(),
            ),
          ),
        );
      }
      break;
    case "alarm": {
      const [low, high, half] = [600 + random() * 500, 1200 + random() * 1200, 0.15 + random() * 0.35];
      const kind = random();
      const sound = kind < 0.4
        ? swept(seconds(6 + random() * 6), (t) => t % (2 * half) < half ? low : high, [1, 0.3])
        : kind < 0.7
        ? swept(seconds(6 + random() * 6), () => high, [1, 0.2]).map((x, n) =>
          n / RATE % (2 * half) < half ? x : 0
        )
        : swept(
          seconds(6 + random() * 6),
          (t) => low + (high - low) * (0.5 - 0.5 * Math.cos(Math.PI * t / half / 2)),
          [1, 0.3],
        );
      put(2000 + random() * 3000, scaled(sound as Signal, loud()));
      break;
    }
    case "hum":
      put(1000, scaled(BACKGROUNDS.hum!(seconds(10 + random() * 8), random), loud()));
      break;
    case "noise":
      put(
        2000 + random() * 2000,
        scaled((random() < 0.5 ? noise : pink)(seconds(4 + random() * 8), random), loud()),
      );
      break;
    case "music":
      put(1000 + random() * 2000, scaled(melody(seconds(8 + random() * 8), random), loud()));
      break;
    case "impact":
      for (let at = 1000 + random() * 1000; at < 18_000; at += 2000 + random() * 3000) {
        const bang: Signal = new Float64Array(seconds(0.4));
        const hit = {
          at: 0,
          gain: 0.3 + random() * 0.6,
          decayS: 0.03 + random() * 0.06,
          hz: 80 + random() * 600,
        };
        strike(bang, hit, random);
        put(at, bang);
      }
      break;
    case "click":
      for (let at = 1000 + random() * 1000; at < 18_000; at += 1000 + random() * 3000) {
        const click: Signal = new Float64Array(seconds(0.05));
        const hit = {
          at: 0,
          gain: 0.1 + random() * 0.6,
          decayS: 0.001 + random() * 0.003,
          hz: 1500 + random() * 3000,
        };
        strike(click, hit, random);
        put(at, click);
      }
      break;
    default:
      throw new Error(`no sound is called ${label}`);
  }
  return { name: label, samples: quantized(signal), speech: new Uint8Array(2000), sounds };
}

/** Chords that change every four beats, often a melody with vibrato, and often drums. */
function melody(length: number, random: () => number): Signal {
  const signal: Signal = new Float64Array(length);
  const root = 110 * 2 ** (random() * 12 / 12);
  const scale = [0, 2, 4, 5, 7, 9, 11, 12, 14, 16];
  const beat = 0.3 + random() * 0.4;
  const timbre = Array.from({ length: 6 }, (_, index) => random() / (index + 1));
  timbre[0] = 1;
  const [hasBeat, hasLead, isPlucked] = [random() < 0.6, random() < 0.8, random() < 0.5];
  for (let at = 0, step = 0; at < length; at += Math.round(beat * RATE), step += 1) {
    if (step % 4 === 0) {
      const degree = Math.floor(random() * 6);
      for (const third of [0, 2, 4]) {
        const hz = root * 2 ** (scale[(degree + third) % scale.length]! / 12);
        add(
          signal,
          at,
          note({ length: Math.round(beat * 4 * RATE), hz, timbre, isPlucked, vibrato: 0, gain: 0.5 }),
        );
      }
    }
    if (hasLead && random() < 0.8) {
      const hz = root * 2 * 2 ** (scale[Math.floor(random() * scale.length)]! / 12);
      const beats = random() < 0.3 ? 2 : 1;
      const vibrato = random() < 0.4 ? 0.006 : 0;
      add(
        signal,
        at,
        note({ length: Math.round(beat * beats * RATE), hz, timbre, isPlucked, vibrato, gain: 0.8 }),
      );
    }
    if (hasBeat) {
      if (step % 2 === 0) strike(signal, { at, gain: 0.8, decayS: 0.05, hz: 60 }, random);
      else strike(signal, { at, gain: 0.4, decayS: 0.03, hz: 2500 }, random);
    }
  }
  return signal;
}

interface Note {
  readonly length: number;
  readonly hz: number;
  readonly timbre: readonly number[];
  readonly isPlucked: boolean;
  readonly vibrato: number;
  readonly gain: number;
}

function note({ length, hz, timbre, isPlucked, vibrato, gain }: Note): Signal {
  const sound = swept(length, (t) => hz * (1 + vibrato * Math.sin(2 * Math.PI * 5.5 * t)), timbre);
  return sound.map((x, n) => {
    const t = n / RATE;
    const decay = isPlucked ? Math.exp(-t * 3) : 1;
    return x * gain * decay * Math.min(1, t / 0.01, (length - n) / RATE / 0.02);
  });
}

interface Strike {
  readonly at: number;
  readonly gain: number;
  readonly decayS: number;
  readonly hz: number;
}

/** Adds a mixture of noise and a tone that starts at once and decays. */
function strike(signal: Signal, { at, gain, decayS, hz }: Strike, random: () => number): void {
  const length = Math.min(signal.length - at, Math.round(decayS * 8 * RATE));
  for (let n = 0; n < length; n += 1) {
    const t = n / RATE;
    const ring = Math.sin(2 * Math.PI * hz * t);
    signal[at + n]! += gain * Math.exp(-t / decayS) * (0.6 * ring + 0.4 * (random() * 2 - 1)) *
      Math.min(1, n / 8);
  }
}

function harmonics(length: number, hz: number, weights: readonly number[], random: () => number): Signal {
  const phase = random();
  return swept(length, () => hz, weights, phase);
}

function swept(length: number, hzAt: (t: number) => number, weights: readonly number[], phase = 0): Signal {
  const signal: Signal = new Float64Array(length);
  let turns = phase;
  for (let n = 0; n < length; n += 1) {
    turns += hzAt(n / RATE) / RATE;
    for (const [index, weight] of weights.entries()) {
      signal[n]! += weight * Math.sin(2 * Math.PI * turns * (index + 1));
    }
  }
  return signal;
}

function noise(length: number, random: () => number): Signal {
  return Float64Array.from({ length }, () => random() + random() + random() - 1.5);
}

function pink(length: number, random: () => number): Signal {
  const poles = [[0.99765, 0.099], [0.963, 0.2965], [0.57, 1.0526]] as const;
  const state = [0, 0, 0];
  return Float64Array.from({ length }, () => {
    const white = random() * 2 - 1;
    return poles.reduce(
      (sum, [pole, weight], index) => sum + (state[index] = state[index]! * pole + white * weight),
      white * 0.1848,
    );
  });
}

/**
 * The scene as a microphone would record it: the level of the background varies by a few dB, there is some
 * echo, a different frequency response, and the rumble and hiss of a room, 42 to 72 dB below full scale.
 */
function inRoom(speech: Signal, background: Signal, gain: number, random: () => number): Signal {
  const [rate, swell] = [0.3 + random() * 2.5, random() * 0.5];
  const taps = Array.from(
    { length: 12 },
    () => ({ delay: Math.round(RATE * random() ** 2 * 0.3), weight: 0 }),
  );
  const echo = random() < 0.5 ? 0 : random() * 0.5;
  for (const tap of taps) tap.weight = (random() - 0.5) * 2 * echo * Math.exp(-tap.delay / RATE / 0.1);
  const roomGain = 10 ** (-(42 + random() * 30) / 20);
  const rumble = random();
  const tilt = random() * 0.6;
  let [low, before] = [0, 0];
  const dry = speech.map((x, n) => {
    const phase = 2 * Math.PI * rate * n / RATE;
    const level = 1 + swell * 0.6 * (Math.sin(phase) + 0.5 * Math.sin(phase * 2.7 + 1));
    const hiss = random() - 0.5;
    low += 0.02 * (hiss - low);
    return (x + background[n]! * level) * gain + roomGain * (rumble * low * 8 + (1 - rumble) * hiss) * level;
  });
  return dry.map((x, n) => {
    let sum = x;
    for (const { delay, weight } of taps) if (n >= delay) sum += dry[n - delay]! * weight;
    const coloured = sum - tilt * before;
    before = sum;
    return coloured;
  });
}

/** A simple band-pass filter: two one-pole filters for each of the two frequencies. */
function banded(signal: Signal, lowHz: number, highHz: number): Signal {
  const [a, b] = [1 - Math.exp(-2 * Math.PI * highHz / RATE), 1 - Math.exp(-2 * Math.PI * lowHz / RATE)];
  let [first, second, third, fourth] = [0, 0, 0, 0];
  return signal.map((x) => {
    first += a * (x - first);
    second += a * (first - second);
    third += b * (second - third);
    fourth += b * (second - third - fourth);
    return second - third - fourth;
  });
}

function faded(signal: Signal): Signal {
  return signal.map((x, n) => x * Math.min(1, n / 80, (signal.length - n) / 80));
}

/** The signal scaled to this root mean square. */
function scaled(signal: Signal, rms: number): Signal {
  const now = Math.sqrt(signal.reduce((sum, x) => sum + x * x, 0) / signal.length) || 1;
  return signal.map((x) => x * rms / now);
}

function add(signal: Signal, at: number, part: Signal): void {
  for (let n = 0; n < part.length && at + n < signal.length; n += 1) signal[at + n]! += part[n]!;
}

function trimmed(signal: Signal): Signal {
  const isLoud = (x: number) => Math.abs(x) > 0.005;
  const first = signal.findIndex(isLoud);
  return first < 0 ? signal : signal.slice(first, signal.findLastIndex(isLoud) + 1);
}

function speechFrames(signal: Signal): Uint8Array<ArrayBuffer> {
  const frames = new Uint8Array(signal.length / FRAME);
  for (let frame = 0; frame < frames.length; frame += 1) {
    let energy = 0;
    for (let n = 0; n < FRAME; n += 1) energy += signal[frame * FRAME + n]! ** 2;
    frames[frame] = Math.sqrt(energy / FRAME) > 0.06 * 0.05 ? 1 : 0;
  }
  for (let last = -1, frame = 0; frame < frames.length; frame += 1) {
    if (!frames[frame]) continue;
    if (last >= 0 && frame - last <= 30) frames.fill(2, last + 1, frame);
    last = frame;
  }
  return frames;
}

function quantized(signal: Signal): Int16Array<ArrayBuffer> {
  return Int16Array.from(signal, (x) => Math.max(-32768, Math.min(32767, Math.round(x * 32767))));
}
