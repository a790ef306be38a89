/** The entry of the Worker in which a data tool runs, with the permissions that this tool needs and no
 * others.
 */

import "../base/worker_globals.ts";
import { errorText, quietLog } from "../base/log.ts";
import { realWorld, type World } from "../base/world.ts";
import type { BackupStorage } from "../model/backup_storage.ts";
import { makeBackup } from "../store/backup/backup.ts";
import { BackupLock } from "../store/backup/backup_lock.ts";
import { readHeads } from "../store/backup/backup_list.ts";
import { FolderStorage } from "../store/backup/folder_storage.ts";
import { pruneBackups, type PrunedBackups } from "../store/backup/prune.ts";
import { restoreBackup } from "../store/backup/restore.ts";
import { InstanceKey } from "../store/bundle/instance_key.ts";
import { writeBundle } from "../store/bundle/run_bundle.ts";
import { checkDirectory } from "../store/checks/directory_check.ts";
import { repairDirectory } from "../store/checks/repair.ts";
import { backupReport, backupsReport, restoreReport } from "./backup_report.ts";
import { bundleReport, publicKeyReport } from "./bundle_report.ts";
import { checkJson, checkLines, repairJson, repairLines } from "./check_report.ts";
import { type BackupPlace, TOOL_EXIT, type ToolNotice, type ToolOrder } from "./tool_order.ts";

/** The part of the Worker's global scope that is used here. */
interface ToolWorkerScope {
  onmessage: ((message: MessageEvent<ToolOrder>) => void) | null;
  postMessage(notice: ToolNotice): void;
}

/** What a tool does, in words that stand after "cannot". */
const WORK: Readonly<Record<ToolOrder["tool"], string>> = {
  verify: "verify the data directory",
  repair: "repair the data directory",
  backup: "make the backup",
  backups: "list the backups",
  restore: "restore the backup",
  export: "export the run",
  "public-key": "show the public key",
};

const scope = globalThis as typeof globalThis & ToolWorkerScope;
const world = realWorld(quietLog());

scope.onmessage = async ({ data: order }) => {
  let code: number = TOOL_EXIT.failed;
  try {
    code = await obey(order, world);
  } catch (error) {
    say("stderr", `cannot ${WORK[order.tool]}: ${errorText(error)}`);
  }
  scope.postMessage({ type: "end", code });
};

async function obey(order: ToolOrder, world: World): Promise<number> {
  const startedMs = world.monotonicMs();
  const time = () => ({ tookMs: world.monotonicMs() - startedMs });
  const { places } = order;
  if (order.tool === "verify") {
    const check = await checkDirectory(places);
    told(order, checkJson(check, time()), checkLines(check, time()));
    return check.findings.isSound ? TOOL_EXIT.done : TOOL_EXIT.damaged;
  }
  if (order.tool === "repair") {
    const repair = await repairDirectory(places, world);
    told(order, repairJson(repair, time()), repairLines(repair, time()));
    return repair.after.findings.isSound ? TOOL_EXIT.done : TOOL_EXIT.damaged;
  }
  if (order.tool === "public-key") {
    const { json, lines } = publicKeyReport(InstanceKey.open(places.dataDir));
    told(order, json, lines);
    return TOOL_EXIT.done;
  }
  if (order.tool === "export") {
    const { runId, target } = order;
    const manifest = writeBundle({ dataDir: places.dataDir, runId, target, world });
    const { json, lines } = bundleReport(manifest, target, time());
    told(order, json, lines);
    return manifest.missing.length + manifest.lost_seqs.length === 0 ? TOOL_EXIT.done : TOOL_EXIT.damaged;
  }
  const storage = await storageAt(order.place, world);
  if (order.tool === "backups") {
    const heads = await readHeads(storage);
    const { json, lines } = backupsReport(heads, storage.name, world.now());
    told(order, json, lines);
    return heads.unreadable.length === 0 ? TOOL_EXIT.done : TOOL_EXIT.damaged;
  }
  if (order.tool === "backup") {
    const { place, keep } = order;
    using _lock = "folder" in place
      ? BackupLock.acquire(place.folder, { dropsOthers: keep !== undefined })
      : null;
    const result = await makeBackup(places, storage, world);
    let [pruned, failure]: [PrunedBackups | null, string | null] = [null, null];
    try {
      if (keep !== undefined) pruned = await pruneBackups(storage, keep, result.head.id);
    } catch (error) {
      failure = errorText(error);
    }
    const { json, lines } = backupReport(result, pruned, storage.name, time());
    told(order, json, lines);
    if (failure !== null) {
      say("stderr", `the backup is whole, but not all that --keep drops is dropped: ${failure}`);
      return TOOL_EXIT.failed;
    }
    const damaged = result.damagedBlobs.length + (pruned?.unreadable.length ?? 0);
    return damaged === 0 ? TOOL_EXIT.done : TOOL_EXIT.damaged;
  }
  const head = await restoreBackup({ places, storage, id: order.backupId, world });
  const { json, lines } = restoreReport(head, places.dataDir, time());
  told(order, json, lines);
  return TOOL_EXIT.done;
}

async function storageAt(place: BackupPlace, world: World): Promise<BackupStorage> {
  if ("folder" in place) return new FolderStorage(place.folder, world);
  const { S3Storage } = await import("../remote/s3_storage.ts"); // with its package
  return new S3Storage(place.s3, world);
}

function told({ asJson }: { readonly asJson: boolean }, json: unknown, lines: readonly string[]): void {
  say("stdout", asJson ? JSON.stringify(json, null, 2) : lines.join("\n"));
}

function say(to: "stdout" | "stderr", text: string): void {
  scope.postMessage({ type: "line", to, text });
}
