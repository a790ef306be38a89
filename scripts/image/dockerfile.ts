/** Reads a Dockerfile: its stages with their steps, as far as the one of this project needs the language. */

export interface Step {
  readonly instruction: string;
  readonly text: string;
  /** The elements of the step's JSON form; null for the shell form. */
  readonly words: readonly string[] | null;
  readonly line: number;
}

export interface Stage {
  /** The image that the stage starts with. */
  readonly from: string;
  /** Name of the stage; null for the last one, which has none. */
  readonly name: string | null;
  readonly steps: readonly Step[];
}

const KNOWN = new Set([
  ...["RUN", "COPY", "ENV", "WORKDIR", "USER", "SHELL", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK"],
  ...["ENTRYPOINT", "CMD"],
]);

/**
 * The stages of a Dockerfile. Throws on an instruction that it does not know, so that nothing is passed over.
 */
export function readDockerfile(text: string): Stage[] {
  const stages: { from: string; name: string | null; steps: Step[] }[] = [];
  for (const { line, statement } of statementsOf(text)) {
    const [, instruction, rest] = /^([A-Z]+)\s+(.*)$/s.exec(statement) ?? [];
    if (instruction === "FROM") {
      const [, from, name = null] = /^(\S+)(?:\s+AS\s+(\S+))?$/.exec(rest!)!;
      stages.push({ from: from!, name, steps: [] });
    } else if (instruction !== undefined && KNOWN.has(instruction) && stages.length > 0) {
      stages.at(-1)!.steps.push({ instruction, text: rest!, words: jsonWords(rest!), line });
    } else {
      throw new Error(`Dockerfile:${line}: cannot follow this step: ${statement}`);
    }
  }
  return stages;
}

/** The variables of an ENV step: `A=b C=d`, without quotes. */
export function variablesOf({ text, line }: Step): Record<string, string> {
  const pairs = text.split(/\s+/).map((pair) => pair.split(/=(.*)/s, 2) as [string, string]);
  if (pairs.some(([name, value]) => !name || value === undefined || /["'$\\]/.test(value))) {
    throw new Error(`Dockerfile:${line}: ENV must be a list of NAME=value without quotes: ${text}`);
  }
  return Object.fromEntries(pairs);
}

/** Lines without comments; those that end with a backslash are joined with the next. */
function* statementsOf(text: string): Iterable<{ line: number; statement: string }> {
  let statement = "";
  let start = 0;
  for (const [index, line] of text.split("\n").entries()) {
    if (/^\s*(#|$)/.test(line)) continue;
    if (statement === "") start = index + 1;
    statement += line.replace(/\\$/, "");
    if (line.endsWith("\\")) continue;
    yield { line: start, statement: statement.trim() };
    statement = "";
  }
}

function jsonWords(text: string): readonly string[] | null {
  const json = /\[.*\]$/s.exec(text)?.[0];
  return json === undefined || (text !== json && !text.endsWith(` CMD ${json}`)) ? null : JSON.parse(json);
}
