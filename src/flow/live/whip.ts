/** Live sessions that a publisher brings over WHIP: offered, trickled to, prompted, ended. Interface 4.11, contract 11. */

import type { Metrics } from "../../base/metrics.ts";
import { Refusal } from "../../base/refusal.ts";
import type { World } from "../../base/world.ts";
import type { IceSettings } from "../../live/messages.ts";
import type { PromptBody } from "../../model/api/live.ts";
import { event } from "../../model/events/event_table.ts";
import { FieldRules } from "../../model/field_rules.ts";
import { newRunId } from "../../model/identifiers.ts";
import { LIMITS } from "../../model/limits.ts";
import { type AttachContext, AttachRefused, checkAttach, parseAttach } from "../../model/live/attach.ts";
import { type Offer, readOffer, type VideoCodec } from "../../model/live/offer.ts";
import { pictureBound } from "../../model/live/picture_limits.ts";
import { checkedSchema } from "../../model/schema_field.ts";
import type { TriggerProgram } from "../../model/triggers/program.ts";
import type { Timeline, TimelineView } from "../../store/log/timeline.ts";
import type { Caller } from "../caller.ts";
import type { LiveSession } from "./session.ts";
import type { LiveSessionFactory } from "./session_factory.ts";
import { LiveRefused } from "./refused.ts";
import { NotAcknowledged, type PromptChange } from "./session_commands.ts";
import type { LiveRegistry } from "./registry.ts";
import type { SessionIdentity } from "./journal.ts";
import { CapacityExhausted } from "./capacity.ts";

export interface WhipOptions {
  readonly timeline: Timeline;
  readonly table: LiveRegistry;
  readonly generations: LiveSessionFactory;
  readonly metrics: Metrics;
  readonly world: World;
  readonly attach: AttachContext;
  /** What the decoder has besides VP8 and H.264. */
  readonly decodes: ReadonlySet<VideoCodec>;
  readonly ice: IceSettings;
  readonly activeStreamLimit: number;
  readonly streamTtlMs: number;
}

/** What a publisher is told. */
export interface AcceptedOffer {
  readonly sessionId: string;
  readonly runId: string;
  readonly answer: string;
  readonly etag: string;
}

/** What came of a trickled body: nothing to say, or a restart of ICE with what answers it. */
export type Trickled = { readonly restarted: null } | {
  readonly restarted: { readonly fragment: string; readonly etag: string };
};

/** Every "no" is a {@link LiveRefused}, but for 422 on a prompt's schema. */
export class Whip {
  readonly #options: WhipOptions;
  /** How often each session's ICE was started anew. */
  readonly #iceRestarts = new WeakMap<LiveSession, number>();

  constructor(options: WhipOptions) {
    this.#options = options;
  }

  /** What the `Link` header of an answer lists. */
  get ice(): IceSettings {
    return this.#options.ice;
  }

  /**
   * The checks come in the order of contract 11.1, and nothing is left of an offer that fails one: the run is created when
   * the session has its answer, before any media can come.
   */
  async offer(caller: Caller, offerText: string, attachHeader: string | null): Promise<AcceptedOffer> {
    const { table, generations } = this.#options;
    const number = table.nextGeneration();
    if (offerText.trim() === "") throw new LiveRefused(400, "the offer is empty");
    const asked = attaching(() => parseAttach(attachHeader));
    const offer = this.#negotiable(offerText);
    const attach = attaching(() => checkAttach(asked, this.#options.attach));
    if (attach.localAudio && !generations.canHear) {
      throw new LiveRefused(503, "local_audio needs an audio sidecar and none is configured");
    }
    this.#checkStreams(this.#options.timeline.view, caller);
    const maxFrame = pictureBound(offer);
    const reservation = this.#reserved(() => generations.reserve(maxFrame, attach));
    using unused = new DisposableStack();
    unused.use(reservation);
    const identity: SessionIdentity = {
      runId: newRunId(this.#options.world.randomBytes),
      sessionId: table.newSessionId(),
      generation: number,
      principalKey: caller.principalKey,
      source: "whip",
    };
    const opening = { kind: "offer", offer: offerText } as const;
    const generation = generations.create({ identity, attach, maxFrame, opening }, reservation);
    unused.move();
    generation.open();
    const answer = await generation.answer(AbortSignal.any([caller.signal, table.closing]));
    await this.#begin(generation, caller, attach.trigger);
    return { ...identity, answer, etag: this.#etag(generation) };
  }

  /**
   * A candidate or a fragment. `If-Match: *` restarts ICE; any other tag must be the session's own (412), so that a
   * fragment of before a restart does no harm. 422 where the restart is not possible.
   */
  async trickle(
    caller: Caller,
    sessionId: string,
    { body, ifMatch }: { readonly body: string; readonly ifMatch: string | null },
  ): Promise<Trickled> {
    const generation = this.#open(caller, sessionId);
    if (ifMatch === "*" || ifMatch === '"*"') {
      const fragment = await generation.restartIce(body, caller.signal);
      if (fragment === null) throw new LiveRefused(422, "ICE cannot be restarted with this fragment");
      this.#iceRestarts.set(generation, (this.#iceRestarts.get(generation) ?? 0) + 1);
      return { restarted: { fragment, etag: this.#etag(generation) } };
    }
    if (ifMatch !== null && !ifMatch.split(",").some((tag) => tag.trim() === this.#etag(generation))) {
      throw new LiveRefused(412, "the ICE session is another one by now");
    }
    generation.candidate(body);
    return { restarted: null };
  }

  /** Ends the session and completes its run. Done again it does nothing. 500 while a Worker does not let go of it. */
  async terminate(caller: Caller, sessionId: string): Promise<void> {
    const generation = this.#options.table.session(caller, sessionId);
    if (!generation) return;
    await generation.end({ rank: 2, why: "completed", reason: `${generation.identity.source}_terminated` });
    if (generation.isDetached) throw new LiveRefused(500, "the session is not cleaned up yet, try again");
  }

  /** The applied values. 409 for a session that is ending, 503 where it does not take the change over in time. */
  async updatePrompt(
    caller: Caller,
    sessionId: string,
    body: PromptBody,
  ): Promise<{ session_id: string; prompt: string | null; output_schema: object | null }> {
    const generation = this.#open(caller, sessionId);
    const change = checkedChange(body);
    try {
      await generation.updatePrompt(change, LIMITS.whip.promptAcknowledgementMs);
    } catch (error) {
      if (!(error instanceof NotAcknowledged)) throw error;
      throw error.why === "timeout"
        ? new LiveRefused(503, "the session did not acknowledge the prompt in time")
        : new LiveRefused(409, "the session is ending");
    }
    return { session_id: sessionId, prompt: change.prompt, output_schema: change.outputSchema };
  }

  /** 404 also for a session that is over. */
  #open(caller: Caller, sessionId: string): LiveSession {
    const generation = this.#options.table.session(caller, sessionId);
    if (!generation) throw new LiveRefused(404, "the session is over");
    return generation;
  }

  #etag(generation: LiveSession): string {
    return `"${generation.sessionId}-${this.#iceRestarts.get(generation) ?? 0}"`;
  }

  #negotiable(offerText: string): Offer {
    const verdict = readOffer(offerText, this.#options.decodes);
    if (!verdict.isServed) throw new LiveRefused(verdict.status, verdict.message);
    return verdict.offer;
  }

  #checkStreams(view: TimelineView, { principalKey }: Caller): void {
    const { activeStreamLimit, streamTtlMs, world } = this.#options;
    if (view.activeCount(principalKey, world.now(), streamTtlMs) < activeStreamLimit) return;
    throw new LiveRefused(
      409,
      `the limit of active runs is reached: ${activeStreamLimit}/${activeStreamLimit}`,
    );
  }

  #reserved(reserve: () => Disposable): Disposable {
    try {
      return reserve();
    } catch (error) {
      throw error instanceof CapacityExhausted ? new LiveRefused(503, error.message) : error;
    }
  }

  /** The run and the session begin in one step; where that fails, nothing is left of either. */
  async #begin(generation: LiveSession, caller: Caller, trigger: TriggerProgram | null): Promise<void> {
    const { timeline, table, metrics } = this.#options;
    const { runId, sessionId, principalKey } = generation.identity;
    try {
      timeline.commit((view) => {
        if (generation.isEnding) throw new LiveRefused(503, "the session ended before it began");
        this.#checkStreams(view, caller);
        return [event("run_created", runId, {
          principal_key: principalKey,
          session_id: sessionId,
          source: "whip",
          trigger_program: programOf(trigger),
        })];
      });
    } catch (error) {
      await generation.end({ rank: 3, why: "run_ended" });
      throw error instanceof Refusal ? new LiveRefused(500, error.message) : error;
    }
    metrics.add("service_runs_created_total");
    table.add(generation);
    generation.run(null);
  }
}

/** Contract 1.3: which program watches the session. */
export function programOf(program: TriggerProgram | null) {
  return program && {
    program_id: program.program_id,
    version: program.version,
    isa_version: program.isa_version,
  };
}

function attaching<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof AttachRefused ? new LiveRefused(400, error.message) : error;
  }
}

/** 422 on `output_schema`. */
function checkedChange({ prompt = null, output_schema: given = null }: PromptBody): PromptChange {
  const rules = new FieldRules();
  const outputSchema = given === null ? null : checkedSchema("output_schema", given, rules) ?? null;
  rules.check();
  return { prompt: prompt ?? null, outputSchema };
}
