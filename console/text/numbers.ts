/** Numbers as a person reads them. */

const UNITS = ["B", "KB", "MB", "GB", "TB"];

/** `812 B`, `4.1 MB`; 1 KB is 1,000 bytes. */
export function bytesText(bytes: number): string {
  let unit = 0;
  let value = bytes;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

const COUNT = new Intl.NumberFormat();

/** With the separators of the reader's language. */
export function countText(count: number): string {
  return COUNT.format(count);
}

/** `1 run`, `12 runs`. */
export function counted(count: number, noun: string): string {
  return `${countText(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** A confidence or score: `0.93`, `1`. */
export function scoreText(score: number): string {
  return String(Math.round(score * 100) / 100);
}
