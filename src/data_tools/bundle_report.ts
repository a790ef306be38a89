/** The results of an export and of the question for the public key, as text and as JSON. */

import type { BundleManifest } from "../store/bundle/run_bundle.ts";
import type { InstanceKey } from "../store/bundle/instance_key.ts";
import type { Report } from "./backup_report.ts";
import { counted, megabytes, type ToolTime } from "./check_report.ts";

export function bundleReport(manifest: BundleManifest, target: string, { tookMs }: ToolTime): Report {
  const { run_id, events, markers, files, missing, removed, lost_seqs, key_id } = manifest;
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  return {
    json: {
      target,
      run_id,
      events,
      markers,
      files: files.length,
      bytes,
      missing,
      removed,
      lost_seqs,
      key_id,
      took_ms: Math.round(tookMs),
    },
    lines: [
      `evidence bundle of ${run_id} in ${target}: ${counted(events, "event")}, ${
        counted(markers, "marker")
      }, ` +
      `${counted(files.length, "file")}, ${megabytes(bytes)}`,
      ...missing.map(({ sha256, seq, reason }) =>
        `missing: blob ${sha256}, named by event ${seq}: ${reason}`
      ),
      ...removed.map(({ sha256, seq }) =>
        `removed by retention before its event: blob ${sha256}, named by event ${seq}`
      ),
      ...lost_seqs.map(([from, to]) => `lost in the log: events ${from} to ${to}, of this run or of others`),
      `signed by key ${key_id}`,
    ],
  };
}

export function publicKeyReport({ publicKey, keyId }: InstanceKey): Report {
  return { json: { key_id: keyId, public_key: publicKey }, lines: [publicKey.trimEnd(), `key ${keyId}`] };
}
