/** Progress on stderr: a bar where the end is known, else what has been done and how long it has taken. */

import type { Output } from "./output.ts";
import { visible } from "./visible.ts";

const REDRAW_MS = 100;
const BAR_COLUMNS = 24;
const SPINNER = ["|", "/", "-", "\\"];

export interface ProgressKind {
  /** `uploading clip.mp4`. */
  readonly what: string;
  /** Says an amount: `12.3 MB`, `4 chunks`. None for work of which only the time is known. */
  readonly amount?: (count: number) => string;
  /** Says a rate a second, where `amount` with `/s` reads badly. */
  readonly rate?: (perSecond: number) => string;
}

/** Draws while it is open, where stderr is a terminal. Disposing takes the line away. */
export class Progress implements Disposable {
  readonly #kind: ProgressKind;
  readonly #out: Output;
  readonly #startMs = performance.now();
  readonly #timer: ReturnType<typeof setInterval> | undefined;
  #done = 0;
  #total: number | null = null;
  #turn = 0;

  constructor(out: Output, kind: ProgressKind) {
    this.#out = out;
    this.#kind = kind;
    if (!out.isQuiet && Deno.stderr.isTerminal()) {
      this.#timer = setInterval(() => this.#draw(), REDRAW_MS);
      this.#draw();
    }
  }

  /** A total of null is not known. */
  update(done: number, total: number | null = null): void {
    this.#done = done;
    this.#total = total;
  }

  get seconds(): number {
    return (performance.now() - this.#startMs) / 1000;
  }

  [Symbol.dispose](): void {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#write("\r\x1b[K");
  }

  #draw(): void {
    this.#write(`\r\x1b[K${fitting(this.#line(), this.#out.noteColumns)}`);
  }

  #line(): string {
    const { what, amount, rate = (perSecond: number) => `${amount!(perSecond)}/s` } = this.#kind;
    const { seconds } = this;
    const elapsed = `${seconds.toFixed(0)} s`;
    if (!amount) return `${SPINNER[this.#turn++ % SPINNER.length]} ${what}  ${elapsed}`;
    const perSecond = this.#done / Math.max(seconds, 0.001);
    const speed = this.#done > 0 ? `  ${rate(perSecond)}` : "";
    if (this.#total === null) {
      return `${SPINNER[this.#turn++ % SPINNER.length]} ${what}  ${amount(this.#done)}${speed}  ${elapsed}`;
    }
    const share = this.#total > 0 ? Math.min(1, this.#done / this.#total) : 1;
    const filled = Math.round(share * BAR_COLUMNS);
    const left = this.#done > 0 ? `  ${Math.ceil((this.#total - this.#done) / perSecond)} s left` : "";
    return `${what} [${"#".repeat(filled)}${"-".repeat(BAR_COLUMNS - filled)}] ${
      (share * 100).toFixed(0).padStart(3)
    } %  ${amount(this.#done)} of ${amount(this.#total)}${speed}${left}`;
  }

  #write(text: string): void {
    this.#out.raw(text);
  }
}

/** As much of a line as a terminal has columns, so that it never wraps; what is not ASCII may take two. */
function fitting(line: string, columns: number): string {
  let shown = "";
  let used = 0;
  for (const character of visible(line)) {
    used += character <= "~" ? 1 : 2;
    if (used >= columns) break;
    shown += character;
  }
  return shown;
}

/** `12.3 MB`. */
export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
