/** Which local files a caller may name as a source, and which of those are media and not playlists of other
 * files.
 */

import { basename, dirname, resolve } from "node:path";
import { PUBLIC_PRINCIPAL } from "../../model/identifiers.ts";
import type { PrincipalNames } from "../../model/principal_names.ts";
import { mediaFault } from "../media_fault.ts";

export interface SourcePolicy {
  /** Folders whose files all callers may use; real paths. */
  readonly ingestRoots: readonly string[];
  /**
   * Folder of uploads, a real path. Each file in it belongs to the caller whose owner prefix its name begins
   * with.
   */
  readonly uploadRoot: string;
  readonly names: Pick<PrincipalNames, "isUploadOf">;
  /** Key of the caller; `public` in open mode. */
  readonly principalKey: string;
}

export interface LocalSource {
  /** The real path, without symbolic links; a regular file when it was checked. */
  readonly path: string;
  /** The source as the caller gave it, trimmed; events and responses report it. */
  readonly uri: string;
}

/**
 * Resolves a `source_uri` to a file that the caller may use. Refuses with 422 `source_uri`. A missing file, a
 * file outside the roots and another caller's upload get the same message, so that nobody can find out which
 * files exist. See docs/security/sources.md#source-files.
 */
export async function resolveLocalSource(sourceUri: string, policy: SourcePolicy): Promise<LocalSource> {
  const uri = sourceUri.trim();
  if (uri === "") throw mediaFault("must not be empty");
  const given = uri.includes("://") ? pathOfUrl(uri) : uri;
  if (given.includes("\0")) throw mediaFault("must not contain a NUL character");
  const path = await attempt(() => visiblePath(resolve(given), policy));
  if (path === null) {
    throw mediaFault("no such file is visible to this caller in the upload folder or an ingest root");
  }
  // ffmpeg's log, which is read line by line, has the name.
  if (CONTROL_CHARACTERS.test(path)) throw mediaFault("its path must not contain control characters");
  const facts = await fileFacts(path);
  // A pipe or a device would block or never end.
  if (!facts?.isFile) throw mediaFault("is not a regular file");
  return { path, uri };
}

/** The start of an opened file, and what the file system says of it. */
export interface FileStart {
  readonly head: Uint8Array;
  readonly facts: Deno.FileInfo;
}

/**
 * Refuses an empty file and every playlist, because a demuxer that follows a playlist would open other files.
 */
export async function refusePointers(path: string): Promise<FileStart> {
  const start = await attempt(() => readStart(path));
  if (start === null) throw mediaFault("it cannot be read");
  if (start.head.length === 0) throw mediaFault("the file is empty");
  const text = new TextDecoder("latin1").decode(start.head).replace(/^\u00ef\u00bb\u00bf/, "").trimStart();
  const pointer = POINTERS.find(([pattern]) => pattern.test(text));
  if (pointer) throw mediaFault(`it is ${pointer[1]}, not a media file`);
  return start;
}

const HEAD_BYTES = 4096;
// deno-lint-ignore no-control-regex -- that is what it looks for
const CONTROL_CHARACTERS = /[\x00-\x1f\x7f]/;

const POINTERS: readonly (readonly [RegExp, string])[] = [
  [/^#EXTM3U/i, "an M3U or HLS playlist"],
  [/^ffconcat\b/i, "an ffmpeg concat list"],
  [/^file\s+['"\S]/i, "an ffmpeg concat list"],
  [/^\[(playlist|reference)\]/i, "a playlist"],
  [/^<\?xml|^<(MPD|SmoothStreamingMedia|asx|smil|playlist)\b/i, "an XML playlist or manifest"],
  [/^v=0\r?\n/i, "a session description (SDP)"],
];

/** The path that a URL names; only `file://` is a local one. */
function pathOfUrl(uri: string): string {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(uri)?.[1]?.toLowerCase();
  if (scheme === undefined) throw mediaFault("is not a valid URL");
  if (scheme !== "file") throw mediaFault(`unsupported scheme ${scheme.slice(0, 32)}`);
  const rest = uri.slice("file://".length);
  if (!rest.startsWith("/")) throw mediaFault("a file URL must not name a host");
  if (/[?#]/.test(rest)) throw mediaFault("a file URL must not have a query or a fragment");
  if (/%2f/i.test(rest)) throw mediaFault("a file URL must not contain an encoded slash");
  try {
    return decodeURIComponent(rest);
  } catch {
    throw mediaFault("is not valid percent-encoded UTF-8");
  }
}

/** The real path of `absolute` if `policy` lets the caller see it, or null. */
async function visiblePath(absolute: string, policy: SourcePolicy): Promise<string | null> {
  const path = await Deno.realPath(absolute);
  // A name whose own folder lies under the upload root is an upload, and must then not be a symbolic link.
  const placed = `${await Deno.realPath(dirname(absolute))}/${basename(absolute)}`;
  if (isUnder(policy.uploadRoot, placed) || isUnder(policy.uploadRoot, absolute)) {
    return path === placed && await isOwnUpload(path, policy) ? path : null;
  }
  if (isUnder(policy.uploadRoot, path)) return isOwnUpload(path, policy) ? path : null;
  return policy.ingestRoots.some((root) => isUnder(root, path)) ? path : null;
}

/**
 * Whether a path is an upload of the caller's. Uploads lie directly in the upload root. In open mode, names
 * without an owner prefix are visible as well.
 */
function isOwnUpload(path: string, { uploadRoot, names, principalKey }: SourcePolicy): boolean {
  const name = basename(path);
  if (dirname(path) !== uploadRoot) return false;
  if (principalKey === PUBLIC_PRINCIPAL && !name.includes("__")) return true;
  return names.isUploadOf(principalKey, name);
}

function isUnder(root: string, path: string): boolean {
  return path.startsWith(root.endsWith("/") ? root : `${root}/`);
}

/**
 * What `access` gives; null where the file system or the sandbox gives an error, so that missing, forbidden
 * and unreachable look the same.
 */
async function attempt<T>(access: () => Promise<T>): Promise<T | null> {
  try {
    return await access();
  } catch (error) {
    if (FILE_SYSTEM_ERRORS.some((kind) => error instanceof kind) || isSystemError(error)) return null;
    throw error;
  }
}

const FILE_SYSTEM_ERRORS = [
  Deno.errors.NotFound,
  Deno.errors.PermissionDenied,
  Deno.errors.NotCapable,
  Deno.errors.NotADirectory,
  Deno.errors.IsADirectory,
  Deno.errors.FilesystemLoop,
  Deno.errors.InvalidData,
];

/**
 * Whether an error is one of the system. Some, such as that of a name that is too long, are plain Errors with
 * a code.
 */
function isSystemError(error: unknown): boolean {
  return error instanceof Error && typeof (error as { code?: unknown }).code === "string";
}

/** What the file system says of a file; null where it does not. */
export async function fileFacts(path: string): Promise<Deno.FileInfo | null> {
  return await attempt(() => Deno.stat(path));
}

async function readStart(path: string): Promise<FileStart> {
  using file = await Deno.open(path, { read: true });
  const facts = await file.stat();
  const head = new Uint8Array(HEAD_BYTES);
  let filled = 0;
  while (filled < HEAD_BYTES) {
    const got = await file.read(head.subarray(filled));
    if (got === null) break;
    filled += got;
  }
  return { head: head.subarray(0, filled), facts };
}
