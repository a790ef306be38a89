/** What was said about all runs, searched by text: each hit with its picture, its time and its source, one click from the moment. */

import type { Run, SearchHit } from "../../../client/mod.ts";
import { useLoaded } from "../../service/loaded.ts";
import { client } from "../../service/session.ts";
import { go, hrefOf, type Place } from "../../shell/place.ts";
import { lookOfEvent } from "../../text/event_types.ts";
import { sourceName } from "../../text/names.ts";
import { counted, countText } from "../../text/numbers.ts";
import { dateAndClock, mediaTime } from "../../text/time.ts";
import { EmptyNote, Shown } from "../../ui/states.tsx";
import { HitPicture } from "./hit_picture.tsx";
import "./search.css";

/** As many as are shown; the service gives 500 at most. */
const LIMIT = 100;
/** A time after this is a wall-clock time, of an event without a media time of its own: 30 years of media. */
const WALL_MS = 946_684_800_000;

export function Search({ query }: Place) {
  const text = (query.get("q") ?? "").trim();
  const runId = query.get("run");
  const found = useLoaded(
    (signal) => search(text, runId, signal),
    [client.value, text, runId],
  );
  return (
    <section class="page">
      <header class="page-head">
        <h1>Search</h1>
        {runId !== null && (
          <button
            type="button"
            onClick={() => go(["search"], { q: text })}
          >
            in one run only ✕
          </button>
        )}
      </header>
      {text === ""
        ? (
          <EmptyNote title="Search what was said">
            <p>
              Type into the field above (<kbd>/</kbd>) and press{" "}
              <kbd>↵</kbd>. Found are descriptions: what a model, a sidecar or a live session said. Cuts and
              faults have no words; look for them on the page of their run.
            </p>
          </EmptyNote>
        )
        : (
          <Shown of={found}>
            {(answer) => <Hits text={text} {...answer} />}
          </Shown>
        )}
    </section>
  );
}

interface Found {
  readonly hits: readonly SearchHit[];
  readonly total: number;
  readonly scanned: number;
  readonly runs: ReadonlyMap<string, Run>;
}

async function search(
  text: string,
  runId: string | null,
  signal: AbortSignal,
): Promise<Found> {
  if (text === "") return { hits: [], total: 0, scanned: 0, runs: new Map() };
  const [answer, runs] = await Promise.all([
    client.value.search(text, {
      limit: LIMIT,
      ...(runId !== null && { run_id: runId }),
    }, { signal }),
    client.value.listRuns({ signal }),
  ]);
  return {
    hits: answer.hits,
    total: answer.total_hits,
    scanned: answer.scanned,
    runs: new Map(runs.map((run) => [run.run_id, run])),
  };
}

function Hits({ text, hits, total, scanned, runs }: Found & { text: string }) {
  if (hits.length === 0) {
    return (
      <EmptyNote title={`Nothing says “${text}”`}>
        <p>
          {scanned === 0
            ? "None of your runs has descriptions: they come of an analysis with a model, or of a live session."
            : `${
              counted(scanned, "description")
            } were searched. The text is looked for as it stands, in any case.`}
        </p>
      </EmptyNote>
    );
  }
  return (
    <>
      <p class="dim" role="status">
        {counted(total, "hit")} in {counted(scanned, "event")}
        {total > hits.length &&
          `; the first ${countText(hits.length)} are shown`}
      </p>
      <ul class="hits">
        {hits.map((hit) => (
          <Hit
            key={`${hit.run_id}:${hit.seq}`}
            hit={hit}
            text={text}
            run={runs.get(hit.run_id)}
          />
        ))}
      </ul>
    </>
  );
}

function Hit(
  { hit, text, run }: { hit: SearchHit; text: string; run: Run | undefined },
) {
  const { seq, run_id, pts_ms, kind, description } = hit;
  const isMedia = pts_ms < WALL_MS;
  const look = lookOfEvent(kind);
  const link = hrefOf(["runs", run_id], {
    ...(isMedia && { t: String(pts_ms) }),
    seq: String(seq),
  });
  return (
    <li>
      <a class="hit" href={link}>
        <HitPicture
          hit={hit}
          sourceUri={run?.source_uri ?? ""}
          ms={isMedia ? pts_ms : null}
        />
        <span class="hit-text">
          <span class="row">
            <span
              class="mark"
              style={{ color: look.colour }}
              aria-hidden="true"
            >
              {look.shape}
            </span>
            <strong class="number">
              {isMedia ? mediaTime(pts_ms) : dateAndClock(pts_ms)}
            </strong>
            <span class="dim">{sourceName(run?.source_uri ?? "")}</span>
          </span>
          <span dir="auto">{marked(description, text)}</span>
        </span>
      </a>
    </li>
  );
}

/** The text with the part that was looked for. */
function marked(description: string, text: string) {
  const at = description.toLowerCase().indexOf(text.toLowerCase());
  if (at < 0) return description;
  return (
    <>
      {description.slice(0, at)}
      <mark>{description.slice(at, at + text.length)}</mark>
      {description.slice(at + text.length)}
    </>
  );
}
