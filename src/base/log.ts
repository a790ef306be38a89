/** Log lines: human-readable on stdout, one JSON object a line on stderr where that goes elsewhere, filtered
 * by RUST_LOG.
 */

import { joinedBytes } from "./bytes.ts";

export type Level = "trace" | "debug" | "info" | "warn" | "error";

export interface Log {
  trace(message: string, fields?: Record<string, unknown>): void;
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
  /** A log that writes to the same streams under another target, by which RUST_LOG directives filter. */
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
 * Opens the log of the process, see docs/deployment/monitoring.md#logs. Targets are paths under `service`:
 * `child("http")` writes with the target `service::http`, and the directives `http=debug` and
 * `service::http=debug` mean the same. Throws a RangeError when the filter is malformed. Writing never
 * throws: a closed pipe must not stop the service. It is synchronous unless `output` is a {@link
 * BackgroundOutput}.
 */
export function openLog(filter: string, output: Partial<LogOutput> = {}): Log {
  const rules = readFilter(filter);
  if (!rules) throw new RangeError(`Cannot open the log as ${FILTER_RULE}: got ${JSON.stringify(filter)}`);
  const { stdout = Deno.stdout, stderr = Deno.stderr, now = Date.now } = output;
  return logFor(ROOT_TARGET, rules, { stdout, stderr, now });
}

/** Where a line is not needed a second time. */
const NOWHERE: LineWriter = { writeSync: ({ length }) => length };

/**
 * Whether the standard output and the standard error of the process are the same terminal, file, pipe or
 * socket, so that each line would be there twice. False where the system does not tell.
 */
export function isOnePlace(): boolean {
  try {
    const [stdout, stderr] = [1, 2].map((descriptor) => Deno.statSync(`/proc/self/fd/${descriptor}`));
    return stdout!.ino !== null && stdout!.ino === stderr!.ino && stdout!.dev === stderr!.dev;
  } catch {
    return false;
  }
}

/**
 * The streams of the process, each line once where they are one place. It writes at once, unlike {@link
 * BackgroundOutput}.
 */
export function processOutput(): Partial<LogOutput> {
  return isOnePlace() ? { stderr: NOWHERE } : {};
}

/** A stream that can be written without blocking the thread, such as Deno.stdout and Deno.stderr. */
export interface BackgroundStream {
  write(bytes: Uint8Array): Promise<number>;
}

/**
 * Writes log lines in the background. Where nobody reads them, a full pipe would block the thread that
 * writes: instead, lines that have no room any more are dropped, and a line says how many they were when
 * somebody reads again.
 */
export class BackgroundOutput implements LogOutput {
  readonly stdout: BackgroundLines;
  readonly stderr: LineWriter;
  readonly now: () => number;
  readonly #lines: readonly BackgroundLines[];

  /** With `isOnePlace`, each line is written once, for people. */
  constructor(
    { isOnePlace, stdout = Deno.stdout, stderr = Deno.stderr, now = Date.now }: {
      readonly isOnePlace: boolean;
      readonly stdout?: BackgroundStream;
      readonly stderr?: BackgroundStream;
      readonly now?: () => number;
    },
  ) {
    const dropped = (lines: number) =>
      lineTexts("warn", ROOT_TARGET, "log lines were dropped as nobody read the log", { lines }, now());
    const text = new BackgroundLines(stdout, (lines) => dropped(lines).text);
    const json = isOnePlace ? null : new BackgroundLines(stderr, (lines) => dropped(lines).json);
    this.now = now;
    this.stdout = text;
    this.stderr = json ?? NOWHERE;
    this.#lines = json ? [text, json] : [text];
  }

  /** How many lines were dropped, of both streams together. */
  get droppedLines(): number {
    return this.#lines.reduce((sum, { droppedLines }) => sum + droppedLines, 0);
  }

  /** Resolves when what waits now is written, which may be never; never rejects. */
  async flushed(): Promise<void> {
    await Promise.all(this.#lines.map((lines) => lines.flushed()));
  }
}

/** Bytes that may wait for one stream. */
const WAITING_BYTES_MAX = 1024 * 1024;
/**
 * Bytes that Linux writes into a pipe in one piece, so that no line of another thread gets into the middle of
 * a line.
 */
const ATOMIC_BYTES = 4096;

/** The lines of one stream. */
class BackgroundLines implements LineWriter {
  /** Lines that were dropped since the start. */
  droppedLines = 0;
  readonly #stream: BackgroundStream;
  readonly #textOfDropped: (lines: number) => string;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #unreportedLines = 0;
  #writing: Promise<void> | undefined;

  constructor(stream: BackgroundStream, textOfDropped: (lines: number) => string) {
    this.#stream = stream;
    this.#textOfDropped = textOfDropped;
  }

  /** Takes one whole line, or drops it. Returns at once. */
  writeSync(line: Uint8Array): number {
    if (this.#waitingBytes + line.length > WAITING_BYTES_MAX) {
      this.droppedLines += 1;
      this.#unreportedLines += 1;
    } else {
      this.#add(line);
      this.#writing ??= this.#write();
    }
    return line.length;
  }

  flushed(): Promise<void> {
    return this.#writing ?? Promise.resolve();
  }

  async #write(): Promise<void> {
    try {
      await Promise.resolve(); // the lines of one turn together
      while (this.#waiting.length > 0) {
        for (let rest = this.#nextBytes(); rest.length > 0;) {
          rest = rest.subarray(await this.#stream.write(rest));
        }
        if (this.#unreportedLines === 0) continue;
        this.#add(ENCODER.encode(`${this.#textOfDropped(this.#unreportedLines)}\n`));
        this.#unreportedLines = 0;
      }
    } catch {
      // The reader of the log has closed the pipe, so the error cannot be reported.
      this.#waiting = [];
      this.#waitingBytes = 0;
    } finally {
      this.#writing = undefined;
    }
  }

  #add(line: Uint8Array): void {
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
  }

  /** The next lines to write: as many whole ones as are written in one piece; a longer one alone. */
  #nextBytes(): Uint8Array {
    let [count, length] = [1, this.#waiting[0]!.length];
    for (; count < this.#waiting.length; count++) {
      const longer = length + this.#waiting[count]!.length;
      if (longer > ATOMIC_BYTES) break;
      length = longer;
    }
    this.#waitingBytes -= length;
    return joinedBytes(...this.#waiting.splice(0, count));
  }
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
  const { text, json } = lineTexts(level, target, message, fields, output.now());
  write(output.stdout, text);
  write(output.stderr, json);
}

/** One line as it is on each of the streams. */
function lineTexts(
  level: Level,
  target: string,
  message: string,
  fields: Record<string, unknown>,
  nowMs: number,
): { text: string; json: string } {
  const timestamp = new Date(nowMs).toISOString();
  const plain = plainFields(fields);
  const pairs = Object.entries(plain).map(([name, value]) => ` ${escaped(name)}=${fieldText(value)}`).join(
    "",
  );
  const text = `${timestamp} ${level.toUpperCase().padEnd(5)} ${target}: ${escaped(message)}${pairs}`;
  return { text, json: escaped(JSON.stringify({ timestamp, level, target, message, fields: plain })) };
}

/**
 * The fields as plain JSON values. A field may have any value, such as one from a catch block; the result is
 * always printable.
 */
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

/** The characters of a text in a log line; a longer text is cut. */
const TEXT_CHARACTERS_MAX = 8192;

function fieldText(value: unknown): string {
  if (typeof value === "string" && /^[\w.:/@+-]+$/.test(value)) return value;
  return escaped(JSON.stringify(value));
}

/**
 * The text with control characters, line breaks and characters that change the direction of writing as
 * \uXXXX, so that no text from outside can forge a line or control a terminal. JSON keeps its meaning.
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

/** What an error says, for messages and log lines. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
