/** Opens what the service keeps on disk: the timeline, its search index, blobs and uploads. */

import type { Metrics } from "../contract/metrics.ts";
import type { Places } from "../base/program_paths.ts";
import type { World } from "../base/world.ts";
import { EVENTS_REMOVED } from "../model/runs/run.ts";
import { Blobs } from "../store/media/blobs.ts";
import { diskRoom } from "../store/space/disk_room.ts";
import { Recordings } from "../store/recordings/recordings.ts";
import { KeptAnswers } from "../store/answers/kept_answers.ts";
import type { TimelineOptions } from "../store/timeline/timeline.ts";
import { HeldBytes } from "../store/space/held_bytes.ts";
import { StoredBytes } from "../store/space/stored_bytes.ts";
import { SearchIndex } from "../store/search/search_index.ts";
import { emptyTempFolder } from "../store/files/temp_folder.ts";
import { Timeline } from "../store/timeline/timeline.ts";
import { Uploads } from "../store/media/uploads.ts";

export interface Store {
  readonly timeline: Timeline;
  readonly searchIndex: SearchIndex;
  readonly blobs: Blobs;
  readonly recordings: Recordings;
  readonly uploads: Uploads;
  readonly answers: KeptAnswers;
  readonly stored: StoredBytes;
  readonly held: HeldBytes;
}

export interface StoreOptions {
  readonly places: Pick<Places, "dataDir" | "tempDir" | "uploadRoot">;
  readonly walSync: TimelineOptions["sync"];
  readonly apiKeys: readonly string[];
  readonly world: World;
  readonly metrics: Metrics;
  readonly storageQuotaBytes: number | undefined;
  /** SERVICE_RETENTION_RUN_BYTES. */
  readonly runBytes: number | undefined;
}

/** Errors: another process owns the data directory. */
export async function openStore(
  opening: AsyncDisposableStack,
  { places, walSync, apiKeys, world, metrics, storageQuotaBytes: quotaBytes, runBytes }: StoreOptions,
): Promise<Store> {
  const { dataDir, tempDir, uploadRoot } = places;
  const timeline = opening.use(await Timeline.open({ dataDir, world, sync: walSync, apiKeys }));
  emptyTempFolder(tempDir, world.log); // only its owner may: `Timeline.open` has locked the data directory
  const stored = opening.use(
    StoredBytes.open({ dataDir, uploadRoot, timeline, quotaBytes, world, metrics }),
  );
  const held = new HeldBytes({ view: timeline.view, runBytes });
  timeline.limitBy(stored, held);
  const syncs = walSync === "group";
  const answers = opening.use(
    KeptAnswers.open({ dataDir, syncs, view: timeline.view, names: timeline.names, stored, world }),
  );
  opening.use(timeline.observe(({ runId }, _seq, kind) => {
    if (kind === "run_deleted" || kind === EVENTS_REMOVED) answers.forgetRun(runId);
  }));
  const uploads = Uploads.open(uploadRoot, world, stored);
  const blobs = Blobs.open(dataDir, world, stored);
  const recordings = Recordings.open(dataDir, world);
  metrics.observeValue("service_timeline_events_total", () => timeline.view.lastSeq);
  metrics.observeValue("service_timeline_damaged_records_total", () => timeline.stats.damagedRecords);
  metrics.observeValue("service_timeline_append_failures_total", () => timeline.stats.appendFailures);
  for (const [place, folder] of [["data_dir", dataDir], ["upload_root", uploadRoot]] as const) {
    const read = async (part: "free_bytes" | "total_bytes") => (await diskRoom(folder))?.[part] ?? NaN;
    metrics.observeValue("service_disk_free_bytes", { place }, () => read("free_bytes"));
    metrics.observeValue("service_disk_total_bytes", { place }, () => read("total_bytes"));
  }
  const searchIndex = opening.use(SearchIndex.open({ timeline, dataDir, world }));
  return { timeline, searchIndex, blobs, recordings, uploads, answers, stored, held };
}
