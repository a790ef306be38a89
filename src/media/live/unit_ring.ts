/** The newest encoded units of one live session, from key frame to key frame, bounded by bytes. */

import type { CopiedUnit } from "../containers/copied_packets.ts";

export interface UnitRingOptions {
  readonly bytesMax: number;
  /** How much of the past is kept at least, if it fits: the ring begins with a key frame that is older. */
  readonly keepMs: number;
}

/**
 * ```
 *   [ key · · · key · · · · key · · · ]        units in decoding order, sound between them
 *     ^ oldest      ^ keepMs ago     ^ newest
 * ```
 * The ring always begins with a key frame. Beyond `bytesMax` it begins with a later one, and is empty where
 * there is none. Its parts, between the calls of `cut`, do not fit into one file.
 */
export class UnitRing {
  readonly #keepMs: number;
  #bytesMax: number;
  #units: CopiedUnit[] = [];
  #bytes = 0;
  /** Time from which on nothing is forgotten for its age. */
  #heldFromMs = Infinity;
  /** Key frames with which a part begins. */
  readonly #begins = new WeakSet<CopiedUnit>();
  #isCut = false;

  constructor({ bytesMax, keepMs }: UnitRingOptions) {
    this.#bytesMax = bytesMax;
    this.#keepMs = keepMs;
  }

  /** Sets another bound of bytes, from the next unit on. */
  limit(bytesMax: number): void {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether the unit cannot be added without taking out others that are younger than `keepMs`. */
  isFullFor({ data }: CopiedUnit): boolean {
    return this.#bytes + data.length > this.#bytesMax;
  }

  push(unit: CopiedUnit): void {
    const isKeyframe = unit.isVideo && unit.isKeyframe;
    if (isKeyframe) this.#forgetBefore(Math.min(unit.ptsMs - this.#keepMs, this.#heldFromMs));
    while (this.isFullFor(unit) && this.#units.length > 0) this.#dropFirstGroup();
    if (this.#units.length === 0 && (!isKeyframe || this.isFullFor(unit))) return;
    this.#units.push(unit);
    this.#bytes += unit.data.length;
    if (!this.#isCut || !isKeyframe) return;
    this.#begins.add(unit);
    this.#isCut = false;
  }

  /** Lets the next key frame begin another part. */
  cut(): void {
    this.#isCut = true;
  }

  /** Keeps what is needed from this time on until `release`, if it fits. */
  hold(fromMs: number): void {
    this.#heldFromMs = fromMs;
  }

  release(): void {
    this.#heldFromMs = Infinity;
  }

  clear(): void {
    this.#units = [];
    this.#bytes = 0;
    this.#isCut = false;
  }

  /**
   * The units from the last key frame at or before `fromMs` on, or from the first one; sound of before is
   * left out.
   */
  from(fromMs: number): CopiedUnit[] {
    const at = Math.max(0, this.#lastKeyframeUntil(fromMs));
    const startMs = this.#units[at]?.ptsMs ?? 0;
    return this.#units.slice(at).filter(({ isVideo, ptsMs }) => isVideo || ptsMs >= startMs);
  }

  /**
   * The units of `from` that are in the same part as the picture that is shown at `atMs`; none where that
   * part is gone.
   */
  partFrom(fromMs: number, atMs: number): CopiedUnit[] {
    const units = this.from(fromMs);
    const begin = units.findLastIndex((unit) => this.#begins.has(unit) && unit.ptsMs <= atMs);
    if (begin === -1 && units[0] && this.#begins.has(units[0])) return [];
    const startMs = units[begin]?.ptsMs ?? -Infinity;
    const end = units.findIndex((unit, at) => at > begin && this.#begins.has(unit));
    const endMs = units[end]?.ptsMs ?? Infinity;
    return units.filter(({ isVideo, ptsMs }, at) =>
      isVideo ? at >= begin && (end === -1 || at < end) : ptsMs >= startMs && ptsMs < endMs
    );
  }

  /** When the part ends that has the picture shown at `atMs`; Infinity for the newest part. */
  partEndMs(atMs: number): number {
    return this.#units.find((unit) => this.#begins.has(unit) && unit.ptsMs > atMs)?.ptsMs ?? Infinity;
  }

  #lastKeyframeUntil(ptsMs: number): number {
    return this.#units.findLastIndex((unit) => unit.isVideo && unit.isKeyframe && unit.ptsMs <= ptsMs);
  }

  #forgetBefore(ptsMs: number): void {
    this.#drop(Math.max(0, this.#lastKeyframeUntil(ptsMs)));
  }

  #dropFirstGroup(): void {
    const next = this.#units.findIndex((unit, index) => index > 0 && unit.isVideo && unit.isKeyframe);
    this.#drop(next === -1 ? this.#units.length : next);
  }

  #drop(count: number): void {
    for (const { data } of this.#units.splice(0, count)) this.#bytes -= data.length;
  }
}
