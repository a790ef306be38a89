/**
 * Trains the small model of voice activity and writes `weights/voice.json`. The training
 * windows come from `bench/sidecars/audio_scenes.ts`; `bench/sidecars/audio_quality.ts` measures with other
 * seeds. Needs espeak-ng and an ffmpeg with libflite.
 */

import { measure } from "../src/sidecar/audio/features.ts";
import { SOUNDS } from "../src/sidecar/audio/sound_events.ts";
import { EVIDENCE, voiceEvidence } from "../src/sidecar/audio/voice_activity.ts";
import { writeWeights } from "./cuts/weights_file.ts";
import { seededRandom } from "../test/support/seeded_random.ts";
import {
  BACKGROUNDS,
  backgroundScene,
  espeakVoice,
  FLITE_TUNING,
  fliteVoice,
  type Scene,
  soundScene,
  speechScene,
} from "../bench/sidecars/audio_scenes.ts";

const SEED = 1;
const UNITS = 8;
const EPOCHS = 30;
const BATCH = 64;
const DECAY = 6e-4;
const WIDTH = EVIDENCE.length;
/**
 * How many windows there are of the sounds that are easily mistaken for speech. Other backgrounds have 2,
 * other sounds 1.
 */
const BACKGROUND_TIMES: Readonly<Record<string, number>> = { music: 8, film: 8, rattle: 5, warble: 5 };
const SOUND_TIMES: Readonly<Record<string, number>> = { alarm: 6, beep: 3 };

const rows: Float32Array[] = [];
const truths: number[] = [];
for (const scene of scenes()) addRows(scene);
const weights = fit();
writeWeights("voice", { rows: rowsIn(weights) });

function* scenes(): Generator<Scene> {
  let seed = SEED * 1000;
  for (const voice of [espeakVoice, fliteVoice(FLITE_TUNING)]) {
    for (const background of [null, ...Object.keys(BACKGROUNDS)]) {
      for (const snrDb of background ? [20, 10, 5] : [0, 0, 0]) {
        yield speechScene(voice, background, snrDb, seed++);
      }
    }
  }
  for (const background of Object.keys(BACKGROUNDS)) {
    for (let n = 0; n < (BACKGROUND_TIMES[background] ?? 2); n += 1) {
      yield backgroundScene(background, seed++);
    }
  }
  for (const sound of SOUNDS) {
    for (let n = 0; n < (SOUND_TIMES[sound] ?? 1); n += 1) yield soundScene(sound, seed++);
  }
}

/**
 * Adds every fourth frame, without short pauses in speech: those are labelled as speech but sound like
 * silence.
 */
function addRows({ samples, speech }: Scene): void {
  const evidence = voiceEvidence(measure(samples));
  for (let frame = 0; frame < speech.length; frame += 4) {
    if (speech[frame] === 2) continue;
    rows.push(evidence.slice(frame * WIDTH, (frame + 1) * WIDTH));
    truths.push(speech[frame]!);
  }
}

/**
 * Adam on the cross entropy with label smoothing. Returns the weights and bias of each hidden unit, then
 * those of the output.
 */
function fit(): Float64Array {
  const random = seededRandom(SEED);
  const outer = UNITS * (WIDTH + 1);
  const size = outer + UNITS + 1;
  const weights = Float64Array.from(
    { length: size },
    () => (random() + random() + random() + random() - 2) * 0.4,
  );
  const [first, second, slope] = [new Float64Array(size), new Float64Array(size), new Float64Array(size)];
  const hidden = new Float64Array(UNITS);
  const order = rows.map((_, index) => index);
  let step = 0;
  for (let epoch = 0; epoch < EPOCHS; epoch += 1) {
    for (let last = order.length - 1; last > 0; last -= 1) {
      const other = Math.floor(random() * (last + 1));
      [order[last], order[other]] = [order[other]!, order[last]!];
    }
    let loss = 0;
    const rate = 0.01 * (1 - epoch / EPOCHS) + 0.0003;
    for (let from = 0; from + BATCH <= order.length; from += BATCH) {
      slope.fill(0);
      for (const index of order.slice(from, from + BATCH)) {
        const row = rows[index]!;
        const isSpeech = truths[index]! === 1;
        let sum = weights[size - 1]!;
        for (let unit = 0; unit < UNITS; unit += 1) {
          const at = unit * (WIDTH + 1);
          let inner = weights[at + WIDTH]!;
          for (let k = 0; k < WIDTH; k += 1) inner += weights[at + k]! * row[k]!;
          hidden[unit] = Math.tanh(inner);
          sum += weights[outer + unit]! * hidden[unit]!;
        }
        const guess = 1 / (1 + Math.exp(-sum));
        loss -= Math.log(Math.max(1e-9, isSpeech ? guess : 1 - guess));
        const error = (guess - (isSpeech ? 0.98 : 0.02)) / BATCH;
        slope[size - 1]! += error;
        for (let unit = 0; unit < UNITS; unit += 1) {
          const at = unit * (WIDTH + 1);
          slope[outer + unit]! += error * hidden[unit]!;
          const back = error * weights[outer + unit]! * (1 - hidden[unit]! ** 2);
          for (let k = 0; k < WIDTH; k += 1) slope[at + k]! += back * row[k]!;
          slope[at + WIDTH]! += back;
        }
      }
      step += 1;
      for (let n = 0; n < size; n += 1) {
        const pull = slope[n]! + DECAY * weights[n]!;
        first[n] = 0.9 * first[n]! + 0.1 * pull;
        second[n] = 0.999 * second[n]! + 0.001 * pull ** 2;
        const length = Math.sqrt(second[n]! / (1 - 0.999 ** step)) + 1e-8;
        weights[n]! -= rate * first[n]! / (1 - 0.9 ** step) / length;
      }
    }
    console.log(`epoch ${epoch + 1} of ${EPOCHS}: loss ${(loss / order.length).toFixed(4)}`);
  }
  return weights;
}

/** A row for each unit, and one for the output; two decimals are enough. */
function rowsIn(weights: Float64Array): number[][] {
  const row = (from: number, length: number) =>
    [...weights.slice(from, from + length)].map((weight) => Number(weight.toFixed(2)));
  return [
    ...Array.from({ length: UNITS }, (_, unit) => row(unit * (WIDTH + 1), WIDTH + 1)),
    row(UNITS * (WIDTH + 1), UNITS + 1),
  ];
}
