/** FrameAnalyser, the hot path: the signals of each reduced frame, the faults among them, and the rows.
 * Allocates nothing per frame.
 */

import { CUT_SCORE_THRESHOLD } from "../../model/frames/signals.ts";
import { FrameFilter, loadFilter } from "../kernels/frame_filter.ts";
import { ArtifactDetector } from "./faults/artifact_detector.ts";
import type { FilterColumns } from "./filter_columns.ts";
import { type CollectedRows, RowCollector } from "./row_collector.ts";

/**
 * A frame filter that also judges each frame, and keeps the rows.
 *
 * ```
 * staging --push--> ring of 4096 frames --each final frame--> rows --columns(), takeFinalRows()--> the caller
 * ```
 *
 * All frames are judged; those that are pushed as rows are kept. See docs/frames.md#sampling.
 */
export class FrameAnalyser extends FrameFilter {
  /** The ring with the judgements, which are not in the module's memory. */
  readonly #judged: FilterColumns;
  /** Which frames of the ring are rows. */
  readonly #isRow: Uint8Array;
  /** What collects rows; null where none are kept. */
  readonly #collector: RowCollector | null;
  readonly #artifacts = new ArtifactDetector();
  /** Frames below this index have passed through `#collector`. */
  #collected = 0;
  #rows = 0;
  #taken = 0;
  #isEnded = false;

  private constructor(module: Awaited<ReturnType<typeof loadFilter>>, keepsRows: boolean) {
    super(module);
    const { length } = this.ring.ptsMs;
    this.#judged = {
      ...this.ring,
      artifactScore: new Float32Array(length),
      artifactKind: new Uint8Array(length),
    };
    this.#isRow = new Uint8Array(length);
    this.#collector = keepsRows ? new RowCollector() : null;
  }

  /**
   * Compiles the module and gives it memory of its own. `keepsRows: false` is for endless streams: the frames
   * of the ring can be read, and nothing else is kept.
   */
  static override async load({ keepsRows = true }: { keepsRows?: boolean } = {}): Promise<FrameAnalyser> {
    return new FrameAnalyser(await loadFilter(), keepsRows);
  }

  /** How many of the frames pushed since `reset` are rows. */
  get rows(): number {
    return this.#rows;
  }

  override reset(): void {
    super.reset();
    this.#collector?.reset();
    this.#artifacts.reset();
    this.#collected = 0;
    this.#rows = 0;
    this.#taken = 0;
    this.#isEnded = false;
  }

  /** Does what the filter does; what the decoder says of the frame may follow. */
  override push(offset: number, ptsMs: number, isRow = true, hasLines = false): void {
    super.push(offset, ptsMs, isRow, hasLines);
    this.#artifacts.push(this.artifactMeasures, this.rangeMeasures.cellSums, ptsMs);
    this.#isRow[(this.count - 1) % this.#isRow.length] = isRow ? 1 : 0;
    if (isRow) this.#rows++;
    this.#collect(this.count - this.cutLookahead);
  }

  /**
   * Takes what the decoder says of the next frame that has no report yet: bits of `REPORT`, 0 for nothing. A
   * frame whose report has not come when it is judged, `cutLookahead` frames later or by `judgeArtifact`, has
   * none.
   */
  report(report: number): void {
    this.#artifacts.report(report);
  }

  override finish(): void {
    super.finish();
    this.#isEnded = true;
    this.#collect(this.count);
    this.#collector?.finish();
  }

  /**
   * Whether later frames may still show that frame `index` is at fault; false is final. The frames before it
   * were judged.
   */
  isArtifactOpen(index: number): boolean {
    this.checkRow(index);
    return !this.isFinal(index) && this.#artifacts.isOpen(index);
  }

  /**
   * Judges the next frame by those that have come, for streams without rows; rows are judged when they are
   * final. Frames are judged once and in order. `into` gets the scores at its row 0; a cut that damage only
   * looks like loses its own.
   */
  judgeArtifact(index: number, isCut: boolean, into: FilterColumns): void {
    if (this.#collector || index !== this.#artifacts.decided) {
      throw new RangeError(`Cannot judge frame ${index} as it is not the next one`);
    }
    this.#artifacts.decide(isCut);
    into.artifactScore[0] = this.#artifacts.score;
    into.artifactKind[0] = this.#artifacts.kind;
    if (!this.#artifacts.isNoCut) return;
    into.cutScore[0] = 0;
    if (this.isFinal(index)) this.ring.cutScore[index % this.#isRow.length] = 0;
  }

  /** All rows since `reset`, after `finish`. The filter keeps none of them. */
  columns(): CollectedRows & { readonly count: number } {
    this.#keeping();
    if (!this.#isEnded || this.#taken > 0) {
      throw new Error("Cannot give columns before all frames have come, or after some rows were taken");
    }
    return this.takeFinalRows();
  }

  /**
   * How many rows `takeFinalRows` would give. A row is final when its cut score is and another row has come,
   * because the frames in between may be the last ones and count to it.
   */
  get finalRows(): number {
    const collected = this.#keeping().count;
    const isNewestOpen = !this.#isEnded && this.#taken + collected === this.#rows;
    return isNewestOpen ? Math.max(0, collected - 1) : collected;
  }

  /** The times of all cuts among the final frames, rising. */
  get cutsMs(): readonly number[] {
    return this.#keeping().cutsMs;
  }

  /**
   * The final rows that were not taken before, in order: for a stream, whose rows are used long before its
   * end.
   */
  takeFinalRows(): CollectedRows & { readonly count: number } {
    const rows = this.#keeping().take(this.finalRows);
    this.#taken += rows.count;
    return rows;
  }

  #keeping(): RowCollector {
    if (!this.#collector) {
      throw new Error("Cannot give columns as the filter was loaded without keeping rows");
    }
    return this.#collector;
  }

  /** Passes on the frames up to `end` (exclusive), whose cut scores are final. */
  #collect(end: number): void {
    if (!this.#collector) return;
    const judged = this.#judged;
    for (; this.#collected < end; this.#collected++) {
      const slot = this.#collected % this.#isRow.length;
      this.#artifacts.decide(judged.cutScore[slot]! >= CUT_SCORE_THRESHOLD);
      judged.artifactScore[slot] = this.#artifacts.score;
      judged.artifactKind[slot] = this.#artifacts.kind;
      if (this.#artifacts.isNoCut) judged.cutScore[slot] = 0;
      this.#collector.add(judged, this.hashHalves, slot, this.#isRow[slot] === 1);
    }
  }
}
