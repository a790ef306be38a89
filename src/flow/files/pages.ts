/** The files of the web pages that the service serves. See docs/api/system.md#web-pages. */

import { createHash } from "node:crypto";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { Refusal, refuse } from "../../contract/refusal.ts";

/** One file of a page, in memory once for all who ask for it. */
export class PageFile {
  readonly mediaType: string;
  /** Compressed with gzip. */
  readonly compressed: Uint8Array<ArrayBuffer>;
  /** A hash of the content, hex. */
  readonly version: string;
  /** Whether its name has the hash of its content, so that it never changes. */
  readonly isImmutable: boolean;
  #plain: Uint8Array<ArrayBuffer> | undefined;

  constructor(name: string, mediaType: string, compressed: Uint8Array<ArrayBuffer>) {
    const hash = HASHED_NAME.exec(name)?.[1];
    this.mediaType = mediaType;
    this.compressed = compressed;
    this.version = hash ?? createHash("sha256").update(compressed).digest("hex");
    this.isImmutable = hash !== undefined;
  }

  /** Unpacked when it is asked for first. */
  get plain(): Uint8Array<ArrayBuffer> {
    return this.#plain ??= new Uint8Array(gunzipSync(this.compressed));
  }
}

const INDEX = "index.html";
/** No folder, no hidden file: a name stays within its page. */
const FILE_NAME = /^[\w-]+(\.[\w-]+)*\.(\w+)$/;
const HASHED_NAME = /\.([0-9a-f]{16})\.\w+$/;
const MEDIA_TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  json: "application/json",
};

export class Pages {
  readonly #folder: string;
  /** By path. Only files that are there are in it, so it has as many as the pages have. */
  readonly #kept = new Map<string, { readonly state: string; readonly file: PageFile }>();

  /** `folder` is where `scripts/build_pages.ts` has built the pages; it need not exist. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * The file `name` of `page`: its index unless given. Errors: 404 for a file that is not there, and for a
   * page that was not built.
   */
  async read(page: string, name: string = INDEX): Promise<PageFile> {
    const mediaType = MEDIA_TYPES[FILE_NAME.exec(name)?.[2] ?? ""];
    if (mediaType === undefined) throw refuse.notFound("File", "file");
    const path = join(this.#folder, page, `${name}.gz`);
    try {
      const state = await stateOf(path);
      const kept = this.#kept.get(path);
      if (kept?.state === state) return kept.file;
      const file = new PageFile(name, mediaType, await Deno.readFile(path));
      this.#kept.set(path, { state, file });
      return file;
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
      this.#kept.delete(path);
      if (name !== INDEX) throw refuse.notFound("File", "file");
      throw new Refusal(
        "not_found",
        "Cannot serve this page as it was not built; run scripts/build_pages.ts",
      );
    }
  }
}

/** Differs where the file was built anew. Rejects with `NotFound`. */
async function stateOf(path: string): Promise<string> {
  const { ino, mtime, size } = await Deno.stat(path);
  return `${ino} ${mtime?.getTime()} ${size}`;
}
