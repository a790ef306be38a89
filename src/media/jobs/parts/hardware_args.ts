/** ffmpeg's arguments for decoding on hardware: the device, the decoder on it, and the filters that fetch its
 * frames.
 */

import type { DecodeDevices, HardwareDecoder } from "../../../base/program_paths.ts";
import type { MediaInfo } from "../../media_info.ts";

/** ffmpeg's names of each hardware's device, and of the format of frames in its memory. */
const NAMES: Readonly<Record<HardwareDecoder, { readonly device: string; readonly frames: string }>> = {
  "nvdec-cuda": { device: "cuda", frames: "cuda" },
  vaapi: { device: "vaapi", frames: "vaapi" },
  videotoolbox: { device: "videotoolbox", frames: "videotoolbox_vld" },
};

/** The pixel format of fetched frames, by that of the source: the same samples in another order. */
const FETCHED: Readonly<Record<string, string>> = { yuv420p: "nv12", yuv420p10le: "p010le" };

/** Codecs that hardware decoders of the last ten years know; which of them a card has shows in the decode. */
const CODECS = ["h264", "hevc", "vp8", "vp9", "av1", "mpeg2video"];

/**
 * Whether it is worth trying hardware on a source: a rotated picture would be turned in the memory of the
 * device, where no filter can.
 */
export function maySuitHardware({ video }: MediaInfo): boolean {
  return video !== null && CODECS.includes(video.codec) && video.pixelFormat in FETCHED &&
    video.rotation === 0;
}

/** Opens the device. */
export function deviceArgs(hardware: HardwareDecoder, devices: DecodeDevices): string[] {
  const { device } = NAMES[hardware];
  const node = hardware === "vaapi" ? devices.vaapi?.[0] : undefined;
  return ["-init_hw_device", `${device}=decoder${node === undefined ? "" : `:${node}`}`];
}

/**
 * Arguments for a decode on hardware. Frames stay on the device, so that ffmpeg cannot go over to the CPU in
 * silence: without a device the filters fail.
 */
export function hardwareArgs(hardware: HardwareDecoder, devices: DecodeDevices): string[] {
  const { device, frames } = NAMES[hardware];
  return [
    ...deviceArgs(hardware, devices),
    ...["-hwaccel", device, "-hwaccel_device", "decoder", "-hwaccel_output_format", frames],
  ];
}

/** Filters that fetch frames from the device; they come before all filters that look at samples. */
export function downloadFilters(pixelFormat: string): string[] {
  return ["hwdownload", `format=${FETCHED[pixelFormat]}`, `format=${pixelFormat}`];
}
