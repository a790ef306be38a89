/** What a revision's zone would have made of the past: of the stored events of the run, or of its film,
 * decoded again.
 */

import { useState } from "preact/hooks";
import type { JsonObject, Policy, ReplayPolicyResponse, Run, TimelineEvent } from "../../../client/mod.ts";
import { client } from "../../service/session.ts";
import { hrefOf } from "../../shell/place.ts";
import { counted, countText, scoreText } from "../../text/numbers.ts";
import { mediaTime } from "../../text/time.ts";
import type { Stretch } from "../../timeline/view.ts";
import { FailureNote } from "../../ui/states.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { ReplayPlot } from "./replay_plot.tsx";
import { type ReplayMark, VERDICTS } from "./verdicts.ts";

type ReplayedEvaluation = ReplayPolicyResponse["evaluation"];
type ReplaySource = ReplayedEvaluation["source"];

interface Replayed {
  readonly evaluation: ReplayedEvaluation;
  readonly found: readonly ReplayMark[];
  readonly evaluationId: number;
}

export function Replay({ run, policy }: { run: Run; policy: Policy }) {
  const [source, setSource] = useState<ReplaySource | null>(null);
  const [replayed, setReplayed] = useState<Replayed | null>(null);
  const [failure, setFailure] = useState<unknown>(undefined);
  const hasZone = policy.parameters.restricted_zone !== undefined;
  const replay = async (from: ReplaySource) => {
    setSource(from);
    setFailure(undefined);
    try {
      setReplayed(await replayOf(run.run_id, policy.revision, from));
    } catch (error) {
      setReplayed(null);
      setFailure(error);
    }
    setSource(null);
  };
  return (
    <section class="replay" aria-label="Replay">
      <h2>Try revision {policy.revision} on what was recorded</h2>
      <p class="dim">
        {hasZone
          ? "Its zone is held against the zone events that are stored, or run over the film of the run, which is decoded again and shows what no stored event can: what would have been seen besides."
          : "The revision has no restricted zone, so nothing is accepted or rejected by it; a prompt cannot be tried on stored events."}
      </p>
      <div class="row">
        <button
          type="button"
          disabled={source !== null}
          onClick={() => replay("local_wal")}
        >
          Replay stored events
        </button>
        <button
          type="button"
          disabled={source !== null || !hasZone || run.source_uri === ""}
          onClick={() => replay("signals")}
        >
          Replay the film
        </button>
        {source !== null && (
          <span role="status">
            {source === "signals" ? "Decoding the film …" : "Reading the events …"}
          </span>
        )}
      </div>
      {failure !== undefined && <FailureNote failure={failure} />}
      {replayed && <Answer replayed={replayed} runId={run.run_id} />}
    </section>
  );
}

/** The evaluation itself gives counts; its events are read beside it, and judged by the same rule. */
async function replayOf(
  runId: string,
  revision: number,
  source: ReplaySource,
): Promise<Replayed> {
  const service = client.peek();
  const [{ evaluation, evaluation_id: evaluationId }, { matches }] = await Promise.all([
    service.replayPolicy(runId, revision, { source }),
    service.query({
      run_id: runId,
      kind: "restricted_zone_activity_entered",
    }),
  ]);
  const { threshold } = evaluation;
  const stored = matches.map((event) => storedEvent(event, threshold));
  const entered = evaluation.source === "signals"
    ? evaluation.intervals.map((interval): ReplayMark => ({
      key: `frame ${interval.entered_frame}`,
      verdict: "entered",
      ms: interval.entered_pts_ms,
      endMs: interval.left_pts_ms,
      score: interval.peak_motion_score,
      seq: null,
    }))
    : [];
  return {
    evaluation,
    evaluationId,
    found: [...stored, ...entered].sort((one, other) => one.ms - other.ms),
  };
}

function storedEvent(
  { seq, payload }: TimelineEvent,
  threshold: number | null,
): ReplayMark {
  const score = scoreOf(payload);
  const verdict = score === null || threshold === null
    ? "scoreless"
    : score >= threshold
    ? "accepted"
    : "rejected";
  const ms = typeof payload.pts_ms === "number" ? payload.pts_ms : 0;
  return { key: `event ${seq}`, verdict, ms, endMs: null, score, seq };
}

/** Its confidence, else the score of its trigger. */
function scoreOf({ confidence, assertion }: JsonObject): number | null {
  if (typeof confidence === "number") return confidence;
  const score = (assertion as { trigger?: { score?: unknown } } | undefined)
    ?.trigger?.score;
  return typeof score === "number" ? score : null;
}

function Answer(
  { replayed: { evaluation, found, evaluationId }, runId }: {
    replayed: Replayed;
    runId: string;
  },
) {
  const { source, threshold, limitation } = evaluation;
  const columns: readonly Column<ReplayMark>[] = [
    {
      title: "Time",
      cell: (one) => <a class="number" href={momentOf(runId, one)}>{mediaTime(one.ms)}</a>,
      sortBy: ({ ms }) => ms,
    },
    {
      title: "What",
      cell: ({ verdict }) => {
        const { mark, name, tone } = VERDICTS[verdict];
        return (
          <span class={`verdict is-${tone}`}>
            <span aria-hidden="true">{mark}</span> {name}
          </span>
        );
      },
      sortBy: ({ verdict }) => VERDICTS[verdict].name,
    },
    {
      title: "Motion",
      cell: ({ score }) => score === null ? "none" : scoreText(score),
      sortBy: ({ score }) => score ?? -1,
      isNumber: true,
    },
    {
      title: "Left at",
      cell: ({ endMs, verdict }) =>
        endMs !== null ? mediaTime(endMs) : verdict === "entered" ? "not left" : "",
      isNumber: true,
      isExtra: true,
    },
  ];
  return (
    <>
      <p role="status">
        {source === "signals"
          ? `In ${counted(evaluation.frames, "frame")} of the film the zone is entered ${
            times(evaluation.intervals_total)
          }. `
          : `${counted(evaluation.candidate_events, "stored event")}: ${
            countText(evaluation.accepted_events)
          } accepted, ${countText(evaluation.rejected_events)} rejected, ${
            countText(evaluation.events_without_score)
          } without a score to be judged by. `}
        {threshold !== null && `The threshold is ${scoreText(threshold)}. `}
        {source === "signals" &&
          `${counted(evaluation.candidate_events, "zone event")} are stored. `}
        The answer is kept as event {evaluationId} of the run.
      </p>
      <p class="hint">{limitation}</p>
      {found.length > 0 && (
        <>
          <ReplayPlot
            found={found}
            range={rangeOf(evaluation, found)}
            threshold={threshold}
            href={(one) => momentOf(runId, one)}
          />
          <Table
            name="marks"
            rows={found}
            columns={columns}
            keyOf={({ key }) => key}
            onOpen={(one) => location.hash = momentOf(runId, one)}
          />
        </>
      )}
    </>
  );
}

/** The whole film; of events the time that they span, with some room. */
function rangeOf(
  evaluation: ReplayedEvaluation,
  found: readonly ReplayMark[],
): Stretch {
  if (evaluation.source === "signals") {
    const { frames, sample_fps, first_pts_ms = 0, last_pts_ms } = evaluation;
    // One that was stored before has no times.
    const toMs = last_pts_ms ?? frames / sample_fps * 1000;
    return { fromMs: first_pts_ms, toMs: Math.max(first_pts_ms + 1000, toMs) };
  }
  const [first, last] = [found[0]?.ms ?? 0, found.at(-1)?.ms ?? 0];
  const roomMs = Math.max(500, (last - first) * ROOM);
  return { fromMs: Math.max(0, first - roomMs), toMs: last + roomMs };
}

/** Of the span of the events, on both sides. */
const ROOM = 0.05;

function times(count: number): string {
  return count === 0 ? "never" : count === 1 ? "once" : `${countText(count)} times`;
}

function momentOf(runId: string, { ms, seq }: ReplayMark): string {
  return hrefOf(["runs", runId], {
    t: String(Math.round(ms)),
    ...(seq !== null && { seq: String(seq) }),
  });
}
