/** The cameras that are always watched: one for each `live = true` in the file of sources, as the file is
 * now.
 */

import type { Metrics } from "../../contract/metrics.ts";
import type { World } from "../../base/world.ts";
import { SOURCE_STATES } from "../../model/api/sources.ts";
import { isAlwaysOn, type NamedSource } from "../../model/sources/source_file.ts";
import type { LiveSources } from "../live/camera.ts";
import type { ArmedSources } from "../sources/armed_sources.ts";
import type { NamedSources } from "../sources/named_sources.ts";
import { type CameraLook, WatchedCamera } from "./watched_camera.ts";

export interface AlwaysOnOptions {
  readonly named: NamedSources;
  readonly live: LiveSources;
  readonly armed: ArmedSources;
  /** Whose runs those of a source are that every principal may use. */
  readonly firstPrincipal: string;
  readonly metrics: Metrics;
  readonly world: World;
}

/** See docs/cameras.md#always-on-cameras. */
export class AlwaysOn implements AsyncDisposable {
  readonly #options: AlwaysOnOptions;
  readonly #cameras = new Map<string, WatchedCamera>();
  #isFileBroken = false;
  #isClosed = false;
  /** Resolves when the last change is applied: changes do not overtake each other. */
  #changing: Promise<void> = Promise.resolve();

  constructor(options: AlwaysOnOptions) {
    this.#options = options;
    const { metrics, named, world } = options;
    for (const state of SOURCE_STATES) {
      metrics.observeValue("service_sources", { state }, () => this.#count(state, named.all));
    }
    metrics.observeValue("service_sources_down_seconds", () => {
      const nowMs = world.now();
      return Math.max(0, ...this.down.map(({ sinceMs }) => nowMs - sinceMs)) / 1000;
    });
    metrics.observeValue("service_sources_file_faulty", () => this.#isFileBroken ? 1 : 0);
  }

  /** Whether the file could not be used when it was read last, so that an earlier one counts. */
  get isFileBroken(): boolean {
    return this.#isFileBroken;
  }

  /** Cameras that give no frames. */
  get down(): { readonly name: string; readonly sinceMs: number; readonly reason: string | null }[] {
    return [...this.#cameras].flatMap(([name, camera]) => {
      const { downSinceMs: sinceMs, reason } = camera.look();
      return sinceMs === null ? [] : [{ name, sinceMs, reason }];
    });
  }

  /** How an always-on camera is; null for any other source. */
  look(name: string): CameraLook | null {
    return this.#cameras.get(name)?.look() ?? null;
  }

  /** To whom the runs of a source belong. */
  ownerOf({ principals }: NamedSource): string {
    return principals?.[0] ?? this.#options.firstPrincipal;
  }

  /** Starts watching what the file says at the start. */
  start(): void {
    this.#options.armed.start((name, change) => this.#cameras.get(name)?.arm(change));
    this.#startMissing();
  }

  /**
   * The file was read again: null where it cannot be used, which leaves everything as it is. Only sources
   * that are new or changed are started anew. Resolves when that is done.
   */
  apply(sources: readonly NamedSource[] | null): Promise<void> {
    this.#isFileBroken = sources === null;
    if (sources === null) return this.#changing;
    const change = async () => {
      try {
        await this.#change(sources);
      } catch (error) {
        this.#options.world.log.error("a change of the sources failed", { error: String(error) });
      }
    };
    return this.#changing = this.#changing.then(change);
  }

  /** Stops watching; the sessions end with the service. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await Promise.all(Array.from(this.#cameras.values(), (camera) => camera.close()));
    await this.#changing;
  }

  async #change(sources: readonly NamedSource[]): Promise<void> {
    if (this.#isClosed) return;
    const { named, armed, world } = this.#options;
    const next = new Map(sources.map((source) => [source.name, source]));
    const changed = [...this.#cameras.values()].filter(({ source }) =>
      JSON.stringify(next.get(source.name)) !== JSON.stringify(source)
    );
    const gone = changed.filter(({ source }) => !isSameCamera(source, next.get(source.name)));
    named.replace(sources);
    world.log.info("the file of sources was read again", { sources: sources.length, ended: gone.length });
    for (const camera of changed) {
      const source = next.get(camera.source.name);
      if (!gone.includes(camera) && source && isAlwaysOn(source)) camera.adopt(source);
    }
    armed.fileChanged();
    await Promise.all(gone.map(async (camera) => {
      const { name } = camera.source;
      await camera.end(next.get(name)?.watch ? "source_changed" : "source_removed");
      this.#cameras.delete(name);
    }));
    this.#startMissing();
  }

  #startMissing(): void {
    if (this.#isClosed) return;
    const { named, live, armed, world } = this.#options;
    for (const source of named.all) {
      if (!isAlwaysOn(source) || this.#cameras.has(source.name)) continue;
      const principalKey = this.ownerOf(source);
      this.#cameras.set(source.name, new WatchedCamera({ source, principalKey, live, armed, world }));
    }
  }

  #count(state: CameraLook["state"], sources: readonly NamedSource[]): number {
    return sources.filter(({ name }) => (this.look(name)?.state ?? "disabled") === state).length;
  }
}

/** Whether they differ in nothing but their webhooks and armed times, so that the session can go on. */
function isSameCamera(one: NamedSource, other: NamedSource | undefined): boolean {
  const common = (source: NamedSource | undefined) =>
    JSON.stringify(
      source && { ...source, watch: source.watch && { ...source.watch, webhooks: [], armed: null } },
    );
  return common(one) === common(other);
}
