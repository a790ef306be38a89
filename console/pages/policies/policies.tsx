/** Policies: the runs to choose from, and the revisions of the one that is chosen. */

import type { Run } from "../../../client/mod.ts";
import { useLoaded } from "../../service/loaded.ts";
import { CHOICE_RUNS, newestRuns } from "../../service/runs.ts";
import { client } from "../../service/session.ts";
import { go, hrefOf, type Place } from "../../shell/place.ts";
import { runName } from "../../text/names.ts";
import { EmptyNote, Shown } from "../../ui/states.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { Ago, Id, Status } from "../../ui/value.tsx";
import { PoliciesOfRun } from "./policies_of_run.tsx";
import "./policies.css";

const COLUMNS: readonly Column<Run>[] = [
  {
    title: "Source",
    cell: (run) => (
      <a href={hrefOf(["policies", run.run_id])}>
        {runName(run)}
      </a>
    ),
    sortBy: (run) => runName(run),
  },
  {
    title: "State",
    cell: (run) => <Status of={run.status} />,
    sortBy: (run) => run.status,
  },
  {
    title: "Created",
    cell: (run) => <Ago ms={Date.parse(run.created_at)} />,
    sortBy: (run) => Date.parse(run.created_at),
    isNumber: true,
  },
  { title: "Run", cell: (run) => <Id value={run.run_id} />, isExtra: true },
];

export function Policies({ path, query }: Place) {
  const runId = path[1];
  return runId === undefined ? <RunChoice /> : <PoliciesOfRun runId={runId} query={query} />;
}

function RunChoice() {
  const runs = useLoaded(async (signal) => (await newestRuns(CHOICE_RUNS, signal)).runs, [
    client.value,
  ]);
  return (
    <section class="page">
      <header class="page-head">
        <h1>Policies</h1>
      </header>
      <p class="dim">
        A policy says what a run's live session works with: a prompt, the form of the answer, a restricted
        zone. Its revisions go through stages, and each can be tried on what has been recorded. Choose a run.
      </p>
      <Shown of={runs}>
        {(list) =>
          list.length === 0
            ? (
              <EmptyNote title="No runs yet">
                <p>
                  Policies belong to runs. A run is made for each film or stream that is analyzed.
                </p>
                <p>
                  <a href={hrefOf(["new"])}>Analyze a film</a>
                </p>
              </EmptyNote>
            )
            : (
              <Table
                name="runs"
                rows={list}
                columns={COLUMNS}
                keyOf={(run) => run.run_id}
                textOf={(run) => `${runName(run)} ${run.run_id} ${run.status}`}
                onOpen={(run) => go(["policies", run.run_id])}
                sort={{ title: "Created", isDown: true }}
              />
            )}
      </Shown>
    </section>
  );
}
