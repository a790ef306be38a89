/** Which video files are taken and served: their extensions and their media types. */

const VIDEO_TYPES: Readonly<Record<string, string>> = {
  mp4: "video/mp4",
  webm: "video/webm",
  mov: "video/quicktime",
  avi: "video/x-msvideo",
};

/** The rule in words, for those who broke it. */
export const VIDEO_FILE_RULE = "must be a file name that ends in .mp4, .webm, .mov or .avi";

/** The media type that a file name promises, by its extension in any case; undefined for any other. Contract 13.6. */
export function videoTypeOf(filename: string): string | undefined {
  // A name that is nothing but an extension has none: `.mp4` is a hidden file without a type.
  const extension = /[^.]\.([a-z0-9]+)$/i.exec(filename)?.[1]?.toLowerCase();
  return extension !== undefined && Object.hasOwn(VIDEO_TYPES, extension)
    ? VIDEO_TYPES[extension]
    : undefined;
}
