/** All commands, in the order of the help. */

import { ANALYSIS_COMMANDS } from "./analysis.ts";
import { CONTROL_COMMANDS } from "./control.ts";
import { READING_COMMANDS } from "./reading.ts";
import type { CommandRow, GroupRow, OptionRow } from "./row.ts";
import { RUN_COMMANDS } from "./runs.ts";
import { SYSTEM_COMMANDS } from "./system.ts";
import { WEBHOOK_COMMANDS } from "./webhooks.ts";

export const COMMANDS: readonly CommandRow[] = [
  ...RUN_COMMANDS,
  ...ANALYSIS_COMMANDS,
  ...READING_COMMANDS,
  ...CONTROL_COMMANDS,
  ...WEBHOOK_COMMANDS,
  ...SYSTEM_COMMANDS,
];

export const GROUPS: readonly GroupRow[] = [
  { name: "runs", alias: "run", summary: "Create, look at, end, delete and export runs" },
  { name: "files", alias: "file", summary: "Delete uploads" },
  { name: "feedback", summary: "Rate runs" },
  { name: "triggers", alias: "trigger", summary: "Compile, check and try out trigger programs" },
  { name: "policies", alias: "policy", summary: "Draft, activate and replay policy revisions of a run" },
  { name: "webhooks", alias: "webhook", summary: "Have the events of a run delivered, and receive them" },
  { name: "sources", summary: "List the named sources that you may use, arm and disarm cameras" },
  { name: "recordings", alias: "recording", summary: "List and export what is recorded of a source" },
  { name: "config", summary: "Show and change the config file" },
];

export const GLOBAL_OPTIONS: readonly OptionRow[] = [
  { flags: "--url <url>", summary: "address of the server (SERVICE_API_URL; http://127.0.0.1:8080)" },
  {
    flags: "--api-key <key>",
    summary: "API key (SERVICE_API_KEY); other users may see it in the list of processes",
  },
  { flags: "--api-key-file <file>", summary: "file with the API key; `-` reads stdin", isPath: true },
  { flags: "--tenant-id <id>", summary: "sent as x-tenant-id (SERVICE_TENANT_ID)" },
  {
    flags: "--config <file>",
    summary: "config file (SERVICE_CLI_CONFIG; ~/.config/service/config)",
    isPath: true,
  },
  { flags: "--json", summary: "print JSON: one value, or one a line where a command prints a stream" },
  { flags: "--no-color", summary: "no colours (NO_COLOR)" },
  { flags: "-q, --quiet", summary: "no notes and no progress; of lists the first column alone" },
];
