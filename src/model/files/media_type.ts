/** The video files that are accepted and served: their extensions and media types. */

const VIDEO_TYPES: Readonly<Record<string, string>> = {
  mp4: "video/mp4",
  webm: "video/webm",
  mov: "video/quicktime",
  avi: "video/x-msvideo",
};

/** The rule in words, for error messages. */
export const VIDEO_FILE_RULE = "must be a file name that ends in .mp4, .webm, .mov or .avi";

/**
 * The media type of a file name by its extension, in upper or lower case; undefined for another extension.
 */
export function videoTypeOf(filename: string): string | undefined {
  // `.mp4` is the name of a hidden file and has no extension.
  const extension = /[^.]\.([a-z0-9]+)$/i.exec(filename)?.[1]?.toLowerCase();
  return extension !== undefined && Object.hasOwn(VIDEO_TYPES, extension)
    ? VIDEO_TYPES[extension]
    : undefined;
}
