/** Live sources that the service pulls itself, cameras and HLS streams: opens and ends their sessions. */

import type { Metrics } from "../../contract/metrics.ts";
import { refuse } from "../../contract/refusal.ts";
import type { World } from "../../base/world.ts";
import { clipVideo } from "../../media/containers/clip_codecs.ts";
import type { Decoder } from "../../media/files/decoder.ts";
import { liveAbilities } from "../../media/trials/abilities.ts";
import type { ToolTrials } from "../../media/trials/tool_trials.ts";
import type { LiveSourceBody } from "../../model/api/live.ts";
import { event } from "../../model/events/event_table.ts";
import {
  type AttachConfig,
  type AttachContext,
  type AttachPolicy,
  checkAttach,
} from "../../model/live/attach.ts";
import { newRunId } from "../../model/identifiers.ts";
import { bounded } from "../../model/live/picture_limits.ts";
import { sourceFault } from "../../model/sources/remote_source.ts";
import type { AlwaysOnSource } from "../../model/sources/source_file.ts";
import { registrations } from "../../model/webhooks/source_webhook.ts";
import type { NewEvent, RunView } from "../../model/runs/run.ts";
import type { HlsProgress } from "../../remote/sources/hls_progress.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { TimelineView } from "../../model/runs/run_register.ts";
import type { Caller } from "../caller.ts";
import type { PolicyRevisions } from "../policies/revisions.ts";
import { actionableRun, ownedRun } from "../runs/ownership.ts";
import type { LocatedSource, Sources } from "../sources/sources.ts";
import type { SessionIdentity } from "./journal/journal.ts";
import { type FindSource, Reconnector } from "./reconnect.ts";
import type { LiveRegistry } from "./registry.ts";
import type { LiveSession } from "./session.ts";
import type { AskedSession, LiveSessionFactory } from "./session_factory.ts";
import { programOf } from "./whip.ts";

export interface LiveSourcesOptions {
  readonly timeline: Timeline;
  readonly registry: LiveRegistry;
  readonly sessions: LiveSessionFactory;
  readonly sources: Sources;
  readonly decoder: Decoder;
  readonly trials: Pick<ToolTrials, "require">;
  readonly attach: AttachContext;
  readonly metrics: Metrics;
  readonly world: World;
  readonly streamTtlMs: number;
  readonly revisions: PolicyRevisions;
}

export interface OpenedLiveSource {
  readonly sessionId: string;
  readonly generation: number;
  readonly sourceUri: string;
}

/** See docs/live.md#pulled-sources. `Reconnector` opens a source again after it failed. */
export class LiveSources {
  readonly #options: LiveSourcesOptions;

  constructor(options: LiveSourcesOptions) {
    this.#options = options;
  }

  /**
   * Starts a session that analyzes the source until it is ended. Errors: 422 and 404 on the run, 409 where it
   * is terminal or has had a live session, 422 on `source_uri` and on the fields of the attach configuration,
   * 507 beyond the quota, 503 where there is no capacity, no audio sidecar for `local_audio`, or an ffmpeg
   * that cannot do it.
   */
  async open(caller: Caller, runId: string, body: LiveSourceBody): Promise<OpenedLiveSource> {
    const { timeline, registry, sources } = this.#options;
    const { principalKey } = caller;
    const asked = this.#attach(body, this.#policyOf(this.#checkRun(timeline.view, caller, runId)));
    timeline.requireRoom(principalKey);
    await this.#options.trials.require(...liveAbilities({ withSound: asked.localAudio !== null }));
    const located = sources.locate(body.source_uri, principalKey, { isWatched: true });
    const sourceUri = located.uri;
    const find = this.#finder(located, principalKey);
    await using opening = new AsyncDisposableStack();
    const reconnector = opening.use(
      await Reconnector.open(find, AbortSignal.any([caller.signal, registry.closing])),
    );
    // Read again, as a revision may have become active while the source was probed; nothing below waits.
    const policy = this.#policyOf(this.#checkRun(timeline.view, caller, runId));
    const attach = this.#attach(body, policy);
    const plan = { runId, principalKey, sourceUri, attach, policy };
    const { sessionId, generation } = this.#start(plan, { opening, reconnector }, (identity) => {
      timeline.commit((view) => {
        this.#checkRun(view, caller, runId);
        return [openedEvent({ requestId: caller.requestId, runId, identity, attach })];
      });
    });
    return { sessionId, generation, sourceUri };
  }

  /**
   * Starts a session that watches a named source in a new run of the principal, and is not ended while the
   * source is silent. Errors: those of `open` on `source_uri` and capacity, and the reason of the signal.
   */
  async watch(
    source: AlwaysOnSource,
    principalKey: string,
    { isArmed, signal }: { readonly isArmed: () => boolean; readonly signal: AbortSignal },
  ): Promise<LiveSession> {
    const { timeline, sources, world, metrics } = this.#options;
    const attach = this.#attach({ source_uri: "", ...source.watch.attach }, null);
    timeline.requireRoom(principalKey);
    await this.#options.trials.require(...liveAbilities({ withSound: attach.localAudio !== null }));
    const located = sources.ofNamed(source, { isWatched: true });
    await using opening = new AsyncDisposableStack();
    const reconnector = opening.use(await Reconnector.open(this.#finder(located, principalKey), signal));
    const runId = newRunId(world.randomBytes);
    const { uri: sourceUri } = located;
    const recording = source.watch.recording && { source: source.name, plan: source.watch.recording };
    const plan = {
      runId,
      principalKey,
      sourceUri,
      attach,
      policy: null,
      isAlwaysOn: true,
      recording,
    } as const;
    const session = this.#start(plan, { opening, reconnector }, (identity) => {
      const facts = { runId, identity, attach, predecessor: null, armed: isArmed() };
      timeline.commit(() => this.#createdEvents(source, facts));
    });
    session.setArmed(isArmed());
    metrics.add("service_runs_created_total");
    return session;
  }

  /**
   * The session goes on in a new run, without a pause: every frame belongs to one of the two. Null where the
   * session is ending. Errors: the refusals of the timeline; then nothing has changed.
   */
  rollOver(session: LiveSession, source: AlwaysOnSource, armed: boolean): string | null {
    const { world, registry, metrics } = this.#options;
    const runId = newRunId(world.randomBytes);
    const attach = this.#attach({ source_uri: "", ...source.watch.attach }, null);
    const { identity, runId: predecessor } = session;
    const first = this.#createdEvents(source, { runId, identity, attach, predecessor, armed });
    if (!session.rollOver(runId, first)) return null;
    registry.rolledOver(session);
    metrics.add("service_runs_created_total");
    return runId;
  }

  /**
   * The first events of a run that no request made. Its webhooks come first, so that they are sent all that
   * follows.
   */
  #createdEvents(
    { name: sourceName, watch: { webhooks } }: AlwaysOnSource,
    { predecessor, ...facts }: {
      readonly runId: string;
      readonly identity: SessionIdentity;
      readonly attach: AttachConfig;
      /** The run that it goes on for, or null. */
      readonly predecessor: string | null;
      readonly armed: boolean;
    },
  ): NewEvent[] {
    const { runId, identity: { sessionId: session_id, principalKey: principal_key } } = facts;
    const created = { principal_key, session_id, source: "live", predecessor_run_id: predecessor } as const;
    const { randomBytes } = this.#options.world;
    return [
      event("run_created", runId, created),
      ...registrations({ runId, sourceName, webhooks, randomBytes }),
      openedEvent({ ...facts, requestId: `live-source:${session_id}` }),
    ];
  }

  /** Opens and starts a session, which owns what is in `opening`; `begin` writes its first events. */
  #start(
    asked: Omit<AskedSession, "source" | "picture" | "opening">,
    { opening, reconnector }: {
      readonly opening: AsyncDisposableStack;
      readonly reconnector: Reconnector;
    },
    begin: (identity: SessionIdentity) => void,
  ): LiveSession {
    const { registry, sessions } = this.#options;
    const { attach, recording } = asked;
    const { first } = reconnector;
    const video = first.info.video!;
    if (attach.localAudio && first.info.audioStreams === 0) {
      throw refuse.invalid("local_audio", "needs a source with sound, and this one has none");
    }
    const recordField = attach.record ? "record" : recording ? "recording" : null;
    if (recordField !== null && clipVideo(video.codec) === null) {
      throw refuse.invalid(
        recordField,
        `needs video as H.264 or H.265, which MP4 carries to browsers, and this is ${video.codec}`,
      );
    }
    const place = { source: "live", picture: bounded(video), opening: { kind: "pull", ...first } } as const;
    const session = sessions.open({ ...asked, ...place }, begin);
    opening.move(); // the session closes the reconnector
    registry.add(session);
    session.run(reconnector);
    session.open();
    return session;
  }

  /**
   * Ends the session and completes the run; ending it again changes nothing. Returns the run as it is then.
   * Errors: 422 and 404 on the run, 404 also for a run that never had a pulled source.
   */
  async end(caller: Caller, runId: string): Promise<RunView> {
    const { timeline, registry } = this.#options;
    const run = ownedRun(timeline.view, caller, runId);
    if (run.source !== "live") throw refuse.notFound("Live source", "run_id");
    const session = registry.ofRun(run.runId);
    await session?.ending.end({ rank: 2, why: "completed", reason: "live_terminated" });
    if (session?.ending.isDetached) {
      throw refuse.because("internal_error", "The session is not cleaned up yet, try again");
    }
    return ownedRun(timeline.view, caller, runId);
  }

  #checkRun(view: TimelineView, caller: Caller, runId: string): RunView {
    const { world, streamTtlMs: ttlMs } = this.#options;
    const run = actionableRun(view, caller, runId, { nowMs: world.now(), ttlMs }, "watch a source for");
    if (run.source !== "") {
      throw refuse.conflict("run_id", "Cannot watch a source as the run has a live session");
    }
    return run;
  }

  /** What the active revision sets from the first frame on. */
  #policyOf(run: RunView): AttachPolicy | null {
    const content = this.#options.revisions.activeContent(run);
    if (!content) return null;
    const { prompt, output_schema: outputSchema, parameters } = content;
    return { prompt, outputSchema, zone: parameters.restricted_zone ?? null };
  }

  #attach({ source_uri: _, ...body }: LiveSourceBody, policy: AttachPolicy | null): AttachConfig {
    const attach = checkAttach(body, { ...this.#options.attach, policy });
    if (attach.localAudio && !this.#options.sessions.hasAudioSidecar) {
      throw refuse.because(
        "audio_sidecar_unavailable",
        "Cannot analyze local audio as SERVICE_AUDIO_SIDECAR_ADDR is not set",
      );
    }
    return attach;
  }

  /** Errors: 422 `source_uri` for what cannot be watched. */
  #finder(located: LocatedSource, principalKey: string): FindSource {
    const { sources, decoder } = this.#options;
    const kind = located.remote?.kind;
    if (kind !== "rtsp" && kind !== "hls" && kind !== "mjpeg") {
      throw sourceFault("must be an rtsp, rtsps, HLS, http or https URL to be watched live");
    }
    let before: HlsProgress | null = null;
    return async (signal) => {
      await using opening = new AsyncDisposableStack();
      const source = opening.use(await sources.openLocated(located, principalKey, signal, { before }));
      const info = await source.explained(
        decoder.probe(source.input, signal, { principalKey, isWatched: true }),
      );
      if (!info.video) throw sourceFault("it has no video stream");
      // A stream that is announced and not sent: its pictures have no size yet, for which nothing could be
      // reserved.
      if (info.video.width === 0 || info.video.height === 0) {
        throw sourceFault("it announces video, and sent no picture while it was looked into");
      }
      const held = opening.move();
      before = source.progress ?? null;
      return {
        ...{ input: source.input, info, lossReason: () => source.lossReason() },
        [Symbol.asyncDispose]: () => held.disposeAsync(),
      };
    };
  }
}

/** The session of an existing run began. */
function openedEvent({ requestId, runId, identity, attach, armed }: {
  readonly requestId: string;
  readonly runId: string;
  readonly identity: SessionIdentity;
  readonly attach: AttachConfig;
  /** Whether a camera is armed that is always watched. */
  readonly armed?: boolean;
}): NewEvent {
  const { sessionId, generation, sourceUri } = identity;
  return event("live_source_opened", runId, {
    request_id: requestId,
    session_id: sessionId,
    source: "live",
    source_uri: sourceUri,
    pipeline_generation: generation,
    trigger_program: programOf(attach.trigger),
    ...(armed !== undefined && { armed }),
  });
}
