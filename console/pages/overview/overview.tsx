/** The first page: what needs a look, what is live, the runs of late; and for a new service, the first steps.
 */

import { serviceHealth } from "../../service/health.ts";
import { useLoaded } from "../../service/loaded.ts";
import { type NewestRuns, newestRuns } from "../../service/runs.ts";
import { awaySinceMs, client } from "../../service/session.ts";
import { countText } from "../../text/numbers.ts";
import { go, hrefOf } from "../../shell/place.ts";
import { Shown } from "../../ui/states.tsx";
import { Table } from "../../ui/table.tsx";
import { RUN_COLUMNS } from "../runs/runs.tsx";
import { FirstSteps } from "./first_steps.tsx";
import { LiveTile } from "./live_tile.tsx";
import { LostSource } from "./lost_source.tsx";
import "./overview.css";

const RELOAD_MS = 3_000;
const RECENT = 8;
/** Of the newest runs, those with the latest events are shown. */
const LOOKED_AT = 200;

export function Overview() {
  const loaded = useLoaded(
    async (signal) => {
      const asked = client.value;
      const [sessions, { runs, isMore }, sources] = await Promise.all([
        asked.listLiveSessions({ signal }),
        newestRuns(LOOKED_AT, signal),
        asked.listSources({ signal }),
      ]);
      const lost = sources.filter(({ live, state }) =>
        live && (state === "failed" || state === "connecting")
      );
      const watched = new Set(sessions.map(({ source_uri }) => source_uri));
      const cameras = new Map(sources.map((source) => [source.run_id, source]));
      return {
        sessions,
        runs,
        isMore,
        cameras,
        lost: lost.filter(({ source_uri }) => !watched.has(source_uri)),
      };
    },
    [client.value],
    RELOAD_MS,
  );
  return (
    <section class="page">
      <header class="page-head">
        <h1>Overview</h1>
      </header>
      <Attention />
      <Shown of={loaded}>
        {({ sessions, runs, isMore, cameras, lost }) => (
          <>
            {sessions.length + lost.length > 0 && (
              <section class="overview-part" aria-labelledby="overview-live">
                <h2 id="overview-live">Live now</h2>
                <ul class="tiles">
                  {sessions.map((session) => (
                    <LiveTile
                      key={session.session_id}
                      session={session}
                      camera={cameras.get(session.run_id)}
                      onArmed={loaded.reload}
                    />
                  ))}
                  {lost.map((source) => (
                    <LostSource key={source.name} source={source} onArmed={loaded.reload} />
                  ))}
                </ul>
              </section>
            )}
            {runs.length > 0 && <RecentRuns runs={runs} isMore={isMore} />}
            <FirstSteps
              isFirstVisit={runs.length === 0}
            />
          </>
        )}
      </Shown>
    </section>
  );
}

function Attention() {
  const health = serviceHealth.value;
  if (awaySinceMs.value !== null) {
    return <p class="dim" role="status">The service does not answer, so its state is not known.</p>;
  }
  if (health === null) return null;
  const { result, reason, notes } = health;
  if (notes.length === 0) {
    return <p class="dim" role="status">Nothing needs your attention. {reason}</p>;
  }
  return (
    <section class="note fault attention" aria-labelledby="attention">
      <h2 id="attention">Needs attention</h2>
      <ul>
        {notes.map(({ text, path }) => (
          <li key={text}>
            {text} {path !== null && <a href={hrefOf(path)}>Look</a>}
          </li>
        ))}
      </ul>
      {(result === "healthy" || result === "idle") && <p class="dim">{reason}</p>}
    </section>
  );
}

function RecentRuns({ runs, isMore }: NewestRuns) {
  const recent = runs.toSorted((one, other) => Date.parse(other.updated_at) - Date.parse(one.updated_at))
    .slice(0, RECENT);
  return (
    <section class="overview-part" aria-labelledby="overview-runs">
      <div class="page-head">
        <h2 id="overview-runs">Recent runs</h2>
        <a href={hrefOf(["runs"])}>
          All {!isMore && countText(runs.length)} {runs.length === 1 ? "run" : "runs"}
        </a>
      </div>
      <Table
        name="recent runs"
        rows={recent}
        columns={RUN_COLUMNS}
        keyOf={(run) => run.run_id}
        onOpen={(run) => go(["runs", run.run_id])}
      />
    </section>
  );
}
