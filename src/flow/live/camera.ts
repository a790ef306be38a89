/** Live sources that the service pulls itself, RTSP cameras and HLS streams: opens and ends their sessions. */

import type { Metrics } from "../../base/metrics.ts";
import { refuse } from "../../base/refusal.ts";
import type { World } from "../../base/world.ts";
import type { Decoder } from "../../media/recorded/decoder.ts";
import type { LiveSourceBody } from "../../model/api/live.ts";
import type { Extent } from "../../model/frames/coordinates.ts";
import { event } from "../../model/events/event_table.ts";
import {
  type AttachBody,
  type AttachConfig,
  type AttachContext,
  type AttachPolicy,
  AttachRefused,
  checkAttach,
} from "../../model/live/attach.ts";
import { remoteSource, type RemoteSourceToggles, sourceFault } from "../../model/sources/remote_source.ts";
import type { RunView } from "../../model/runs/run.ts";
import type { Timeline } from "../../store/log/timeline.ts";
import type { TimelineView } from "../../model/runs/run_register.ts";
import type { Caller } from "../caller.ts";
import type { PolicyRevisions } from "../policies/revisions.ts";
import { actionableRun, ownedRun } from "../runs/ownership.ts";
import type { Sources } from "../sources.ts";
import { CapacityExhausted } from "./capacity.ts";
import type { SessionIdentity } from "./journal.ts";
import { type FoundSource, Reconnector } from "./reconnect.ts";
import type { LiveRegistry } from "./registry.ts";
import { LiveRefused } from "./session.ts";
import type { LiveSessionFactory } from "./session_factory.ts";
import { programOf } from "./whip.ts";

export interface LiveSourcesOptions {
  readonly timeline: Timeline;
  readonly registry: LiveRegistry;
  readonly sessions: LiveSessionFactory;
  readonly sources: Sources;
  readonly decoder: Decoder;
  readonly toggles: RemoteSourceToggles;
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

/** Larger pictures are scaled down, as for a publisher. */
const LARGEST_PICTURE: Extent = { width: 3840, height: 2160 };

/** See docs/live.md#pulled-sources. `Reconnector` opens a source again after it failed. */
export class LiveSources {
  readonly #options: LiveSourcesOptions;

  constructor(options: LiveSourcesOptions) {
    this.#options = options;
  }

  /**
   * Starts a session that analyzes the source until it is ended. Errors: 422 and 404 on the run, 409 where it is terminal
   * or has had a live session, 422 on `source_uri` and on the fields of the attach configuration, 507 beyond the quota, 503 where there is no
   * capacity, or no audio sidecar for `local_audio`.
   */
  async open(caller: Caller, runId: string, body: LiveSourceBody): Promise<OpenedLiveSource> {
    const { timeline, registry, sessions } = this.#options;
    this.#attach(body, this.#policyOf(this.#checkRun(timeline.view, caller, runId)));
    timeline.requireRoom(caller.principalKey);
    const sourceUri = body.source_uri.trim();
    this.#checkSource(sourceUri);
    const find = (signal: AbortSignal) => this.#find(sourceUri, caller, signal);
    await using opening = new AsyncDisposableStack();
    const reconnector = opening.use(
      await Reconnector.open(find, AbortSignal.any([caller.signal, registry.closing])),
    );
    // Read again, as a revision may have become active while the source was probed; nothing below waits.
    const policy = this.#policyOf(this.#checkRun(timeline.view, caller, runId));
    const attach = this.#attach(body, policy);
    if (attach.localAudio && reconnector.first.info.audioStreams === 0) {
      throw refuse.invalid("local_audio", "needs a source with sound, and this one has none");
    }
    const maxFrame = boundOf(reconnector.first.info.video!);
    const reservation = opening.use(available(() => sessions.reserve(caller.principalKey, maxFrame, attach)));
    const identity: SessionIdentity = {
      runId,
      sessionId: available(() => registry.newSessionId()),
      generation: registry.nextGeneration(),
      principalKey: caller.principalKey,
      source: "live",
    };
    timeline.commit((view) => {
      this.#checkRun(view, caller, runId);
      return [event("live_source_opened", runId, {
        request_id: caller.requestId,
        session_id: identity.sessionId,
        source: "live",
        source_uri: sourceUri,
        pipeline_generation: identity.generation,
        trigger_program: programOf(attach.trigger),
      })];
    });
    opening.move(); // the session frees the reservation and closes the reconnector
    const first = { kind: "pull", ...reconnector.first } as const;
    const session = sessions.create({ identity, attach, policy, maxFrame, opening: first }, reservation);
    registry.add(session);
    session.run(reconnector);
    session.open();
    return { sessionId: identity.sessionId, generation: identity.generation, sourceUri };
  }

  /**
   * Ends the session and completes the run; ending it again changes nothing. Returns the run as it is then. Errors: 422 and
   * 404 on the run, 404 also for a run that never had a pulled source.
   */
  async end(caller: Caller, runId: string): Promise<RunView> {
    const { timeline, registry } = this.#options;
    const run = ownedRun(timeline.view, caller, runId);
    if (run.source !== "live") throw refuse.notFound("Live source", "run_id");
    const session = registry.ofRun(run.runId);
    await session?.end({ rank: 2, why: "completed", reason: "live_terminated" });
    if (session?.isDetached) {
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
    const attach = this.#checkedAttach(body, policy);
    if (attach.localAudio && !this.#options.sessions.hasAudioSidecar) {
      throw refuse.because(
        "audio_sidecar_unavailable",
        "Cannot analyze local audio as SERVICE_AUDIO_SIDECAR_ADDR is not set",
      );
    }
    return attach;
  }

  #checkedAttach(body: AttachBody, policy: AttachPolicy | null): AttachConfig {
    try {
      return checkAttach(body, { ...this.#options.attach, policy });
    } catch (error) {
      throw error instanceof AttachRefused ? refuse.invalidFields(error.details) : error;
    }
  }

  #checkSource(sourceUri: string): void {
    const remote = remoteSource(sourceUri, this.#options.toggles);
    if (remote?.kind === "rtsp" || remote?.kind === "hls") return;
    throw sourceFault("must be an rtsp, rtsps or HLS URL to be watched live");
  }

  async #find(sourceUri: string, { principalKey }: Caller, signal: AbortSignal): Promise<FoundSource> {
    const { sources, decoder } = this.#options;
    await using opening = new AsyncDisposableStack();
    const source = opening.use(await sources.open(sourceUri, principalKey, signal));
    const info = await source.explained(decoder.probe(source.input, signal, { principalKey }));
    if (!info.video) throw sourceFault("it has no video stream");
    const held = opening.move();
    return { input: source.input, info, [Symbol.asyncDispose]: () => held.disposeAsync() };
  }
}

/** No free capacity, slot or session id is 503 here. */
function available<T>(take: () => T): T {
  try {
    return take();
  } catch (error) {
    if (error instanceof CapacityExhausted || error instanceof LiveRefused) {
      throw refuse.because("provider_saturated", error.message);
    }
    throw error;
  }
}

function boundOf({ width, height }: Extent): Extent {
  return width * height > LARGEST_PICTURE.width * LARGEST_PICTURE.height
    ? LARGEST_PICTURE
    : { width, height };
}
