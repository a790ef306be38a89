/** What a check of a data directory found: damage, and notes of what is harmless; a bounded list of each, all
 * of them counted.
 */

/** Kinds of damage: something is lost, or is not what was written. */
export type DamageKind =
  | "damaged_bytes"
  | "missing_events"
  | "unreadable_file"
  | "missing_blob"
  | "damaged_blob"
  | "damaged_answer"
  | "damaged_deliveries"
  | "damaged_recording"
  | "damaged_format";

/** Kinds of notes: nothing is lost that was answered and is not accounted for. */
export type NoteKind =
  | "torn_write"
  | "unreferenced_blob"
  | "leftover_file"
  | "strange_file"
  | "unusable_snapshot"
  | "accepted_loss";

export interface CheckFinding {
  readonly kind: DamageKind | NoteKind;
  /** The path of the file, relative to the data directory. */
  readonly path: string;
  /** The first byte and the number of bytes, where the finding is a part of a file. */
  readonly offset?: number;
  readonly bytes?: number;
  /** The first and last sequence number of events that are lost. */
  readonly seqs?: readonly [from: number, to: number];
  readonly text: string;
}

type Details = Omit<CheckFinding, "kind" | "path" | "text">;

const LISTED_MAX = 1000;

export class Findings {
  readonly damage: CheckFinding[] = [];
  readonly notes: CheckFinding[] = [];
  readonly counts: Partial<Record<CheckFinding["kind"], number>> = {};
  damageCount = 0;
  readonly #listedMax: number;

  /** `listedMax`: how many findings each of the two lists holds. A repair needs all of the damage. */
  constructor(listedMax = LISTED_MAX) {
    this.#listedMax = listedMax;
  }

  /** Whether every finding is in the lists. */
  get isComplete(): boolean {
    return this.#listedMax === Infinity;
  }

  get isSound(): boolean {
    return this.damageCount === 0;
  }

  damaged(kind: DamageKind, path: string, text: string, details: Details = {}): void {
    this.damageCount += 1;
    this.#add(this.damage, { kind, path, ...details, text });
  }

  note(kind: NoteKind, path: string, text: string, details: Details = {}): void {
    this.#add(this.notes, { kind, path, ...details, text });
  }

  /** Adds all of `others`, in front of what comes later. */
  include(others: Findings): void {
    this.damageCount += others.damageCount;
    for (const [kind, count] of Object.entries(others.counts)) {
      const key = kind as CheckFinding["kind"];
      this.counts[key] = (this.counts[key] ?? 0) + count;
    }
    this.damage.push(...others.damage.slice(0, this.#listedMax - this.damage.length));
    this.notes.push(...others.notes.slice(0, this.#listedMax - this.notes.length));
  }

  #add(list: CheckFinding[], finding: CheckFinding): void {
    this.counts[finding.kind] = (this.counts[finding.kind] ?? 0) + 1;
    if (list.length < this.#listedMax) list.push(finding);
  }
}
