/** Commands about feedback, trigger programs and policies. */

import { POLICY_STAGES } from "./choices.ts";
import { type CommandRow, RUN, whole } from "./row.ts";

const triggers = () => import("../commands/triggers.ts");
const policies = () => import("../commands/policies.ts");

const REVISION = { name: "<revision>", summary: "number of a revision" };
const GENERATION = {
  flags: "--expected-generation <n>",
  summary: "generation of the live session that is to take it over",
  read: whole(0),
};

export const CONTROL_COMMANDS: readonly CommandRow[] = [
  {
    path: "feedback submit",
    summary: "Rate a run",
    args: [RUN],
    options: [
      { flags: "--rating <n>", summary: "0 to 10", read: whole(0, 10), isRequired: true },
      { flags: "--category <text>", summary: "such as accuracy", isRequired: true },
      { flags: "--note <text>", summary: "what there is to say" },
    ],
    examples: ["feedback submit $RUN --rating 8 --category accuracy --note 'cuts are right'"],
    load: async () => (await import("../commands/feedback.ts")).submitFeedback,
  },
  {
    path: "feedback list",
    summary: "List the feedback on your runs",
    examples: ["feedback list"],
    load: async () => (await import("../commands/feedback.ts")).listFeedback,
  },
  {
    path: "triggers compile",
    summary: "Compile the source of a trigger program",
    args: [{ name: "<file>", summary: "its source; `-` reads stdin", isPath: true }],
    options: [{ flags: "-o, --output <file>", summary: "write the program there", isPath: true }],
    examples: ["triggers compile dock.trigger --output dock.json"],
    load: async () => (await triggers()).compileTrigger,
  },
  {
    path: "triggers validate",
    summary: "Check a compiled trigger program",
    args: [{ name: "<file>", summary: "the program as JSON; `-` reads stdin", isPath: true }],
    examples: ["triggers validate dock.json"],
    load: async () => (await triggers()).validateTrigger,
  },
  {
    path: "triggers evaluate",
    summary: "Run a trigger program over samples, or over what a run has measured",
    args: [
      { name: "<program>", summary: "the program as JSON", isPath: true },
      {
        name: "[samples]",
        summary: "samples as a JSON array or one a line; `-` reads stdin; left out with --run",
        isPath: true,
      },
    ],
    options: [
      { flags: "--run <run>", summary: "take the frames of the latest decode of this run" },
      { flags: "--from-ms <ms>", summary: "with --run: the first media time", read: whole(0) },
      { flags: "--to-ms <ms>", summary: "with --run: the last media time", read: whole(0) },
    ],
    examples: [
      "triggers evaluate dock.json samples.json",
      "triggers evaluate dock.json --run RUN --from-ms 60000",
    ],
    load: async () => (await triggers()).evaluateTrigger,
  },
  {
    path: "policies list",
    summary: "List the policy revisions of a run",
    args: [RUN],
    examples: ["policies list $RUN"],
    load: async () => (await policies()).listPolicies,
  },
  {
    path: "policies show",
    summary: "Show one policy revision",
    args: [RUN, REVISION],
    examples: ["policies show $RUN 31"],
    load: async () => (await policies()).showPolicy,
  },
  {
    path: "policies create",
    summary: "Draft a policy revision; it follows the newest one unless --parent says otherwise",
    args: [RUN],
    options: [
      { flags: "--prompt <text>", summary: "what a model is asked of each picture" },
      { flags: "--zone <file>", summary: "a restricted zone as JSON", isPath: true },
      { flags: "--output-schema <file>", summary: "JSON Schema of the model's answers", isPath: true },
      { flags: "--parent <revision>", summary: "the revision that this one follows", read: whole(0) },
    ],
    examples: ["policies create $RUN --prompt 'Describe the dock.'", "policies create $RUN --zone zone.json"],
    load: async () => (await policies()).createPolicy,
  },
  {
    path: "policies activate",
    summary: "Move a revision one stage on: to shadow, canary, active",
    args: [RUN, REVISION],
    options: [
      { flags: "--stage <stage>", summary: "the next stage", choices: POLICY_STAGES, isRequired: true },
      GENERATION,
    ],
    examples: ["policies activate $RUN 31 --stage shadow"],
    load: async () => (await policies()).activatePolicy,
  },
  {
    path: "policies rollback",
    summary: "Make a revision active again that was active before",
    args: [RUN, REVISION],
    options: [GENERATION],
    examples: ["policies rollback $RUN 31"],
    load: async () => (await policies()).rollbackPolicy,
  },
  {
    path: "policies replay",
    summary: "Say what the zone of a revision would have made of the past",
    args: [RUN, REVISION],
    options: [
      { flags: "--from-seq <n>", summary: "first event", read: whole(0) },
      { flags: "--to-seq <n>", summary: "last event", read: whole(0) },
      {
        flags: "--source <source>",
        summary: "what is looked at (local_wal)",
        choices: ["local_wal", "signals"],
      },
    ],
    examples: ["policies replay $RUN 31", "policies replay $RUN 31 --source signals"],
    load: async () => (await policies()).replayPolicy,
  },
];
