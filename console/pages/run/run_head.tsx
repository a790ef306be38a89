/** The head of a run: what it is, how it stands, and what can be done with it. */

import type { Signal } from "@preact/signals";
import type { MarkerFilter, Run } from "../../../client/mod.ts";
import { client } from "../../service/session.ts";
import { runName } from "../../text/names.ts";
import { mediaTime } from "../../text/time.ts";
import { confirm } from "../../ui/confirm.tsx";
import { Menu } from "../../ui/menu.tsx";
import { tell, tellFailure } from "../../ui/toast.tsx";
import { copy, Id, Status } from "../../ui/value.tsx";
import { go, hrefOf } from "../../shell/place.ts";
import type { Stretch } from "../../timeline/view.ts";
import { EVENT_FORMATS, exportEvents, exportMarkers, MARKER_FORMATS } from "./exports.ts";
import { sourceEndText } from "./details/event_text.ts";
import type { RunHistory } from "./history.ts";
import { isOver, stateText } from "./run_state.ts";

export interface RunHeadProps {
  readonly run: Run;
  readonly history: RunHistory;
  readonly durationMs: Signal<number>;
  readonly fps: Signal<number | null>;
  /** The stretch that the reader chose on the timeline, as numbers of frames; null for the whole run. */
  readonly range: MarkerFilter | null;
  /** The same in media time. */
  readonly stretch: Stretch | null;
  /** The types of markers in the lanes that are shown, as a filter of markers; undefined for all. */
  readonly shownTypes: () => string | undefined;
  readonly onChanged: () => void;
  readonly onRate: () => void;
  readonly link: () => string;
}

export function RunHead(props: RunHeadProps) {
  const { run, history, durationMs, fps } = props;
  const { what, todo, isFault } = stateText(run, history);
  const rate = fps.value;
  const missing = sourceEndText(history.last(["analysis_generated"])?.payload ?? {});
  return (
    <header class="run-head">
      <div class="page-head">
        <h1 title={run.source_uri}>{runName(run)}</h1>
        <Id value={run.run_id} />
        {durationMs.value > 0 && <span class="number">{mediaTime(durationMs.value)}</span>}
        {rate !== null && <span class="number">{Math.round(rate * 1000) / 1000} fps</span>}
        <Status of={run.status} />
        {run.on_hold && <span title="It cannot be deleted until it is released">on hold</span>}
        <Actions {...props} />
      </div>
      {missing !== "" && <p class="fault">{missing.trim()}</p>}
      <p class={isFault ? "fault" : "dim"} role="status">
        {what} {todo}
      </p>
    </header>
  );
}

function Actions(
  { run, history, range, stretch, shownTypes, onChanged, onRate, link }: RunHeadProps,
) {
  const name = runName(run);
  const exported = { runId: run.run_id, film: run.source_uri === "" ? "" : name };
  const stop = async () => {
    const isWanted = await confirm({
      title: "Stop this run?",
      text:
        `${name} (${run.run_id}): what is under way is cancelled, what was found stays. It cannot go on afterwards.`,
      action: "Stop run",
    });
    if (!isWanted) return;
    await client.value.stopRun(run.run_id).then(
      () => tell("The run was stopped"),
      (failure) => tellFailure("The run was not stopped", failure),
    );
    onChanged();
  };
  const remove = async () => {
    const isWanted = await confirm({
      title: "Delete this run?",
      text:
        `${name} (${run.run_id}): its events, markers and pictures can no longer be read. This cannot be undone.`,
      action: "Delete run",
    });
    if (!isWanted) return;
    try {
      await client.value.deleteRun(run.run_id);
      tell(`Deleted ${name}`);
      go(["runs"]);
    } catch (failure) {
      tellFailure("The run was not deleted", failure);
    }
  };
  const hold = async () => {
    const { run_id, on_hold } = run;
    try {
      if (on_hold) await client.value.releaseRun(run_id);
      else await client.value.holdRun(run_id);
      tell(
        on_hold
          ? "The run may be deleted again"
          : "The run is on hold: it cannot be deleted until it is released",
      );
    } catch (failure) {
      tellFailure(on_hold ? "The run was not released" : "The run was not held", failure);
    }
    onChanged();
  };
  const markers = (filter: MarkerFilter, more: string) =>
    MARKER_FORMATS.map(({ format, text }) => ({
      text: `${text}${more}`,
      run: () => {
        const event_type = shownTypes();
        void exportMarkers(exported, format, { ...filter, ...(event_type !== undefined && { event_type }) });
      },
    }));
  return (
    <div class="actions">
      {!isOver(run) && history.isLive && <a href={hrefOf(["live", run.run_id])}>Watch live</a>}
      {!isOver(run) && <button type="button" onClick={stop}>Stop</button>}
      <Menu
        label="Export"
        groups={[
          ...(range
            ? [{
              title: "Markers of the chosen stretch",
              items: markers(range, ", stretch"),
            }]
            : []),
          { title: "Markers", items: markers({}, "") },
          {
            title: "Events",
            items: EVENT_FORMATS.map(({ format, text }) => ({
              text,
              run: () => void exportEvents(exported, format),
            })),
          },
        ]}
      />
      <button type="button" onClick={onRate}>Rate</button>
      <button type="button" onClick={() => go(["triggers"], triggerQuery(run, stretch))}>
        Try a trigger
      </button>
      <button type="button" onClick={() => go(["policies", run.run_id])}>Policies</button>
      <button type="button" onClick={() => copy(link())}>Copy link</button>
      <button type="button" onClick={hold}>{run.on_hold ? "Release" : "Hold"}</button>
      <button
        type="button"
        class="danger"
        disabled={run.on_hold}
        title={run.on_hold ? "Release the run first" : undefined}
        onClick={remove}
      >
        Delete
      </button>
    </div>
  );
}

/** The page of triggers, over this run or the stretch that was chosen. */
function triggerQuery({ run_id }: Run, stretch: Stretch | null): Record<string, string> {
  if (stretch === null) return { run: run_id };
  return { run: run_id, in: String(Math.round(stretch.fromMs)), out: String(Math.round(stretch.toMs)) };
}
