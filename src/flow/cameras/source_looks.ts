/** What callers read of the named sources that they may use: kind, state, the run that watches it. */

import type { World } from "../../base/world.ts";
import type { NamedSourceLook } from "../../model/api/sources.ts";
import { isAlwaysOn, type NamedSource } from "../../model/sources/source_file.ts";
import { sourceUriOf } from "../../model/source_name.ts";
import type { Caller } from "../caller.ts";
import type { LiveRegistry } from "../live/registry.ts";
import type { Recordings } from "../../store/recordings/recordings.ts";
import type { AlwaysOn } from "./always_on.ts";
import { type ArmedSources, lookOf } from "../sources/armed_sources.ts";
import type { NamedSources } from "../sources/named_sources.ts";
import type { CameraLook } from "./watched_camera.ts";

export interface SourceLooksOptions {
  readonly named: NamedSources;
  readonly alwaysOn: AlwaysOn;
  readonly armed: ArmedSources;
  readonly registry: LiveRegistry;
  readonly recordings: Pick<Recordings, "newestEndMs">;
  readonly world: Pick<World, "now">;
}

/** See docs/cameras.md#states. */
export class SourceLooks {
  readonly #options: SourceLooksOptions;

  constructor(options: SourceLooksOptions) {
    this.#options = options;
  }

  /** The sources that the caller may use, in the order of the file. */
  async list({ principalKey }: Pick<Caller, "principalKey">): Promise<NamedSourceLook[]> {
    const sources = this.#options.named.ofPrincipal(principalKey);
    const recordings = await Promise.all(sources.map((source) => this.#recordingOf(source)));
    return sources.map((source, at) => this.#look(source, principalKey, recordings[at]!));
  }

  #look(
    source: NamedSource,
    principalKey: string,
    recording: NamedSourceLook["recording"],
  ): NamedSourceLook {
    const { alwaysOn, armed, world } = this.#options;
    const { name, kind } = source;
    const watched = alwaysOn.look(name);
    const isOwn = alwaysOn.ownerOf(source) === principalKey;
    const { state, runId, lastFrameMs, reason } = watched ?? this.#lookAtSession(source, principalKey);
    return {
      name,
      source_uri: sourceUriOf(name),
      kind,
      live: source.watch !== null,
      state,
      run_id: watched === null || isOwn ? runId : null,
      last_frame_age_ms: lastFrameMs === null ? null : Math.max(0, world.now() - lastFrameMs),
      reason,
      ...(isAlwaysOn(source) ? lookOf(armed.stateOf(source)) : NOT_ARMED),
      recording,
    };
  }

  async #recordingOf({ name, watch }: NamedSource): Promise<NamedSourceLook["recording"]> {
    if (!watch?.recording) return null;
    return { ...watch.recording, newest_end_at_ms: await this.#options.recordings.newestEndMs(name) };
  }

  /**
   * How a source is that is not always watched: what the newest session of the caller that watches it shows.
   */
  #lookAtSession({ name }: NamedSource, principalKey: string): Omit<CameraLook, "downSinceMs"> {
    const uri = sourceUriOf(name);
    const sessions = this.#options.registry.ofPrincipal(principalKey);
    const session = sessions.findLast(({ identity: { sourceUri } }) => sourceUri === uri);
    if (!session) {
      return { state: "disabled", runId: null, lastFrameMs: null, reason: "nobody watches it at the moment" };
    }
    const { runId, gap, activity: { lastFrameMs } } = session;
    const state = gap ? "gap" : lastFrameMs === null ? "connecting" : "live";
    return { state, runId, lastFrameMs, reason: gap?.reason ?? null };
  }
}

const NOT_ARMED = { armed: null, armed_by: null, next_change_ms: null };
