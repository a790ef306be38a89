/** The runs of the caller, the newest first; older ones when they are asked for. */

import { useRef, useState } from "preact/hooks";
import type { Run } from "../../../client/mod.ts";
import { client } from "../../service/session.ts";
import { useLoaded } from "../../service/loaded.ts";
import { newestRuns } from "../../service/runs.ts";
import { go, hrefOf } from "../../shell/place.ts";
import { counted } from "../../text/numbers.ts";
import { runName } from "../../text/names.ts";
import { Ago, Id, Status } from "../../ui/value.tsx";
import { EmptyNote, Shown } from "../../ui/states.tsx";
import { type Column, Table } from "../../ui/table.tsx";

/** Runs that are made elsewhere show up after so long. */
const RELOAD_MS = 5_000;
/** Runs that are shown at first, and so many more each time. */
const STEP = 500;

export const RUN_COLUMNS: readonly Column<Run>[] = [
  {
    title: "Source",
    cell: (run) => <a href={hrefOf(["runs", run.run_id])}>{runName(run)}</a>,
    sortBy: (run) => runName(run),
  },
  {
    title: "State",
    cell: (run) => <Status of={run.status} />,
    sortBy: (run) => run.status,
  },
  {
    title: "Model",
    cell: (run) => run.model,
    sortBy: (run) => run.model,
    isExtra: true,
  },
  {
    title: "Last event",
    cell: (run) => <Ago ms={Date.parse(run.updated_at)} />,
    sortBy: (run) => Date.parse(run.updated_at),
    isNumber: true,
  },
  {
    title: "Created",
    cell: (run) => <Ago ms={Date.parse(run.created_at)} />,
    sortBy: (run) => Date.parse(run.created_at),
    isNumber: true,
    isExtra: true,
  },
  { title: "Run", cell: (run) => <Id value={run.run_id} />, isExtra: true },
];

export function Runs() {
  const [count, setCount] = useState(STEP);
  // The runs that are there stay while older ones are on their way.
  const wanted = useRef(count);
  wanted.current = count;
  const loaded = useLoaded((signal) => newestRuns(wanted.current, signal), [client.value], RELOAD_MS);
  const showMore = () => {
    setCount(wanted.current = count + STEP);
    loaded.reload();
  };
  return (
    <section class="page">
      <header class="page-head">
        <h1>Runs</h1>
        {loaded.value && loaded.value.runs.length > 0 && (
          <span class="dim">
            {loaded.value.isMore && "the newest "}
            {counted(loaded.value.runs.length, "run")}
          </span>
        )}
        {loaded.value?.isMore && <button type="button" onClick={showMore}>Show older runs</button>}
      </header>
      <Shown of={loaded}>
        {({ runs }) =>
          runs.length === 0
            ? (
              <EmptyNote title="No runs yet">
                <p>A run is made for each film or stream that is analyzed.</p>
                <p>
                  <a href={hrefOf(["new"])}>Analyze a film</a>
                </p>
              </EmptyNote>
            )
            : (
              <Table
                name="runs"
                rows={runs}
                columns={RUN_COLUMNS}
                keyOf={(run) => run.run_id}
                textOf={(run) => `${runName(run)}  ${run.run_id} ${run.model} ${run.status}`}
                onOpen={(run) => go(["runs", run.run_id])}
                sort={{ title: "Created", isDown: true }}
              />
            )}
      </Shown>
    </section>
  );
}
