/** What a replay says of each thing that it found, and how that looks: a shape, a word, and a colour on top.
 */

/** `scoreless` is a stored event that cannot be judged; `entered` is an entry that the film shows. */
export type ReplayVerdict = "accepted" | "rejected" | "scoreless" | "entered";

/** One stored event, or one entry into the zone. */
export interface ReplayMark {
  readonly key: string;
  readonly verdict: ReplayVerdict;
  /** Media time, milliseconds. */
  readonly ms: number;
  /** When the zone was left; null for an event, and where it was not left. */
  readonly endMs: number | null;
  readonly score: number | null;
  /** Of a stored event. */
  readonly seq: number | null;
}

export const VERDICTS: Readonly<
  Record<
    ReplayVerdict,
    {
      readonly mark: string;
      readonly name: string;
      readonly tone: "good" | "bad" | "calm" | "busy";
    }
  >
> = {
  accepted: { mark: "▲", name: "accepted", tone: "good" },
  rejected: { mark: "△", name: "rejected", tone: "bad" },
  scoreless: { mark: "?", name: "no score", tone: "calm" },
  entered: { mark: "◆", name: "entered in the film", tone: "busy" },
};
