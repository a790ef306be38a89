/** Everything about the mark that was chosen: what it is, why, its evidence, the words of a model, how it
 * came about, the raw event.
 */

import { Fragment } from "preact";
import type { TimelineEvent } from "../../../../client/mod.ts";
import type { Loaded } from "../../../service/loaded.ts";
import { scoreText } from "../../../text/numbers.ts";
import { dateAndClock } from "../../../text/time.ts";
import { lookOfMark, type Mark } from "../../../timeline/mark.ts";
import type { RunMarks } from "../../../timeline/run_marks.ts";
import { Shown } from "../../../ui/states.tsx";
import { copy } from "../../../ui/value.tsx";
import type { RunHistory } from "../history.ts";
import { textAt } from "../payload.ts";
import { Chain } from "./chain.tsx";
import { costsText, factsOf, modelCostsOf } from "./event_facts.ts";
import { eventSentence, eventWords, placeText } from "./event_text.ts";
import { Evidence } from "./evidence.tsx";
import { Measured } from "./measured.tsx";

export interface DetailsProps {
  readonly runId: string;
  readonly seq: number;
  /** The event of that seq, once it is there. */
  readonly event: Loaded<TimelineEvent | null>;
  readonly marks: RunMarks;
  readonly history: RunHistory;
  readonly onChoose: (seq: number) => void;
  readonly onRate: (event: TimelineEvent) => void;
  /** The address of the page with this mark chosen. */
  readonly link: () => string;
}

export function Details(props: DetailsProps) {
  const { seq, event, marks } = props;
  const mark = marks.bySeq(seq);
  return (
    <div class="details-content">
      {mark && <MarkHead mark={mark} />}
      <Shown of={event}>
        {(loaded) => loaded?.seq === seq && <EventBody {...props} of={loaded} />}
      </Shown>
    </div>
  );
}

/** Known before the event is: nothing moves when that comes. */
function MarkHead({ mark }: { mark: Mark }) {
  const { origin, startMs, endMs, frame, confidence, status } = mark;
  const look = lookOfMark(mark);
  return (
    <header class="mark-head">
      <h2>
        <span class="mark" style={{ color: look.colour }} aria-hidden="true">
          {look.shape}
        </span>{" "}
        {look.name}
      </h2>
      <p class="number">
        {placeText(startMs, endMs)}
        {frame !== null && <span class="dim">· frame {frame}</span>}
        {status !== null && origin === null && <span class={`badge is-${status}`}>{status}</span>}
        {confidence !== null && <span title="Confidence">{scoreText(confidence)}</span>}
      </p>
    </header>
  );
}

function EventBody(
  { runId, of: event, marks, history, onChoose, onRate, link }: DetailsProps & {
    of: TimelineEvent;
  },
) {
  const facts = factsOf(event);
  const mark = marks.bySeq(event.seq);
  return (
    <>
      <p>{eventSentence(event)}</p>
      <Words event={event} history={history} />
      <Evidence runId={runId} event={event} />
      {facts.length > 0 && (
        <dl class="facts">
          {facts.map(({ name, value }) => (
            <Fragment key={name}>
              <dt>{name}</dt>
              <dd class="number">{value}</dd>
            </Fragment>
          ))}
        </dl>
      )}
      {mark && mark.eventType !== null && mark.origin === null &&
        event.payload.session_id === undefined && <Measured runId={runId} mark={mark} />}
      <Chain
        runId={runId}
        event={event}
        history={history}
        marks={marks}
        onChoose={onChoose}
      />
      <div class="row">
        <button type="button" onClick={() => copy(link())}>Copy link</button>
        <button type="button" onClick={() => onRate(event)}>Rate</button>
        <span class="hint number" title="When the event was written">
          event {event.seq}, {dateAndClock(event.pts_ms)}
        </span>
      </div>
      <details>
        <summary>Raw event</summary>
        <button
          type="button"
          class="quiet"
          onClick={() => copy(rawText(event))}
        >
          Copy JSON
        </button>
        <pre tabIndex={0} aria-label="Raw event">{rawText(event)}</pre>
      </details>
    </>
  );
}

function Words(
  { event, history }: { event: TimelineEvent; history: RunHistory },
) {
  const words = eventWords(event);
  const costs = modelCostsOf(event);
  if (words === null && costs === null) return null;
  const model = history.modelOf(textAt(event.payload, "request_id"));
  return (
    <figure class="words">
      {words !== null && <blockquote dir="auto">{words}</blockquote>}
      {costs !== null && (
        <figcaption class="number">
          {model !== null && <strong>{model}</strong>}
          {costs.provider !== null &&
            ` by ${costs.provider}${costs.isFallback ? ", a later backend" : ""}`}
          {` · ${costsText(costs)}`}
          {costs.finishReason !== null && costs.finishReason !== "stop" &&
            ` · ended by ${costs.finishReason}`}
        </figcaption>
      )}
    </figure>
  );
}

function rawText(event: TimelineEvent): string {
  return JSON.stringify(event, null, 2);
}
