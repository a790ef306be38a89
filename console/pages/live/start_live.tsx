/** A live session is begun: the camera or the screen of this computer is published, or the service watches a
 * source itself.
 */

import { useCallback, useState } from "preact/hooks";
import { useLoaded } from "../../service/loaded.ts";
import { client } from "../../service/session.ts";
import { hrefOf, type Place, setQuery } from "../../shell/place.ts";
import { liveName, liveStateText } from "../../text/live_state.ts";
import { NetworkForm } from "./network_form.tsx";
import { PublishForm } from "./publish_form.tsx";
import { FIRST_WISH, type SessionWish } from "./wish/session_wish.ts";
import "./live.css";

const RELOAD_MS = 3_000;

const WAYS = [
  { id: "camera", text: "Camera of this computer" },
  { id: "screen", text: "Screen" },
  { id: "network", text: "Camera on the network" },
] as const;
type Way = typeof WAYS[number]["id"];

export function StartLive({ query }: Place) {
  const asked = query.get("way");
  const chosen: Way = WAYS.find(({ id }) => id === asked)?.id ?? "camera";
  // What is wanted stays when the way is changed.
  const [wish, setWish] = useState(FIRST_WISH);
  const change = useCallback(
    (changes: Partial<SessionWish>) => setWish((now) => ({ ...now, ...changes })),
    [],
  );
  return (
    <section class="page live-start">
      <header class="page-head">
        <h1>Live</h1>
      </header>
      <OpenSessions />
      <div class="row" role="group" aria-label="What is watched">
        {WAYS.map((way) => (
          <button
            key={way.id}
            type="button"
            aria-pressed={way.id === chosen}
            onClick={() => setQuery({ way: way.id })}
          >
            {way.text}
          </button>
        ))}
      </div>
      {chosen === "network" ? <NetworkForm wish={wish} onWish={change} /> : (
        <PublishForm
          key={chosen}
          kind={chosen}
          wish={wish}
          onWish={change}
        />
      )}
    </section>
  );
}

function OpenSessions() {
  const sessions = useLoaded(
    (signal) => client.value.listLiveSessions({ signal }),
    [client.value],
    RELOAD_MS,
  );
  if (!sessions.value || sessions.value.length === 0) return null;
  return (
    <section aria-labelledby="live-open">
      <h2 id="live-open">Open now</h2>
      <ul class="live-open">
        {sessions.value.map((session) => {
          const { word, tone } = liveStateText(session, Date.now());
          return (
            <li key={session.session_id}>
              <a href={hrefOf(["live", session.run_id])}>{liveName(session)}</a>{" "}
              <span class={`status is-${tone}`}>{word}</span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
