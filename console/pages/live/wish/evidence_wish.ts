/** What is wanted of the evidence of a session: films around what happens, and explanations that follow it.
 */

import type { AttachConfig } from "../../../../client/mod.ts";

type Recorded = NonNullable<AttachConfig["record"]>;
type Explained = NonNullable<AttachConfig["enrich"]>;

export type FilmCause = NonNullable<Recorded["on"]>[number];
export type ExplainedCause = NonNullable<Explained["on"]>[number];

/** All numbers are texts, as they are typed. */
export interface FilmWish {
  readonly secondsBefore: string;
  readonly secondsAfter: string;
  /** Those that the session does not have are left out. */
  readonly on: readonly FilmCause[];
}

export interface ExplainWish {
  readonly seconds: string;
  readonly on: readonly ExplainedCause[];
}

/** What else the session has. */
export interface EvidenceBeside {
  readonly hasZone: boolean;
  readonly hasTrigger: boolean;
}

export const FIRST_FILMS: FilmWish = {
  secondsBefore: "5",
  secondsAfter: "5",
  on: ["zone", "trigger", "scene_cut"],
};
export const FIRST_EXPLAIN: ExplainWish = { seconds: "30", on: ["zone", "trigger", "scene_cut"] };

/** Whether the session can have it: nothing waits for a zone that is not there. */
export function isPossible(cause: FilmCause, { hasZone, hasTrigger }: EvidenceBeside): boolean {
  return cause === "zone" ? hasZone : cause === "trigger" ? hasTrigger : true;
}

export function possible<Cause extends FilmCause>(on: readonly Cause[], beside: EvidenceBeside): Cause[] {
  return on.filter((cause) => isPossible(cause, beside));
}

/** By field; undefined where it is as it should be. */
export function filmFaults({ secondsBefore, secondsAfter, on }: FilmWish, beside: EvidenceBeside) {
  return {
    secondsBefore: rangeFault(secondsBefore, 0, 30),
    secondsAfter: rangeFault(secondsAfter, 0, 60),
    on: noneFault(on, beside),
  };
}

export function explainFaults({ seconds, on }: ExplainWish, beside: EvidenceBeside) {
  return { seconds: rangeFault(seconds, 1, 120), on: noneFault(on, beside) };
}

export function recordOf({ secondsBefore, secondsAfter, on }: FilmWish, beside: EvidenceBeside): Recorded {
  return {
    pre_roll_ms: milliseconds(secondsBefore),
    post_roll_ms: milliseconds(secondsAfter),
    on: possible(on, beside),
  };
}

export function enrichOf({ seconds, on }: ExplainWish, beside: EvidenceBeside): Explained {
  return { on: possible(on, beside), deadline_ms: milliseconds(seconds) };
}

export function rangeFault(text: string, least: number, most: number): string | undefined {
  const value = Number(text);
  return text.trim() !== "" && value >= least && value <= most
    ? undefined
    : `A number from ${least} to ${most}.`;
}

function noneFault(on: readonly FilmCause[], beside: EvidenceBeside): string | undefined {
  return possible(on, beside).length > 0 ? undefined : "Choose one at least.";
}

function milliseconds(seconds: string): number {
  return Math.round(Number(seconds) * 1000);
}
