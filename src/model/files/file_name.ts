/** File names of callers: the stored name of an upload, and the names that may be requested. See
 * docs/api/files.md#uploads-and-files.
 */

import { utf8Length } from "../../base/bytes.ts";
import { normalForm } from "../../base/normal_form.ts";
import { refuse } from "../../contract/refusal.ts";
import { ownerPrefixIn } from "../identifiers.ts";
import { LIMITS } from "../../contract/limits.ts";
import { VIDEO_FILE_RULE, videoTypeOf } from "./media_type.ts";

/** How an upload is named. */
export interface UploadName {
  /** The name under which the upload is stored, unless another upload has it already. */
  readonly name: string;
  /** The name that the file had at the caller. */
  readonly label: string;
}

/**
 * The stored name of an upload: the prefix of the owner and the name of the caller in normal form C, in which
 * everything but letters, digits, space and `.-_` became `_`. Several dots in a row become one, as a name
 * with `..` could not be requested again. Refuses with 422 `file` a name that is no video file name, or is
 * too long.
 *
 *     uploadName("public__", "動画 (1).mp4") // { name: "public__動画 _1_.mp4", label: "動画 (1).mp4" }
 */
export function uploadName(ownerPrefix: string, given: string): UploadName {
  const label = normalForm(percentDecoded(given), "NFC");
  const name = label
    .replace(KEPT_OR_NOT, (_all, kept?: string) => kept ?? "_")
    .replace(/\.{2,}/g, ".");
  if (videoTypeOf(name) === undefined) throw refuse.invalid("file", VIDEO_FILE_RULE);
  if (utf8Length(name) > LIMITS.upload.filenameBytesMax) {
    throw refuse.invalid(
      "file",
      `must have a name of at most ${LIMITS.upload.filenameBytesMax} bytes of UTF-8`,
    );
  }
  const last = label.replace(/^.*[\\/]/s, "");
  const isKept = last !== "" && utf8Length(last) <= LIMITS.upload.labelBytesMax;
  return { name: ownerPrefix + name, label: isKept ? last : name };
}

/** A stored name for other bytes under a name that is taken; equal bytes get the same one again. */
export function distinctName(name: string, sha256: string): string {
  const dot = name.lastIndexOf(".");
  return `${name.slice(0, dot)}-${sha256.slice(0, DISTINCT_DIGITS)}${name.slice(dot)}`;
}

const DISTINCT_DIGITS = 16;

/** A stored name without the prefix of its owner. */
export function bareName(name: string): string {
  return name.slice(ownerPrefixIn(name)?.length ?? 0);
}

/**
 * A name without its percent-encoding. Some clients percent-encode names in a form, as RFC 7578 (section 2)
 * has it, and nothing says which. So a name that is written as an encoder would write it is decoded, and any
 * other is as it is meant: `%2e` and `50% of it` are no code.
 */
function percentDecoded(given: string): string {
  try {
    const decoded = decodeURIComponent(given);
    // Encoders differ in these characters only.
    const written = given.replace(/%(21|27|28|29|2A)/g, decodeURIComponent);
    return written === encodeURIComponent(decoded) ? decoded : given;
  } catch {
    return given;
  }
}

/**
 * One character of a name. Kept are a letter with the marks on it, as many scripts write their vowels, a
 * digit, a space, `.`, `_` and `-`; any other character is not.
 */
const KEPT_OR_NOT = /(\p{L}\p{M}*|[\p{Nd} ._-])|[^]/gu;

/**
 * The media type of a file that is requested by its bare name. Refuses with 400 `filename` a name that could
 * lead out of the folder, as it is or decoded once more, and one that is no video file name.
 */
export function requestedVideoType(filename: string): string {
  const fault = FAULTS.find(([pattern]) => pattern.test(filename));
  if (fault) throw refuse.badRequest("filename", fault[1]);
  const mediaType = videoTypeOf(filename);
  if (mediaType === undefined) throw refuse.badRequest("filename", VIDEO_FILE_RULE);
  return mediaType;
}

const FAULTS: readonly (readonly [RegExp, string])[] = [
  [/[/\\\u2044\u2215\uff0f\uff3c]/, "must be a bare file name without separators"],
  [/\.\./, "must not contain two dots in a row"],
  // deno-lint-ignore no-control-regex -- control characters are searched for
  [/[\x00-\x1f\x7f]/, "must not contain control characters"],
  [/%(2f|5c|2e|00|25)/i, "must not be percent-encoded twice"],
  [/^[a-z]:/i, "must be a bare file name without a drive"],
];
