/** Whether the sound of a session is analyzed, and what is listened for. */

import { words } from "../../../text/names.ts";
import { ChoiceField, TextField } from "../../../ui/field.tsx";
import { confidenceFault, type SoundWish } from "./session_wish.ts";

export interface SoundFieldsProps {
  /** Null: there is no sound. */
  readonly wish: SoundWish | null;
  readonly onChange: (wish: SoundWish | null) => void;
}

const FIRST_SOUND: SoundWish = { profile: "general", engine: "auto", minConfidence: "0.35" };

const PROFILES: readonly SoundWish["profile"][] = [
  "general",
  "gameplay",
  "screen_recording",
  "physical_world",
];
const ENGINES: readonly { readonly value: SoundWish["engine"]; readonly text: string }[] = [
  { value: "auto", text: "Written down, by the engine that the sidecar chooses" },
  { value: "none", text: "Not written down: sounds alone" },
  { value: "whisper", text: "Whisper" },
  { value: "sensevoice", text: "SenseVoice" },
  { value: "moonshine", text: "Moonshine" },
  { value: "qwen3_asr", text: "Qwen3-ASR" },
  { value: "lfm2_5_audio", text: "LFM2.5-Audio" },
];

export function SoundFields({ wish, onChange }: SoundFieldsProps) {
  return (
    <>
      <label class="check">
        <input
          type="checkbox"
          checked={wish !== null}
          onChange={({ currentTarget: { checked } }) => onChange(checked ? FIRST_SOUND : null)}
        />
        Listen to the sound
      </label>
      {wish && (
        <fieldset class="zone-fields">
          <legend>Sound</legend>
          <p class="hint">
            Speech and sounds become events of the run. The service needs an audio sidecar for it.
          </p>
          <ChoiceField
            label="What is heard"
            value={wish.profile}
            onChange={(profile) => onChange({ ...wish, profile: profile as SoundWish["profile"] })}
            choices={PROFILES.map((value) => ({ value, text: words(value) }))}
          />
          <ChoiceField
            label="Speech"
            value={wish.engine}
            onChange={(engine) => onChange({ ...wish, engine: engine as SoundWish["engine"] })}
            choices={ENGINES}
          />
          <TextField
            label="Least confidence"
            type="number"
            value={wish.minConfidence}
            onInput={(minConfidence) => onChange({ ...wish, minConfidence })}
            fault={confidenceFault(wish)}
          />
        </fieldset>
      )}
    </>
  );
}
