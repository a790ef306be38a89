/** Log lines: human-readable on stdout, one JSON object a line on stderr, filtered by RUST_LOG. */

export type Level = "trace" | "debug" | "info" | "warn" | "error";

export interface Log {
  trace(message: string, fields?: Record<string, unknown>): void;
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
  /** The same log under another target, by which RUST_LOG directives filter. */
  child(target: string): Log;
}

/** A stream for log lines, such as Deno.stdout and Deno.stderr. */
export interface LineWriter {
  writeSync(bytes: Uint8Array): number;
}

/** The two streams of the log, and the clock for its timestamps. */
export interface LogOutput {
  readonly stdout: LineWriter;
  readonly stderr: LineWriter;
  readonly now: () => number;
}

/**
 * Opens the log of the process, see docs/deployment.md#logs. Targets are paths under `service`: `child("http")` writes
 * with the target `service::http`, and the directives `http=debug` and `service::http=debug` mean the same. Throws a
 * RangeError when the filter is malformed. Writing is synchronous and never throws: a closed pipe must not stop the
 * service.
 */
export function openLog(filter: string, output: Partial<LogOutput> = {}): Log {
  const rules = readFilter(filter);
  if (!rules) throw new RangeError(`Cannot open the log as ${FILTER_RULE}: got ${JSON.stringify(filter)}`);
  const { stdout = Deno.stdout, stderr = Deno.stderr, now = Date.now } = output;
  return logFor(ROOT_TARGET, rules, { stdout, stderr, now });
}

/** A log that writes nothing, for tests and tools. */
export function quietLog(): Log {
  const drop = () => {};
  const log: Log = { trace: drop, debug: drop, info: drop, warn: drop, error: drop, child: () => log };
  return log;
}

/** The rule for a filter; it completes "RUST_LOG must be …". */
export const FILTER_RULE = "comma-separated directives `level`, `target` or `target=level`, " +
  "with a level out of off, error, warn, info, debug, trace";

/** One directive: of `target` and the targets under it, lines of `severity` and less are written. */
export interface FilterRule {
  /** Full path such as `service::http`; empty for the directive that covers all targets. */
  readonly target: string;
  /** The index in the list of levels: 0 writes nothing, 5 writes everything. */
  readonly severity: number;
}

/** Reads a RUST_LOG filter; `undefined` when a directive is malformed. */
export function readFilter(filter: string): readonly FilterRule[] | undefined {
  const rules: FilterRule[] = [];
  for (const directive of filter.split(",").map((part) => part.trim()).filter((part) => part !== "")) {
    const match = /^(?:([A-Za-z_][\w:.-]*?)(?:=(\w+))?)$/.exec(directive);
    if (!match) return undefined;
    const [, name, level] = match;
    const bareSeverity = level === undefined ? SEVERITY.get(name!.toLowerCase()) : undefined;
    if (bareSeverity !== undefined) {
      rules.push({ target: "", severity: bareSeverity });
      continue;
    }
    // A directive with a target only means all of its lines.
    const severity = SEVERITY.get((level ?? "trace").toLowerCase());
    if (severity === undefined) return undefined;
    rules.push({ target: qualified(name!), severity });
  }
  // Longest targets first, so that the first matching rule is the most specific one.
  return rules.reverse().sort((left, right) => right.target.length - left.target.length);
}

const SEVERITY: ReadonlyMap<string, number> = new Map(
  ["off", "error", "warn", "info", "debug", "trace"].map((word, severity) => [word, severity]),
);

const ROOT_TARGET = "service";

function qualified(target: string): string {
  return target === ROOT_TARGET || target.startsWith(`${ROOT_TARGET}::`)
    ? target
    : `${ROOT_TARGET}::${target}`;
}

function logFor(target: string, rules: readonly FilterRule[], output: LogOutput): Log {
  const covers = (rule: FilterRule) =>
    rule.target === "" || target === rule.target || target.startsWith(`${rule.target}::`);
  const severityMax = rules.find(covers)?.severity ?? 0;
  const at = (level: Level) =>
    SEVERITY.get(level)! > severityMax
      ? () => {}
      : (message: string, fields: Record<string, unknown> = {}) =>
        writeLine(level, target, message, fields, output);
  return {
    trace: at("trace"),
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    child: (name) => logFor(qualified(name), rules, output),
  };
}

function writeLine(
  level: Level,
  target: string,
  message: string,
  fields: Record<string, unknown>,
  output: LogOutput,
): void {
  const timestamp = new Date(output.now()).toISOString();
  const plain = plainFields(fields);
  const pairs = Object.entries(plain).map(([name, value]) => ` ${escaped(name)}=${fieldText(value)}`).join(
    "",
  );
  const text = `${timestamp} ${level.toUpperCase().padEnd(5)} ${target}: ${escaped(message)}${pairs}`;
  write(output.stdout, text);
  write(output.stderr, escaped(JSON.stringify({ timestamp, level, target, message, fields: plain })));
}

/** A field may have any value, such as one from a catch block; the result is always printable JSON. */
function plainFields(fields: Record<string, unknown>): Record<string, unknown> {
  try {
    return JSON.parse(JSON.stringify(fields, plainValue));
  } catch {
    return { unprintable: true };
  }
}

function plainValue(_name: string, value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Error) {
    return { name: value.name, message: value.message, stack: value.stack, cause: value.cause };
  }
  if (typeof value === "string" && value.length > TEXT_CHARACTERS_MAX) {
    return `${value.slice(0, TEXT_CHARACTERS_MAX)}…`;
  }
  return value;
}

/** Longer texts are cut in log lines. */
const TEXT_CHARACTERS_MAX = 8192;

function fieldText(value: unknown): string {
  if (typeof value === "string" && /^[\w.:/@+-]+$/.test(value)) return value;
  return escaped(JSON.stringify(value));
}

/**
 * Control characters, line breaks and characters that change the direction of writing as \uXXXX, so that no text from
 * outside can forge a line or control a terminal. JSON keeps its meaning.
 */
function escaped(text: string): string {
  return text.replace(UNSAFE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

// deno-lint-ignore no-control-regex -- control characters are searched for
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

function write(stream: LineWriter, line: string): void {
  try {
    let rest = ENCODER.encode(`${line}\n`);
    while (rest.length > 0) {
      const written = stream.writeSync(rest);
      if (written <= 0) return;
      rest = rest.subarray(written);
    }
  } catch {
    // The reader of the log has closed the pipe, so the error cannot be reported.
  }
}

const ENCODER = new TextEncoder();
