/** One open live session: what it sees, its state, and what happened last. */

import type { LiveSession, NamedSource } from "../../../client/mod.ts";
import { useLoaded } from "../../service/loaded.ts";
import { client } from "../../service/session.ts";
import { hrefOf } from "../../shell/place.ts";
import { lookOfEvent, lookOfMarker } from "../../text/event_types.ts";
import { liveName, liveStateText } from "../../text/live_state.ts";
import { LivePicture } from "../../ui/live/live_picture.tsx";
import { Ago } from "../../ui/value.tsx";
import { eventSentence, eventWords } from "../run/details/event_text.ts";
import { textAt } from "../run/payload.ts";
import { ArmedSwitch } from "../../ui/live/armed_switch.tsx";

/** How often the pictures of all tiles are drawn anew. */
const PICTURE_MS = 2_000;

export function LiveTile(
  { session, camera, onArmed }: {
    readonly session: LiveSession;
    /** The always-on camera that it watches. */
    readonly camera: NamedSource | undefined;
    readonly onArmed: () => void;
  },
) {
  const { run_id, last_seq } = session;
  const last = useLoaded((signal) => eventAt(run_id, last_seq, signal), [
    client.value,
    run_id,
    last_seq,
  ]);
  const state = liveStateText(session, Date.now());
  const name = liveName(session);
  return (
    <li class="tile">
      <a
        class="tile-picture"
        href={hrefOf(["live", run_id])}
        aria-label={`Watch ${name}`}
      >
        <LivePicture session={session} everyMs={PICTURE_MS} />
      </a>
      <div class="tile-text">
        <p class="row">
          <a href={hrefOf(["live", run_id])}>{name}</a>
          <span class={`status is-${state.tone}`}>{state.word}</span>
        </p>
        {state.tone !== "good" && <p>{state.sentence}</p>}
        {last.value && <LastEvent event={last.value} />}
        {camera && <ArmedSwitch source={camera} onChange={onArmed} />}
      </div>
    </li>
  );
}

function LastEvent(
  { event }: { event: NonNullable<Awaited<ReturnType<typeof eventAt>>> },
) {
  const { kind, payload, pts_ms } = event;
  const look = kind === "marker_emitted"
    ? lookOfMarker(textAt(payload, "event_type") ?? "", textAt(payload, "origin"))
    : lookOfEvent(kind);
  return (
    <p class="tile-event">
      <span class="mark" style={{ color: look.colour }} aria-hidden="true">
        {look.shape}
      </span>{" "}
      {eventWords(event) ?? eventSentence(event)}{" "}
      <span class="dim">
        <Ago ms={pts_ms} />
      </span>
    </p>
  );
}

/** Null where it is gone by now. */
async function eventAt(runId: string, seq: number, signal: AbortSignal) {
  for await (
    const event of client.value.streamEvents(runId, { from_seq: seq }, {
      signal,
    })
  ) {
    return event.seq === seq ? event : null;
  }
  return null;
}
