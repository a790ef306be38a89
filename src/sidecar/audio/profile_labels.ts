/** What a sound is called, which depends on what is recorded. */

import type { AudioProfile } from "../../model/sidecars/local_audio.ts";
import type { Sound } from "./sound_events.ts";

/** The label of a sound; undefined where the profile has no use for it. Contract 12.2. */
export function labelOf(sound: Sound, profile: AudioProfile): string | undefined {
  if (profile === "gameplay") return GAMEPLAY[sound];
  if (profile === "screen_recording") return SCREEN_RECORDING[sound];
  return sound;
}

const GAMEPLAY: Readonly<Partial<Record<Sound, string>>> = {
  impact: "impact",
  alarm: "alarm",
  music: "music",
};

const SCREEN_RECORDING: Readonly<Partial<Record<Sound, string>>> = {
  beep: "notification",
  click: "click",
  alarm: "alarm",
  music: "music",
};
