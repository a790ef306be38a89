/** A program over what a run has measured: where it fires, on a plot of the scores that it looks at and as a
 * list.
 */

import type { EvaluateTriggerOnRunResponse, Run, Signals, TriggerProgram } from "../../../client/mod.ts";
import { useLoaded } from "../../service/loaded.ts";
import { client } from "../../service/session.ts";
import { hrefOf, setQuery } from "../../shell/place.ts";
import { MARK_LOOKS } from "../../text/event_types.ts";
import { runName } from "../../text/names.ts";
import { counted, countText, scoreText } from "../../text/numbers.ts";
import { mediaTime } from "../../text/time.ts";
import { AtTime, PlotTimes, ScoreRow } from "../../timeline/score_plot.tsx";
import type { Stretch } from "../../timeline/view.ts";
import { EmptyNote, Shown } from "../../ui/states.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { RunField } from "../../ui/run_field.tsx";
import { thresholdsOf } from "./program_table.tsx";
import { StretchFields } from "./stretch_fields.tsx";

export interface EvaluationProps {
  readonly program: TriggerProgram | null;
  readonly query: URLSearchParams;
  /** Whether the text in the editor is another one, with faults. */
  readonly isStale: boolean;
}

export function Evaluation({ program, query, isStale }: EvaluationProps) {
  const runId = query.get("run");
  return (
    <section class="trigger-evaluation" aria-label="Evaluation">
      <h2>Try it out over a run</h2>
      <div class="row trigger-choice">
        <RunField
          runId={runId}
          onChange={(run) => setQuery({ run, in: null, out: null })}
        />
        {runId !== null && <StretchFields query={query} />}
      </div>
      {runId === null
        ? (
          <p class="dim">
            Choose a run whose film was decoded. The program is stepped over its frames, as a live session
            would have done it; nothing is stored.
          </p>
        )
        : program === null
        ? (
          <p class="dim">
            There is no program yet: the text in the editor is empty, has faults, or was not looked at.
          </p>
        )
        : (
          <OverRun
            key={runId}
            runId={runId}
            program={program}
            query={query}
            isStale={isStale}
          />
        )}
    </section>
  );
}

/** One bin a pixel, on a wide screen. */
const POINTS = 1000;

interface OverRunProps {
  readonly runId: string;
  readonly program: TriggerProgram;
  readonly query: URLSearchParams;
  readonly isStale: boolean;
}

function OverRun({ runId, program, query, isStale }: OverRunProps) {
  const range = {
    ...(numberIn(query, "in") !== null && { from_ms: numberIn(query, "in")! }),
    ...(numberIn(query, "out") !== null && { to_ms: numberIn(query, "out")! }),
  };
  const rangeKey = JSON.stringify(range);
  const signals = useLoaded(
    (signal) => client.value.getSignals(runId, { ...range, points: POINTS }, { signal }),
    [client.value, runId, rangeKey],
  );
  const evaluated = useLoaded(
    (signal) =>
      client.value.evaluateTriggerOnRun(runId, { program, ...range }, {
        signal,
      }),
    [client.value, runId, rangeKey, JSON.stringify(program)],
  );
  const run = useLoaded((signal) => client.value.getRun(runId, { signal }), [
    client.value,
    runId,
  ]);
  return (
    <div class={isStale ? "is-stale" : undefined}>
      <Shown of={evaluated} whileAway="It is tried out once the service answers.">
        {(answer) =>
          answer.source_seq === null ? <NothingDecoded run={run.value} runId={runId} /> : (
            <>
              <Said answer={answer} program={program} run={run.value} />
              <Shown of={signals} whileAway="The plot is drawn once the service answers.">
                {(bins) => (
                  <Plot
                    bins={bins}
                    answer={answer}
                    program={program}
                    runId={runId}
                  />
                )}
              </Shown>
              <Firings answer={answer} runId={runId} />
            </>
          )}
      </Shown>
    </div>
  );
}

function NothingDecoded(
  { run, runId }: { run: Run | undefined; runId: string },
) {
  return (
    <EmptyNote title="This run has decoded nothing">
      <p>
        A trigger needs the scores of frames, which an analysis without a model keeps.{" "}
        {run?.source_uri === "" && run.mode !== ""
          ? "The run has no film yet."
          : "Neither a live run nor one that a model described has any."}
      </p>
      <p>
        <a href={hrefOf(["new"])}>Analyze a film</a> or <a href={hrefOf(["runs", runId])}>look at the run</a>.
      </p>
    </EmptyNote>
  );
}

interface SaidProps {
  readonly answer: EvaluateTriggerOnRunResponse;
  readonly program: TriggerProgram;
  readonly run: Run | undefined;
}

function Said({ answer, program, run }: SaidProps) {
  const { frames, fired_total, fired, missing_signal_frames } = answer;
  const does = program.instructions.flatMap((instruction) => {
    if (instruction.op === "emit") {
      return [`writes an event ${instruction.event_type}`];
    }
    if (instruction.op === "capture") {
      return [
        `keeps a ${instruction.kind === "keyframe" ? "picture" : "clip"}`,
      ];
    }
    if (instruction.op !== "notify") return [];
    return [
      instruction.channel === "webhook" ? "tells the webhooks" : "tells the program on this machine",
    ];
  });
  return (
    <>
      <p role="status">
        <strong>
          {fired_total === 0
            ? "It never fires"
            : `It fires ${fired_total === 1 ? "once" : `${countText(fired_total)} times`}`}
        </strong>{" "}
        in {counted(frames, "frame")}
        {run && (
          <>
            {" of "}
            <a href={hrefOf(["runs", run.run_id])}>
              {runName(run)}
            </a>
          </>
        )}
        {fired_total > 0 && `, and each time ${listed(does)}`}.
        {fired_total > fired.length &&
          ` The first ${countText(fired.length)} are shown.`}
      </p>
      {missing_signal_frames > 0 && (
        <p class="hint">
          {missing_signal_frames === frames
            ? "No frame has"
            : `${counted(missing_signal_frames, "frame")} of them have not`}{" "}
          all signals that the program loads: recorded frames have motion_score, novelty_score and confidence.
          A comparison with a missing value is false.
        </p>
      )}
    </>
  );
}

/** `a, b and c`. */
function listed(parts: readonly string[]): string {
  return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}

interface TriggerPlotProps {
  readonly bins: Signals;
  readonly answer: EvaluateTriggerOnRunResponse;
  readonly program: TriggerProgram;
  readonly runId: string;
}

/** Marks on the plot; the list has all of them. */
const MARKS_MAX = 300;

function Plot({ bins, answer, program, runId }: TriggerPlotProps) {
  const { pts_ms: ptsMs, signals } = bins;
  if (ptsMs.length === 0) return <p class="dim">The stretch has no frames.</p>;
  const range: Stretch = {
    fromMs: ptsMs[0]!,
    toMs: Math.max(ptsMs.at(-1)!, ptsMs[0]! + 1),
  };
  const shown = [...thresholdsOf(program)].filter(([name]) => name in signals);
  const look = MARK_LOOKS.trigger!;
  const marks = answer.fired.slice(0, MARKS_MAX);
  return (
    <div class="plot trigger-plot">
      <div class="plot-marks">
        {marks.map(({ frame_index, pts_ms }) => (
          <AtTime key={frame_index} range={range} ms={pts_ms}>
            <a
              href={momentOf(runId, pts_ms)}
              tabIndex={-1}
              title={`fires at ${mediaTime(pts_ms)}, frame ${frame_index}`}
              aria-label={`Fires at ${mediaTime(pts_ms)}`}
            >
              <span style={{ color: look.colour }} aria-hidden="true">
                {look.shape}
              </span>
            </a>
          </AtTime>
        ))}
      </div>
      {shown.map(([name, thresholds]) => (
        <ScoreRow
          key={name}
          name={name}
          range={range}
          ptsMs={ptsMs}
          max={signals[name]!.max}
          mean={signals[name]!.mean}
          thresholds={thresholds}
          marked={{
            ptsMs: marks.map(({ pts_ms }) => pts_ms),
            colour: look.colour,
          }}
        />
      ))}
      <PlotTimes range={range} />
    </div>
  );
}

type Firing = EvaluateTriggerOnRunResponse["fired"][number];

function Firings(
  { answer, runId }: { answer: EvaluateTriggerOnRunResponse; runId: string },
) {
  if (answer.fired.length === 0) {
    return (
      <p class="dim">
        Look at the plot: a dashed line above all columns is a threshold that no frame reaches; “for … frames”
        and the cooldown hold firings back, too.
      </p>
    );
  }
  const columns: readonly Column<Firing>[] = [
    {
      title: "Time",
      cell: ({ pts_ms }) => <a href={momentOf(runId, pts_ms)} class="number">{mediaTime(pts_ms)}</a>,
      sortBy: ({ pts_ms }) => pts_ms,
    },
    {
      title: "Frame",
      cell: ({ frame_index }) => frame_index,
      sortBy: ({ frame_index }) => frame_index,
      isNumber: true,
    },
    {
      title: "Motion",
      cell: ({ motion_score }) => scoreText(motion_score),
      sortBy: ({ motion_score }) => motion_score,
      isNumber: true,
    },
    {
      title: "Novelty",
      cell: ({ novelty_score }) => scoreText(novelty_score),
      sortBy: ({ novelty_score }) => novelty_score,
      isNumber: true,
    },
    {
      title: "Confidence",
      cell: ({ confidence }) => scoreText(confidence),
      sortBy: ({ confidence }) => confidence,
      isNumber: true,
      isExtra: true,
    },
  ];
  return (
    <Table
      name="firings"
      rows={answer.fired}
      columns={columns}
      keyOf={({ frame_index }) => String(frame_index)}
      onOpen={({ pts_ms }) => location.hash = momentOf(runId, pts_ms)}
    />
  );
}

function momentOf(runId: string, ms: number): string {
  return hrefOf(["runs", runId], { t: String(ms) });
}

export function numberIn(query: URLSearchParams, name: string): number | null {
  const text = query.get(name);
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}
