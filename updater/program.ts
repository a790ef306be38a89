/** The parser of the updater's command line. */

import { Command as Parser, InvalidArgumentError, Option } from "commander";
import { LIMITS } from "../src/contract/limits.ts";
import { apply, watch } from "./commands/apply.ts";
import { enrollDevice } from "./commands/enroll.ts";
import { keygen, sign } from "./commands/signing.ts";
import { report } from "./commands/report.ts";
import { status } from "./commands/status.ts";
import { type Command, type Options, STATE_FOLDER_STANDARD } from "./session.ts";

type Run = (command: Command, args: readonly string[], options: Options) => Promise<void>;

const STATE_DIR = new Option(
  "--state-dir <folder>",
  `the state of this device; EDGE_UPDATER_STATE_DIR, or ${STATE_FOLDER_STANDARD}, unless given`,
);
const JSON_LINES = new Option("--json", "a JSON object a line instead of text");

/** `run` is called with the command that the arguments name. Help and faults throw a CommanderError, when they are written. */
export function programOf(run: Run): Parser {
  const program = new Parser("updater")
    .description(
      "Keeps the model of an edge device up to date: signed releases go from shadow over canary to current.",
    )
    .exitOverride()
    .showSuggestionAfterError()
    .showHelpAfterError("hint: --help behind the command shows what it takes");
  const add = (name: string, summary: string, command: Command, options: readonly Option[]) => {
    const parser = program.command(name).description(summary);
    for (const option of options) parser.addOption(option);
    return parser.action(async () => await run(command, parser.args, parser.opts()));
  };
  add(
    "keygen",
    "Make a key pair: PREFIX.key, which signs and stays secret, and PREFIX.pub, for devices",
    keygen,
    [
      JSON_LINES,
    ],
  ).argument("<prefix>", "path without ending; nothing is replaced");
  add("enroll", "Say what this device is, and whose manifests it takes", enrollDevice, [
    required(
      "--public-key <file...>",
      `${LIMITS.edge.publicKeysMax} at most; any of them may have signed a manifest`,
    ),
    required("--cohort <name>", "the hardware_cohort of this device"),
    required("--model-id <name>", "the model_id of this device"),
    required("--hook <program>", "absolute path of the program that puts a model into use"),
    required("--manifest-uri <address>", "where `watch` looks for the newest manifest: https or file"),
    new Option("--ca <file>", "certificates in PEM that are trusted too"),
    new Option("--replace", "change an enrollment; the releases stay"),
    STATE_DIR,
    JSON_LINES,
  ]);
  add("sign", "Print a manifest with its signature", sign, [
    required("--private-key <file>", "made by keygen"),
    new Option("--artifact <file>", "fill in artifact.sha256 and artifact.size_bytes of this file"),
  ]).argument("<manifest>", "file of the manifest, with any signature or none");
  add("apply", "Take a manifest, get its artifact, and put it into shadow", apply, [STATE_DIR, JSON_LINES])
    .argument("[manifest]", "file or https address; the enrolled one unless given");
  add("watch", "Apply the enrolled manifest again and again", watch, [
    new Option(
      "--interval-secs <seconds>",
      "pause, give or take a tenth, so that devices do not ask all at once",
    )
      .argParser(intervalOf).default(LIMITS.edge.watchIntervalSecsDefault),
    new Option("--once", "look once, and end with the exit code of what happened"),
    STATE_DIR,
    JSON_LINES,
  ]);
  add(
    "report",
    "Judge what was measured of a release in its stage: it goes on, stays, or is rolled back",
    report,
    [
      STATE_DIR,
      JSON_LINES,
    ],
  ).argument("<report>", "file of the report; `-` is stdin");
  add("status", "Show the releases of this device", status, [
    STATE_DIR,
    new Option("--json", "one JSON object"),
  ]);
  return program;
}

function required(flags: string, summary: string): Option {
  return new Option(flags, summary).makeOptionMandatory();
}

function intervalOf(text: string): number {
  const { minimum, maximum } = LIMITS.edge.watchIntervalSecs;
  const value = Number(text);
  if (!Number.isInteger(value) || value < minimum || value > maximum) {
    throw new InvalidArgumentError(`It must be an integer from ${minimum} to ${maximum}.`);
  }
  return value;
}
