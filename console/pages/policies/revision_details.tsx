/** One revision in full, and what can be done with it. */

import { useState } from "preact/hooks";
import type { Policy } from "../../../client/mod.ts";
import { dateAndClock } from "../../text/time.ts";
import { confirm } from "../../ui/confirm.tsx";
import { activate, canRollBack, type MoveOutcome, nextStage, rollBack } from "./moves.tsx";
import { statusText } from "./stage_line.tsx";

export interface RevisionDetailsProps {
  readonly runId: string;
  readonly policy: Policy;
  readonly generation: number | null;
  /** Whether a revision is active: only then the run can go back to another. */
  readonly hasActive: boolean;
  readonly onOutcome: (outcome: MoveOutcome) => void;
  readonly onNew: () => void;
}

export function RevisionDetails(props: RevisionDetailsProps) {
  const { policy } = props;
  const {
    revision,
    parent_revision,
    status,
    prompt,
    output_schema,
    parameters,
    created_at_ms,
  } = policy;
  const zone = parameters.restricted_zone;
  return (
    <section class="card revision-details" aria-label={`Revision ${revision}`}>
      <header class="page-head">
        <h2>Revision {revision}</h2>
        <span>{statusText(status)}</span>
        <span class="dim">
          {parent_revision === null ? "the first one" : `after revision ${parent_revision}`}, written{" "}
          {dateAndClock(created_at_ms)}
        </span>
        <Actions {...props} />
      </header>
      <p>{effectText(policy)}</p>
      <dl class="facts">
        <dt>Prompt</dt>
        <dd>
          {prompt === null ? <span class="dim">none: the session keeps its own</span> : <pre>{prompt}</pre>}
        </dd>
        <dt>Form of the answer</dt>
        <dd>
          {output_schema === null
            ? <span class="dim">none: the answer is free text</span>
            : <pre>{JSON.stringify(output_schema, null, 2)}</pre>}
        </dd>
        <dt>Restricted zone</dt>
        <dd>
          {zone === undefined ? <span class="dim">none</span> : (
            <>
              <strong>{zone.policy_id}</strong>, version {zone.policy_version}, device {zone.device_id}:{" "}
              {percent(zone.region.width)} by {percent(zone.region.height)} of the picture, from{" "}
              {percent(zone.region.x)} left and {percent(zone.region.y)} top. Entered after{" "}
              {zone.enter_after_frames} frames with motion of {zone.enter_motion_score} or more, left after
              {" "}
              {zone.exit_after_frames} frames with {zone.exit_motion_score} or less.
            </>
          )}
        </dd>
      </dl>
    </section>
  );
}

function percent(share: number): string {
  return `${Math.round(share * 1000) / 10} %`;
}

/** What works with the revision now. */
function effectText(
  {
    status,
    effective_generation: generation,
    effective_on_current_generation: isWhole,
    deferred_fields,
  }: Policy,
): string {
  if (status === "active") {
    if (isWhole) {
      return `The live session, generation ${generation}, works with all of it.`;
    }
    return deferred_fields.length > 0
      ? "Its restricted zone waits for the next live session; a session keeps the zone that it began with."
      : "The next live session of this run starts with it.";
  }
  if (status === "retired") {
    return "It was active until another revision took its place.";
  }
  if (status === "rolled_back") {
    return "It was active until the run went back to an earlier revision.";
  }
  return "Nothing works with it yet.";
}

function Actions(
  { runId, policy, generation, hasActive, onOutcome, onNew }: RevisionDetailsProps,
) {
  const [isMoving, setMoving] = useState(false);
  const { revision } = policy;
  const stage = nextStage(policy);
  const session = generation === null
    ? "There is no live session now; the next one starts with it."
    : `The live session, generation ${generation}, takes over its prompt between two pictures.`;
  const move = async (
    question: string | null,
    action: string,
    run: () => Promise<MoveOutcome>,
  ) => {
    const isWanted = question === null ||
      await confirm({ title: `${action}?`, text: question, action });
    if (!isWanted) return;
    setMoving(true);
    onOutcome(await run());
    setMoving(false);
  };
  const options = { runId, revision, generation };
  return (
    <div class="actions">
      {stage && (
        <button
          type="button"
          class="primary"
          disabled={isMoving}
          onClick={() =>
            move(
              stage === "active" ? `${session} The revision that is active now is retired.` : null,
              stage === "active" ? `Make revision ${revision} active` : `Move to ${stage}`,
              () => activate(stage, options),
            )}
        >
          {stage === "active" ? "Make active" : `Move to ${stage}`}
        </button>
      )}
      {canRollBack(policy) && hasActive && (
        <button
          type="button"
          class="primary"
          disabled={isMoving}
          onClick={() =>
            move(
              `${session} The revision that is active now is marked as rolled back.`,
              `Go back to revision ${revision}`,
              () => rollBack(options),
            )}
        >
          Roll back to this
        </button>
      )}
      <button type="button" onClick={onNew}>New revision from this</button>
      {isMoving && <span role="status">Waiting for the live session …</span>}
    </div>
  );
}
