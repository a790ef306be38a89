/** Follows what the pictures of a stream are: a camera or a publisher may change their size or profile at any
 * key frame.
 */

import { joinedBytes } from "../../base/bytes.ts";
import { isSizedPrefix, sequenceSet, videoCodecName } from "../../media/containers/parameter_sets.ts";
import { parameterSetsOf } from "../../media/containers/fragments/nal_units.ts";
import type { CopiedUnit } from "../../media/containers/copied_packets.ts";
import { h264Size, h265Size } from "../../rtc/depacketize/sequence_size.ts";
import type { EncodedStreams } from "./unit_tap.ts";

export interface FollowedUnit {
  readonly unit: CopiedUnit;
  /** Whether the pictures from this key frame on have another size or profile than those before. */
  readonly isOther: boolean;
}

/**
 * Follows the format of key frames. One without parameter sets gets the last ones that came with a picture,
 * and each gets the size that its sets state: the size that the container of a source states is that of the
 * first picture.
 */
export class FormatFollower {
  #streams: Pick<EncodedStreams, "codec" | "codecData"> | null = null;
  /** The last sets that came with a picture, as Annex B; empty before. */
  #sets = new Uint8Array();
  /** Format of the last key frame whose sets are known, as text; null before. */
  #format: string | null = null;

  begin(streams: Pick<EncodedStreams, "codec" | "codecData">): void {
    this.#streams = streams;
    this.#sets = new Uint8Array();
    this.#format = null;
  }

  follow(unit: CopiedUnit): FollowedUnit {
    const streams = this.#streams;
    // With a configuration record the sets stand there, and never change.
    if (!streams || !unit.isVideo || !unit.isKeyframe || isSizedPrefix(streams.codecData)) {
      return { unit, isOther: false };
    }
    const { codec, codecData } = streams;
    const own = parameterSetsOf(codec, unit.data);
    const hasOwn = sequenceSet(codec, own) !== null;
    if (hasOwn) this.#sets = own;
    const sequence = sequenceSet(codec, this.#sets) ?? sequenceSet(codec, codecData);
    if (sequence === null) return { unit, isOther: false };
    const size = (codec === "h264" ? h264Size(sequence) : h265Size(sequence)) ?? unit.size;
    const name = videoCodecName(codec, this.#sets.length > 0 ? this.#sets : codecData);
    const format = `${name} ${size?.width}x${size?.height}`;
    const isOther = this.#format !== null && format !== this.#format;
    this.#format = format;
    const data = hasOwn ? unit.data : joinedBytes(this.#sets, unit.data);
    return { unit: { ...unit, data, size }, isOther };
  }
}
