/** What was said about all runs, searched by text: each hit with its picture, its time and its source, one
 * click from the moment.
 */

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Run, SearchHit } from "../../../client/mod.ts";
import { useLoaded } from "../../service/loaded.ts";
import { CHOICE_RUNS, newestRuns } from "../../service/runs.ts";
import { client } from "../../service/session.ts";
import { hrefOf, type Place, setQuery } from "../../shell/place.ts";
import { lookOfEvent } from "../../text/event_types.ts";
import { runName, shortId } from "../../text/names.ts";
import { counted, countText, scoreText } from "../../text/numbers.ts";
import { dateAndClock, mediaTime } from "../../text/time.ts";
import { EmptyNote, Shown } from "../../ui/states.tsx";
import { transitionText } from "../../text/transition.ts";
import { HitPicture } from "./hit_picture.tsx";
import "./search.css";

/** As many as the service gives. */
const LIMIT = 500;
/** So many more are shown at once. */
const STEP = 60;
/** Of a longer text the part around what was found is shown. */
const EXCERPT = { before: 80, length: 400 };
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
            onClick={() => setQuery({ run: null })}
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
            {(answer) => <Hits key={`${runId} ${text}`} text={text} order={query.get("order")} {...answer} />}
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
    newestRuns(CHOICE_RUNS, signal),
  ]);
  return {
    hits: withoutPictures(answer.hits),
    total: answer.total_hits,
    scanned: answer.scanned,
    runs: new Map(runs.runs.map((run) => [run.run_id, run])),
  };
}

/**
 * A live session stores a picture with the description that it has just written: one hit is enough for both.
 */
function withoutPictures(hits: readonly SearchHit[]): readonly SearchHit[] {
  const keyOf = ({ run_id, pts_ms, description }: SearchHit) => `${run_id} ${pts_ms} ${description}`;
  const described = new Set(hits.filter(({ kind }) => kind !== "keyframe_stored").map(keyOf));
  return hits.filter((hit) => hit.kind !== "keyframe_stored" || !described.has(keyOf(hit)));
}

interface HitsProps extends Found {
  readonly text: string;
  /** `written` for the order of the log, else the best first. */
  readonly order: string | null;
}

function Hits({ text, order, hits, total, scanned, runs }: HitsProps) {
  const [count, setCount] = useState(STEP);
  const isWritten = order === "written";
  const sorted = useMemo(
    () => isWritten ? hits : hits.toSorted((one, other) => other.score - one.score || one.seq - other.seq),
    [hits, isWritten],
  );
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
      <div class="row hits-head">
        <p class="dim" role="status">
          {counted(total, "hit")} in {counted(scanned, "event")}
          {total > LIMIT && `; of these the ${countText(LIMIT)} that were written first`}
        </p>
        <div class="row" role="group" aria-label="Order">
          <button type="button" aria-pressed={!isWritten} onClick={() => setQuery({ order: null })}>
            Best first
          </button>
          <button type="button" aria-pressed={isWritten} onClick={() => setQuery({ order: "written" })}>
            As written
          </button>
        </div>
      </div>
      <ul class="hits">
        {sorted.slice(0, count).map((hit) => (
          <Hit
            key={`${hit.run_id}:${hit.seq}`}
            hit={hit}
            text={text}
            run={runs.get(hit.run_id)}
          />
        ))}
      </ul>
      {sorted.length > count && (
        <button
          type="button"
          class="hits-more"
          onClick={() => setCount(count + STEP)}
        >
          Show {countText(Math.min(STEP, sorted.length - count))} more of {countText(sorted.length)}
        </button>
      )}
    </>
  );
}

function Hit(
  { hit, text, run }: { hit: SearchHit; text: string; run: Run | undefined },
) {
  const { seq, run_id, pts_ms, kind, score, confidence } = hit;
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
            <span class="dim hit-source">{run ? runName(run) : shortId(run_id)}</span>
            <span class="hit-score number" title={SCORE_MEANING}>
              <span class="hit-bar" style={{ width: `${Math.round(score * 36)}px` }} />
              <span class="hidden">score</span> {score.toFixed(2)}
            </span>
          </span>
          <span dir="auto">{marked(textOf(hit), text)}</span>
          {confidence !== null && (
            <span class="dim number hit-more">{look.name}, confidence {scoreText(confidence)}</span>
          )}
        </span>
      </a>
    </li>
  );
}

const SCORE_MEANING = "How well the description matches the text: 1 where it is the text and nothing else";

function textOf({ kind, description }: SearchHit): string {
  return kind === "state_transition" ? transitionText(description) : description;
}

/** The text with the parts that were looked for. */
function marked(description: string, text: string) {
  const [searched, wanted] = [description.toLowerCase(), text.toLowerCase()];
  // A character whose small form is longer would move every place after it.
  if (searched.length !== description.length) return description.slice(0, EXCERPT.length);
  const first = Math.max(0, searched.indexOf(wanted));
  const start = first > EXCERPT.length - wanted.length ? first - EXCERPT.before : 0;
  const end = Math.min(description.length, start + Math.max(EXCERPT.length, EXCERPT.before + wanted.length));
  const parts: ComponentChildren[] = [start > 0 && "… "];
  let done = start;
  for (let at = first; at >= 0 && at + wanted.length <= end; at = searched.indexOf(wanted, done)) {
    if (!searched.startsWith(wanted, at)) break;
    parts.push(description.slice(done, at), <mark>{description.slice(at, at + wanted.length)}</mark>);
    done = at + wanted.length;
  }
  parts.push(description.slice(done, end), end < description.length && " …");
  return <>{parts}</>;
}
