/** A session that is open: its picture, its plot and its events, what is asked, its numbers, and its end. */

import { useState } from "preact/hooks";
import type { WatchedSession } from "../../../client/mod.ts";
import { serviceHealth } from "../../service/health.ts";
import { client } from "../../service/session.ts";
import { liveName, liveStateText } from "../../text/live_state.ts";
import type { RunMarks } from "../../timeline/run_marks.ts";
import { confirm } from "../../ui/confirm.tsx";
import { LiveView } from "../../ui/live/live_view.tsx";
import { LivePicture, seesNow } from "../../ui/live/live_picture.tsx";
import { tell, tellFailure } from "../../ui/toast.tsx";
import { Id } from "../../ui/value.tsx";
import { AskForm } from "./ask_form.tsx";
import { EventFeed } from "./event_feed.tsx";
import { MotionPlot } from "./motion_plot.tsx";
import { usePeerStats } from "./peer_stats.ts";
import { endPublication, type Publication, publicationOf } from "./publication.ts";
import { ConnectionFacts, SessionFacts } from "./session_facts.tsx";
import type { SignalWindow } from "./signal_window.ts";
import { StreamVideo } from "./stream_video.tsx";
import { ZoneBox } from "../../ui/zone_editor.tsx";

export interface OpenSessionProps {
  readonly session: WatchedSession;
  readonly signals: SignalWindow;
  readonly marks: RunMarks;
  /** The last question after the session was not answered. */
  readonly isAway: boolean;
  readonly onChanged: () => void;
}

export function OpenSession(
  { session, signals, marks, isAway, onChanged }: OpenSessionProps,
) {
  const publication = publicationOf(session.run_id);
  const peer = publication?.session.peer as
    | Pick<RTCPeerConnection, "getStats">
    | undefined;
  const stats = usePeerStats(peer ?? null);
  const state = liveStateText(session, Date.now());
  const zone = session.restricted_zone;
  return (
    <>
      <header class="page-head">
        <h1>{publication ? "Published from this tab" : liveName(session)}</h1>
        <Id value={session.run_id} />
        <span class={`status is-${state.tone}`}>{state.word}</span>
        <StopButton
          session={session}
          publication={publication}
          onChanged={onChanged}
        />
      </header>
      <p class={state.tone === "bad" ? "fault" : "dim"} role="status">
        {isAway ? "The service does not answer; what is shown is what was known last." : state.sentence}
      </p>
      {(serviceHealth.value?.notes ?? []).filter(({ code }) => code === "model_unknown").map(({ text }) => (
        <p key={text} class="fault" role="status">{text}</p>
      ))}
      {publication && publication.state !== "connected" &&
        publication.state !== "connecting" && <Reconnect publication={publication} />}
      <div class="live-columns">
        <div class="live-watch">
          <Picture session={session} publication={publication} />
          <MotionPlot
            signals={signals.values}
            thresholds={zone &&
              { enter: zone.enter_motion_score, exit: zone.exit_motion_score }}
          />
          <AskForm session={session} onChanged={onChanged} />
        </div>
        <div class="live-side">
          <EventFeed runId={session.run_id} marks={marks} />
          {publication && <ConnectionFacts stats={stats} state={publication.state} />}
          <SessionFacts session={session} />
        </div>
      </div>
    </>
  );
}

/** How often the picture is drawn anew. */
const PICTURE_MS = 1_000;

interface PictureProps {
  readonly session: WatchedSession;
  readonly publication: Publication | null;
}

/** What this tab sends, else what the session sees. */
function Picture({ session, publication }: PictureProps) {
  const [aspect, setAspect] = useState(16 / 9);
  const [isPlaying, setPlaying] = useState(false);
  const { restricted_zone: zone } = session;
  if (publication) {
    return (
      <div class="zone-picture" style={{ aspectRatio: String(aspect) }}>
        <StreamVideo stream={publication.stream} onAspect={setAspect} />
        {zone && <ZoneBox region={zone.region} name={zone.policy_id} />}
      </div>
    );
  }
  return (
    <figure class="live-still">
      <div class="zone-picture" style={{ aspectRatio: String(aspect) }}>
        <LiveView
          runId={session.run_id}
          over={zone && <ZoneBox region={zone.region} name={zone.policy_id} />}
          onAspect={setAspect}
          onPlaying={setPlaying}
        >
          <LivePicture session={session} everyMs={PICTURE_MS} isNamed onAspect={setAspect} />
        </LiveView>
      </div>
      <figcaption class="hint">
        {isPlaying
          ? "What it sees, as it comes"
          : seesNow(session)
          ? "What it sees, once a second"
          : "The last picture that was kept"}
        {zone && !isPlaying && ": of the zone alone"}.
      </figcaption>
    </figure>
  );
}

/** The connection of this tab is lost or failed. */
function Reconnect(
  { publication: { session, state } }: { publication: Publication },
) {
  const [isBusy, setBusy] = useState(false);
  const restart = async () => {
    setBusy(true);
    await session.restartIce().catch((failure) =>
      tellFailure("No new way to the service was found", failure)
    );
    setBusy(false);
  };
  return (
    <div class="note fault" role="alert">
      <p>
        {state === "failed"
          ? "The connection to the service has failed."
          : "The connection to the service is interrupted; the browser tries to get it back."}{" "}
        The session ends when nothing comes for 8 s.
      </p>
      <button type="button" disabled={isBusy} onClick={restart}>
        Find a new way
      </button>
    </div>
  );
}

function StopButton(
  { session, publication, onChanged }: PictureProps & { onChanged: () => void },
) {
  const stop = async () => {
    const name = publication ? "what this tab publishes" : liveName(session);
    const isWanted = await confirm({
      title: "Stop this session?",
      text: `${name} (${session.run_id}): the session ends and its run is completed. What was found stays.`,
      action: "Stop session",
    });
    if (!isWanted) return;
    try {
      if (publication) await endPublication();
      else if (session.source === "live") {
        await client.value.closeLiveSource(session.run_id);
      } else await client.value.whipTerminate(session.session_id);
      tell("The session was stopped");
    } catch (failure) {
      tellFailure("The session was not stopped", failure);
    }
    onChanged();
  };
  return (
    <div class="actions">
      <button type="button" class="danger" onClick={stop}>Stop</button>
    </div>
  );
}
