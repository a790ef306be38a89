/** Whether a session keeps films around what happens, and whether an alarm is told at once and explained
 * later.
 */

import { useId } from "preact/hooks";
import { TextField } from "../../../ui/field.tsx";
import {
  type EvidenceBeside,
  type ExplainedCause,
  explainFaults,
  type ExplainWish,
  type FilmCause,
  filmFaults,
  type FilmWish,
  FIRST_EXPLAIN,
  FIRST_FILMS,
  isPossible,
} from "./evidence_wish.ts";

export interface EvidenceFieldsProps {
  /** Null: there are none. */
  readonly films: FilmWish | null;
  readonly explain: ExplainWish | null;
  readonly beside: EvidenceBeside;
  /** Clips are wanted for the model, with which neither goes. */
  readonly isBarred: boolean;
  readonly onFilms: (films: FilmWish | null) => void;
  readonly onExplain: (explain: ExplainWish | null) => void;
}

const FILM_CAUSES: readonly FilmCause[] = ["zone", "trigger", "scene_cut", "keyframe"];
const EXPLAINED_CAUSES: readonly ExplainedCause[] = ["zone", "trigger", "scene_cut"];
const CAUSE_TEXTS: Readonly<Record<FilmCause, string>> = {
  zone: "motion in the zone",
  trigger: "the trigger",
  scene_cut: "cuts",
  keyframe: "every picture that is kept",
};

export function EvidenceFields(props: EvidenceFieldsProps) {
  const { films, explain, beside, isBarred, onFilms, onExplain } = props;
  return (
    <>
      <Switch
        text="Keep a film of what happens"
        isOn={films !== null}
        isBarred={isBarred}
        onSwitch={(isOn) => onFilms(isOn ? FIRST_FILMS : null)}
      />
      {films && <FilmFields films={films} beside={beside} onFilms={onFilms} />}
      <Switch
        text="Tell at once, explain later"
        isOn={explain !== null}
        isBarred={isBarred}
        onSwitch={(isOn) => onExplain(isOn ? FIRST_EXPLAIN : null)}
      />
      {explain && <ExplainFields explain={explain} beside={beside} onExplain={onExplain} />}
      {isBarred && <p class="hint">Films and explanations do not go with clips for the model</p>}
    </>
  );
}

function FilmFields({ films, beside, onFilms }: {
  films: FilmWish;
  beside: EvidenceBeside;
  onFilms: (films: FilmWish) => void;
}) {
  const faults = filmFaults(films, beside);
  return (
    <fieldset class="zone-fields">
      <legend>Films</legend>
      <p class="hint">
        An MP4 of the video as it comes, with its sound: the source has to send H.264 or H.265.
      </p>
      <div class="columns">
        <TextField
          label="Seconds before"
          type="number"
          value={films.secondsBefore}
          onInput={(secondsBefore) => onFilms({ ...films, secondsBefore })}
          fault={faults.secondsBefore}
        />
        <TextField
          label="Seconds after"
          type="number"
          value={films.secondsAfter}
          onInput={(secondsAfter) => onFilms({ ...films, secondsAfter })}
          fault={faults.secondsAfter}
        />
      </div>
      <Causes
        legend="A film of"
        all={FILM_CAUSES}
        on={films.on}
        beside={beside}
        fault={faults.on}
        onChange={(on) => onFilms({ ...films, on })}
      />
    </fieldset>
  );
}

function ExplainFields({ explain, beside, onExplain }: {
  explain: ExplainWish;
  beside: EvidenceBeside;
  onExplain: (explain: ExplainWish) => void;
}) {
  const faults = explainFaults(explain, beside);
  return (
    <fieldset class="zone-fields">
      <legend>Explanations</legend>
      <p class="hint">
        The event is written before the model is asked. What it says, or why it says nothing, is an event of
        its own.
      </p>
      <TextField
        label="Within seconds"
        type="number"
        value={explain.seconds}
        onInput={(seconds) => onExplain({ ...explain, seconds })}
        fault={faults.seconds}
      />
      <Causes
        legend="An explanation of"
        all={EXPLAINED_CAUSES}
        on={explain.on}
        beside={beside}
        fault={faults.on}
        onChange={(on) => onExplain({ ...explain, on })}
      />
    </fieldset>
  );
}

function Switch({ text, isOn, isBarred, onSwitch }: {
  text: string;
  isOn: boolean;
  isBarred: boolean;
  onSwitch: (isOn: boolean) => void;
}) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={isOn}
        disabled={isBarred}
        onChange={({ currentTarget: { checked } }) => onSwitch(checked)}
      />
      {text}
    </label>
  );
}

/** One that the session does not have is shown as left out, and comes back with the zone or the trigger. */
function Causes<Cause extends FilmCause>({ legend, all, on, beside, fault, onChange }: {
  legend: string;
  all: readonly Cause[];
  on: readonly Cause[];
  beside: EvidenceBeside;
  fault: string | undefined;
  onChange: (on: readonly Cause[]) => void;
}) {
  const id = useId();
  return (
    <fieldset class="causes" aria-describedby={`${id}-fault`}>
      <legend>{legend}</legend>
      {all.map((cause) => {
        const canBe = isPossible(cause, beside);
        const others = on.filter((other) => other !== cause);
        return (
          <label key={cause} class="check">
            <input
              type="checkbox"
              checked={canBe && on.includes(cause)}
              disabled={!canBe}
              onChange={({ currentTarget: { checked } }) => onChange(checked ? [...others, cause] : others)}
            />
            {CAUSE_TEXTS[cause]}
          </label>
        );
      })}
      <div id={`${id}-fault`}>{fault !== undefined && <p class="fault" role="alert">{fault}</p>}</div>
    </fieldset>
  );
}
