/** Times as a person reads them. */

/** Media time: `0:11.875`, `1:02:03.004`. */
export function mediaTime(ms: number): string {
  const whole = Math.max(0, Math.round(ms));
  const hours = Math.floor(whole / 3_600_000);
  const minutes = Math.floor(whole / 60_000) % 60;
  const seconds = String(Math.floor(whole / 1000) % 60).padStart(2, "0");
  const millis = String(whole % 1000).padStart(3, "0");
  const head = hours > 0 ? `${hours}:${String(minutes).padStart(2, "0")}` : `${minutes}`;
  return `${head}:${seconds}.${millis}`;
}

const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const DATE_AND_CLOCK = new Intl.DateTimeFormat(undefined, {
  dateStyle: "medium",
  timeStyle: "medium",
});

/** Wall-clock time in the reader's zone, epoch milliseconds. */
export function clock(ms: number): string {
  return CLOCK.format(ms);
}

/** The same with its date. */
export function dateAndClock(ms: number): string {
  return DATE_AND_CLOCK.format(ms);
}

/** `640 ms`, `8.2 s`, `12 min`, `3 h 20 min`, `2 days`. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const minutes = Math.round(ms / 60_000);
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 48 * 60) {
    return `${Math.floor(minutes / 60)} h${minutes % 60 === 0 ? "" : ` ${minutes % 60} min`}`;
  }
  return `${Math.round(minutes / 1440)} days`;
}

/** `just now`, `40 s ago`, `3 h 20 min ago`. */
export function ago(ms: number, nowMs: number = Date.now()): string {
  const past = nowMs - ms;
  return past < 2000 ? "just now" : `${durationText(past)} ago`;
}

/** A time as fields of forms have it, in the reader's zone: `2026-11-24T10:15:00`. */
export function localText(ms: number): string {
  const at = new Date(ms);
  const two = (value: number) => String(value).padStart(2, "0");
  const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${date}T${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}
