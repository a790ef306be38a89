/** How two revisions differ: the prompt word by word, the form of the answer and the zone line by line. */

import { type ChangeObject, diffLines, diffWordsWithSpace } from "diff";
import type { Policy } from "../../../client/mod.ts";
import { setQuery } from "../../shell/place.ts";
import { ChoiceField } from "../../ui/field.tsx";
import { statusText } from "./stage_line.tsx";

export interface ComparisonProps {
  readonly policies: readonly Policy[];
  readonly chosen: Policy;
  readonly query: URLSearchParams;
}

export function Comparison({ policies, chosen, query }: ComparisonProps) {
  const others = policies.filter(({ revision }) => revision !== chosen.revision);
  if (others.length === 0) return null;
  const named = others.find(({ revision }) => String(revision) === query.get("against"));
  const other = named ??
    others.find(({ revision }) => revision === chosen.parent_revision) ??
    others.at(-1)!;
  return (
    <section class="comparison" aria-label="Comparison">
      <div class="row">
        <h2>Changes to revision {chosen.revision}</h2>
        <ChoiceField
          label="since"
          value={String(other.revision)}
          onChange={(against) => setQuery({ against, rev: String(chosen.revision) })}
          choices={others.toReversed().map(({ revision, status }) => ({
            value: String(revision),
            text: `revision ${revision}, ${statusText(status)}`,
          }))}
        />
      </div>
      <dl class="changes">
        <Change
          name="Prompt"
          from={other.prompt ?? ""}
          to={chosen.prompt ?? ""}
          by={diffWordsWithSpace}
        />
        <Change
          name="Form of the answer"
          from={jsonLines(other.output_schema)}
          to={jsonLines(chosen.output_schema)}
          by={diffLines}
        />
        <Change
          name="Restricted zone"
          from={jsonLines(other.parameters.restricted_zone)}
          to={jsonLines(chosen.parameters.restricted_zone)}
          by={diffLines}
        />
      </dl>
    </section>
  );
}

function jsonLines(value: object | null | undefined): string {
  return value == null ? "" : `${JSON.stringify(value, null, 2)}\n`;
}

interface ChangeProps {
  readonly name: string;
  readonly from: string;
  readonly to: string;
  readonly by: (from: string, to: string) => readonly ChangeObject<string>[];
}

function Change({ name, from, to, by }: ChangeProps) {
  return (
    <>
      <dt>{name}</dt>
      <dd>
        {from === to ? <span class="dim">{from === "" ? "none in both" : "the same"}</span> : (
          <pre>
              {by(from, to).map(({ value, added, removed }, index) =>
                added
                  ? <ins key={index}>{value}</ins>
                  : removed
                  ? <del key={index}>{value}</del>
                  : <span key={index}>{value}</span>
              )}
          </pre>
        )}
      </dd>
    </>
  );
}
