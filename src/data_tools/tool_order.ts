/** What the process orders from the Worker of the data tools, and what that tells. */

import type { CheckedPlaces } from "../store/checks/directory_check.ts";

export type ToolOrder =
  | { readonly tool: "verify"; readonly places: CheckedPlaces; readonly asJson: boolean }
  | { readonly tool: "repair"; readonly places: CheckedPlaces; readonly asJson: boolean };

export type ToolNotice =
  | { readonly type: "line"; readonly to: "stdout" | "stderr"; readonly text: string }
  | { readonly type: "end"; readonly code: number };

/** Exit codes of the tools. See docs/backup.md#exit-codes. */
export const TOOL_EXIT = { done: 0, damaged: 1, usage: 2, failed: 3 } as const;
