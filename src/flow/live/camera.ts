/** Live sources that the service pulls itself, RTSP and HLS: watched like a publisher's, asked again when they fail. */

import type { Metrics } from "../../base/metrics.ts";
import { refuse } from "../../base/refusal.ts";
import type { World } from "../../base/world.ts";
import type { Decoder } from "../../media/recorded/decoder.ts";
import type { LiveSourceBody } from "../../model/api/live.ts";
import type { Extent } from "../../model/frames/coordinates.ts";
import { event } from "../../model/events/event_table.ts";
import {
  type AttachConfig,
  type AttachContext,
  AttachRefused,
  checkAttach,
} from "../../model/live/attach.ts";
import { remoteSource, type RemoteSourceToggles, sourceFault } from "../../model/sources/remote_source.ts";
import type { RunView } from "../../model/runs/run.ts";
import type { Timeline, TimelineView } from "../../store/log/timeline.ts";
import type { Caller } from "../caller.ts";
import { programOf } from "./whip.ts";
import type { LiveSessionFactory } from "./session_factory.ts";
import { type FoundSource, Reconnector } from "./reconnect.ts";
import { LiveRefused } from "./refused.ts";
import type { LiveRegistry } from "./registry.ts";
import type { SessionIdentity } from "./journal.ts";
import { CapacityExhausted } from "./capacity.ts";
import { actionableRun, ownedRun } from "../runs/ownership.ts";
import type { Sources } from "../sources.ts";

export interface LiveSourcesOptions {
  readonly timeline: Timeline;
  readonly table: LiveRegistry;
  readonly generations: LiveSessionFactory;
  readonly sources: Sources;
  readonly decoder: Decoder;
  readonly toggles: RemoteSourceToggles;
  readonly attach: AttachContext;
  readonly metrics: Metrics;
  readonly world: World;
  readonly streamTtlMs: number;
}

export interface OpenedLiveSource {
  readonly sessionId: string;
  readonly generation: number;
  readonly sourceUri: string;
}

/** More is scaled down, as for a publisher. */
const LARGEST_PICTURE: Extent = { width: 3840, height: 2160 };

export class LiveSources {
  readonly #options: LiveSourcesOptions;

  constructor(options: LiveSourcesOptions) {
    this.#options = options;
  }

  /**
   * The run watches the source until it is ended. Errors: 422 and 404 on the run, 409 where it is terminal or has had a live
   * session, 422 on `source_uri` and on the fields of the attach configuration, 503 where there is no capacity.
   */
  async open(caller: Caller, runId: string, body: LiveSourceBody): Promise<OpenedLiveSource> {
    const { timeline, table, generations } = this.#options;
    this.#watchable(timeline.view, caller, runId);
    const attach = this.#attach(body);
    const sourceUri = body.source_uri.trim();
    this.#checkSource(sourceUri);
    const find = (signal: AbortSignal) => this.#find(sourceUri, caller, signal);
    await using opening = new AsyncDisposableStack();
    const pull = opening.use(await Reconnector.open(find, AbortSignal.any([caller.signal, table.closing])));
    const maxFrame = boundOf(pull.first.info.video!);
    const reservation = opening.use(this.#available(() => generations.reserve(maxFrame, attach)));
    const identity: SessionIdentity = {
      runId,
      sessionId: this.#available(() => table.newSessionId()),
      generation: table.nextGeneration(),
      principalKey: caller.principalKey,
      source: "live",
    };
    timeline.commit((view) => {
      this.#watchable(view, caller, runId);
      return [event("live_source_opened", runId, {
        request_id: caller.requestId,
        session_id: identity.sessionId,
        source: "live",
        source_uri: sourceUri,
        pipeline_generation: identity.generation,
        trigger_program: programOf(attach.trigger),
      })];
    });
    opening.move();
    const start = { kind: "pull", ...pull.first } as const;
    const generation = generations.create({ identity, attach, maxFrame, opening: start }, reservation);
    table.add(generation);
    generation.run(pull);
    generation.open();
    return { sessionId: identity.sessionId, generation: identity.generation, sourceUri };
  }

  /**
   * Ends the session and completes the run; done again it changes nothing. The run as it is then. Errors: 422 and 404 on the
   * run, 404 also where it never watched a source.
   */
  async end(caller: Caller, runId: string): Promise<RunView> {
    const { timeline, table } = this.#options;
    const run = ownedRun(timeline.view, caller, runId);
    if (run.source !== "live") throw refuse.notFound("Live source", "run_id");
    const generation = table.ofRun(run.runId);
    await generation?.end({ rank: 2, why: "completed", reason: "live_terminated" });
    if (generation?.isDetached) {
      throw refuse.because("internal_error", "The session is not cleaned up yet, try again");
    }
    return ownedRun(timeline.view, caller, runId);
  }

  #watchable(view: TimelineView, caller: Caller, runId: string): void {
    const { world, streamTtlMs: ttlMs } = this.#options;
    const run = actionableRun(view, caller, runId, { nowMs: world.now(), ttlMs }, "watch a source for");
    if (run.source !== "") {
      throw refuse.conflict("run_id", "Cannot watch a source as the run has a live session");
    }
  }

  #attach({ source_uri: _, ...body }: LiveSourceBody): AttachConfig {
    if (body.local_audio) {
      throw refuse.invalid("local_audio", "is for sessions that a publisher brings over WHIP");
    }
    try {
      return checkAttach(body, this.#options.attach);
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
    const info = await source.explained(decoder.probe(source.input, signal));
    if (!info.video) throw sourceFault("it has no video stream");
    const held = opening.move();
    return { input: source.input, info, [Symbol.asyncDispose]: () => held.disposeAsync() };
  }

  #available<T>(take: () => T): T {
    try {
      return take();
    } catch (error) {
      if (error instanceof CapacityExhausted || error instanceof LiveRefused) {
        throw refuse.because("provider_saturated", error.message);
      }
      throw error;
    }
  }
}

function boundOf({ width, height }: Extent): Extent {
  return width * height > LARGEST_PICTURE.width * LARGEST_PICTURE.height
    ? LARGEST_PICTURE
    : { width, height };
}
