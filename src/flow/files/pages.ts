/** The files of the web pages that the service serves. See docs/api.md#web-pages. */

import { createHash } from "node:crypto";
import { join } from "node:path";
import { Refusal, refuse } from "../../base/refusal.ts";

/** One file of a page. */
export interface PageFile {
  readonly mediaType: string;
  /** Compressed with gzip. */
  readonly compressed: Uint8Array<ArrayBuffer>;
  /** Of the content, hex; it differs where the content does. */
  readonly version: string;
  /** Whether its name has the hash of its content, so that it never changes. */
  readonly isImmutable: boolean;
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

  /** `folder` is where `scripts/build_pages.ts` has built the pages; it need not exist. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The file `name` of `page`: its index unless given. Errors: 404 for a file that is not there, and for a page that was not built. */
  async read(page: string, name: string = INDEX): Promise<PageFile> {
    const mediaType = MEDIA_TYPES[FILE_NAME.exec(name)?.[2] ?? ""];
    if (mediaType === undefined) throw refuse.notFound("File", "file");
    const compressed = await this.#compressed(page, name);
    const hash = HASHED_NAME.exec(name)?.[1];
    const version = hash ?? createHash("sha256").update(compressed).digest("hex");
    return { mediaType, compressed, version, isImmutable: hash !== undefined };
  }

  async #compressed(page: string, name: string): Promise<Uint8Array<ArrayBuffer>> {
    try {
      return await Deno.readFile(join(this.#folder, page, `${name}.gz`));
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
      if (name !== INDEX) throw refuse.notFound("File", "file");
      throw new Refusal(
        "not_found",
        "Cannot serve this page as it was not built; run scripts/build_pages.ts",
      );
    }
  }
}
