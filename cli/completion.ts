/** What may follow the words of a command line, for the scripts that complete it in a shell. */

import { COMMANDS, GLOBAL_OPTIONS, GROUPS } from "./table/commands.ts";
import type { CommandRow, OptionRow } from "./table/row.ts";

/** Stands for the names of files, which the shell knows better. */
export const FILES = ":files";

const HELP: OptionRow = { flags: "-h, --help", summary: "show the help of the command" };

/**
 * Lines `word<TAB>meaning`, or `:files`; `words` are those behind the program, the last one is being typed.
 */
export function candidatesOf(words: readonly string[]): readonly string[] {
  const typed = words.at(-1) ?? "";
  const { row, path, place, waiting } = read(words.slice(0, -1));
  if (waiting) return valuesOf(waiting, typed);
  if (typed.startsWith("-")) {
    return [...(row?.options ?? []), ...GLOBAL_OPTIONS, HELP]
      .map(({ flags, summary }) => [longFlag(flags), summary] as const)
      .filter(([flag]) => flag.startsWith(typed))
      .map(([flag, summary]) => `${flag}\t${summary}`);
  }
  if (row) {
    const argument = row.args?.[place];
    if (argument) return valuesOf(argument, typed);
  }
  return commandsUnder(path).filter(([name]) => name.startsWith(typed)).map((pair) => pair.join("\t"));
}

interface Place {
  /** The command, where the words name one. */
  readonly row?: CommandRow;
  /** Else the group whose name is there, or nothing. */
  readonly path: string;
  /** How many of the command's arguments are there. */
  readonly place: number;
  /** The flag whose value comes next. */
  readonly waiting?: OptionRow;
}

function read(words: readonly string[]): Place {
  let path = "";
  let row: CommandRow | undefined;
  let place = 0;
  let waiting: OptionRow | undefined;
  for (const word of words) {
    if (waiting) waiting = undefined;
    else if (word.startsWith("-")) {
      const option = [...(row?.options ?? []), ...GLOBAL_OPTIONS].find(({ flags }) =>
        flags.split(/[ ,]+/).includes(word)
      );
      if (option && /[<[]/.test(option.flags)) waiting = option;
    } else {
      const name = GROUPS.find(({ alias }) => alias === word)?.name ?? word;
      const further = path ? `${path} ${name}` : name;
      const named = COMMANDS.find((command) => command.path === further);
      if (row && !named) place++;
      else [path, row] = [further, named];
    }
  }
  return { path, place, ...(row && { row }), ...(waiting && { waiting }) };
}

function commandsUnder(path: string): readonly (readonly [name: string, summary: string])[] {
  const visible = COMMANDS.filter(({ isHidden }) => !isHidden);
  if (path !== "") {
    return visible.filter((row) => row.path.startsWith(`${path} `))
      .map((row) => [row.path.slice(path.length + 1), row.summary]);
  }
  return [
    ...GROUPS.map(({ name, summary }) => [name, summary] as const),
    ...visible.filter((row) => !row.path.includes(" ") && !isGroup(row.path)).map((row) =>
      [row.path, row.summary] as const
    ),
  ];
}

const isGroup = (name: string) => GROUPS.some((group) => group.name === name);

function valuesOf(
  { choices, isPath }: { choices?: readonly string[]; isPath?: boolean },
  typed: string,
): readonly string[] {
  return isPath
    ? [FILES]
    : (choices ?? []).filter((choice) => choice.startsWith(typed)).map((choice) => `${choice}\t`);
}

/** `--output` of `-o, --output <file>`. */
function longFlag(flags: string): string {
  return /--[\w-]+/.exec(flags)![0];
}
