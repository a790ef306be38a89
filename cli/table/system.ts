/** Commands about the server and this program: health, models, doctor, config, completions. */

import { CONFIG_KEYS } from "../settings/config_file.ts";
import { SHELLS } from "./choices.ts";
import { type CommandRow, whole } from "./row.ts";

const config = () => import("../commands/config.ts");
const recordings = () => import("../commands/recordings.ts");
const system = () => import("../commands/system.ts");

const KEY = { name: "<key>", summary: "which setting", choices: CONFIG_KEYS };

const SOURCE = { name: "<source>", summary: "name of a named source" };
const FOR = { flags: "--for <seconds>", summary: "then the schedule counts again", read: whole(1, 604_800) };

export const SYSTEM_COMMANDS: readonly CommandRow[] = [
  {
    path: "health",
    summary: "Ask whether the server answers; needs no key",
    examples: ["health", "health --url https://video.example.org"],
    load: async () => (await system()).health,
  },
  {
    path: "sources",
    summary: "List the named sources that you may use, with their state",
    examples: ["sources", "sources --json", "live source:dock"],
    load: async () => (await system()).sources,
  },
  {
    path: "sources arm",
    summary: "Arm an always-on camera until its schedule changes next, or for a time",
    args: [SOURCE],
    options: [FOR],
    examples: ["sources arm dock", "sources arm dock --for 3600"],
    load: async () => (await system()).armSource,
  },
  {
    path: "sources disarm",
    summary: "Disarm an always-on camera until its schedule changes next, or for a time",
    args: [SOURCE],
    options: [FOR],
    examples: ["sources disarm dock", "sources disarm dock --for 3600"],
    load: async () => (await system()).disarmSource,
  },
  {
    path: "recordings list",
    summary: "List the segments of a source's recording, and the gaps between them",
    args: [SOURCE],
    options: [
      {
        flags: "--from <time>",
        summary: "only what ends later: 2026-11-24T10:15:00Z, or epoch milliseconds",
      },
      { flags: "--to <time>", summary: "only what begins earlier" },
      { flags: "--limit <count>", summary: "how many at most; 1000 unless given", read: whole(1, 1_000_000) },
    ],
    examples: ["recordings list dock --from 2026-11-24T10:00:00Z"],
    load: async () => (await recordings()).listRecordings,
  },
  {
    path: "recordings export",
    summary: "Write the recording of a time range to one MP4, as it was recorded",
    args: [SOURCE, { name: "<file>", summary: "where to", isPath: true }],
    options: [
      { flags: "--from <time>", summary: "begins at the key frame at or before it", isRequired: true },
      { flags: "--to <time>", summary: "ends before it", isRequired: true },
    ],
    examples: ["recordings export dock dock.mp4 --from 2026-11-24T10:00:00Z --to 2026-11-24T11:00:00Z"],
    load: async () => (await recordings()).exportRecording,
  },
  {
    path: "models",
    summary: "List the catalog and the models of the model servers, and which can be reached now",
    options: [{ flags: "--ready", summary: "only models that can be reached" }],
    examples: ["models", "models --ready --json"],
    load: async () => (await system()).models,
  },
  {
    path: "retention",
    summary: "Show which of your runs the server removes next by age or size, and why the others stay",
    examples: ["retention", "retention --json"],
    load: async () => (await system()).retention,
  },
  {
    path: "doctor",
    summary: "Check everything that a caller needs, and say what to do about what is at fault",
    options: [
      { flags: "--no-model-call", summary: "do not ask a model about a picture" },
      {
        flags: "--model <id>",
        summary: "ask this model; unless given, that of live sessions, else the first one that can be asked",
      },
    ],
    examples: ["doctor", "doctor --no-model-call --json"],
    load: async () => (await import("../commands/doctor/doctor.ts")).doctor,
  },
  {
    path: "config show",
    summary: "Show the settings in force and where each is from; the key is masked",
    examples: ["config show"],
    load: async () => (await config()).showConfig,
  },
  {
    path: "config set",
    summary: "Keep a setting in the config file",
    args: [KEY, { name: "<value>", summary: "`-` reads it from stdin, so that no shell history has it" }],
    examples: ["config set api_url https://video.example.org", "config set api_key - < key.txt"],
    load: async () => (await config()).setConfig,
  },
  {
    path: "config unset",
    summary: "Remove a setting from the config file",
    args: [KEY],
    examples: ["config unset tenant_id"],
    load: async () => (await config()).unsetConfig,
  },
  {
    path: "completions",
    summary: "Print a script that completes commands and flags in a shell",
    args: [{ name: "<shell>", summary: "which shell", choices: SHELLS }],
    options: [{ flags: "--name <name>", summary: "under which name the program is called here" }],
    examples: [
      'eval "$(service-cli completions bash)"',
      'eval "$(service-cli completions zsh)"',
      "service-cli completions fish | source",
    ],
    load: async () => (await import("../commands/completions.ts")).completions,
  },
  {
    path: "edge",
    summary: "Not part of this program",
    examples: ["edge status"],
    isHidden: true,
    isOpen: true,
    load: async () => (await system()).edge,
  },
];
