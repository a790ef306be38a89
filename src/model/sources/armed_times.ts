/** When a source is armed by its schedule: times of the week in a time zone, as a person writes them. See
 * docs/cameras.md#armed-times.
 */

import { LIMITS } from "../../contract/limits.ts";
import type { TomlTable } from "../toml_table.ts";

/** The field `armed` of a source. */
export interface ArmedTimes {
  readonly timeZone: string;
  readonly ranges: readonly WeekRange[];
}

interface WeekRange {
  /** The days on which the range begins: 1 is Monday, 7 Sunday. */
  readonly days: readonly number[];
  /** When the range begins: minutes since midnight. */
  readonly from: number;
  /** When the range ends: later than `from`; beyond 1440 on the next day. */
  readonly to: number;
}

/** What a schedule says at a time. */
export interface ScheduledState {
  readonly isArmed: boolean;
  /** When the schedule says the contrary, epoch milliseconds; null for never. */
  readonly changeMs: number | null;
}

const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const DAY_MINUTES = 1_440;
const RULE = 'must be a list of times such as "mon-fri 18:00-07:00", "sat,sun" or "22:00-06:30", at most ' +
  `${LIMITS.sources.armedTimesMax} of them`;

export function readArmedTimes(table: TomlTable): ArmedTimes | null {
  const { armed } = table.given(["armed"]);
  if (armed === undefined) return null;
  const isTable = typeof armed === "object" && armed !== null && !Array.isArray(armed);
  const { time_zone, times, ...others } = (isTable ? armed : {}) as Readonly<Record<string, unknown>>;
  if (!isTable || Object.keys(others).length > 0) {
    table.say("armed", 'must be { time_zone = "…", times = ["…"] }, and have nothing else');
    return null;
  }
  if (typeof time_zone !== "string" || !isTimeZone(time_zone)) {
    table.say("armed.time_zone", 'must be a time zone such as "Europe/Berlin" or "UTC"');
    return null;
  }
  const isList = Array.isArray(times) && times.length <= LIMITS.sources.armedTimesMax;
  const texts = isList && times.every((text) => typeof text === "string") ? times : null;
  const ranges = texts?.map(weekRange) ?? [null];
  const wrong = texts?.[ranges.indexOf(null)];
  if (ranges.includes(null)) {
    table.say(
      "armed.times",
      wrong === undefined ? RULE : `${RULE}: got ${JSON.stringify(wrong.slice(0, 40))}`,
    );
    return null;
  }
  return { timeZone: time_zone, ranges: ranges.filter((range) => range !== null) };
}

function isTimeZone(name: string): boolean {
  try {
    new Temporal.ZonedDateTime(0n, name);
    return true;
  } catch {
    return false;
  }
}

/**
 * Reads `mon-fri 18:00-07:00`; without days it is every day, without a time the whole day. Null for any other
 * text.
 */
export function weekRange(text: string): WeekRange | null {
  const [, daysText, fromText, toText] =
    /^(?:([a-z]{3}(?:[-,][a-z]{3})*)(?:\s+|$))?(?:(\d\d:\d\d)\s*-\s*(\d\d:\d\d))?$/.exec(
      text.trim().toLowerCase().replace(/\s*,\s*/g, ","),
    ) ?? [];
  if (daysText === undefined && fromText === undefined) return null;
  const days = daysText === undefined ? [1, 2, 3, 4, 5, 6, 7] : daysOf(daysText);
  const [from, end] = [minutesOf(fromText ?? "00:00"), minutesOf(toText ?? "24:00")];
  if (days === null || from === null || end === null || from === DAY_MINUTES || from === end) return null;
  return { days, from, to: end > from ? end : end + DAY_MINUTES };
}

/** Reads `mon,wed-fri`; `sat-mon` goes over the end of the week. */
function daysOf(text: string): readonly number[] | null {
  const days = new Set<number>();
  for (const part of text.split(",")) {
    const ends = part.split("-").map((name) => DAYS.indexOf(name));
    const [first = -1, last = first] = ends;
    if (ends.length > 2 || first < 0 || last < 0) return null;
    for (let day = first;; day = (day + 1) % 7) {
      days.add(day + 1);
      if (day === last) break;
    }
  }
  return [...days].sort();
}

function minutesOf(text: string): number | null {
  const [hours, minutes] = text.split(":").map(Number) as [number, number];
  const isTime = minutes < 60 && hours * 60 + minutes <= DAY_MINUTES;
  return isTime ? hours * 60 + minutes : null;
}

/**
 * The days before today whose ranges may last until now, and the days ahead in which each day of the week is
 * there in full twice: on one such day a clock which is set forward may skip the time, or the time between
 * two.
 */
const [DAYS_BEFORE, DAYS_AHEAD] = [2, 16];

/** A stretch of time in which the source is armed, epoch milliseconds. */
interface ArmedStretch {
  readonly fromMs: number;
  readonly toMs: number;
}

/** What a schedule says in a stretch of time: epoch milliseconds, the second one outside. */
interface KnownState extends ArmedStretch {
  readonly state: ScheduledState;
}

/**
 * How many answers of each schedule are kept, as lists and metrics ask again and again: one for now, one for
 * the end of a call.
 */
const KNOWN_MAX = 2;
const knownStates = new WeakMap<ArmedTimes, readonly KnownState[]>();

export function scheduledAt(times: ArmedTimes, nowMs: number): ScheduledState {
  const known = knownStates.get(times) ?? [];
  const holding = known.find(({ fromMs, toMs }) => fromMs <= nowMs && nowMs < toMs);
  if (holding) return holding.state;
  const today = Temporal.Instant.fromEpochMilliseconds(nowMs).toZonedDateTimeISO(times.timeZone)
    .toPlainDate();
  const state = stateOn(times, today, nowMs);
  const toMs = state.changeMs ?? today.add({ days: 1 }).toZonedDateTime(times.timeZone).epochMilliseconds;
  knownStates.set(times, [{ fromMs: nowMs, toMs, state }, ...known].slice(0, KNOWN_MAX));
  return state;
}

function stateOn(times: ArmedTimes, today: Temporal.PlainDate, nowMs: number): ScheduledState {
  const stretches = stretchesOf(times, today);
  let endMs = -Infinity;
  for (const { fromMs, toMs } of stretches) {
    const isReached = fromMs <= nowMs ? toMs > nowMs : fromMs <= endMs;
    if (isReached) endMs = Math.max(endMs, toMs);
  }
  if (endMs === -Infinity) {
    return { isArmed: false, changeMs: stretches.find(({ fromMs }) => fromMs > nowMs)?.fromMs ?? null };
  }
  const horizon = today.add({ days: DAYS_AHEAD }).toZonedDateTime(times.timeZone).epochMilliseconds;
  return { isArmed: true, changeMs: endMs < horizon ? endMs : null };
}

/**
 * The stretches of a schedule around a day, the earliest first. One that is skipped as a whole is left out,
 * as nothing changes at it.
 */
function stretchesOf({ timeZone, ranges }: ArmedTimes, today: Temporal.PlainDate): ArmedStretch[] {
  const stretches: ArmedStretch[] = [];
  for (let day = -DAYS_BEFORE; day <= DAYS_AHEAD; day++) {
    const date = today.add({ days: day });
    for (const range of ranges) {
      if (!range.days.includes(date.dayOfWeek)) continue;
      const fromMs = momentOf(date, range.from, { timeZone, isStart: true });
      const toMs = momentOf(date, range.to, { timeZone, isStart: false });
      if (fromMs < toMs) stretches.push({ fromMs, toMs });
    }
  }
  return stretches.sort((one, other) => one.fromMs - other.fromMs);
}

/**
 * The moment of a wall time. A time that the clock skips when it is set forward is the moment at which it is
 * set; a time that comes twice is the first moment for a start and the second one for an end: nothing is
 * armed for less than the file says.
 */
function momentOf(
  date: Temporal.PlainDate,
  minutes: number,
  { timeZone, isStart }: { readonly timeZone: string; readonly isStart: boolean },
): number {
  const day = date.add({ days: Math.floor(minutes / DAY_MINUTES) });
  const left = minutes % DAY_MINUTES;
  const wall = day.toPlainDateTime({ hour: Math.floor(left / 60), minute: left % 60 });
  const moment = wall.toZonedDateTime(timeZone, { disambiguation: isStart ? "earlier" : "later" });
  if (moment.toPlainDateTime().equals(wall)) return moment.epochMilliseconds;
  const after = wall.toZonedDateTime(timeZone, { disambiguation: "later" });
  return (after.getTimeZoneTransition("previous") ?? after).epochMilliseconds;
}
