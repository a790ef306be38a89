/** Which codecs of a live source become evidence clips: those that browsers play in MP4. */

import type { ClipCodec } from "./parameter_sets.ts";
import type { ClipSound } from "./clip_file.ts";

/** The clip codec by the name of an offer, or ffmpeg's; null for another codec. */
export function clipVideo(codec: string | undefined): ClipCodec | null {
  if (codec === "h264") return "h264";
  return codec === "h265" || codec === "hevc" ? "h265" : null;
}

/** The codec of a clip's sound by ffmpeg's name; null for another codec, and for none. */
export function clipSound(codec: string | null): ClipSound["codec"] | null {
  return codec === "aac" || codec === "opus" ? codec : null;
}
