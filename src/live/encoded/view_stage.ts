/** The live view of a session in its Worker: while it is watched, makes fragments of an MP4 of the encoded
 * units, once for all viewers.
 */

import type { CopiedUnit } from "../../media/containers/copied_packets.ts";
import { UnitRing } from "../../media/live/unit_ring.ts";
import { reorderDepthOf } from "../../media/containers/fragments/decode_times.ts";
import { type Fragment, Fragmenter } from "../../media/containers/fragments/fragmenter.ts";
import { areSameTracks, initSegment, type Tracks } from "../../media/containers/fragments/init_segment.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { ViewReport } from "../messages/messages.ts";
import type { Outbox } from "../messages/outbox.ts";
import type { SessionCounts } from "../messages/session_counts.ts";
import type { EncodedStreams, FormatTap } from "./unit_tap.ts";

export interface ViewStageOptions {
  readonly outbox: Outbox;
  readonly counts: SessionCounts;
  /** Asks the publisher for a key frame; null where the source gives them when it likes. */
  readonly askForKeyframe: (() => void) | null;
}

/** The watching from the first viewer to the last one. */
interface Watching {
  readonly viewId: number;
  tracks: Tracks | null;
  /** Whether the viewers have been told what the tracks are. */
  isAnnounced: boolean;
  /** Whether fragments are left out until the next one with a key frame. */
  isCut: boolean;
}

/**
 * Age of the last key frame, in milliseconds, from which on a publisher is asked for another one: going
 * through all pictures since then takes longer.
 */
const GROUP_MS = 3_000;

/**
 * ```
 *   units ──▶ UnitRing, from the last key frame on
 *     │           │ the first viewer
 *     └───────────┴──▶ Fragmenter ──[16 credits]──▶ began, fragment, fragment …
 * ```
 * Without credit a fragment is lost, and all others until the next key frame; they are counted.
 */
export class ViewStage implements FormatTap {
  readonly #options: ViewStageOptions;
  readonly #ring = new UnitRing({ bytesMax: LIMITS.view.keptBytesMax, keepMs: 0 });
  #streams: EncodedStreams | null = null;
  #offsetMs: number | null = null;
  #newestMs = -Infinity;
  /** The codec that MP4 cannot carry; undefined where it can. */
  #unable: { readonly codec: string | null } | undefined;
  #watching: Watching | null = null;
  /** What makes fragments, while somebody watches and the stream is known; else null. */
  #fragmenter: Fragmenter | null = null;
  /**
   * The sending of the last fragment: fragments are sent in their order, however long the first part takes.
   */
  #sending: Promise<void> = Promise.resolve();

  constructor(options: ViewStageOptions) {
    this.#options = options;
  }

  /** To be called where the source has no video, or one that MP4 cannot carry. */
  refuse(codec: string | null): void {
    this.#unable = { codec };
    if (this.#watching) this.#report({ kind: "unable", codec, viewId: this.#watching.viewId });
  }

  /**
   * Says that somebody watches; again with the same id where a viewer waits for a key frame. Null: nobody
   * does.
   */
  watch(viewId: number | null): void {
    if (viewId === null) {
      this.#watching = null;
      this.#fragmenter = null;
    } else if (this.#watching?.viewId === viewId) {
      this.#options.askForKeyframe?.();
    } else {
      this.#watching = { viewId, tracks: null, isAnnounced: false, isCut: false };
      this.#fragmenter = null;
      if (this.#unable) this.#report({ kind: "unable", codec: this.#unable.codec, viewId });
      else this.#start();
    }
  }

  get isUrgent(): boolean {
    return this.#watching !== null;
  }

  begin(streams: EncodedStreams): void {
    this.#unable = undefined;
    this.#streams = streams;
    this.#start();
  }

  setOffset(offsetMs: number): void {
    this.#offsetMs = offsetMs;
    this.#start();
  }

  push(unit: CopiedUnit): void {
    if (!this.#streams) return;
    this.#ring.push(unit);
    if (unit.isVideo) this.#newestMs = unit.ptsMs;
    this.#fragmenter?.push(this.#placed(unit));
  }

  /** Does nothing: a fragment begins with each key frame, and tells what it is. */
  changeFormat(): void {}

  /** Does nothing: what is shown stands still until the next key frame. */
  miss(): void {}

  interrupt(): void {
    this.#fragmenter?.finish();
    this.#fragmenter = null;
    this.#ring.clear();
  }

  end(): void {
    this.interrupt();
    this.#streams = null;
    this.#offsetMs = null;
  }

  /** Begins with what came since the last key frame. */
  #start(): void {
    const watching = this.#watching;
    const streams = this.#streams;
    if (!watching || !streams || this.#offsetMs === null || this.#fragmenter) return;
    const group = this.#ring.from(Infinity);
    const shown = group.filter(({ isVideo }) => isVideo).map(({ ptsMs }) => ptsMs);
    const fragmenter = new Fragmenter({
      streams,
      // Some sources do not say it, and their pictures do.
      reorderDepth: Math.max(streams.reorderDepth, reorderDepthOf(shown)),
      onFragment: (fragment, tracks, picture) => this.#send(watching, fragment, tracks, picture),
    });
    this.#fragmenter = fragmenter;
    const { askForKeyframe } = this.#options;
    const isLong = group.length > 0 && this.#newestMs - group[0]!.ptsMs > GROUP_MS;
    if (askForKeyframe && (group.length === 0 || isLong)) return askForKeyframe();
    for (const unit of group) fragmenter.push(this.#placed(unit));
  }

  #placed(unit: CopiedUnit): CopiedUnit {
    return { ...unit, ptsMs: unit.ptsMs + (this.#offsetMs ?? 0) };
  }

  #send(watching: Watching, fragment: Fragment, tracks: Tracks, picture: Uint8Array): void {
    this.#sending = this.#sending.then(async () => {
      if (tracks !== watching.tracks) await this.#announce(watching, tracks, picture);
      if (watching !== this.#watching || !watching.isAnnounced) return;
      if (watching.isCut && !fragment.isKeyframe) return this.#options.counts.add("viewFragmentsLost");
      watching.isCut = !this.#options.outbox.take("fragments");
      if (watching.isCut) return this.#options.counts.add("viewFragmentsLost");
      this.#options.counts.add("viewFragments");
      this.#report({ kind: "fragment", ...fragment, viewId: watching.viewId }, [fragment.bytes.buffer]);
    });
  }

  /** Tells what the tracks are from here on, unless that is what was told before. */
  async #announce(watching: Watching, tracks: Tracks, picture: Uint8Array): Promise<void> {
    const isSame = watching.tracks !== null && areSameTracks(watching.tracks, tracks);
    watching.tracks = tracks;
    if (isSame) return;
    // Parameters that are none of this codec are the fault of the source: it has no live view.
    const init = await initSegment(tracks, picture).catch(() => null);
    watching.isAnnounced = init !== null;
    if (!init || watching !== this.#watching) return;
    const { bytes, codecs } = init;
    this.#report({ kind: "began", init: bytes, codecs, viewId: watching.viewId });
  }

  #report(view: ViewReport, moved: readonly ArrayBuffer[] = []): void {
    this.#options.outbox.send({ kind: "view", view }, moved);
  }
}
