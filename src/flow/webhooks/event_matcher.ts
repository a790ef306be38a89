/** Decides for one webhook which events are delivered to it, and finds out for that of which source an event
 * is.
 */

import { DEFAULT_STREAM_ID } from "../../model/identifiers.ts";
import type { CoolingEvent } from "../../model/webhooks/cooldown.ts";
import { type EventFacts, eventFacts, mayBeDisarmed, meets } from "../../model/webhooks/filter.ts";
import { isForWebhooks, mayMatch, type Webhook } from "../../model/webhooks/webhook.ts";
import type { StoredEvent } from "../../store/timeline/event_reader.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";

export interface Judgement {
  /** `filtered`: the kind is wanted, and a condition of the filter does not hold. */
  readonly verdict: "wanted" | "filtered" | "other";
  /** What the cooldown decides by; null for a webhook without one, and for an event that is not wanted. */
  readonly cooling: CoolingEvent | null;
}

const OTHER: Judgement = { verdict: "other", cooling: null };

/** The cooldown itself is not applied here: it concerns first deliveries only. */
export class EventMatcher {
  readonly #hook: Webhook;
  readonly #timeline: Timeline;
  readonly #sources: RunSources;

  constructor(hook: Webhook, timeline: Timeline) {
    this.#hook = hook;
    this.#timeline = timeline;
    this.#sources = new RunSources(hook.runId, timeline);
  }

  /** Judges an event of the webhook's run that is later than its registration. */
  judge(event: Pick<StoredEvent, "seq" | "kind" | "payload" | "ptsMs">): Judgement {
    const { filter, cooldown } = this.#hook;
    if (!mayMatch(this.#hook, event.kind) || !isForWebhooks(event)) return OTHER;
    if (!filter && !cooldown && !mayBeDisarmed(event.kind)) return { verdict: "wanted", cooling: null };
    const facts = eventFacts(event.payload);
    const sourceUri = this.#sources.of(facts, event.seq);
    if (!meets(filter ?? {}, facts, sourceUri)) return { verdict: "filtered", cooling: null };
    return { verdict: "wanted", cooling: cooldown && { ...this.#occasion(event, facts), facts, sourceUri } };
  }

  /**
   * What the cooldown takes as kind and time. An explanation goes by those of the event that it explains, in
   * a cooldown of its own, as it comes some seconds later or earlier than others: whoever got the event gets
   * the explanation.
   */
  #occasion(
    { kind, ptsMs }: Pick<StoredEvent, "kind" | "ptsMs">,
    { causeSeq }: EventFacts,
  ): Pick<CoolingEvent, "kind" | "ptsMs"> {
    const isByKind = this.#hook.cooldown?.per.includes("kind");
    const cause = kind === EXPLANATION && isByKind && causeSeq !== null && this.#timeline.readOne(causeSeq);
    return cause ? { kind: `${kind} ${cause.kind}`, ptsMs: cause.ptsMs } : { kind, ptsMs };
  }
}

const EXPLANATION = "event_enriched";
/** The kinds of events that name a source together with its session, stream or request. */
const NAMING_KINDS: ReadonlySet<string> = new Set(["live_source_opened", "ingest_received"]);
/** Sessions, streams and requests of one run that are remembered. */
const REMEMBERED_MAX = 1024;

/** Which source the sessions, streams and requests of one run read. */
class RunSources {
  readonly #runId: string;
  readonly #timeline: Timeline;
  /** By `session:`, `stream:` or `request:` and its name. */
  readonly #uris = new Map<string, string>();
  #readSeq = 0;

  constructor(runId: string, timeline: Timeline) {
    this.#runId = runId;
    this.#timeline = timeline;
  }

  /** Null where the event names none, and nothing that belongs to one. */
  of({ sourceUri, sessionId, requestId, streamId }: EventFacts, seq: number): string | null {
    if (sourceUri !== null) return sourceUri;
    this.#readTo(seq);
    return this.#uris.get(`session:${sessionId}`) ?? this.#uris.get(`request:${requestId}`) ??
      this.#uris.get(`stream:${streamId}`) ?? null;
  }

  #readTo(seq: number): void {
    if (seq <= this.#readSeq) return;
    const query = { fromSeq: this.#readSeq + 1, toSeq: seq, kinds: NAMING_KINDS };
    for (const batch of this.#timeline.read(this.#runId, query)) {
      for (const { kind, payload } of batch) {
        const { sourceUri, sessionId, requestId } = eventFacts(payload);
        if (sourceUri === null) continue;
        if (kind === "live_source_opened") this.#remember(`session:${sessionId}`, sourceUri);
        else {
          this.#remember(`request:${requestId}`, sourceUri);
          this.#remember(`stream:${ingestedStream(payload)}`, sourceUri);
        }
      }
    }
    this.#readSeq = seq;
  }

  #remember(name: string, uri: string): void {
    this.#uris.delete(name);
    this.#uris.set(name, uri);
    const [oldest] = this.#uris.keys();
    if (this.#uris.size > REMEMBERED_MAX) this.#uris.delete(oldest!);
  }
}

function ingestedStream(payload: string): string {
  const { ingest } = JSON.parse(payload) as { ingest?: { stream_id?: string | null } };
  return ingest?.stream_id ?? DEFAULT_STREAM_ID;
}
