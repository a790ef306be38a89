/** A run that is there: head, film and details side by side, the filter, the timeline and the list of marks
 * below them.
 */

import { effect } from "@preact/signals";
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import type { MarkerFilter, Run } from "../../../client/mod.ts";
import { useKeys } from "../../shell/keys.tsx";
import { hrefOf } from "../../shell/place.ts";
import { MarkList } from "../../timeline/mark_list.tsx";
import { openRunMarks, type RunMarks } from "../../timeline/run_marks.ts";
import { Timeline } from "../../timeline/timeline.tsx";
import { openView, type Stretch, type TimelineView } from "../../timeline/view.ts";
import { useLoaded } from "../../service/loaded.ts";
import { FailureNote } from "../../ui/states.tsx";
import { useAddress } from "./address.ts";
import { Details } from "./details/details.tsx";
import { regionsOf } from "./details/event_facts.ts";
import { EmptyRun } from "./empty_run.tsx";
import { FeedbackDialog, type Rated } from "./feedback_dialog.tsx";
import { FilterBar } from "./filter_bar.tsx";
import { HISTORY_KINDS, historyOf, pictureSize } from "./history.ts";
import { filmOf } from "../../service/film.ts";
import { Playback } from "./player/playback.ts";
import { Player } from "./player/player.tsx";
import { RunHead } from "./run_head.tsx";
import { runKeys } from "./run_keys.ts";
import { isOver } from "./run_state.ts";

export interface RunViewProps {
  readonly run: Run;
  readonly query: URLSearchParams;
  /** Asks for the run again. */
  readonly onChanged: () => void;
}

const FRAMES_A_SECOND = 25;

export function RunView({ run, query, onChanged }: RunViewProps) {
  const runId = run.run_id;
  const marks = useMemo(() => openRunMarks(runId, HISTORY_KINDS), [runId]);
  useEffect(() => () => marks.close(), [marks]);
  const view = useMemo(() => openView(query), [runId]);
  const playback = useMemo(
    () => new Playback(view.playheadMs, () => marks.durationMs.peek()),
    [marks, view],
  );
  const kept = marks.kept.value;
  const seek = useCallback((ms: number) => playback.seek(ms), [playback]);
  const history = useMemo(() => historyOf(kept), [kept]);
  const [rated, setRated] = useState<Rated | null>(null);
  const frameMs = () => 1000 / (marks.fps.peek() ?? FRAMES_A_SECOND);
  const choose = (seq: number) => void (view.selectedSeq.value = seq);
  const goToMark = (direction: 1 | -1) => {
    const mark = marks.near(
      view.playheadMs.peek(),
      direction,
      view.filter.peek(),
    );
    if (mark) choose(mark.seq);
  };
  useKeys(
    "This run",
    useMemo(() => runKeys({ marks, view, playback, frameMs, goToMark }), [
      marks,
      view,
      playback,
    ]),
  );
  useEffect(() => seekChosen(marks, view, playback, !query.has("t")), [
    marks,
    view,
    playback,
  ]);
  useEffect(
    () => marks.onEvent(({ kind }) => CHANGES.includes(kind) && onChanged()),
    [marks],
  );
  // The clock of a live session begins anywhere.
  const startMs = marks.startMs.value;
  useEffect(() => {
    if (view.playheadMs.peek() < startMs) view.playheadMs.value = startMs;
  }, [startMs]);
  useAddress(view, query);
  const chosen = useChosen(marks, view);
  const regions = chosen.value ? regionsOf(chosen.value) : [];
  const film = filmOf(run.source_uri, history.isLive);
  const size = pictureSize(history);
  const isEmpty = marks.isComplete.value && marks.count.value === 0;
  const link = (query: Record<string, string> = {}) =>
    new URL(hrefOf(["runs", runId], query), document.baseURI).href;
  return (
    <>
      <RunHead
        run={run}
        history={history}
        durationMs={marks.durationMs}
        fps={marks.fps}
        range={rangeOf(view.range.value, marks.fps.value)}
        stretch={view.range.value}
        shownTypes={() => marks.store.typesShown(view.filter.peek())}
        onChanged={onChanged}
        onRate={() => setRated("run")}
        link={() => location.href}
      />
      {marks.failure.value !== undefined && marks.failure.value !== null && (
        <FailureNote failure={marks.failure.value} />
      )}
      {isEmpty && (
        <EmptyRun
          run={run}
          history={history}
          onChanged={onChanged}
        />
      )}
      {!(isEmpty && run.source_uri === "") && (
        <>
          <div class="run-top">
            <Player
              film={film}
              playback={playback}
              playheadMs={view.playheadMs}
              durationMs={marks.durationMs}
              regions={regions}
              aspect={size ? size.width / size.height : 16 / 9}
              liveRunId={history.isLive && !isOver(run) ? runId : null}
              still={{ runId, marks, playheadMs: view.playheadMs }}
              onMark={goToMark}
              frameMs={frameMs()}
            />
            <section class="details" aria-label="Details">
              {view.selectedSeq.value === null ? <NothingChosen marks={marks} /> : (
                <Details
                  runId={runId}
                  seq={view.selectedSeq.value}
                  event={chosen}
                  marks={marks}
                  history={history}
                  onChoose={choose}
                  onRate={setRated}
                  link={() => link({ seq: String(view.selectedSeq.peek()) })}
                />
              )}
            </section>
          </div>
          <FilterBar marks={marks} view={view} />
          <Timeline
            runId={runId}
            marks={marks}
            view={view}
            onSeek={seek}
            isLive={history.isLive && !isOver(run)}
          />
          <MarkList marks={marks} view={view} />
        </>
      )}
      <FeedbackDialog runId={runId} of={rated} onClose={() => setRated(null)} />
    </>
  );
}

/** Events after which the run itself reads otherwise. */
const CHANGES = [
  "ingest_received",
  "analysis_generated",
  "publisher_connected",
  "live_source_opened",
  "run_completed",
  "run_failed",
  "stop_requested",
  "run_deleted",
];

function NothingChosen({ marks }: { marks: RunMarks }) {
  return (
    <div class="details-content">
      <h2>{marks.count.value === 0 ? "No marks" : "No mark is chosen"}</h2>
      <p class="dim">
        Click a mark on the timeline or in the list, or press <kbd>]</kbd>{" "}
        for the next one. What is known about it is shown here: why it was made, the pictures, the words of a
        model, and how it came about.
      </p>
      <p class="dim">
        <kbd>?</kbd> shows all keys and what the marks look like.
      </p>
    </div>
  );
}

/** The frames of the stretch that the reader chose; null without one, or where frames cannot be counted. */
function rangeOf(
  range: Stretch | null,
  fps: number | null,
): MarkerFilter | null {
  if (range === null || fps === null) return null;
  const frameAt = (ms: number) => Math.max(0, Math.round(ms * fps / 1000));
  return { from_frame: frameAt(range.fromMs), to_frame: frameAt(range.toMs) };
}

/** The film goes to the mark that is chosen; not to the first one where the address names a time itself. */
function seekChosen(
  marks: RunMarks,
  view: TimelineView,
  playback: Playback,
  isFirstSought: boolean,
): () => void {
  let last = isFirstSought ? null : view.selectedSeq.peek();
  return effect(() => {
    const seq = view.selectedSeq.value;
    if (seq === null || seq === last) {
      last = seq;
      return;
    }
    void marks.count.value; // the mark may come later than the address that names it
    const mark = marks.bySeq(seq);
    if (!mark) return;
    last = seq;
    playback.seek(mark.startMs);
  });
}

/** The chosen event; null while none is. */
function useChosen(marks: RunMarks, { selectedSeq }: TimelineView) {
  const seq = selectedSeq.value;
  return useLoaded(
    async (signal) => seq === null ? null : await marks.event(seq, signal),
    [seq],
  );
}
