/** Opens retained blobs: only those that an event of the caller's own run grants. See docs/api.md#blobs. */

import { refuse } from "../../base/refusal.ts";
import type { GrantedBlob } from "../../model/events/event_table.ts";
import type { Blobs } from "../../store/blobs.ts";
import type { Timeline } from "../../store/log/timeline.ts";
import { BlobGrants } from "./blob_grants.ts";
import type { Caller } from "../caller.ts";
import { describeOpenFile, type OpenFile } from "./open_file.ts";
import { checkRunId, ownedRun } from "../runs/ownership.ts";

export class BlobReads {
  readonly #timeline: Timeline;
  readonly #blobs: Blobs;
  readonly #grants: BlobGrants;

  constructor(timeline: Timeline, blobs: Blobs) {
    this.#timeline = timeline;
    this.#blobs = blobs;
    this.#grants = new BlobGrants(timeline);
  }

  /** Errors: 422 `run_id` or `sha256`; 404 for a run of another principal, a hash that the run does not grant, a lost file. */
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
    const grant = await this.#grants.find(run.runId, route, sha256.toLowerCase());
    if (!grant) throw refuse.notFound("Blob", "sha256");
    const file = await this.#blobs.open(grant.mediaType, grant.sha256);
    if (!file) throw refuse.notFound("Blob", "sha256");
    const terms = { ...grant, cacheControl: "private, max-age=31536000, immutable" };
    const described = await describeOpenFile(file, terms);
    if (!described) throw refuse.notFound("Blob", "sha256");
    return described;
  }
}
