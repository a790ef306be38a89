/** The rows of every table, and how one recognises in the code that a row is used. */

import { SETTINGS } from "../../src/base/config.ts";
import { FAMILIES } from "../../src/base/metric_families.ts";
import { REFUSALS } from "../../src/base/refusal.ts";
import { EVENTS } from "../../src/model/events/event_table.ts";
import { LIMITS } from "../../src/model/limits.ts";
import type { SourceFile } from "./source_tree.ts";

export interface Table {
  readonly rows: readonly string[];
  readonly isUsed: (row: string, files: readonly SourceFile[]) => boolean;
}

export const TABLES: Readonly<Record<"config" | "metrics" | "limits" | "refusals" | "events", Table>> = {
  config: {
    rows: Object.keys(SETTINGS),
    // The reader of a group may have been handed the group alone, so both names count wherever they stand. What WebRTC
    // and sockets call a transport is not the setting.
    isUsed: (row, files) => {
      const readers = row === "SERVICE_TRANSPORT" ? files.filter(({ room }) => room === "door") : files;
      return SETTINGS[row as keyof typeof SETTINGS].field.split(".")
        .every((name) =>
          somewhere(readers, new RegExp(`(\\.|\\bconfig\\b.*|[{,] *)${name}\\b`), "base/config.ts")
        );
    },
  },
  metrics: {
    rows: Object.keys(FAMILIES),
    isUsed: (row, files) => somewhere(files, new RegExp(`"${row}"`), "base/metric_families.ts"),
  },
  limits: {
    rows: limitPaths(LIMITS),
    isUsed: (row, files) => {
      const path = row.replaceAll(".", "\\??\\s*\\.");
      return somewhere(files, new RegExp(`\\bLIMITS\\s*\\.${path}\\b`), "model/limits.ts");
    },
  },
  refusals: {
    rows: Object.keys(REFUSALS),
    // In the table's own file a row is used by the words below it, which name it without `code:`.
    isUsed: (row, files) => somewhere(files, new RegExp(`(?<!code: )"${row}"`)),
  },
  events: {
    rows: Object.keys(EVENTS),
    isUsed: (row, files) => {
      const written = row.endsWith("*") ? `\`${row.slice(0, -1)}\\$\\{` : `"${row}"`;
      const writers = files.filter((file) => file.room === "flow");
      return somewhere(writers, new RegExp(`\\bevent\\(\\s*${written}|kind: ${written}`));
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
