/** Moves of a revision: to its next stage, or back to being active; and what came of it, in sentences. */

import { type ApplicationResponse, type Policy } from "../../../client/mod.ts";
import { failureText } from "../../service/failures.ts";
import { client } from "../../service/session.ts";

export interface MoveOutcome {
  readonly text: string;
  readonly isFault: boolean;
  readonly requestId?: string | null;
}

export function OutcomeNote(
  { of: { text, isFault, requestId }, onClose }: {
    of: MoveOutcome;
    onClose: () => void;
  },
) {
  return (
    <div
      class={`note outcome${isFault ? " fault" : ""}`}
      role={isFault ? "alert" : "status"}
    >
      <p>{text}</p>
      {requestId != null && (
        <details>
          <summary>Request</summary>
          <code>{requestId}</code>
        </details>
      )}
      <button
        type="button"
        class="quiet"
        aria-label="Close note"
        onClick={onClose}
      >
        ✕
      </button>
    </div>
  );
}

export type Stage = "shadow" | "canary" | "active";

const NEXT: Readonly<Partial<Record<Policy["status"], Stage>>> = {
  draft: "shadow",
  shadow: "canary",
  canary: "active",
};

/** The stage that a revision may be moved to; null where there is none. */
export function nextStage({ status }: Policy): Stage | null {
  return NEXT[status] ?? null;
}

/** Whether it was active before, so that the run can go back to it. */
export function canRollBack({ status }: Policy): boolean {
  return status === "retired" || status === "rolled_back";
}

export interface MoveOptions {
  readonly runId: string;
  readonly revision: number;
  /** Of the open live session, which has to be named where it works with the revision. */
  readonly generation: number | null;
}

/** A person decides whether a session that was too busy is asked again. */
const ONCE = { maxRetries: 0 };

export async function activate(
  stage: Stage,
  { runId, revision, generation }: MoveOptions,
): Promise<MoveOutcome> {
  const named = stage === "active" && generation !== null ? { expected_generation: generation } : {};
  try {
    return told(
      await client.peek().activatePolicy(
        runId,
        revision,
        { stage, ...named },
        ONCE,
      ),
      stage,
    );
  } catch (failure) {
    return refused(failure, `Revision ${revision} was not moved to ${stage}.`);
  }
}

export async function rollBack(
  { runId, revision, generation }: MoveOptions,
): Promise<MoveOutcome> {
  const named = generation === null ? {} : { expected_generation: generation };
  try {
    return told(
      await client.peek().rollbackPolicy(runId, revision, named, ONCE),
      "active",
    );
  } catch (failure) {
    return refused(failure, `The run did not go back to revision ${revision}.`);
  }
}

function told(
  { policy: { revision }, application }: ApplicationResponse,
  stage: Stage,
): MoveOutcome {
  const {
    generation,
    prompt_acknowledged: isAcknowledged,
    deferred_fields: deferred,
  } = application;
  const parts = [
    `Revision ${revision} is ${stage === "active" ? "active" : `in ${stage}`}.`,
  ];
  if (stage !== "active") {
    parts.push(
      generation === null
        ? "Nothing works with it at this stage."
        : `The live session, generation ${generation}, goes on as before.`,
    );
  } else if (generation === null) {
    parts.push(
      "There is no live session now: the next one of this run starts with it.",
    );
  } else {
    if (isAcknowledged) {
      parts.push(
        `The live session, generation ${generation}, has acknowledged its prompt and asks with it from now on.`,
      );
    }
    parts.push(
      deferred.length === 0
        ? "The live session works with all of it."
        : "Its restricted zone waits: a live session keeps the zone that it began with, and the next one starts with this.",
    );
  }
  return { text: parts.join(" "), isFault: false };
}

/** A refusal says which rule, and what to do. */
function refused(failure: unknown, what: string): MoveOutcome {
  const { what: reason, todo, requestId, code, fields } = failureText(failure);
  const field = fields[0]?.field;
  const why = code === "policy_acknowledgement_timeout"
    ? "The live session did not acknowledge it within two seconds, so nothing was applied: it is busy with a question to the model. Try again in a moment."
    : field === "expected_generation"
    ? "The live session began or ended meanwhile. The page shows the present one; try again."
    : field === "stage"
    ? "It is no longer at the stage before: somebody else has moved it. The page shows where it is now."
    : `${reason}${/[.!?]$/.test(reason) ? "" : "."} ${todo}`;
  return { text: `${what} ${why}`.trim(), isFault: true, requestId };
}
