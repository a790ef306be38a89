/** One named source: its state, and its recording day by day. */

import { useState } from "preact/hooks";
import type { NamedSource } from "../../../client/mod.ts";
import { useLoaded } from "../../service/loaded.ts";
import { client } from "../../service/session.ts";
import { hrefOf, type Place } from "../../shell/place.ts";
import { seenName } from "../../text/names.ts";
import { sourceStateText } from "../../text/source_state.ts";
import { ArmedSwitch } from "../../ui/live/armed_switch.tsx";
import { EmptyNote, Shown } from "../../ui/states.tsx";
import { Recording } from "./recording.tsx";
import "./cameras.css";

const RELOAD_MS = 5_000;

export function CameraPage({ path: [, name = ""], query }: Place) {
  const loaded = useLoaded((signal) => client.value.listSources({ signal }), [client.value], RELOAD_MS);
  return (
    <section class="page">
      <Shown of={loaded}>
        {(sources) => {
          const source = sources.find((one) => one.name === name);
          return source === undefined
            ? (
              <>
                <h1>{seenName(name)}</h1>
                <EmptyNote title="There is no such camera">
                  <p>
                    Your key may use no camera of this name. <a href={hrefOf(["cameras"])}>All cameras</a>
                  </p>
                </EmptyNote>
              </>
            )
            : <Camera source={source} asked={query.get("t")} onChange={loaded.reload} />;
        }}
      </Shown>
    </section>
  );
}

function Camera(
  { source, asked, onChange }: { source: NamedSource; asked: string | null; onChange: () => void },
) {
  const { word, tone, sentence } = sourceStateText(source);
  const { name, run_id, recording } = source;
  // The day that is shown stays while the recording goes on.
  const [newestMs] = useState(recording?.newest_end_at_ms ?? Date.now());
  return (
    <>
      <header class="page-head">
        <h1>{seenName(name)}</h1>
        <span class={`status is-${tone}`}>{word}</span>
        {run_id !== null && (
          <div class="actions">
            <a href={hrefOf(["live", run_id])}>Watch live</a>
            <a href={hrefOf(["runs", run_id])}>What was found</a>
          </div>
        )}
      </header>
      <p class={tone === "bad" ? "fault" : "dim"} role="status">{sentence}</p>
      <ArmedSwitch source={source} onChange={onChange} />
      <Recording source={source} askedMs={Number(asked) || newestMs} />
    </>
  );
}
