/** A choice of one of the caller's runs, the newest first. */

import { useLoaded } from "../service/loaded.ts";
import { CHOICE_RUNS, newestRuns } from "../service/runs.ts";
import { client } from "../service/session.ts";
import { runName, shortId } from "../text/names.ts";
import { ago } from "../text/time.ts";
import { ChoiceField } from "./field.tsx";
import { Shown } from "./states.tsx";

export interface RunFieldProps {
  readonly runId: string | null;
  readonly onChange: (runId: string) => void;
}

export function RunField({ runId, onChange }: RunFieldProps) {
  const runs = useLoaded(async (signal) => (await newestRuns(CHOICE_RUNS, signal)).runs, [
    client.value,
  ]);
  return (
    <Shown of={runs} whileAway="The runs are listed once the service answers.">
      {(list) => (
        <ChoiceField
          label="Run"
          value={runId ?? ""}
          onChange={onChange}
          hint={list.length === 0 ? "There are no runs yet: analyze a film first" : undefined}
          choices={[
            { value: "", text: "Choose …", isDisabled: true },
            ...(runId !== null && !list.some(({ run_id }) => run_id === runId)
              ? [{ value: runId, text: `${shortId(runId)}, not one of your newest` }]
              : []),
            ...list.map((run) => ({
              value: run.run_id,
              text: `${runName(run)} · ${shortId(run.run_id)} · ${ago(Date.parse(run.created_at))}`,
            })),
          ]}
        />
      )}
    </Shown>
  );
}
