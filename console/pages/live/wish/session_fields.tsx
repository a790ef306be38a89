/** The fields of a session that is about to start: the question, the part of the picture, pictures or clips,
 * trigger, sound, evidence.
 */

import { ChoiceField, TextField } from "../../../ui/field.tsx";
import { EvidenceFields } from "./evidence_fields.tsx";
import { PromptField } from "./prompt_field.tsx";
import {
  type Area,
  besideOf,
  clipFaults,
  type ClipWish,
  type SessionWish,
  tokensFault,
} from "./session_wish.ts";
import { SoundFields } from "./sound_fields.tsx";
import { TriggerFields } from "./trigger_fields.tsx";
import { RegionSides, ZoneFields } from "./zone_fields.tsx";

export interface SessionFieldsProps {
  readonly wish: SessionWish;
  /**
   * Gets what changes, all else stays as it is by then: the check of a trigger answers later than fields
   * change.
   */
  readonly onChange: (changes: Partial<SessionWish>) => void;
}

const AREAS: readonly { readonly value: Area; readonly text: string }[] = [
  { value: "whole", text: "The whole picture" },
  { value: "part", text: "A part of it" },
  { value: "zone", text: "A zone: lasting motion in it is an event" },
];

/** Three frames, so that it comes at once. */
const FIRST_CLIPS: ClipWish = { framesASecond: "6", seconds: "2", pauseSeconds: "0.5" };

export function SessionFields({ wish, onChange }: SessionFieldsProps) {
  const { prompt, area, part, zone, clips, trigger, sound, films, explain, tokensASecond } = wish;
  const isZone = area === "zone";
  const hasEvidence = films !== null || explain !== null;
  return (
    <>
      <PromptField prompt={prompt} onPrompt={(changed) => onChange({ prompt: changed })} />
      <ChoiceField
        label="What is looked at"
        value={area}
        onChange={(value) => onChange({ area: value as Area })}
        choices={AREAS.map((choice) => ({
          ...choice,
          isDisabled: choice.value === "zone" && (clips !== null || trigger !== null),
        }))}
        hint={area === "whole" && (clips || trigger)
          ? "A zone goes with neither clips nor a trigger"
          : area === "part"
          ? "Only this part is measured, stored and described. Drag it, or type its sides"
          : undefined}
      />
      {area === "part" && <RegionSides region={part} onChange={(changed) => onChange({ part: changed })} />}
      {isZone && <ZoneFields wish={zone} onChange={(changed) => onChange({ zone: changed })} />}
      <ChoiceField
        label="What the model gets"
        value={clips ? "clips" : "pictures"}
        onChange={(value) => onChange({ clips: value === "clips" ? FIRST_CLIPS : null })}
        choices={[
          { value: "pictures", text: "A picture each time that the scene changes" },
          {
            value: "clips",
            text: "Short clips, one after the other",
            isDisabled: isZone || trigger !== null || hasEvidence,
          },
        ]}
        hint={clips
          ? undefined
          : isZone || trigger
          ? "Clips go with neither a zone nor a trigger"
          : hasEvidence
          ? "Clips go with neither films nor explanations"
          : undefined}
      />
      {clips && <ClipFields wish={clips} onChange={(changed) => onChange({ clips: changed })} />}
      <TriggerFields
        source={trigger}
        isBarred={isZone || clips !== null}
        onSource={(source) => onChange({ trigger: source })}
        onCompiled={(compiled) => onChange({ compiled })}
      />
      <SoundFields wish={sound} onChange={(changed) => onChange({ sound: changed })} />
      <EvidenceFields
        films={films}
        explain={explain}
        beside={besideOf(wish)}
        isBarred={clips !== null}
        onFilms={(changed) => onChange({ films: changed })}
        onExplain={(changed) => onChange({ explain: changed })}
      />
      <details>
        <summary>Limit of the answers</summary>
        <TextField
          label="Tokens a second"
          type="number"
          value={tokensASecond}
          onInput={(changed) => onChange({ tokensASecond: changed })}
          fault={tokensFault(tokensASecond)}
          placeholder="as the service is configured"
          hint="What would go beyond it is not described; 0 for no limit"
        />
      </details>
    </>
  );
}

function ClipFields({ wish, onChange }: { wish: ClipWish; onChange: (wish: ClipWish) => void }) {
  const faults = clipFaults(wish);
  const set = (name: keyof ClipWish) => (value: string) => onChange({ ...wish, [name]: value });
  return (
    <fieldset class="zone-fields">
      <legend>Clips</legend>
      <div class="columns">
        <TextField
          label="Seconds each"
          type="number"
          value={wish.seconds}
          onInput={set("seconds")}
          fault={faults.seconds}
        />
        <TextField
          label="Frames a second"
          type="number"
          value={wish.framesASecond}
          onInput={set("framesASecond")}
          fault={faults.framesASecond}
        />
        <TextField
          label="Seconds between them"
          type="number"
          value={wish.pauseSeconds}
          onInput={set("pauseSeconds")}
          fault={faults.pauseSeconds}
        />
      </div>
    </fieldset>
  );
}
