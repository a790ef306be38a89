/** Makes an MP4 of encoded units, as they came: a key frame first, the index before the media. */

import { createHash } from "node:crypto";
import { joinedBytes } from "../../base/bytes.ts";
import type { Extent } from "../../model/frames/coordinates.ts";
import type { StreamFormats } from "../../model/sources/recorded_segment.ts";
import { VIDEO_CLOCK_HZ } from "./clock.ts";
import { decoderConfiguration } from "./mp4_boxes.ts";
import { type ClipCodec, hasParameterSets, isSizedPrefix, videoCodecName } from "./parameter_sets.ts";
import { configInAdts, withoutAdts } from "./adts.ts";
import type { CopiedUnit } from "./copied_packets.ts";

/** What a clip has to say of the units besides themselves. */
export interface ClipStreams {
  readonly codec: ClipCodec;
  /** The codec's own data of the video stream, such as parameter sets; empty where the units have all. */
  readonly codecData: Uint8Array<ArrayBuffer>;
  readonly sound: ClipSound | null;
}

export interface ClipSound {
  readonly codec: "aac" | "opus";
  readonly sampleRateHz: number;
  readonly channels: number;
  readonly codecData: Uint8Array<ArrayBuffer>;
}

export interface ClipFile {
  readonly mp4: Uint8Array<ArrayBuffer>;
  /**
   * Time of the first frame that is shown, milliseconds with their fraction; `endPtsMs` is the end of the
   * last one.
   */
  readonly startPtsMs: number;
  readonly endPtsMs: number;
  /** Value of the parameter `codecs` of a media type (RFC 6381): `avc1.42e01f, opus`. */
  readonly codec: string;
  readonly hasSound: boolean;
  readonly formats: StreamFormats;
}

/** A clip that is one of several, which follow each other without a gap. */
export interface SegmentPlace {
  /** When the next segment begins, milliseconds; null where none follows. */
  readonly endMs: number | null;
  /**
   * Whether another segment comes before, so that pictures that are shown before the key frame can be
   * decoded.
   */
  readonly isContinued: boolean;
}

/**
 * Length of a single frame, milliseconds: its own is not known, and a source of 25 frames a second has frames
 * as long as this.
 */
const LONE_FRAME_MS = 40;
/** How many of the last steps from unit to unit tell how long the last unit is. */
const LAST_STEPS = 9;

/**
 * An MP4 of `units`, which begin with a key frame and are in decoding order. A segment that goes on from
 * another one also has the pictures that are shown before its key frame, which need that one. Null where
 * there is no picture in them whose parameters are known. Rejects for units that are not what they say.
 */
export async function clipFile(
  units: readonly CopiedUnit[],
  streams: ClipStreams,
  segment: SegmentPlace | null = null,
): Promise<ClipFile | null> {
  const video = segment?.isContinued ? units.filter(({ isVideo }) => isVideo) : shownFrames(units);
  const size = video.find((unit) => unit.size !== null)?.size;
  const first = video[0];
  if (!first || !size) return null;
  const head = withParameterSets(first.data, streams);
  const videoCodec = videoCodecName(
    streams.codec,
    isSizedPrefix(streams.codecData) ? streams.codecData : head,
  );
  if (videoCodec === null) return null;
  const startPtsMs = video.reduce((least, { ptsMs }) => Math.min(least, ptsMs), Infinity);
  const { carried, sound } = soundFrom(units, streams.sound, startPtsMs);
  const file = await openFile({ ...streams, sound: carried }, { videoCodec, size });
  const soundEnds = endsOf(sound.map(({ ptsMs }) => ptsMs));
  const videoEnds = endsOf(video.map(({ ptsMs }) => ptsMs), segment?.endMs);
  let heard = 0;
  for (const [index, unit] of video.entries()) {
    const data = index === 0 ? head : unit.data;
    for (; heard < sound.length && sound[heard]!.ptsMs <= unit.ptsMs; heard++) {
      await file.addSound(sound[heard]!.data, intervalOf(sound[heard]!.ptsMs, soundEnds, startPtsMs));
    }
    await file.addVideo(data, unit.isKeyframe, intervalOf(unit.ptsMs, videoEnds, startPtsMs));
  }
  for (; heard < sound.length; heard++) {
    await file.addSound(sound[heard]!.data, intervalOf(sound[heard]!.ptsMs, soundEnds, startPtsMs));
  }
  const mp4 = await file.finish();
  return {
    mp4,
    startPtsMs,
    endPtsMs: videoEnds.values().reduce((latest, end) => Math.max(latest, end), -Infinity),
    codec: carried ? `${videoCodec}, ${soundCodecName(carried)}` : videoCodec,
    hasSound: carried !== null,
    formats: {
      video: shortHash(videoCodec, size.width, size.height, decoderConfiguration(mp4).toHex()),
      sound: carried && soundFormat(streams.sound!),
    },
  };
}

/**
 * The sound that a file can have, from `fromMs` on. `carried` says what it is, null for none. Its times rise,
 * and it has no headers of its own.
 */
function soundFrom(units: readonly CopiedUnit[], given: ClipSound | null, fromMs: number) {
  const none = { carried: null, sound: [] };
  if (!given) return none;
  const heard: CopiedUnit[] = [];
  for (const unit of units) {
    const latestMs = heard.at(-1)?.ptsMs ?? -Infinity;
    if (!unit.isVideo && unit.ptsMs >= fromMs && unit.ptsMs > latestMs) heard.push(unit);
  }
  const first = heard.find(({ data }) => carriedSound(given, data) !== null);
  const carried = first ? carriedSound(given, first.data) : null;
  if (!carried) return none;
  if (carried === given) return { carried, sound: heard };
  const whole = heard.filter(({ data }) => carriedSound(given, data) !== null);
  return { carried, sound: whole.map((unit) => ({ ...unit, data: withoutAdts(unit.data) })) };
}

/**
 * The sound with what a decoder has to know. Some sources say what their AAC is in each frame only; null for
 * a frame that does not.
 */
export function carriedSound(sound: ClipSound, frame: Uint8Array): ClipSound | null {
  if (sound.codec === "opus" || sound.codecData.length > 0) return sound;
  const codecData = configInAdts(frame);
  return codecData && { ...sound, codecData };
}

/**
 * The units without the pictures that are shown before the first key frame: what these refer to is not there.
 */
function shownFrames(units: readonly CopiedUnit[]): CopiedUnit[] {
  const video = units.filter(({ isVideo }) => isVideo);
  const startMs = video[0]?.ptsMs ?? 0;
  return video.filter(({ ptsMs }) => ptsMs >= startMs);
}

/**
 * The end of each unit, by its time: where the next one in time begins. The last one is as long as most of
 * those before it, unless its end is known: pictures that are shown before it may be missing, as they come
 * behind it.
 */
function endsOf(times: readonly number[], endMs: number | null = null): Map<number, number> {
  const sorted = times.toSorted((one, other) => one - other);
  const stepOf = (index: number) => (sorted[index + 1] ?? NaN) - sorted[index]!;
  const steps = sorted.slice(1).map((_, index) => stepOf(index)).slice(-LAST_STEPS).sort((one, other) =>
    one - other
  );
  const last = steps[Math.floor(steps.length / 2)] || LONE_FRAME_MS;
  const ends = new Map(sorted.map((time, index) => [time, time + (stepOf(index) || last)]));
  if (endMs !== null && sorted.length > 0) ends.set(sorted.at(-1)!, endMs);
  return ends;
}

function soundFormat({ codec, sampleRateHz, channels, codecData }: ClipSound): string {
  return shortHash(codec, sampleRateHz, channels, codecData.toHex());
}

function shortHash(...facts: readonly (string | number)[]): string {
  return createHash("sha256").update(facts.join("/")).digest("hex").slice(0, 8);
}

interface Interval {
  /** Time from the start of the clip, seconds. */
  readonly at: number;
  readonly duration: number;
}

function intervalOf(ptsMs: number, ends: ReadonlyMap<number, number>, startPtsMs: number): Interval {
  return { at: (ptsMs - startPtsMs) / 1000, duration: (ends.get(ptsMs)! - ptsMs) / 1000 };
}

/** A unit with the parameter sets before it: some sources send them beside the stream only. */
export function withParameterSets(
  data: Uint8Array<ArrayBuffer>,
  { codec, codecData }: Pick<ClipStreams, "codec" | "codecData">,
): Uint8Array<ArrayBuffer> {
  if (codecData.length === 0 || isSizedPrefix(codecData) || hasParameterSets(codec, data)) return data;
  return joinedBytes(codecData, data);
}

/** The name of the sound's codec in the parameter `codecs` of a media type. */
export function soundCodecName({ codec, codecData }: ClipSound): string {
  if (codec === "opus") return "opus";
  // The object type is the first five bits of an AudioSpecificConfig.
  return `mp4a.40.${codecData.length > 0 ? codecData[0]! >> 3 : 2}`;
}

/** The package is loaded for the first file, as most sessions never make one. */
export async function openFile(
  { codec, codecData, sound }: ClipStreams,
  { videoCodec, size, index = "in-memory" }: {
    readonly videoCodec: string;
    readonly size: Extent;
    /** Where the index lies: before the media, or in fragments. */
    readonly index?: "in-memory" | "fragmented";
  },
) {
  const { BufferTarget, EncodedAudioPacketSource, EncodedPacket, EncodedVideoPacketSource, ...mediabunny } =
    await import("mediabunny");
  const target = new BufferTarget();
  const format = new mediabunny.Mp4OutputFormat({ fastStart: index });
  const output = new mediabunny.Output({ format, target });
  const video = new EncodedVideoPacketSource(codec === "h264" ? "avc" : "hevc");
  // A rate of the clock's ticks makes them the unit of time, and no time is rounded to frames.
  output.addVideoTrack(video, { frameRate: VIDEO_CLOCK_HZ });
  const heard = sound && new EncodedAudioPacketSource(sound.codec);
  if (heard) output.addAudioTrack(heard);
  await output.start();
  const videoConfig: VideoDecoderConfig = {
    codec: videoCodec,
    codedWidth: size.width,
    codedHeight: size.height,
    ...(isSizedPrefix(codecData) && { description: codecData }),
  };
  const soundConfig: AudioDecoderConfig | null = sound && {
    codec: soundCodecName(sound),
    sampleRate: sound.codec === "opus" ? 48_000 : sound.sampleRateHz,
    numberOfChannels: sound.channels,
    ...(sound.codec === "aac" && sound.codecData.length > 0 && { description: sound.codecData }),
  };
  return {
    async addVideo(data: Uint8Array, isKeyframe: boolean, { at, duration }: Interval): Promise<void> {
      const packet = new EncodedPacket(data, isKeyframe ? "key" : "delta", at, duration);
      await video.add(packet, { decoderConfig: videoConfig });
    },
    async addSound(data: Uint8Array, { at, duration }: Interval): Promise<void> {
      await heard!.add(new EncodedPacket(data, "key", at, duration), { decoderConfig: soundConfig! });
    },
    async finish(): Promise<Uint8Array<ArrayBuffer>> {
      await output.finalize();
      return new Uint8Array(target.buffer!);
    },
  };
}
