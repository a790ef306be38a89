/** One viewer of a live session: what is on its way to it, within a bound. */

import type { World } from "../../../base/world.ts";
import { LIMITS } from "../../../contract/limits.ts";

/** How the fragments from here on are read. */
export interface ViewTracks {
  readonly init: Uint8Array<ArrayBuffer>;
  /** By RFC 6381, such as `avc1.42e01f, opus`. */
  readonly codecs: string;
}

export interface ViewFragment {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Whether playing can begin with it. */
  readonly isKeyframe: boolean;
}

export interface ViewerOptions {
  readonly world: Pick<World, "monotonicMs">;
  /** Whether it goes on when the session gets a new run. */
  readonly followsSource: boolean;
  /** Called with the number of fragments that it was too slow for. */
  readonly onDropped: (count: number) => void;
  /** Called once, when it takes nothing more. */
  readonly onLeft: () => void;
}

/**
 * ```
 *   fragment ──▶ [64, 4 MiB] ──▶ next ──▶ the connection
 *                    │ full: all of them go, and those that come until the next key frame
 * ```
 * The bytes are the same for all viewers, and are never changed.
 */
export class Viewer {
  readonly #options: ViewerOptions;
  readonly #begun = Promise.withResolvers<void>();
  #tracks: ViewTracks | null = null;
  /** The first part, until it is taken. */
  #first: Uint8Array<ArrayBuffer> | null = null;
  #queue: Uint8Array<ArrayBuffer>[] = [];
  #queuedBytes = 0;
  #awaitsKeyframe = true;
  #hasEnded = false;
  #takenMs: number;
  /** Set while the connection waits for more. */
  #waiting: PromiseWithResolvers<void> | null = null;

  constructor(options: ViewerOptions) {
    this.#options = options;
    this.#takenMs = options.world.monotonicMs();
    this.#begun.promise.catch(() => {/* whoever waits gets it */});
  }

  get followsSource(): boolean {
    return this.#options.followsSource;
  }

  /** Resolves with the first key frame; rejects where there will be none. */
  get begun(): Promise<void> {
    return this.#begun.promise;
  }

  get hasBegun(): boolean {
    return this.#tracks !== null;
  }

  /** Empty before it has begun. */
  get codecs(): string {
    return this.#tracks?.codecs ?? "";
  }

  /** The next part of its MP4; null at the end. For one reader. */
  async next(): Promise<Uint8Array<ArrayBuffer> | null> {
    for (;;) {
      this.#takenMs = this.#options.world.monotonicMs();
      const first = this.#first;
      this.#first = null;
      if (first) return first;
      const bytes = this.#queue.shift();
      if (bytes) {
        this.#queuedBytes -= bytes.length;
        return bytes;
      }
      if (this.#hasEnded) return null;
      this.#waiting = Promise.withResolvers();
      await this.#waiting.promise;
    }
  }

  /** What is queued stays; it is not taken where nothing was taken for long. */
  push(fragment: ViewFragment, tracks: ViewTracks): void {
    if (this.#hasEnded || (this.#awaitsKeyframe && !fragment.isKeyframe && !this.hasBegun)) return;
    if (!this.hasBegun) this.#begin(tracks);
    if (this.#isStuck) return this.leave();
    const isFull = this.#queuedBytes + fragment.bytes.length > LIMITS.view.viewerBytesMax ||
      this.#queue.length >= LIMITS.view.viewerFragmentsMax;
    if (isFull) {
      this.#options.onDropped(this.#queue.length);
      this.#queue = [];
      this.#queuedBytes = 0;
      this.#awaitsKeyframe = true;
    }
    if (this.#awaitsKeyframe && !fragment.isKeyframe) return this.#options.onDropped(1);
    this.#awaitsKeyframe = false;
    this.#enqueue(fragment.bytes);
  }

  /** There will be no key frame for it. */
  refuse(reason: unknown): void {
    this.#begun.reject(reason);
    this.leave();
  }

  /** Nothing more comes; what is queued is still taken. */
  end(): void {
    this.#hasEnded = true;
    this.#waiting?.resolve();
  }

  /** The client has gone. */
  leave(): void {
    if (!this.#hasEnded) this.#options.onLeft();
    this.#first = null;
    this.#queue = [];
    this.end();
  }

  get #isStuck(): boolean {
    return this.#queue.length > 0 &&
      this.#options.world.monotonicMs() - this.#takenMs > LIMITS.view.silenceMs;
  }

  #begin(tracks: ViewTracks): void {
    this.#tracks = tracks;
    this.#first = tracks.init;
    this.#begun.resolve();
  }

  #enqueue(bytes: Uint8Array<ArrayBuffer>): void {
    this.#queue.push(bytes);
    this.#queuedBytes += bytes.length;
    this.#waiting?.resolve();
  }
}
