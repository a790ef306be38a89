/** Where the film of a run can be had: uploads and files of ingest roots are served, cameras and other hosts
 * are not.
 */

/** The path of the film on the service, or why there is none. */
export type Film = { readonly path: string } | { readonly missing: string };

/** The endings that the service serves. */
const SERVED = /\.(mp4|webm|mov|avi)$/i;

export function filmOf(sourceUri: string, isLive: boolean): Film {
  if (isLive) {
    return {
      missing:
        "A live run has no film; the pictures that were kept of it are shown. What a camera has recorded is on its page.",
    };
  }
  if (sourceUri === "") return { missing: "There is no film yet." };
  if (sourceUri.startsWith("source:")) {
    return { missing: "The film is a source that the operator has named, and was not kept." };
  }
  const isFile = !/^[a-z]+:\/\//i.test(sourceUri) ||
    sourceUri.startsWith("file://");
  if (!isFile) {
    return { missing: "The film lies on another host and was not kept." };
  }
  const name = fileName(sourceUri);
  if (!SERVED.test(name)) {
    return { missing: "Files of this kind are not served." };
  }
  return { path: `/v1/files/${encodeURIComponent(name)}` };
}

/** A path names the file as it is, an address as it is written in one. */
function fileName(sourceUri: string): string {
  const last = sourceUri.slice(sourceUri.lastIndexOf("/") + 1);
  if (!sourceUri.startsWith("file://")) return last;
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}
