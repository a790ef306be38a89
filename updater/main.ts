/** The entry of the updater of edge devices: parses, runs the command, and ends with the exit code of what happened. */

import { EXIT_CODES } from "../cli/exit_codes.ts";
import { failureOf, tell } from "../cli/failure.ts";
import { programOf } from "./program.ts";
import { type Command, type Options, Session } from "./session.ts";

Deno.exit(await main(Deno.args));

async function main(args: readonly string[]): Promise<number> {
  let code: number = EXIT_CODES.ok.code;
  try {
    const program = programOf(async (command, given, options) => {
      code = await run(command, given, options);
    });
    await program.parseAsync([...args], { from: "user" });
  } catch (error) {
    // The parser has written its fault, or the help that was asked for.
    const { exitCode, code: kind } = error as { exitCode?: number; code?: string };
    if (typeof kind !== "string" || !kind.startsWith("commander.")) throw error;
    return exitCode === 0 && kind !== "commander.help" ? EXIT_CODES.ok.code : EXIT_CODES.usage.code;
  }
  return code;
}

async function run(command: Command, args: readonly string[], options: Options): Promise<number> {
  const interruption = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(name, () => interruption.abort());
  const session = new Session(options, interruption.signal);
  try {
    await command(session, args, options);
    session.out.flush();
    return EXIT_CODES.ok.code;
  } catch (error) {
    if (interruption.signal.aborted) return EXIT_CODES.interrupted.code;
    const { code, lines } = tell(failureOf(error, ""), undefined);
    lines.forEach((line) => session.out.warn(line));
    return code;
  }
}
