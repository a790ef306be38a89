/** What takes the encoded units of a session as they came, such as the stage of evidence clips and the live view. */

import type { ClipStreams } from "../../media/live/clip_file.ts";
import type { CopiedUnit } from "../../media/live/copied_packets.ts";

/** What the units of a stream are. */
export interface EncodedStreams extends ClipStreams {
  /** Whether the source has sound that MP4 cannot carry. */
  readonly hasOtherSound: boolean;
  /** So many pictures at most are shown later than others that come after them. */
  readonly reorderDepth: number;
}

/** The calls come in this order: `begin`, `setOffset`, `push` and `miss` in any order, `interrupt`, `end`, and so on for the next stream. */
export interface UnitTap {
  /** Whether somebody waits for the next unit. */
  readonly isUrgent: boolean;
  /** What the units are that come from here on. */
  begin(streams: EncodedStreams): void;
  /** The media time of the session at time 0 of the units; units may come before. */
  setOffset(offsetMs: number): void;
  /** Takes the next unit in decoding order. */
  push(unit: CopiedUnit): void;
  /** Pictures are missing here; the next one that is pushed is a key frame. */
  miss(): void;
  /** The stream gives nothing more. */
  interrupt(): void;
  /** Another stream will follow: nothing of this one is kept. */
  end(): void;
}

/** A tap whose key frames all have parameter sets, and that is told where the pictures become others. */
export interface FormatTap extends UnitTap {
  /** The next unit is a key frame of another picture size or profile than those before, shown at `keyMs`: no file may have both. */
  changeFormat(keyMs: number): void;
}
