/** The rows of every table, and the pattern by which a use of a row is recognised in the code. */

import { SETTINGS } from "../../src/contract/settings.ts";
import { FAMILIES } from "../../src/contract/metric_families.ts";
import { REFUSALS } from "../../src/contract/refusal.ts";
import { EVENTS } from "../../src/model/events/event_table.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import type { SourceFile } from "./source_tree.ts";

export interface Table {
  readonly rows: readonly string[];
  /** Rows that nothing uses yet, and that say so; none when absent. */
  readonly notYet?: readonly string[];
  readonly isUsed: (row: string, files: readonly SourceFile[]) => boolean;
}

/** How a file that reads a group of settings calls it, where that is not the name of the group. */
const GROUP_NAMES: Readonly<Record<string, string>> = {
  inference: "inference|AdmissionLimits",
  webrtc: "webrtc|LiveQuestions",
};

export const TABLES: Readonly<Record<"config" | "metrics" | "limits" | "refusals" | "events", Table>> = {
  config: {
    rows: Object.keys(SETTINGS),
    notYet: Object.entries(SETTINGS).filter(([, row]) => row.noEffect !== undefined).map(([name]) => name),
    // A field of a group counts where one file names both, as many groups may have a field of that name. A
    // file that was given only the group names its type: `GateThresholds` for `gateThresholds`. The
    // transports of WebRTC and of sockets are not the setting. A program beside the service reads the row
    // itself.
    isUsed: (row, files) => {
      if (somewhere(files, new RegExp(`\\bSETTINGS\\.${row}\\b`))) return true;
      const readers = row === "SERVICE_TRANSPORT"
        ? files.filter(({ room, path }) => room === "composition" && path !== "process/forwarder_process.ts")
        : files;
      const [first, second] = SETTINGS[row as keyof typeof SETTINGS].field.split(".");
      const field = new RegExp(`(\\.|\\bconfig\\b.*|[{,] *)${second ?? first}\\b`);
      const group = new RegExp(second === undefined ? "" : GROUP_NAMES[first!] ?? first!, "i");
      return readers.some(({ path, code }) =>
        path !== "contract/settings.ts" && field.test(code) && group.test(code)
      );
    },
  },
  metrics: {
    rows: Object.keys(FAMILIES),
    isUsed: (row, files) => somewhere(files, new RegExp(`"${row}"`), "contract/metric_families.ts"),
  },
  limits: {
    rows: limitPaths(LIMITS),
    isUsed: (row, files) => {
      const path = row.replaceAll(".", "\\??\\s*\\.");
      return somewhere(files, new RegExp(`\\bLIMITS\\s*\\.${path}\\b`), "contract/limits.ts");
    },
  },
  refusals: {
    rows: Object.keys(REFUSALS),
    // A use in the table's own file, in the functions below the table, has no `code:` before the name.
    isUsed: (row, files) => somewhere(files, new RegExp(`(?<!code: )"${row}"`)),
  },
  events: {
    rows: Object.keys(EVENTS),
    isUsed: (row, files) => {
      const written = row.endsWith("*") ? `\`${row.slice(0, -1)}\\$\\{` : `"${row}"`;
      const writers = files.filter((file) => file.room === "flow");
      return somewhere(writers, new RegExp(`\\b(event|sessionEvent)\\(\\s*${written}|kind: ${written}`));
    },
  },
};

function somewhere(files: readonly SourceFile[], pattern: RegExp, exceptIn?: string): boolean {
  return files.some((file) => file.path !== exceptIn && pattern.test(file.code));
}

/** "group.name" of every constant; a range is one constant. */
function limitPaths(part: object, prefix = ""): string[] {
  return Object.entries(part).flatMap(([name, value]) => {
    const isGroup = typeof value === "object" && !Array.isArray(value) && !("minimum" in value);
    return isGroup ? limitPaths(value, `${prefix}${name}.`) : [prefix + name];
  });
}
