/** The revisions of a run on their way from draft to active, and those that were active before. */

import type { Policy } from "../../../client/mod.ts";
import { Ago } from "../../ui/value.tsx";

export type PolicyStatus = Policy["status"];

const STAGES: readonly {
  readonly status: PolicyStatus;
  readonly about: string;
}[] = [
  { status: "draft", about: "written; nothing works with it" },
  { status: "shadow", about: "announced; nothing works with it" },
  { status: "canary", about: "the last step before active" },
  { status: "active", about: "what the live session works with" },
];

/** How a status reads. */
export function statusText(status: PolicyStatus): string {
  return status.replace("_", " ");
}

interface StageLineProps {
  readonly policies: readonly Policy[];
  readonly chosen: number | null;
  readonly onChoose: (revision: number) => void;
}

export function StageLine({ policies, chosen, onChoose }: StageLineProps) {
  const newestFirst = policies.toReversed();
  const earlier = newestFirst.filter(({ status }) => status === "retired" || status === "rolled_back");
  const buttons = (list: readonly Policy[], withStatus = false) =>
    list.map(({ revision, status, updated_at_ms, deferred_fields }) => (
      <button
        key={revision}
        type="button"
        class="revision"
        aria-pressed={revision === chosen}
        onClick={() => onChoose(revision)}
      >
        <strong>Revision {revision}</strong>
        <span class="dim">
          {withStatus && `${statusText(status)} `}
          <Ago ms={updated_at_ms} />
          {status === "active" && deferred_fields.length > 0 &&
            ", a part waits"}
        </span>
      </button>
    ));
  return (
    <section aria-label="Stages">
      <ol class="stages">
        {STAGES.map(({ status, about }) => {
          const here = newestFirst.filter((policy) => policy.status === status);
          return (
            <li key={status} class={`stage is-${status}`}>
              <h2>{statusText(status)}</h2>
              <p class="hint">{about}</p>
              <div class="stage-list">
                {here.length === 0 ? <span class="dim">none</span> : buttons(here)}
              </div>
            </li>
          );
        })}
      </ol>
      {earlier.length > 0 && (
        <div class="earlier">
          <h3>Active before</h3>
          <div class="row">{buttons(earlier, true)}</div>
        </div>
      )}
    </section>
  );
}
