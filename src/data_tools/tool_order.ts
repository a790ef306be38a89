/** What the process orders from the Worker of the data tools, and what that tells. */

import type { S3Place } from "../remote/s3_storage.ts";
import type { CheckedPlaces } from "../store/checks/directory_check.ts";

/** Where backups lie. */
export type BackupPlace = { readonly folder: string } | { readonly s3: S3Place };

interface OrderBase {
  readonly places: CheckedPlaces;
  readonly asJson: boolean;
}

export type ToolOrder =
  | OrderBase & { readonly tool: "verify" }
  | OrderBase & { readonly tool: "repair" }
  /** The order of a backup. Without a number, every backup is kept. */
  | OrderBase & { readonly tool: "backup"; readonly place: BackupPlace; readonly keep: number | undefined }
  | OrderBase & { readonly tool: "backups"; readonly place: BackupPlace }
  | OrderBase & { readonly tool: "export"; readonly runId: string; readonly target: string }
  | OrderBase & { readonly tool: "public-key" }
  /** The order of a restore. Without an id, it is the newest backup. */
  | OrderBase & {
    readonly tool: "restore";
    readonly place: BackupPlace;
    readonly backupId: string | undefined;
  };

export type ToolNotice =
  | { readonly type: "line"; readonly to: "stdout" | "stderr"; readonly text: string }
  | { readonly type: "end"; readonly code: number };

/** Exit codes of the tools. See docs/backup.md#exit-codes. */
export const TOOL_EXIT = { done: 0, damaged: 1, usage: 2, failed: 3 } as const;
