/** All named sources: how each one is, whether it is armed, and the ways to its picture and its recording. */

import type { NamedSource } from "../../../client/mod.ts";
import { useLoaded } from "../../service/loaded.ts";
import { client } from "../../service/session.ts";
import { hrefOf } from "../../shell/place.ts";
import { seenName } from "../../text/names.ts";
import { sourceStateText } from "../../text/source_state.ts";
import { ArmedSwitch } from "../../ui/live/armed_switch.tsx";
import { EmptyNote, Shown } from "../../ui/states.tsx";
import { Ago } from "../../ui/value.tsx";
import "./cameras.css";

const RELOAD_MS = 3_000;

export function Cameras() {
  const loaded = useLoaded((signal) => client.value.listSources({ signal }), [client.value], RELOAD_MS);
  return (
    <section class="page">
      <header class="page-head">
        <h1>Cameras</h1>
      </header>
      <Shown of={loaded}>
        {(sources) =>
          sources.length === 0 ? <NoCameras /> : (
            <ul class="cameras">
              {sources.map((source) => <Camera key={source.name} source={source} onChange={loaded.reload} />)}
            </ul>
          )}
      </Shown>
    </section>
  );
}

function Camera({ source, onChange }: { source: NamedSource; onChange: () => void }) {
  const { name, kind, live, run_id, recording } = source;
  const { word, tone, sentence } = sourceStateText(source);
  const shown = seenName(name);
  return (
    <li class="card camera">
      <p class="row">
        <a href={hrefOf(["cameras", name])}>{shown}</a>
        <span class={`status is-${tone}`}>{word}</span>
      </p>
      <p>
        {sentence} <span class="dim">{kind}{live && ", always watched"}</span>
      </p>
      <ArmedSwitch source={source} onChange={onChange} />
      <p class="row">
        {run_id !== null && <a href={hrefOf(["live", run_id])} aria-label={`Watch ${shown}`}>Watch</a>}
        {recording !== null && (
          <span>
            <a href={hrefOf(["cameras", name])} aria-label={`Recording of ${shown}`}>Recording</a>{" "}
            <span class="dim">
              {recording.newest_end_at_ms === null ? "nothing yet" : (
                <>
                  to <Ago ms={recording.newest_end_at_ms} />
                </>
              )}
            </span>
          </span>
        )}
      </p>
    </li>
  );
}

const LINES = `[[sources]]
name = "dock"
uri = "rtsp://viewer:\${DOCK_PASSWORD}@192.168.10.21/1"
principals = ["*"]
live = true
recording = { hours = 48 }`;

function NoCameras() {
  return (
    <EmptyNote title="No camera has a name yet">
      <p>
        Whoever runs the service names cameras in the file of <code>SERVICE_SOURCES_CONFIG</code>,{" "}
        <code>sources.toml</code>{" "}
        unless set. They are watched from the start on, with their password and address hidden from everybody
        else:
      </p>
      <pre tabIndex={0} aria-label="Lines of a camera">{LINES}</pre>
      <p>
        For a camera without a name, go to <a href={hrefOf(["live"], { way: "network" })}>Live</a>.
      </p>
    </EmptyNote>
  );
}
