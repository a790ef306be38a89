/** How a chunk of a recording reaches the model: as still frames, as a silent clip, or as a clip with its
 * sound.
 */

export const MEDIA_MODES = ["frames", "video", "audio_video"] as const;
export type MediaMode = typeof MEDIA_MODES[number];

/** The resolution at which the model reads a clip. */
export const MEDIA_RESOLUTIONS = ["low", "medium", "high"] as const;
export type MediaResolution = typeof MEDIA_RESOLUTIONS[number];
