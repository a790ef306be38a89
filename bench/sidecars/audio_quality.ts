/**
 * The detection quality of the reference audio sidecar, on generated windows with known content and with
 * seeds that were not used for its tuning, and its real-time factor. Needs espeak-ng and ffmpeg; uses voices
 * of flite if ffmpeg has them.
 *
 *     ./scripts/deno run -A bench/sidecars/audio_quality.ts [seeds, 2,3 unless given]
 */

import { detect } from "../../src/sidecar/audio/detection.ts";
import { SOUNDS } from "../../src/sidecar/audio/sound_events.ts";
import {
  BACKGROUNDS,
  backgroundScene,
  espeakVoice,
  FLITE_JUDGING,
  fliteVoice,
  resampled,
  type Scene,
  soundScene,
  speechScene,
  type Voice,
} from "./audio_scenes.ts";

/**
 * When somebody speaks in recordings of the test media: milliseconds, read from spectrograms; null is
 * unknown.
 */
const RECORDINGS: Readonly<Record<string, readonly (readonly [number, number])[] | null>> = {
  "nasa_13013.mp4": [[720, 4640], [5180, 7990], [8590, 11_880]],
  "chrome_ad.webm": [],
  "elf_cc0.webm": [],
  "mediabunny_hevc.mp4": [],
  "friday_cc0.mp4": null,
};
const MEDIA = new URL("../../../shared/media/clips/", import.meta.url).pathname;

interface Counts {
  right: number;
  wrong: number;
  missed: number;
}

const seeds = (Deno.args[0] ?? "2,3").split(",").map(Number);
const timing = { detectionMs: 0, audioMs: 0 };

voiceTable("espeak-ng, the voices used for tuning, other seeds", espeakVoice);
if (hasFlite()) {
  voiceTable(`flite, voices ${FLITE_JUDGING.join(" and ")}, not used for tuning`, fliteVoice(FLITE_JUDGING));
}
falseVoices();
soundTable();
recordings();
console.log(`\nreal-time factor: ${(timing.detectionMs / timing.audioMs).toFixed(4)}`);

function voiceTable(title: string, voice: Voice): void {
  console.log(`\nvoice activity, frames of 10 ms, precision/recall in %: ${title}`);
  console.log("background      20 dB         10 dB          5 dB");
  const all: Counts = { right: 0, wrong: 0, missed: 0 };
  for (const background of [null, ...Object.keys(BACKGROUNDS)]) {
    const cells = (background ? [20, 10, 5] : [0]).map((snrDb) => {
      const counts: Counts = { right: 0, wrong: 0, missed: 0 };
      for (const seed of seeds) {
        addVoice(
          counts,
          speechScene(voice, background, snrDb, seed * 7919 + snrDb * 31 + (background?.length ?? 0)),
        );
      }
      addCounts(all, counts);
      return ratios(counts);
    });
    console.log(`${(background ?? "quiet").padEnd(10)}${cells.join(" ")}`);
  }
  console.log(`all       ${ratios(all)}`);
}

function falseVoices(): void {
  console.log("\nframes detected as voice although nobody speaks, %");
  for (const background of Object.keys(BACKGROUNDS)) {
    const counts: Counts = { right: 0, wrong: 0, missed: 0 };
    for (const seed of seeds) {
      for (let n = 0; n < 3; n += 1) addVoice(counts, backgroundScene(background, seed * 104_729 + n));
    }
    console.log(`${background.padEnd(10)}${percent(counts.wrong, seeds.length * 3 * 2000)}`);
  }
}

/**
 * A sound is found when a detected event with its label overlaps it. Events with other labels are counted by
 * label.
 */
function soundTable(): void {
  console.log("\nsounds, ten windows for each seed: found/present, and other detected labels");
  for (const sound of SOUNDS) {
    let [found, present] = [0, 0];
    const others = new Map<string, number>();
    for (const seed of seeds) {
      for (let n = 0; n < 10; n += 1) {
        const scene = soundScene(sound, seed * 31_337 + n);
        const events = detected(scene.samples).sounds;
        const named = events.filter(({ label }) => label === sound);
        present += scene.sounds.length;
        found += scene.sounds.filter(({ startMs, endMs }) =>
          named.some((event) =>
            event.start_offset_ms < endMs + 100 && event.end_offset_ms > startMs - 100
          )
        ).length;
        for (const { label } of events) if (label !== sound) others.set(label, (others.get(label) ?? 0) + 1);
      }
    }
    const also = [...others].map(([label, count]) => `${label} ${count}`).join(", ");
    console.log(`${sound.padEnd(10)}${String(found).padStart(4)}/${String(present).padEnd(5)}${also}`);
  }
}

function recordings(): void {
  console.log("\nrecordings");
  for (const [name, truth] of Object.entries(RECORDINGS)) {
    let samples;
    try {
      samples = recorded(name);
    } catch {
      console.log(`${name.padEnd(22)}not here, skipped`);
      continue;
    }
    const speech = new Uint8Array(Math.ceil(samples.length / 160));
    for (const [from, to] of truth ?? []) speech.fill(1, from / 10, to / 10);
    const counts: Counts = { right: 0, wrong: 0, missed: 0 };
    addVoice(counts, { name, samples, speech, sounds: [] });
    const labels = new Set(detected(samples).sounds.map(({ label }) => label));
    const verdict = truth === null
      ? `truth unknown, ${percent(counts.wrong, speech.length)} % voice`
      : truth.length > 0
      ? ratios(counts)
      : `nobody speaks, ${percent(counts.wrong, speech.length)} % voice`;
    console.log(`${name.padEnd(22)}${verdict}; sounds: ${[...labels].join(", ") || "none"}`);
  }
}

function recorded(name: string): Int16Array<ArrayBuffer> {
  Deno.statSync(MEDIA + name);
  const { stdout } = new Deno.Command("ffmpeg", {
    args: ["-nostdin", "-v", "error", "-i", MEDIA + name, "-map", "0:a:0", "-ac", "1", "-ar", "16000"]
      .concat(["-f", "wav", "-c:a", "pcm_s16le", "-"]),
  }).outputSync();
  return Int16Array.from(resampled(stdout), (x) => Math.round(x * 32_767));
}

function detected(samples: Int16Array) {
  const startedMs = performance.now();
  const result = detect(samples, "general", () => performance.now());
  timing.detectionMs += performance.now() - startedMs;
  timing.audioMs += samples.length / 16;
  return result;
}

function addVoice(counts: Counts, { samples, speech }: Scene): void {
  const named = new Uint8Array(speech.length);
  for (const { start_offset_ms, end_offset_ms } of detected(samples).voice) {
    named.fill(1, start_offset_ms / 10, end_offset_ms / 10);
  }
  for (const [frame, isNamed] of named.entries()) {
    if (isNamed && speech[frame]) counts.right += 1;
    else if (isNamed) counts.wrong += 1;
    else if (speech[frame]) counts.missed += 1;
  }
}

function addCounts(sum: Counts, { right, wrong, missed }: Counts): void {
  sum.right += right;
  sum.wrong += wrong;
  sum.missed += missed;
}

function ratios({ right, wrong, missed }: Counts): string {
  return `${percent(right, right + wrong)}/${percent(right, right + missed)}`.padStart(13);
}

function percent(part: number, whole: number): string {
  return whole > 0 ? (100 * part / whole).toFixed(1) : "-";
}

function hasFlite(): boolean {
  const { stdout } = new Deno.Command("ffmpeg", { args: ["-hide_banner", "-filters"], stderr: "null" })
    .outputSync();
  return / flite /.test(new TextDecoder().decode(stdout));
}
