/** The live view of one session: its Worker makes the fragments once, and each viewer gets the same bytes. */

import type { Metrics } from "../../../contract/metrics.ts";
import { refuse } from "../../../contract/refusal.ts";
import { OutOfTime, timer, within } from "../../../base/wait.ts";
import type { World } from "../../../base/world.ts";
import type { ViewReport } from "../../../live/messages/messages.ts";
import { LIMITS } from "../../../contract/limits.ts";
import { Viewer, type ViewFragment, type ViewTracks } from "./viewer.ts";

export interface LiveViewOptions {
  readonly world: World;
  readonly metrics: Metrics;
  /** Tells the Worker that somebody watches, waits for a key frame, or that nobody does. */
  readonly order: (viewId: number | null) => void;
  /** Gives the Worker a credit for a fragment. */
  readonly acknowledge: () => void;
}

/** See docs/live/clips.md#live-view. The Worker works from the first viewer to the last one. */
export class LiveView {
  readonly #options: LiveViewOptions;
  readonly #viewers = new Set<Viewer>();
  /** Counts from the first viewer to the last one; reports of an earlier time are ignored. */
  #viewId = 0;
  #tracks: ViewTracks | null = null;
  /** What came since the last key frame, for the next viewer; empty where it is too much. */
  #group: ViewFragment[] = [];
  #groupBytes = 0;
  #silence: Disposable | null = null;
  #isClosed = false;

  constructor(options: LiveViewOptions) {
    this.#options = options;
  }

  get viewers(): number {
    return this.#viewers.size;
  }

  /**
   * A viewer that has begun: the first part is there. Errors: 503 where there are too many, 422 for a session
   * without video that MP4 can carry, 404 where no key frame comes in time, and the reason of the signal.
   */
  async join(signal: AbortSignal, { followsSource }: { readonly followsSource: boolean }): Promise<Viewer> {
    const { world, metrics } = this.#options;
    const field = fieldOf({ followsSource });
    if (this.#isClosed) throw notThere(field);
    if (this.#viewers.size >= LIMITS.view.viewersMax) throw tooMany();
    const viewer: Viewer = new Viewer({
      world,
      followsSource,
      onDropped: (count) =>
        metrics.add("service_live_view_fragments_dropped_total", { queue: "viewer" }, count),
      onLeft: () => this.#remove(viewer),
    });
    this.#add(viewer);
    try {
      await within(world, LIMITS.view.startMs, viewer.begun, signal);
    } catch (error) {
      viewer.leave();
      throw error instanceof OutOfTime ? notThere(field) : error;
    }
    return viewer;
  }

  onReport(view: ViewReport): void {
    if (view.kind === "fragment") this.#options.acknowledge();
    if (view.viewId !== this.#viewId || this.#viewers.size === 0) return;
    if (view.kind === "fragment") this.#onFragment(view);
    else if (view.kind === "began") this.#onTracks(view);
    else for (const viewer of [...this.#viewers]) viewer.refuse(notCarried(fieldOf(viewer), view.codec));
  }

  /** The session goes on in another run: whoever watches the run has seen its end. */
  endOfRun(): void {
    for (const viewer of [...this.#viewers]) if (!viewer.followsSource) this.#end(viewer);
  }

  /** The session has ended. */
  close(): void {
    this.#isClosed = true;
    this.#endEach();
  }

  #add(viewer: Viewer): void {
    const isFirst = this.#viewers.size === 0;
    this.#viewers.add(viewer);
    if (isFirst) this.#viewId++;
    if (isFirst || !this.#tracks || this.#group.length === 0) return this.#options.order(this.#viewId);
    for (const fragment of this.#group) viewer.push(fragment, this.#tracks);
  }

  /** Fragments from here on cannot follow on those before, so answers that have begun end. */
  #onTracks({ init, codecs }: ViewTracks): void {
    for (const viewer of [...this.#viewers]) if (viewer.hasBegun) this.#end(viewer);
    this.#tracks = { init, codecs };
    this.#group = [];
  }

  #onFragment(fragment: ViewFragment): void {
    const tracks = this.#tracks;
    if (!tracks) return;
    if (fragment.isKeyframe) {
      this.#group = [];
      this.#groupBytes = 0;
    }
    if (fragment.isKeyframe || this.#group.length > 0) this.#keep(fragment);
    for (const viewer of [...this.#viewers]) viewer.push(fragment, tracks);
    // Those that take nothing have left, and with the last of them the wait has ended.
    if (this.#viewers.size > 0) this.#expectMore();
  }

  #keep({ bytes, isKeyframe }: ViewFragment): void {
    this.#group.push({ bytes, isKeyframe });
    this.#groupBytes += bytes.length;
    const isTooMuch = this.#groupBytes > LIMITS.view.viewerBytesMax / 2 ||
      this.#group.length > LIMITS.view.viewerFragmentsMax - 2;
    if (isTooMuch) this.#group = [];
  }

  /** A camera that gives nothing for long is asked for again by those who want to see it. */
  #expectMore(): void {
    this.#silence?.[Symbol.dispose]();
    this.#silence = timer(
      this.#options.world,
      LIMITS.view.silenceMs,
      () => this.#endEach(),
    );
  }

  #endEach(): void {
    for (const viewer of [...this.#viewers]) this.#end(viewer);
  }

  #end(viewer: Viewer): void {
    if (!viewer.hasBegun) return viewer.refuse(notThere(fieldOf(viewer)));
    viewer.end();
    this.#remove(viewer);
  }

  #remove(viewer: Viewer): void {
    if (!this.#viewers.delete(viewer) || this.#viewers.size > 0) return;
    this.#silence?.[Symbol.dispose]();
    this.#silence = null;
    this.#tracks = null;
    this.#group = [];
    this.#options.order(null);
  }
}

/** The parameter of the route. */
export function fieldOf({ followsSource }: Pick<Viewer, "followsSource">): string {
  return followsSource ? "name" : "run_id";
}

function notThere(field: string): Error {
  return refuse.notFound("Frame of the live session", field);
}

function tooMany(): Error {
  return refuse.because(
    "provider_saturated",
    `Cannot show the live view as the session has ${LIMITS.view.viewersMax} viewers, which is the limit`,
  );
}

function notCarried(field: string, codec: string | null): Error {
  return refuse.invalid(
    field,
    codec === null
      ? "needs a session with video"
      : `needs a session with H.264 or H.265, which MP4 carries to browsers, and this one has ${codec}`,
  );
}
