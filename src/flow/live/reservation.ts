/** What a live generation may hold at most, by what was negotiated: reserved before anything starts. Contract 11.7. */

import { liveMemoryBytes } from "../../media/live/live_decoder.ts";
import type { Extent } from "../../model/frames/coordinates.ts";
import { LIMITS } from "../../model/limits.ts";
import type { AttachConfig } from "../../model/live/attach.ts";
import { framesOf } from "../../model/live/clip.ts";
import type { Reservation } from "./capacity.ts";

/**
 * Every queue at its bound, with items of the largest size that it takes. A JPEG has at most 2 MiB, and not more bytes
 * than its picture has in 4:2:0. For keyframes without a zone or a trigger:
 *
 * | Held                                     | Items  | 1280x720    | 1920x1080   |
 * | ---------------------------------------- | ------ | ----------- | ----------- |
 * | access units and decoded pictures        |        |  25_276_416 |  42_556_416 |
 * | the decoder's process, and the kernels   | 1      |  71_303_168 |  71_303_168 |
 * | pictures that its stream refers back to  | 16     |  22_118_400 |  49_766_400 |
 * | JPEGs: queued, being made, looked at     | 32 + 2 |  47_001_600 |  71_303_168 |
 */
export function reservationOf(picture: Extent, attach: AttachConfig): Reservation {
  const pictureBytes = Math.ceil(picture.width * picture.height * BYTES_PER_PIXEL);
  const hasVideo = pictureBytes > 0;
  const hasEvidence = attach.zone !== null || attach.trigger !== null;
  const decoding = liveMemoryBytes(picture.width, picture.height) + PROCESS_BYTES +
    PICTURES_REFERRED_TO * pictureBytes;
  const jpegs = jpegsHeld(attach, hasEvidence) * Math.min(LIMITS.live.jpegBytesMax, pictureBytes);
  return {
    memoryBytes: (hasVideo ? decoding + jpegs : 0) + (attach.localAudio ? AUDIO_BYTES : 0),
    threads: hasVideo ? threadsOf(attach, hasEvidence) : AUDIO_THREADS,
  };
}

/** 4:2:0. */
const BYTES_PER_PIXEL = 1.5;
/** ffmpeg besides its pictures, and the WebAssembly memory of the kernels. */
const PROCESS_BYTES = (64 + 4) * 2 ** 20;
/** What H.264 and its successors may keep. */
const PICTURES_REFERRED_TO = 16;
/** One that is being made and one that is looked at. */
const IN_HAND = 2;
/** The one that is gathered, the one that waits and the one that the model looks at. */
const CLIPS_HELD = 3;
/** Access units that wait, windows of them as WAV, and the process that makes those. */
const AUDIO_BYTES = LIMITS.live.audioUnitsQueued * LIMITS.live.audioUnitBytesMax +
  (LIMITS.live.audioWindowsQueued + IN_HAND) * LIMITS.localAudio.wavBytesMax + 64 * 2 ** 20;
/** Receiving and decoding sound. */
const AUDIO_THREADS = 2;

function jpegsHeld({ clip }: AttachConfig, hasEvidence: boolean): number {
  if (clip) {
    return CLIPS_HELD * Math.min(LIMITS.live.clipFramesMax, framesOf(clip.targetFps, clip.clipSeconds));
  }
  const evidence = hasEvidence ? LIMITS.live.evidenceQueued + IN_HAND : 0;
  return LIMITS.live.decodedFramesQueuedKeyframe + IN_HAND + evidence;
}

/** Contract 11.7: decoding, reading what was decoded, asking the model; then what the mode adds. */
function threadsOf({ clip }: AttachConfig, hasEvidence: boolean): number {
  return 3 + (clip || hasEvidence ? 2 : 1);
}
