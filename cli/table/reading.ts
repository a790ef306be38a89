/** Commands that read what is in runs: events, markers, search, watch, states. */

import { MARKER_STATUSES } from "./choices.ts";
import { type CommandRow, RUN, whole } from "./row.ts";

const reading = () => import("../commands/reading.ts");

export const READING_COMMANDS: readonly CommandRow[] = [
  {
    path: "events",
    summary: "Print the events of a run",
    args: [RUN],
    options: [
      { flags: "--kind <kind>", summary: "only events of this kind" },
      { flags: "--index <name>", summary: "only events of this index name" },
      { flags: "--from-seq <n>", summary: "only events from this sequence number on", read: whole(0) },
      {
        flags: "--csv",
        summary: "print CSV; with no other flag than --index",
        excludes: ["kind", "fromSeq"],
      },
    ],
    examples: [
      "events $RUN",
      "events $RUN --kind marker_emitted --json | jq .payload",
      "events $RUN --csv > events.csv",
    ],
    load: async () => (await reading()).printEvents,
  },
  {
    path: "markers",
    summary: "Print the markers of a run",
    args: [RUN],
    options: [
      { flags: "--status <status>", summary: "only markers of this status", choices: MARKER_STATUSES },
      {
        flags: "--event-type <type>",
        summary: "only markers of this type, such as scene_cut or model:scene_cut",
      },
      { flags: "--from-frame <n>", summary: "only markers that end at this frame or later", read: whole(0) },
      {
        flags: "--to-frame <n>",
        summary: "only markers that begin at this frame or earlier",
        read: whole(0),
      },
      { flags: "--format <format>", summary: "print this format", choices: ["csv", "vtt", "edl", "ndjson"] },
    ],
    examples: ["markers $RUN --event-type scene_cut", "markers $RUN --format edl > cuts.edl"],
    load: async () => (await reading()).printMarkers,
  },
  {
    path: "search",
    summary: "Find events whose description contains a text",
    args: [{ name: "<text>", summary: "what to look for, in any case" }],
    options: [
      { flags: "--run <run>", summary: "only in this run" },
      { flags: "--limit <n>", summary: "at most so many hits", read: whole(1, 500), standard: 50 },
    ],
    examples: ["search 'red car'", "search bottle --run $RUN --limit 5"],
    load: async () => (await reading()).search,
  },
  {
    path: "watch",
    summary: "Print the events of a run as they are written, until the run ends",
    args: [RUN],
    options: [
      { flags: "--kind <kind>", summary: "only events of this kind" },
      {
        flags: "--after <seq>",
        summary: "only events behind this sequence number",
        read: whole(0),
        standard: 0,
      },
    ],
    examples: ["watch $RUN", "watch $RUN --kind vlm --json"],
    load: async () => (await import("../commands/watch.ts")).watchRun,
  },
  {
    path: "states",
    summary: "List the states of a run with their meaning, and how many of your runs are in each",
    examples: ["states"],
    load: async () => (await import("../commands/runs.ts")).listStates,
  },
];
