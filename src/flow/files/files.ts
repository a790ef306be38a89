/** Uploads, and the files that callers may download. See docs/api/files.md#uploads-and-files. */

import { ownerPrefix } from "../../model/identifiers.ts";
import { join } from "node:path";
import { normalForm } from "../../base/normal_form.ts";
import { PermitQueue } from "../../sharing/permit_queue.ts";
import { Refusal, refuse } from "../../contract/refusal.ts";
import type { Decoder } from "../../media/files/decoder.ts";
import { fileInput } from "../../media/input.ts";
import { resolveLocalSource, type SourcePolicy } from "../../media/files/source.ts";
import { requestedVideoType, uploadName } from "../../model/files/file_name.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { World } from "../../base/world.ts";
import type { Uploads } from "../../store/media/uploads.ts";
import type { Caller } from "../caller.ts";
import { describeOpenFile, type OpenFile } from "./open_file.ts";

export interface FilesOptions {
  readonly world: Pick<World, "sleep">;
  readonly uploads: Uploads;
  readonly decoder: Pick<Decoder, "probe">;
  readonly sources: Omit<SourcePolicy, "principalKey">;
  /** Whether the service has several principals. */
  readonly isShared: boolean;
}

export interface StoredUpload {
  readonly path: string;
  readonly label: string;
}

export class Files implements Disposable {
  readonly #options: FilesOptions;
  readonly #receiving: PermitQueue;

  constructor(options: FilesOptions) {
    this.#options = options;
    this.#receiving = new PermitQueue({
      limit: LIMITS.upload.concurrentMax,
      waiterLimit: LIMITS.upload.waitingMax,
      what: "uploads",
      refusal: "storage_unavailable",
      isShared: options.isShared,
    });
  }

  /**
   * Stores `content` as the caller's file and returns its absolute path, which is a source_uri, and the name
   * that it had. The file gets its final name only after it was received completely and probed as media;
   * until then, and after a failure, it is not visible. Errors: 422 `file`, 503 `storage_unavailable`, 507
   * `storage_quota`, and every error of reading `content`.
   */
  async upload(caller: Caller, filename: string, content: AsyncIterable<Uint8Array>): Promise<StoredUpload> {
    const { principalKey, signal } = caller;
    const name = uploadName(ownerPrefix(principalKey), filename);
    this.#options.uploads.requireRoom(principalKey);
    using _turn = await this.#receiving.acquire({
      principalKey,
      signal,
      within: { world: this.#options.world, timeoutMs: LIMITS.upload.waitMs },
    });
    using upload = await this.#options.uploads.create(principalKey);
    for await (const bytes of content) await upload.write(bytes);
    await this.#checkIsMedia(upload.path, caller);
    signal.throwIfAborted();
    return { path: await upload.publish(name), label: name.label };
  }

  /**
   * The caller's own upload of that name, else the first ingest root's file. Errors: 400 `filename`; 404 for
   * a file that does not exist, belongs to another principal, or is reached by a link that leads out of the
   * roots.
   */
  async open(caller: Caller, filename: string): Promise<OpenFile> {
    const mediaType = requestedVideoType(filename);
    const { uploadRoot, ingestRoots } = this.#options.sources;
    const places = [
      join(uploadRoot, normalForm(filename, "NFC")), // as uploads are stored
      ...ingestRoots.map((root) => join(root, filename)),
    ];
    for (const place of places) {
      const file = await this.#openVisible(caller, place);
      const described = file && await describeOpenFile(file, { mediaType, cacheControl: "no-store" });
      if (described) return described;
    }
    throw refuse.notFound("File", "filename");
  }

  /**
   * Deletes an upload of the caller; files of ingest roots stay. Errors: 400 `filename`; 404 for every file
   * that is no upload of the caller; 503 `storage_unavailable`.
   */
  async delete({ principalKey }: Caller, filename: string): Promise<void> {
    requestedVideoType(filename);
    const name = normalForm(filename, "NFC"); // as uploads are stored
    const isOwn = this.#options.sources.names.isUploadOf(principalKey, name);
    if (!isOwn || !await this.#options.uploads.remove(name, principalKey)) {
      throw refuse.notFound("File", "filename");
    }
  }

  [Symbol.dispose](): void {
    this.#receiving.close();
  }

  /** Null for every reason, so that a caller cannot find out which files exist. */
  async #openVisible({ principalKey }: Caller, path: string): Promise<Deno.FsFile | null> {
    try {
      const source = await resolveLocalSource(path, { ...this.#options.sources, principalKey });
      return await Deno.open(source.path, { read: true });
    } catch (error) {
      if (error instanceof Refusal || typeof (error as { code?: unknown }).code === "string") return null;
      throw error;
    }
  }

  /** A fault of the media is reported on the field `file`, as an upload has no `source_uri`. */
  async #checkIsMedia(path: string, { principalKey, signal }: Caller): Promise<void> {
    try {
      await this.#options.decoder.probe(fileInput(path), signal, {
        principalKey,
        deadlineMs: LIMITS.upload.probeTimeoutMs,
      });
    } catch (error) {
      if (!(error instanceof Refusal) || error.kind !== "validation_error") throw error;
      throw refuse.invalid("file", error.details[0]?.message ?? "is no media file");
    }
  }
}
