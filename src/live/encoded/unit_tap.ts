/** What takes the encoded units of a session as they came, such as the stage of evidence clips and the live
 * view.
 */

import type { ClipStreams } from "../../media/containers/clip_file.ts";
import type { CopiedUnit } from "../../media/containers/copied_packets.ts";

/** What the units of a stream are. */
export interface EncodedStreams extends ClipStreams {
  /** Whether the source has sound that MP4 cannot carry. */
  readonly hasOtherSound: boolean;
  /** The most pictures that are shown later than one that comes after them. */
  readonly reorderDepth: number;
}

/**
 * What takes encoded units. The calls come in this order: `begin`; `setOffset`, `push` and `miss` in any
 * order; `interrupt`; `end`; and so on for the next stream.
 */
export interface UnitTap {
  /** Whether somebody waits for the next unit. */
  readonly isUrgent: boolean;
  /** Tells what the units are that come from here on. */
  begin(streams: EncodedStreams): void;
  /** Tells the media time of the session at time 0 of the units; units may come before. */
  setOffset(offsetMs: number): void;
  /** Takes the next unit in decoding order. */
  push(unit: CopiedUnit): void;
  /** Tells that pictures are missing here; the next one that is pushed is a key frame. */
  miss(): void;
  /** Tells that the stream gives nothing more. */
  interrupt(): void;
  /** Tells that another stream will follow: nothing of this one is kept. */
  end(): void;
}

/** A tap whose key frames all have parameter sets, and that is told where the pictures become others. */
export interface FormatTap extends UnitTap {
  /**
   * Tells that the next unit is a key frame of another picture size or profile than those before, shown at
   * `keyMs`: no file may have both.
   */
  changeFormat(keyMs: number): void;
}
