/** The parser of the command line, made of the command table. */

import { Argument, Command, Option } from "commander";
import { EXIT_CODES } from "./exit_codes.ts";
import { PROGRAM, VERSION } from "./program_name.ts";
import { COMMANDS, GLOBAL_OPTIONS, GROUPS } from "./table/commands.ts";
import type { CommandRow, OptionRow } from "./table/row.ts";
import type { Flags } from "./session.ts";

/** A command with what was given to it. */
export interface Given {
  readonly row: CommandRow;
  readonly args: readonly string[];
  readonly flags: Flags;
}

/**
 * `run` is called with the command that the arguments name. Help and faults throw a CommanderError, when they
 * are written.
 */
export function programOf(run: (given: Given) => Promise<void>): Command {
  const program = new Command(PROGRAM)
    .description("Analyze videos with the service and read what it found.")
    .usage("[options] <command>")
    .version(VERSION, "-V, --version", "print the version of this program")
    .exitOverride()
    .showSuggestionAfterError()
    .showHelpAfterError("hint: --help behind the command shows what it takes")
    .configureHelp({ showGlobalOptions: true, sortOptions: false })
    .addHelpText("after", `\n${exitCodeText()}\n\nMore of a command: ${PROGRAM} <command> --help`);
  GLOBAL_OPTIONS.forEach((row) => program.addOption(optionOf(row)));
  const groups = new Map(GROUPS.map(({ name, alias, summary }) => {
    const group = program.command(name).description(summary).helpCommand(false);
    if (alias) group.alias(alias);
    return [name, group] as const;
  }));
  for (const row of COMMANDS) addCommand(program, groups, row, run);
  return program.helpCommand("help [command]", "Say more of a command");
}

function addCommand(
  program: Command,
  groups: ReadonlyMap<string, Command>,
  row: CommandRow,
  run: (given: Given) => Promise<void>,
): void {
  const [first, second] = row.path.split(" ") as [string, string?];
  const group = groups.get(first);
  if (second !== undefined && !group) throw new Error(`no group is called ${first}`);
  // The name of a group may be a command itself.
  const command = second === undefined && group
    ? group
    : (second === undefined ? program : group!).command(second ?? first, { hidden: row.isHidden ?? false })
      .description(row.summary);
  for (const { name, summary, choices } of row.args ?? []) {
    const argument = new Argument(name, summary);
    command.addArgument(choices ? argument.choices(choices) : argument);
  }
  if (row.isOpen) command.argument("[anything...]").allowUnknownOption().helpOption(false);
  row.options?.forEach((option) => command.addOption(optionOf(option)));
  command.addHelpText(
    "after",
    `\nExamples:\n${row.examples.map((line) => `  ${exampleLine(line)}`).join("\n")}`,
  );
  command.action(async () => {
    await run({ row, args: command.args, flags: command.optsWithGlobals() });
  });
}

/** An example with the name of the program, which one that begins with another program has already. */
export function exampleLine(example: string): string {
  return example.includes(PROGRAM) && !/^analyze /.test(example) ? example : `${PROGRAM} ${example}`;
}

function optionOf(row: OptionRow): Option {
  const option = new Option(row.flags, row.summary);
  if (row.choices) option.choices(row.choices);
  else if (row.read) option.argParser(row.read);
  if (row.standard !== undefined) option.default(row.standard);
  if (row.isRequired) option.makeOptionMandatory();
  if (row.excludes) option.conflicts([...row.excludes]);
  return option;
}

function exitCodeText(): string {
  const codes = Object.values(EXIT_CODES).map(({ code, meaning }) =>
    `  ${String(code).padEnd(4)} ${meaning}`
  );
  return `Exit codes:\n${codes.join("\n")}`;
}
