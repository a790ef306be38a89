/** Commands about runs: list, show, create, stop, keep alive, hold, delete, export. */

import { MODES } from "./choices.ts";
import { type CommandRow, RUN, whole } from "./row.ts";

const runs = () => import("../commands/runs.ts");

const CREATE_OPTIONS = [
  { flags: "--mode <mode>", summary: "kept with the run", choices: MODES },
  { flags: "--model <id>", summary: "kept with the run; an id of `models`" },
] as const;

export const RUN_COMMANDS: readonly CommandRow[] = [
  {
    path: "runs list",
    summary: "List your runs, oldest first",
    options: [
      { flags: "--newest", summary: "the newest first" },
      {
        flags: "--limit <count>",
        summary: "look at so many of them; at all unless given",
        read: whole(1, 1_000_000),
      },
      { flags: "--status <status>", summary: "only runs of this status" },
    ],
    examples: ["runs list", "runs list --newest --limit 20", "runs list --status processing --json"],
    load: async () => (await runs()).listRuns,
  },
  {
    path: "runs show",
    summary: "Show one run",
    args: [RUN],
    examples: ["runs show run-17508a2e934bfe0d9d9129dbeee13435"],
    load: async () => (await runs()).showRun,
  },
  {
    path: "runs create",
    summary: "Create a run",
    options: CREATE_OPTIONS,
    examples: ["runs create", "RUN=$(service-cli --quiet runs create --mode detailed)"],
    load: async () => (await runs()).createRun,
  },
  {
    path: "run-create",
    summary: "Create a run",
    options: CREATE_OPTIONS,
    examples: ["run-create"],
    isHidden: true,
    load: async () => (await runs()).createRun,
  },
  {
    path: "runs stop",
    summary: "Stop a run and cancel the work under way for it",
    args: [RUN],
    examples: ["runs stop $RUN"],
    load: async () => (await runs()).stopRun,
  },
  {
    path: "runs keepalive",
    summary: "Refresh the idle time of a run",
    args: [RUN],
    examples: ["runs keepalive $RUN"],
    load: async () => (await runs()).keepaliveRun,
  },
  {
    path: "runs snapshot",
    summary: "Write what an open live session sees now, a JPEG",
    args: [RUN, { name: "<file>", summary: "where to", isPath: true }],
    examples: ["runs snapshot $RUN now.jpg"],
    load: async () => (await runs()).snapshotRun,
  },
  {
    path: "runs video",
    summary: "Write the live video of a run as it comes, an MP4, to stdout or a file, until it ends",
    args: [{ name: "<run>", summary: "id of a run, or source:<name>" }],
    options: [{ flags: "-o, --output <file>", summary: "where to, in place of stdout", isPath: true }],
    examples: [
      "runs video $RUN | ffplay -fflags nobuffer -flags low_delay -",
      "runs video source:dock -o dock.mp4",
    ],
    load: async () => (await import("../commands/live/video.ts")).writeLiveVideo,
  },
  {
    path: "runs hold",
    summary: "Hold a run: nothing of it is deleted until it is released",
    args: [RUN],
    examples: ["runs hold $RUN"],
    load: async () => (await runs()).holdRun,
  },
  {
    path: "runs release",
    summary: "End the hold of a run",
    args: [RUN],
    examples: ["runs release $RUN"],
    load: async () => (await runs()).releaseRun,
  },
  {
    path: "runs rm",
    summary: "Delete a run; from then on it reads as missing",
    args: [RUN],
    examples: [
      "runs rm $RUN",
      "service-cli --quiet runs list --status failed | xargs -n1 service-cli runs rm",
    ],
    load: async () => (await runs()).deleteRun,
  },
  {
    path: "runs export",
    summary: "Write all of a run into a folder: events, markers in three formats, pictures and clips",
    args: [RUN, { name: "<folder>", summary: "a folder that is not there yet", isPath: true }],
    options: [{ flags: "--no-media", summary: "leave pictures and clips out" }],
    examples: ["runs export $RUN ./run", "runs export $RUN ./run --no-media"],
    load: async () => (await import("../commands/export/export.ts")).exportRun,
  },
];
