/** Calls `wasm/reduce.wasm`, which scales a region of a plane of any size to the size of the frame filter's
 * planes.
 */

import type { Extent, Region } from "../../model/frames/coordinates.ts";
import { call, type ExportsOf, loadKernel } from "./load_kernel.ts";

/** What `assembly/reduce.ts` exports. The globals are numbers and addresses in its memory. */
const EXPORTS = {
  BAND: "global",
  BAND_BYTES: "global",
  EDGE_MAX: "global",
  PLANE: "global",
  ROW_FIRST: "global",
  ROW_COUNT: "global",
  configure: call<(width: number, height: number, resultWidth: number, resultHeight: number) => void>(),
  reduce: call<(from: number, to: number, stride: number, left: number) => void>(),
} as const;
type ReduceExports = ExportsOf<typeof EXPORTS>;

/**
 * Scales planes. Averages samples as they are and does not convert limited range into full range. ffmpeg does
 * the same for recorded media, and its samples differ by at most 1.
 */
export class PlaneReducer {
  readonly #module: ReduceExports;
  readonly #band: Uint8Array;
  readonly #bandBytes: number;
  readonly #plane: Uint8Array;
  readonly #rowFirst: Int32Array;
  readonly #rowCount: Int32Array;
  readonly #result: Extent;
  #width = 0;
  #height = 0;

  private constructor(module: ReduceExports, result: Extent) {
    const { buffer } = module.memory;
    const bandBytes = module.BAND_BYTES.value as number;
    this.#module = module;
    this.#result = result;
    this.#bandBytes = bandBytes;
    this.#band = new Uint8Array(buffer, module.BAND.value, bandBytes);
    this.#plane = new Uint8Array(buffer, module.PLANE.value, result.width * result.height);
    this.#rowFirst = new Int32Array(buffer, module.ROW_FIRST.value, result.height);
    this.#rowCount = new Int32Array(buffer, module.ROW_COUNT.value, result.height);
  }

  /**
   * Makes a reducer of planes that become `result`. Compiles the module and gives it memory of its own, 8
   * pages of 64 KiB.
   */
  static async load(result: Extent): Promise<PlaneReducer> {
    return new PlaneReducer(await loadKernel("reduce", EXPORTS), result);
  }

  /**
   * Scales `region` of the plane `source`, whose rows have `stride` bytes, into the first bytes of `target`.
   * Of each `step` rows of the region only the first is taken. Throws a RangeError for a region outside the
   * plane, or one with an edge above 8192.
   */
  reduce(source: Uint8Array, stride: number, region: Region, target: Uint8Array, step = 1): void {
    const height = Math.ceil(region.height / step);
    this.#configure(source, stride, region, height);
    // As many output rows at a time as their source rows fit into the band.
    const rows = this.#result.height;
    for (let from = 0; from < rows;) {
      const first = this.#rowFirst[from]!;
      const fits = Math.min(height, first + Math.floor(this.#bandBytes / stride));
      let to = from;
      while (to < rows && this.#rowFirst[to]! + this.#rowCount[to]! <= fits) to++;
      if (to === from) throw outside(stride, region);
      const end = this.#rowFirst[to - 1]! + this.#rowCount[to - 1]!;
      this.#copyRows(source, stride, region, first, end, step);
      this.#module.reduce(from, to, stride, region.x);
      from = to;
    }
    target.set(this.#plane);
  }

  /** Copies the taken rows `first` to `end` (exclusive) of a region into the band. */
  #copyRows(
    source: Uint8Array,
    stride: number,
    { x, y, width }: Region,
    first: number,
    end: number,
    step: number,
  ): void {
    // The last row of a plane may end before the stride does.
    const used = x + width;
    if (step === 1) {
      const start = (y + first) * stride;
      this.#band.set(source.subarray(start, start + (end - first - 1) * stride + used));
      return;
    }
    for (let row = first; row < end; row++) {
      const start = (y + row * step) * stride;
      this.#band.set(source.subarray(start, start + used), (row - first) * stride);
    }
  }

  /** Sets the kernel up for a region of which `taken` rows are averaged. */
  #configure(source: Uint8Array, stride: number, region: Region, taken: number): void {
    const { x, y, width, height } = region;
    const edgeMax = this.#module.EDGE_MAX.value as number;
    const isInside = x >= 0 && y >= 0 && width >= 1 && height >= 1 && x + width <= stride &&
      (y + height - 1) * stride + x + width <= source.length;
    if (!isInside || Math.max(stride, height) > edgeMax) throw outside(stride, region);
    if (width === this.#width && taken === this.#height) return;
    this.#module.configure(width, taken, this.#result.width, this.#result.height);
    this.#width = width;
    this.#height = taken;
  }
}

function outside(stride: number, { x, y, width, height }: Region): RangeError {
  return new RangeError(
    `Cannot reduce a region of ${width}x${height} at ${x},${y} as it must lie inside the plane (rows of ${stride} ` +
      "bytes), with edges of at most 8192",
  );
}
