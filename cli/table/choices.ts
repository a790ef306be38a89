/** The words that the server takes in some fields, for help and completions. It checks them itself. */

export const MODES = ["balanced", "detailed", "efficiency", "custom"];
export const RUN_STATES: readonly (readonly [state: string, isTerminal: boolean, meaning: string])[] = [
  ["pending", false, "created; nothing was done yet"],
  ["processing", false, "something was or is being done"],
  ["completed", true, "reason has finished, or a live session ended normally"],
  ["failed", true, "a live session ended unexpectedly"],
  ["cancelled", true, "stopped by its owner"],
  ["expired", true, "nothing happened for longer than the server's idle time"],
];
export const SAMPLING_POLICIES = ["source_fps_adaptive", "fixed"];
export const MARKER_STATUSES = ["exact", "provisional", "finalized"];
export const MEDIA_MODES = ["frames", "video", "audio-video"];
export const MEDIA_RESOLUTIONS = ["low", "medium", "high"];
export const AUDIO_PROFILES = ["general", "gameplay", "screen_recording", "physical_world"];
export const SPEECH_ENGINES = [
  "auto",
  "none",
  "whisper",
  "sensevoice",
  "moonshine",
  "qwen3_asr",
  "lfm2_5_audio",
];
export const POLICY_STAGES = ["shadow", "canary", "active"];
export const ARMED = ["armed", "disarmed", "any"] as const;
export const SHELLS = ["bash", "zsh", "fish"];
