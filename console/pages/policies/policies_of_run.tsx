/** The policies of one run: its line of stages, one revision in full, how two of them differ, a new one, and
 * a replay.
 */

import { useState } from "preact/hooks";
import type { Policy, PolicyList, Run } from "../../../client/mod.ts";
import { useLoaded } from "../../service/loaded.ts";
import { client } from "../../service/session.ts";
import { hrefOf, setQuery } from "../../shell/place.ts";
import { runName } from "../../text/names.ts";
import { EmptyNote, Shown } from "../../ui/states.tsx";
import { Id, Status } from "../../ui/value.tsx";
import { Comparison } from "./comparison.tsx";
import { DraftForm } from "./draft_form.tsx";
import { type MoveOutcome, OutcomeNote } from "./moves.tsx";
import { Replay } from "./replay.tsx";
import { RevisionDetails } from "./revision_details.tsx";
import { StageLine } from "./stage_line.tsx";

/** Revisions that others write or move show up after so long. */
const RELOAD_MS = 5_000;

interface RunPolicies {
  readonly run: Run;
  readonly list: PolicyList;
}

export function PoliciesOfRun(
  { runId, query }: { runId: string; query: URLSearchParams },
) {
  const loaded = useLoaded<RunPolicies>(
    async (signal) => {
      const [run, list] = await Promise.all([
        client.value.getRun(runId, { signal }),
        client.value.listPolicies(runId, { signal }),
      ]);
      return { run, list };
    },
    [client.value, runId],
    RELOAD_MS,
  );
  return (
    <section class="page policies">
      <header class="page-head">
        <h1>Policies</h1>
        {loaded.value && (
          <>
            <a href={hrefOf(["runs", runId])}>
              {runName(loaded.value.run)}
            </a>
            <Status of={loaded.value.run.status} />
          </>
        )}
        <Id value={runId} />
        <div class="actions">
          <a href={hrefOf(["policies"])}>Choose another run</a>
        </div>
      </header>
      <Shown of={loaded}>
        {(value) => <Revisions {...value} query={query} onChanged={loaded.reload} />}
      </Shown>
    </section>
  );
}

interface RevisionsProps extends RunPolicies {
  readonly query: URLSearchParams;
  readonly onChanged: () => void;
}

function Revisions(
  { run, list: { generation, policies }, query, onChanged }: RevisionsProps,
) {
  const [outcome, setOutcome] = useState<MoveOutcome | null>(null);
  const chosen = chosenOf(policies, query);
  /** A run without revisions begins with the form, which stays when somebody else is faster. */
  const [isFirst, setFirst] = useState(policies.length === 0);
  const base = policies.find(({ revision }) => String(revision) === query.get("new")) ??
    null;
  const isWriting = isFirst || base !== null;
  const choose = (revision: number) => setQuery({ rev: String(revision), against: null, new: null });
  const changed = (next: MoveOutcome) => {
    setOutcome(next);
    onChanged();
  };
  return (
    <>
      <p role="status">
        {generation === null
          ? "The run has no live session now. A later one starts with the active revision."
          : `A live session is open, generation ${generation}: it has to acknowledge what becomes active.`}
      </p>
      {policies.length === 0
        ? (
          <EmptyNote title="No revisions yet">
            <p>
              A live session of this run works with what it was started with. Write a first revision to change
              that while it runs, and to try a restricted zone on what was recorded.
            </p>
          </EmptyNote>
        )
        : (
          <StageLine
            policies={policies}
            chosen={chosen?.revision ?? null}
            onChoose={choose}
          />
        )}
      {outcome && <OutcomeNote of={outcome} onClose={() => setOutcome(null)} />}
      {isWriting
        ? (
          <DraftForm
            key={query.get("new") ?? "first"}
            run={run}
            base={base}
            newest={policies.at(-1)?.revision ?? null}
            onSaved={(revision) => {
              setFirst(false);
              choose(revision);
              setOutcome({
                isFault: false,
                text: `Revision ${revision} is a draft. Nothing works with it yet.`,
              });
              onChanged();
            }}
            onStale={onChanged}
            onCancel={policies.length === 0 ? undefined : () => setQuery({ new: null })}
          />
        )
        : chosen && (
          <>
            <RevisionDetails
              runId={run.run_id}
              policy={chosen}
              generation={generation}
              hasActive={policies.some(({ status }) => status === "active")}
              onOutcome={changed}
              onNew={() => setQuery({ new: String(chosen.revision) })}
            />
            <Comparison policies={policies} chosen={chosen} query={query} />
            <Replay key={chosen.revision} run={run} policy={chosen} />
          </>
        )}
    </>
  );
}

/** The one that the address names, else the active one, else the newest. */
function chosenOf(
  policies: readonly Policy[],
  query: URLSearchParams,
): Policy | null {
  const named = policies.find(({ revision }) => String(revision) === query.get("rev"));
  return named ?? policies.find(({ status }) => status === "active") ??
    policies.at(-1) ?? null;
}
