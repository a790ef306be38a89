/** The first part of a fragmented MP4, which says what its tracks are: the boxes `ftyp` and `moov`. */

import { areSameBytes } from "../../../base/bytes.ts";
import type { Extent } from "../../../model/frames/coordinates.ts";
import { boxOn } from "../mp4_boxes.ts";
import type { ClipCodec } from "../parameter_sets.ts";
import { type ClipSound, openFile, soundCodecName } from "../clip_file.ts";

/** What the tracks of a fragmented MP4 are. */
export interface Tracks {
  readonly codec: ClipCodec;
  /** Codec of the video as in the parameter `codecs` of a media type (RFC 6381), such as `avc1.42e01f`. */
  readonly videoCodec: string;
  /** A configuration record, or parameter sets as Annex B. */
  readonly codecData: Uint8Array<ArrayBuffer>;
  readonly isRecord: boolean;
  readonly size: Extent;
  readonly sound: ClipSound | null;
}

/**
 * Whether fragments of the one can follow on those of the other. The bytes of two first parts also differ by
 * when they were made.
 */
export function areSameTracks(one: Tracks, other: Tracks): boolean {
  return one.codec === other.codec && one.isRecord === other.isRecord &&
    one.size.width === other.size.width && one.size.height === other.size.height &&
    areSameBytes(one.codecData, other.codecData) && areSameSounds(one.sound, other.sound);
}

function areSameSounds(one: ClipSound | null, other: ClipSound | null): boolean {
  if (!one || !other) return one === other;
  return one.codec === other.codec && one.sampleRateHz === other.sampleRateHz &&
    one.channels === other.channels && areSameBytes(one.codecData, other.codecData);
}

export interface InitSegment {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Codecs of all tracks by RFC 6381: `avc1.42e01f, opus`. */
  readonly codecs: string;
}

/**
 * The package writes a whole file, of which the first part is taken: the first track is the video, the second
 * one the sound; ticks of the video are those of `VIDEO_CLOCK_HZ`, of the sound its samples. Rejects for
 * parameter sets that are not what they say.
 */
export async function initSegment(tracks: Tracks, picture: Uint8Array): Promise<InitSegment> {
  const { codec, videoCodec, codecData, isRecord, size, sound } = tracks;
  const streams = { codec, codecData: isRecord ? codecData : new Uint8Array(), sound };
  const file = await openFile(streams, { videoCodec, size, index: "fragmented" });
  await file.addVideo(picture, true, FIRST);
  if (sound) await file.addSound(new Uint8Array(1), FIRST);
  const whole = await file.finish();
  const codecs = sound ? `${videoCodec}, ${soundCodecName(sound)}` : videoCodec;
  return { bytes: whole.slice(0, boxOn(whole, "moof").start), codecs };
}

const FIRST = { at: 0, duration: 1 };
