/** Makes fragments of an MP4 out of encoded units as they come, each of a fifth of a second at most unless
 * pictures are rarer.
 */

import { VIDEO_TICKS_PER_MS } from "../clock.ts";
import { SOUND_TRACK_ID, VIDEO_TRACK_ID } from "../mp4_fragments.ts";
import { isSizedPrefix, videoCodecName } from "../parameter_sets.ts";
import { carriedSound, type ClipSound, type ClipStreams, withParameterSets } from "../clip_file.ts";
import type { CopiedUnit } from "../copied_packets.ts";
import { withoutAdts } from "../adts.ts";
import { DecodeTimes } from "./decode_times.ts";
import { fragmentBytes, type Sample, type TrackRun } from "./fragment_bytes.ts";
import { areSameTracks, type Tracks } from "./init_segment.ts";
import { parameterSetsOf, sizedPictures } from "./nal_units.ts";

/** A fragment: one `moof` and `mdat`. */
export interface Fragment {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Whether playing can begin with it. */
  readonly isKeyframe: boolean;
}

export interface FragmenterOptions {
  readonly streams: ClipStreams;
  /** The most pictures that are shown later than one that comes after them. */
  readonly reorderDepth: number;
  /**
   * Called with each fragment. `tracks` is another object where something has changed, which only a fragment
   * with a key frame can do; `picture` is that key frame, with its parameter sets.
   */
  readonly onFragment: (fragment: Fragment, tracks: Tracks, picture: Uint8Array) => void;
}

const FRAGMENT_MS = 200;
/**
 * How long the first fragment waits for the first sound. A track that has nothing in it would stop players.
 */
const SOUND_WAIT_MS = 500;
/**
 * How long before a key frame the last sound may be, milliseconds: sound that stays away for longer is not
 * announced any more.
 */
const SOUND_LOST_MS = 2_000;
/** Units of sound that wait for pictures. The oldest are dropped. */
const SOUND_UNITS_MAX = 512;

/** A picture, or a unit of sound, whose length is known when the next one comes. */
interface Timed {
  readonly unit: CopiedUnit;
  /** When the picture or sound is decoded, in ticks of its track. */
  readonly ticks: number;
}

/** Makes fragments of units, whose times are those of the session, from 0 on. */
export class Fragmenter {
  readonly #options: FragmenterOptions;
  readonly #decodeTimes: DecodeTimes;
  #tracks: Tracks | null = null;
  /**
   * Pictures that are in no fragment yet; the first one is a key frame, or follows on the fragment before.
   */
  #pictures: Timed[] = [];
  #sound: Timed[] = [];
  #lastSoundMs = -Infinity;
  /** The sound as MP4 carries it; null before the first unit, and for what it cannot carry. */
  #carried: ClipSound | null = null;
  /** Ticks of the last picture that had one after it. */
  #pictureTicks = VIDEO_TICKS_PER_MS * 40;
  #fragments = 0;

  constructor(options: FragmenterOptions) {
    this.#options = options;
    this.#decodeTimes = new DecodeTimes(options.reorderDepth);
  }

  /** Takes the next unit in decoding order. Before the first key frame nothing is made of it. */
  push(unit: CopiedUnit): void {
    if (unit.isVideo) this.#pushPicture(unit);
    else this.#pushSound(unit);
  }

  /** Makes a fragment of what there is. The next one begins with a key frame, with times of any distance. */
  finish(): void {
    if (this.#pictures.length > 0) {
      this.#flush(this.#pictures.at(-1)!.ticks + this.#pictureTicks);
    }
    this.#sound = [];
    this.#pictures = [];
    this.#decodeTimes.restart();
  }

  #pushPicture(unit: CopiedUnit): void {
    if (this.#pictures.length === 0 && !unit.isKeyframe) return;
    const ticks = this.#decodeTimes.next(Math.max(0, Math.round(unit.ptsMs * VIDEO_TICKS_PER_MS)));
    const last = this.#pictures.at(-1);
    if (last) this.#pictureTicks = ticks - last.ticks;
    if (last && (unit.isKeyframe || this.#isLongEnough(ticks))) this.#flush(ticks);
    this.#pictures.push({ unit, ticks });
  }

  #pushSound(unit: CopiedUnit): void {
    const { sound: given } = this.#options.streams;
    const sound = this.#carried ??= given && carriedSound(given, unit.data);
    if (!sound || unit.ptsMs <= this.#lastSoundMs || unit.ptsMs < 0) return;
    this.#lastSoundMs = unit.ptsMs;
    this.#sound.push({ unit, ticks: Math.round(unit.ptsMs * sampleRateOf(sound) / 1000) });
    if (this.#sound.length > SOUND_UNITS_MAX) this.#sound.shift();
  }

  #isLongEnough(ticks: number): boolean {
    const lengthMs = (ticks - this.#pictures[0]!.ticks) / VIDEO_TICKS_PER_MS;
    const waitsForSound = !this.#tracks && this.#options.streams.sound && this.#sound.length < 2;
    return lengthMs >= (waitsForSound ? SOUND_WAIT_MS : FRAGMENT_MS);
  }

  /**
   * Makes a fragment of all pictures, of which the last one ends at `endTicks`, and of the sound whose length
   * is known.
   */
  #flush(endTicks: number): void {
    const pictures = this.#pictures;
    this.#pictures = [];
    const first = pictures[0]!.unit;
    if (first.isKeyframe) this.#updateTracks(first);
    const tracks = this.#tracks;
    if (!tracks) return; // the parameters of the video are not known
    const runs = [
      runOf(VIDEO_TRACK_ID, pictures, endTicks, ({ unit, ticks }) => ({
        data: tracks.isRecord ? unit.data : sizedPictures(tracks.codec, unit.data),
        offset: Math.max(0, Math.round(unit.ptsMs * VIDEO_TICKS_PER_MS)) - ticks,
        isKey: unit.isKeyframe,
      })),
      ...this.#soundRun(tracks),
    ];
    const bytes = fragmentBytes(++this.#fragments, runs);
    const { onFragment, streams } = this.#options;
    const isKeyframe = first.isKeyframe;
    onFragment(
      { bytes, isKeyframe },
      tracks,
      isKeyframe ? withParameterSets(first.data, streams) : first.data,
    );
  }

  #soundRun({ sound }: Tracks): TrackRun[] {
    const last = this.#sound.pop();
    if (!last) return [];
    const units = this.#sound;
    this.#sound = [last];
    if (!sound || units.length === 0) return [];
    return [
      runOf(SOUND_TRACK_ID, units, last.ticks, ({ unit }) => ({
        data: sound === this.#options.streams.sound ? unit.data : withoutAdts(unit.data),
        offset: 0,
        isKey: true,
      })),
    ];
  }

  /** The tracks from this key frame on; the same object where nothing has changed. */
  #updateTracks({ data, size, ptsMs }: CopiedUnit): void {
    const { streams } = this.#options;
    const before = this.#tracks;
    const isRecord = isSizedPrefix(streams.codecData);
    const codecData = isRecord
      ? streams.codecData
      : parameterSetsOf(streams.codec, withParameterSets(data, streams));
    const videoCodec = codecData.length > 0 ? videoCodecName(streams.codec, codecData) : null;
    const known = videoCodec !== null && (size ?? before?.size)
      ? { videoCodec, codecData, isRecord, size: size ?? before!.size }
      : before; // a key frame without parameter sets has those of before
    if (!known) return;
    if (!before) this.#sound = this.#sound.filter(({ unit }) => unit.ptsMs >= ptsMs);
    const isHeard = before === null ? this.#sound.length > 1 : this.#lastSoundMs > ptsMs - SOUND_LOST_MS;
    const sound = isHeard ? this.#carried : null;
    const tracks = { codec: streams.codec, ...known, sound };
    if (!before || !areSameTracks(before, tracks)) this.#tracks = tracks;
  }
}

/** Opus has one rate in MP4, whatever was recorded. */
function sampleRateOf({ codec, sampleRateHz }: NonNullable<ClipStreams["sound"]>): number {
  return codec === "opus" ? 48_000 : sampleRateHz;
}

function runOf(
  trackId: number,
  units: readonly Timed[],
  endTicks: number,
  sampleOf: (timed: Timed) => Omit<Sample, "duration">,
): TrackRun {
  const samples = units.map((timed, index) => ({
    ...sampleOf(timed),
    duration: (units[index + 1]?.ticks ?? endTicks) - timed.ticks,
  }));
  return { trackId, decodeTime: units[0]!.ticks, samples };
}
