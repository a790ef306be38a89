/** Everything that a command prints: results on stdout, notes and errors on stderr. */

import { type Paint, paintOf, wantsColour } from "./colour.ts";
import { type CellValue, type Column, tableLines } from "./table.ts";
import { visible, visibleJson } from "./visible.ts";

/** The reader of stdout has gone, as after `| head`. The command ends without a word. */
export class OutputClosed extends Error {}

export interface OutputFlags {
  readonly json: boolean;
  readonly quiet: boolean;
  readonly noColour: boolean;
}

const BUFFER_CHARACTERS = 65_536;
/** Columns of a terminal that does not say. */
const COLUMNS = 80;

export class Output {
  /** JSON is wanted and nothing for people. */
  readonly isJson: boolean;
  readonly isQuiet: boolean;
  /** For stdout. */
  readonly paint: Paint;
  /** For stderr. */
  readonly notePaint: Paint;
  readonly isTerminal: boolean;
  #buffer = "";
  readonly #encoder = new TextEncoder();

  constructor({ json, quiet, noColour }: OutputFlags) {
    this.isJson = json;
    this.isQuiet = quiet;
    this.isTerminal = Deno.stdout.isTerminal();
    const noColourSetting = Deno.env.get("NO_COLOR");
    this.paint = paintOf(wantsColour(this.isTerminal, noColour, noColourSetting));
    this.notePaint = paintOf(wantsColour(Deno.stderr.isTerminal(), noColour, noColourSetting));
  }

  /** Columns that a line may take; no limit where stdout is no terminal. */
  get columns(): number {
    return this.isTerminal ? this.noteColumns : Infinity;
  }

  /** Columns of the terminal, where there is one. */
  get noteColumns(): number {
    try {
      return Deno.consoleSize().columns || COLUMNS;
    } catch {
      return COLUMNS;
    }
  }

  /** One JSON value on a line of its own. */
  json(value: unknown): void {
    this.line(visibleJson(JSON.stringify(value) ?? "null"));
  }

  /** A line of stdout as it is: texts of the server pass `visible` first. */
  line(text: string): void {
    this.#buffer += `${text}\n`;
    if (this.#buffer.length >= BUFFER_CHARACTERS) this.flush();
  }

  /** Bytes of stdout as they are. */
  bytes(bytes: Uint8Array): void {
    this.flush();
    this.#write(bytes);
  }

  /** A list: JSON, a table, or with --quiet the first column alone. */
  async list(
    value: unknown,
    columns: readonly Column[],
    rows: readonly (readonly CellValue[])[],
    empty: string,
  ): Promise<void> {
    if (this.isJson) return this.json(value);
    if (this.isQuiet) return rows.forEach(([first]) => this.line(visible(String(first ?? ""))));
    if (rows.length === 0) return this.note(empty);
    const lines = await tableLines(columns, rows, { paint: this.paint, columns: this.columns });
    lines.forEach((text) => this.line(text));
  }

  /** One thing: JSON, names with values, or with --quiet `id` alone. */
  record(value: unknown, fields: readonly (readonly [name: string, value: CellValue])[], id: string): void {
    if (this.isJson) return this.json(value);
    if (this.isQuiet) return this.line(visible(id));
    const width = Math.max(...fields.map(([name]) => name.length));
    for (const [name, cell] of fields) {
      if (cell === undefined || cell === null || cell === "") continue;
      this.line(`${this.paint.dim(name.padEnd(width))}  ${visible(String(cell))}`);
    }
  }

  /** A line for people on stderr; none with --quiet. */
  note(text: string): void {
    if (!this.isQuiet) this.warn(text);
  }

  /** A line on stderr in any case. */
  warn(text: string): void {
    this.flush();
    this.raw(`${text}\n`);
  }

  /**
   * A part of a line on stderr, for progress. Nobody may be reading it, which changes nothing for the
   * command.
   */
  raw(text: string): void {
    try {
      writeAll(Deno.stderr, this.#encoder.encode(text));
    } catch (error) {
      if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
    }
  }

  /** Writes what was held back; throws `OutputClosed` when nobody reads stdout any more. */
  flush(): void {
    if (this.#buffer === "") return;
    const bytes = this.#encoder.encode(this.#buffer);
    this.#buffer = "";
    this.#write(bytes);
  }

  #write(bytes: Uint8Array): void {
    try {
      writeAll(Deno.stdout, bytes);
    } catch (error) {
      throw error instanceof Deno.errors.BrokenPipe ? new OutputClosed() : error;
    }
  }
}

function writeAll(stream: { writeSync(bytes: Uint8Array): number }, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += stream.writeSync(bytes.subarray(at));
}
