/** The entry of the command line: parses, runs the command, and ends with the exit code of what happened. */

import { EXIT_CODES } from "./exit_codes.ts";
import { failureOf, tell } from "./failure.ts";
import { Output, OutputClosed } from "./output/output.ts";
import { type Given, programOf } from "./program.ts";
import { Interrupted, Session } from "./session.ts";

const WORDS_TO_COMPLETE = "__complete";

Deno.exit(await main(Deno.args));

async function main(args: readonly string[]): Promise<number> {
  if (args[0] === WORDS_TO_COMPLETE) {
    const { candidatesOf } = await import("./completion.ts");
    console.log(candidatesOf(args.slice(1)).join("\n"));
    return EXIT_CODES.ok.code;
  }
  let code: number = EXIT_CODES.ok.code;
  const program = programOf(async (given) => {
    code = await run(given);
  });
  try {
    await program.parseAsync([...args], { from: "user" });
  } catch (error) {
    // The parser has written its fault, or the help that was asked for.
    const { exitCode, code: kind } = error as { exitCode?: number; code?: string };
    if (typeof kind !== "string" || !kind.startsWith("commander.")) throw error;
    return exitCode === 0 && kind !== "commander.help" ? EXIT_CODES.ok.code : EXIT_CODES.usage.code;
  }
  return code;
}

async function run({ row, args, flags }: Given): Promise<number> {
  const out = new Output({ json: flags.json, quiet: flags.quiet, noColour: flags.color === false });
  const interruption = new AbortController();
  const session = new Session(flags, out, interruption.signal);
  followSignals(interruption);
  try {
    const handle = await row.load();
    await handle(session, args, flags);
    out.flush();
    return EXIT_CODES.ok.code;
  } catch (error) {
    return ended(error, session);
  }
}

/** The exit code of what a command threw, when it is told. */
function ended(error: unknown, { out, signal, knownSettings }: Session): number {
  if (error instanceof OutputClosed) return EXIT_CODES.ok.code;
  try {
    out.flush();
  } catch {
    // Nobody reads stdout any more; the failure is told all the same.
  }
  if (signal.aborted || error instanceof Interrupted) return EXIT_CODES.interrupted.code;
  const { code, lines } = tell(failureOf(error, knownSettings?.url ?? ""), knownSettings?.apiKey);
  const [first, ...rest] = lines;
  out.warn(out.notePaint.red(first!));
  rest.forEach((line) => out.warn(line));
  return code;
}

/** The first signal asks the command to end, a second one ends the process. */
function followSignals(interruption: AbortController): void {
  const interrupt = () => {
    if (interruption.signal.aborted) Deno.exit(EXIT_CODES.interrupted.code);
    interruption.abort(new Interrupted("interrupted"));
  };
  Deno.addSignalListener("SIGINT", interrupt);
  if (Deno.build.os !== "windows") Deno.addSignalListener("SIGTERM", interrupt);
}
