/** Live sessions of WHIP publishers: answers offers, takes ICE candidates, changes prompts, ends sessions. */

import type { Metrics } from "../../contract/metrics.ts";
import { Refusal } from "../../contract/refusal.ts";
import type { World } from "../../base/world.ts";
import type { IceSettings } from "../../live/messages.ts";
import type { LiveCodecs } from "../../media/live/live_codecs.ts";
import { liveAbilities } from "../../media/trials/abilities.ts";
import type { ToolTrials } from "../../media/trials/tool_trials.ts";
import type { PromptBody } from "../../model/api/live.ts";
import { event } from "../../model/events/event_table.ts";
import { FieldRules } from "../../model/field_rules.ts";
import { newRunId } from "../../model/identifiers.ts";
import { LIMITS } from "../../contract/limits.ts";
import { type AttachContext, AttachRefused, checkAttach, parseAttach } from "../../model/live/attach.ts";
import { type Offer, type OfferNeeds, readOffer, type VideoCodec } from "../../model/live/offer.ts";
import { pictureBound } from "../../model/live/picture_limits.ts";
import { checkedSchema } from "../../model/schema_field.ts";
import type { TriggerProgram } from "../../model/triggers/program.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { TimelineView } from "../../model/runs/run_register.ts";
import type { Caller } from "../caller.ts";
import { CapacityExhausted } from "./capacity.ts";
import { activeLimitReached } from "../runs/runs.ts";
import { NotAcknowledged, type PromptChange } from "./describing/describer.ts";
import type { SessionIdentity } from "./journal.ts";
import type { LiveRegistry } from "./registry.ts";
import { LiveRefused, type LiveSession } from "./session.ts";
import type { LiveSessionFactory } from "./session_factory.ts";

export interface WhipOptions {
  readonly timeline: Timeline;
  readonly registry: LiveRegistry;
  readonly sessions: LiveSessionFactory;
  readonly metrics: Metrics;
  readonly world: World;
  readonly attach: AttachContext;
  readonly codecs: Pick<LiveCodecs, "list">;
  readonly trials: Pick<ToolTrials, "require">;
  readonly ice: IceSettings;
  readonly activeStreamLimit: number;
  readonly streamTtlMs: number;
}

/** What the answer to an offer is made of. */
export interface AcceptedOffer {
  readonly sessionId: string;
  readonly runId: string;
  readonly answer: string;
  readonly etag: string;
}

/** The result of a trickled body: no content, or a restart of ICE with the answering fragment. */
export type Trickled = { readonly restarted: null } | {
  readonly restarted: { readonly fragment: string; readonly etag: string };
};

/** Every refusal is a {@link LiveRefused}, except for 422 on a prompt's schema. See docs/live.md#whip. */
export class Whip {
  readonly #options: WhipOptions;
  /** How often ICE was restarted, by session. */
  readonly #iceRestarts = new WeakMap<LiveSession, number>();

  constructor(options: WhipOptions) {
    this.#options = options;
  }

  /** The servers for the `Link` header of an answer. */
  get ice(): IceSettings {
    return this.#options.ice;
  }

  /**
   * The order of the checks is part of the interface (docs/live.md#whip). An offer that fails one leaves nothing behind:
   * the run is created when the session has its answer, before any media can arrive.
   */
  async offer(caller: Caller, offerText: string, attachHeader: string | null): Promise<AcceptedOffer> {
    const { registry, sessions } = this.#options;
    const generation = registry.nextGeneration();
    withQuotaRefused(() => this.#options.timeline.requireRoom(caller.principalKey));
    if (offerText.trim() === "") throw new LiveRefused(400, "the offer is empty");
    const requested = withAttachRefused(() => parseAttach(attachHeader));
    const decodes = await this.#options.codecs.list();
    const offer = negotiable(offerText, decodes, { isRecorded: requested.record != null });
    const attach = withAttachRefused(() => checkAttach(requested, this.#options.attach));
    if (attach.localAudio && !sessions.hasAudioSidecar) {
      throw new LiveRefused(503, "local_audio needs an audio sidecar and none is configured");
    }
    await this.#checkTools(attach.localAudio !== null);
    this.#checkStreams(this.#options.timeline.view, caller);
    const options = { isPublished: true };
    const room = reserved(() => sessions.reserve(caller.principalKey, pictureBound(offer), attach, options));
    using unused = new DisposableStack();
    unused.use(room);
    const identity: SessionIdentity = {
      runId: newRunId(this.#options.world.randomBytes),
      sessionId: registry.newSessionId(),
      generation,
      principalKey: caller.principalKey,
      source: "whip",
      sourceUri: "",
    };
    const { isOnLoopback } = caller;
    const opening = { kind: "offer", offer: offerText, isOnLoopback, decodes } as const;
    const session = sessions.create({ identity, attach, policy: null, opening }, room);
    unused.move(); // the session frees it
    session.open();
    const answer = await session.answer(AbortSignal.any([caller.signal, registry.closing]));
    await this.#createRun(session, caller, attach.trigger);
    return { ...identity, answer, etag: this.#etag(session) };
  }

  /**
   * A candidate or a fragment. `If-Match: *` restarts ICE; any other tag must be the session's own (412), so that a
   * fragment from before a restart is not applied after it. 422 where the restart is not possible.
   */
  async trickle(
    caller: Caller,
    sessionId: string,
    { body, ifMatch }: { readonly body: string; readonly ifMatch: string | null },
  ): Promise<Trickled> {
    const session = this.#openSession(caller, sessionId);
    if (ifMatch === "*" || ifMatch === '"*"') {
      const fragment = await session.restartIce(body, caller);
      if (fragment === null) throw new LiveRefused(422, "ICE cannot be restarted with this fragment");
      this.#iceRestarts.set(session, (this.#iceRestarts.get(session) ?? 0) + 1);
      return { restarted: { fragment, etag: this.#etag(session) } };
    }
    if (ifMatch !== null && !ifMatch.split(",").some((tag) => tag.trim() === this.#etag(session))) {
      throw new LiveRefused(412, "the ICE session is another one by now");
    }
    session.candidate(body, caller);
    return { restarted: null };
  }

  /**
   * Ends the session and completes its run; a session that has ended already is no error. 500 where the Worker does not
   * release the session in time.
   */
  async terminate(caller: Caller, sessionId: string): Promise<void> {
    const session = this.#options.registry.session(caller, sessionId);
    if (!session) return;
    await session.end({ rank: 2, why: "completed", reason: `${session.identity.source}_terminated` });
    if (session.isDetached) throw new LiveRefused(500, "the session is not cleaned up yet, try again");
  }

  /** The applied values. 409 for a session that is ending, 503 where it does not apply the change in time. */
  async updatePrompt(
    caller: Caller,
    sessionId: string,
    body: PromptBody,
  ): Promise<{ session_id: string; prompt: string | null; output_schema: object | null }> {
    const session = this.#openSession(caller, sessionId, { tellsForeign: true });
    const change = checkedChange(body);
    try {
      await session.updatePrompt(change, LIMITS.whip.promptAcknowledgementMs);
    } catch (error) {
      if (!(error instanceof NotAcknowledged)) throw error;
      throw error.why === "timeout"
        ? new LiveRefused(503, "the session did not acknowledge the prompt in time")
        : new LiveRefused(409, "the session is ending");
    }
    return { session_id: sessionId, prompt: change.prompt, output_schema: change.outputSchema };
  }

  /** 404 also for a session that has ended. */
  #openSession(caller: Caller, sessionId: string, options?: { readonly tellsForeign: boolean }): LiveSession {
    const session = this.#options.registry.session(caller, sessionId, options);
    if (!session) throw new LiveRefused(404, "the session is over");
    return session;
  }

  #etag(session: LiveSession): string {
    return `"${session.sessionId}-${this.#iceRestarts.get(session) ?? 0}"`;
  }

  #checkStreams(view: TimelineView, { principalKey }: Caller): void {
    const { activeStreamLimit, streamTtlMs, world } = this.#options;
    if (view.activeCount(principalKey, world.now(), streamTtlMs) < activeStreamLimit) return;
    throw new LiveRefused(409, activeLimitReached(activeStreamLimit));
  }

  /** 503 where the machine's ffmpeg cannot do what the session needs. */
  async #checkTools(withSound: boolean): Promise<void> {
    try {
      await this.#options.trials.require(...liveAbilities({ withSound }));
    } catch (error) {
      throw error instanceof Refusal ? new LiveRefused(503, error.message) : error;
    }
  }

  /** Creates the run and starts the session's stages; where that fails, neither is left. */
  async #createRun(session: LiveSession, caller: Caller, trigger: TriggerProgram | null): Promise<void> {
    const { timeline, registry, metrics } = this.#options;
    const { runId, sessionId, principalKey } = session.identity;
    try {
      timeline.commit((view) => {
        if (session.isEnding) throw new LiveRefused(503, "the session ended before it began");
        this.#checkStreams(view, caller);
        return [event("run_created", runId, {
          principal_key: principalKey,
          session_id: sessionId,
          source: "whip",
          trigger_program: programOf(trigger),
        })];
      });
    } catch (error) {
      await session.discard();
      if (!(error instanceof Refusal)) throw error;
      throw new LiveRefused(error.kind === "storage_quota" ? 507 : 500, error.message);
    }
    metrics.add("service_runs_created_total");
    registry.add(session);
    session.run(null);
  }
}

/** `trigger_program` of an event: which program the session runs. */
export function programOf(program: TriggerProgram | null) {
  return program && {
    program_id: program.program_id,
    version: program.version,
    isa_version: program.isa_version,
  };
}

function reserved<T>(reserve: () => T): T {
  try {
    return reserve();
  } catch (error) {
    throw error instanceof CapacityExhausted ? new LiveRefused(503, error.message) : error;
  }
}

function withQuotaRefused(check: () => void): void {
  try {
    check();
  } catch (error) {
    throw error instanceof Refusal ? new LiveRefused(507, error.message) : error;
  }
}

/** A fault of the attach configuration is 400 on WHIP. */
function withAttachRefused<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof AttachRefused ? new LiveRefused(400, error.message) : error;
  }
}

/** 422 on `output_schema`. */
function checkedChange({ prompt, output_schema: given = null }: PromptBody): Required<PromptChange> {
  const rules = new FieldRules();
  const outputSchema = given === null ? null : checkedSchema("output_schema", given, rules) ?? null;
  rules.check();
  return { prompt, outputSchema };
}

function negotiable(offerText: string, decodes: readonly VideoCodec[], needs: OfferNeeds): Offer {
  const verdict = readOffer(offerText, new Set(decodes), needs);
  if (!verdict.isServed) throw new LiveRefused(verdict.status, verdict.message);
  return verdict.offer;
}
