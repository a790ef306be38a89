/** Opens retained blobs: only what an event of the caller's own run grants. See docs/api/files.md#blobs. */

import { MediaRemoved, refuse } from "../../contract/refusal.ts";
import type { GrantedBlob } from "../../model/events/event_table.ts";
import { mediaKindOf } from "../../model/files/media_kind.ts";
import type { RunView } from "../../model/runs/run.ts";
import type { Blobs } from "../../store/media/blobs.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { PictureScaler } from "../../media/files/picture_scaler.ts";
import { BlobGrants } from "./blob_grants.ts";
import type { Caller } from "../caller.ts";
import { describeOpenFile, type OpenFile } from "./open_file.ts";
import { checkRunId, ownedRun } from "../runs/ownership.ts";

export class BlobReads {
  readonly #timeline: Timeline;
  readonly #blobs: Blobs;
  readonly #grants: BlobGrants;
  readonly #pictures: PictureScaler;

  constructor(timeline: Timeline, blobs: Blobs, pictures: PictureScaler) {
    this.#timeline = timeline;
    this.#blobs = blobs;
    this.#pictures = pictures;
    this.#grants = new BlobGrants(timeline);
  }

  /**
   * Errors: 422 `run_id` or `sha256`; 404 for a run of another principal, a hash that the run does not grant,
   * a lost file; 410 where retention has removed it.
   */
  async open(
    caller: Caller,
    runId: string,
    route: GrantedBlob["route"],
    sha256: string,
  ): Promise<OpenFile> {
    checkRunId(runId);
    if (!/^[0-9a-f]{64}$/i.test(sha256)) {
      throw refuse.invalid("sha256", "must be 64 hexadecimal digits");
    }
    const run = ownedRun(this.#timeline.view, caller, runId);
    const grant = await this.#grantOf(run, route, sha256.toLowerCase());
    const file = await this.#blobs.open(grant.mediaType, grant.sha256);
    if (!file) throw refuse.notFound("Blob", "sha256");
    const { mediaType } = grant;
    const terms = { mediaType, sha256: grant.sha256, cacheControl: "private, max-age=31536000, immutable" };
    const described = await describeOpenFile(file, terms);
    if (!described) throw refuse.notFound("Blob", "sha256");
    return described;
  }

  /** The grant of an event whose media were not removed. */
  async #grantOf(run: RunView, route: GrantedBlob["route"], sha256: string): Promise<GrantedBlob> {
    const first = await this.#grants.find(run.runId, route, sha256);
    if (!first) throw refuse.notFound("Blob", "sha256");
    const kind = mediaKindOf(first.mediaType);
    if (kind === undefined || first.seq > run.removedMedia[kind]) return first;
    const later = await this.#grants.find(run.runId, route, sha256, run.removedMedia[kind] + 1);
    if (!later) throw new MediaRemoved(kind, run.removedMedia[kind]);
    return later;
  }

  /**
   * A picture as a JPEG of at most `width` pixels. Errors: those of `open`, 422 `width`, 503 where too many
   * are being made.
   */
  async smaller(
    caller: Caller,
    runId: string,
    sha256: string,
    width: number,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const { minimum, maximum } = LIMITS.picture.width;
    if (width < minimum || width > maximum) {
      throw refuse.invalid("width", `must be from ${minimum} to ${maximum}`);
    }
    using open = await this.open(caller, runId, "keyframes", sha256);
    const read = async () => {
      const bytes = new Uint8Array(open.sizeBytes);
      for (let filled = 0, count: number | null = 0; filled < bytes.length; filled += count) {
        count = await open.file.read(bytes.subarray(filled));
        if (count === null) throw new Error("Cannot read a stored picture as it is shorter than it was");
      }
      return bytes;
    };
    const { principalKey } = caller;
    return await this.#pictures.smaller({ principalKey, sha256: sha256.toLowerCase(), width, read });
  }
}
