/** Live sessions of WHIP publishers: answers offers, takes ICE candidates, changes prompts, ends sessions. */

import type { Metrics } from "../../contract/metrics.ts";
import { refuse } from "../../contract/refusal.ts";
import type { World } from "../../base/world.ts";
import type { IceSettings } from "../../live/messages/messages.ts";
import type { LiveCodecs } from "../../media/live/live_codecs.ts";
import { liveAbilities } from "../../media/trials/abilities.ts";
import type { ToolTrials } from "../../media/trials/tool_trials.ts";
import type { PromptBody } from "../../model/api/live.ts";
import { event } from "../../model/events/event_table.ts";
import { FieldRules } from "../../model/field_rules.ts";
import { newRunId } from "../../model/identifiers.ts";
import { LIMITS } from "../../contract/limits.ts";
import { type AttachContext, checkAttachHeader, parseAttach } from "../../model/live/attach.ts";
import { emptyOffer, readOffer } from "../../model/live/offer.ts";
import { pictureBound } from "../../model/live/picture_limits.ts";
import { checkedSchema } from "../../model/reason/schema_field.ts";
import type { TriggerProgram } from "../../model/triggers/program.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { TimelineView } from "../../model/runs/run_register.ts";
import type { Caller } from "../caller.ts";
import { activeLimitReached } from "../runs/runs.ts";
import type { PromptChange } from "../policies/open_sessions.ts";
import { type LiveRegistry, saturated } from "./registry.ts";
import type { LiveSession } from "./session.ts";
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

/** What became of a trickled body. */
export type Trickled =
  | { readonly outcome: "taken" }
  /** The condition does not hold: the ICE session is another one by now. */
  | { readonly outcome: "is_another" }
  /** ICE cannot be restarted with the fragment. */
  | { readonly outcome: "not_restarted" }
  | { readonly outcome: "restarted"; readonly fragment: string; readonly etag: string };

/** See docs/live/whip.md. */
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
   * The order of the checks is part of the interface (docs/live/whip.md). An offer that fails one leaves
   * nothing behind: the run is created when the session has its answer, before any media can arrive.
   */
  async offer(caller: Caller, offerText: string, attachHeader: string | null): Promise<AcceptedOffer> {
    const { timeline, registry, sessions, codecs, trials, world } = this.#options;
    const { principalKey, isOnLoopback } = caller;
    const generation = registry.nextGeneration();
    timeline.requireRoom(principalKey);
    if (offerText.trim() === "") throw emptyOffer();
    const requested = parseAttach(attachHeader);
    const decodes = new Set(await codecs.list());
    const offer = readOffer(offerText, decodes, { isRecorded: requested.record != null });
    const attach = checkAttachHeader(requested, this.#options.attach);
    if (attach.localAudio && !sessions.hasAudioSidecar) {
      throw refuse.because(
        "audio_sidecar_unavailable",
        "local_audio needs an audio sidecar and none is configured",
      );
    }
    await trials.require(...liveAbilities({ withSound: attach.localAudio !== null }));
    this.#checkStreams(timeline.view, caller);
    const runId = newRunId(world.randomBytes);
    const session = sessions.open({
      ...{ principalKey, source: "whip", sourceUri: "", generation, runId, attach, policy: null },
      picture: pictureBound(offer),
      opening: { kind: "offer", offer, isOnLoopback },
    });
    session.open();
    const answer = await session.answer(AbortSignal.any([caller.signal, registry.closing]));
    await this.#createRun(session, caller, attach.trigger);
    return { sessionId: session.sessionId, runId, answer, etag: this.#etag(session) };
  }

  /**
   * A candidate or a fragment. `If-Match: *` restarts ICE; any other tag must be the session's own, so that a
   * fragment from before a restart is not applied after it.
   */
  async trickle(
    caller: Caller,
    sessionId: string,
    { body, ifMatch }: { readonly body: string; readonly ifMatch: string | null },
  ): Promise<Trickled> {
    const session = this.#openSession(caller, sessionId);
    if (ifMatch === "*" || ifMatch === '"*"') {
      const fragment = await session.signalling.restartIce(body, caller);
      if (fragment === null) return { outcome: "not_restarted" };
      this.#iceRestarts.set(session, (this.#iceRestarts.get(session) ?? 0) + 1);
      return { outcome: "restarted", fragment, etag: this.#etag(session) };
    }
    if (ifMatch !== null && !ifMatch.split(",").some((tag) => tag.trim() === this.#etag(session))) {
      return { outcome: "is_another" };
    }
    session.signalling.candidate(body, caller);
    return { outcome: "taken" };
  }

  /**
   * Ends the session and completes its run; a session that has ended already is no error. Errors: 500 where
   * the Worker does not release the session in time.
   */
  async terminate(caller: Caller, sessionId: string): Promise<void> {
    const session = this.#options.registry.session(caller, sessionId);
    if (!session) return;
    await session.ending.end({ rank: 2, why: "completed", reason: `${session.identity.source}_terminated` });
    if (session.ending.isDetached) {
      throw refuse.because("internal_error", "the session is not cleaned up yet, try again");
    }
  }

  /**
   * The applied values. Errors: 422 on the schema, 409 for a session that is ending, 503 where it does not
   * apply the change in time.
   */
  async updatePrompt(
    caller: Caller,
    sessionId: string,
    body: PromptBody,
  ): Promise<{ session_id: string; prompt: string | null; output_schema: object | null }> {
    const session = this.#openSession(caller, sessionId, { tellsForeign: true });
    const change = checkedChange(body);
    await session.updatePrompt(change, LIMITS.whip.promptAcknowledgementMs);
    return { session_id: sessionId, prompt: change.prompt, output_schema: change.outputSchema };
  }

  /** 404 also for a session that has ended. */
  #openSession(caller: Caller, sessionId: string, options?: { readonly tellsForeign: boolean }): LiveSession {
    const session = this.#options.registry.session(caller, sessionId, options);
    if (!session) throw refuse.because("not_found", "the session is over");
    return session;
  }

  #etag(session: LiveSession): string {
    return `"${session.sessionId}-${this.#iceRestarts.get(session) ?? 0}"`;
  }

  #checkStreams(view: TimelineView, { principalKey }: Caller): void {
    const { activeStreamLimit, streamTtlMs, world } = this.#options;
    if (view.activeCount(principalKey, world.now(), streamTtlMs) < activeStreamLimit) return;
    throw refuse.because("conflict", activeLimitReached(activeStreamLimit));
  }

  /** Creates the run and starts the session's stages; where that fails, neither is left. */
  async #createRun(session: LiveSession, caller: Caller, trigger: TriggerProgram | null): Promise<void> {
    const { timeline, registry, metrics } = this.#options;
    const { runId, identity: { sessionId, principalKey } } = session;
    try {
      timeline.commit((view) => {
        if (session.ending.hasBegun) throw saturated("the session ended before it began");
        this.#checkStreams(view, caller);
        return [event("run_created", runId, {
          principal_key: principalKey,
          session_id: sessionId,
          source: "whip",
          trigger_program: programOf(trigger),
        })];
      });
    } catch (error) {
      await session.ending.discard();
      throw error;
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

/** 422 on `output_schema`. */
function checkedChange({ prompt, output_schema: given = null }: PromptBody): Required<PromptChange> {
  const rules = new FieldRules();
  const outputSchema = given === null ? null : checkedSchema("output_schema", given, rules) ?? null;
  rules.check();
  return { prompt, outputSchema };
}
