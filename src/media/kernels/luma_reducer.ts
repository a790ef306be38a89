/** Calls `wasm/reduce.wasm`, which scales a region of a luma plane of any size to 320x180. */

import type { Region } from "../../model/frames/coordinates.ts";
import { PLANE_BYTES, PLANE_HEIGHT } from "./frame_filter.ts";
import { type ExportKinds, loadKernel } from "./load_kernel.ts";

/** What `assembly/reduce.ts` exports. The globals are numbers and addresses in its memory. */
interface ReduceExports {
  readonly memory: WebAssembly.Memory;
  readonly BAND: WebAssembly.Global;
  readonly BAND_BYTES: WebAssembly.Global;
  readonly EDGE_MAX: WebAssembly.Global;
  readonly PLANE: WebAssembly.Global;
  readonly ROW_FIRST: WebAssembly.Global;
  readonly ROW_COUNT: WebAssembly.Global;
  configure(width: number, height: number): void;
  reduce(from: number, to: number, stride: number, left: number): void;
}

const EXPORTS: ExportKinds<ReduceExports> = {
  memory: "memory",
  BAND: "global",
  BAND_BYTES: "global",
  EDGE_MAX: "global",
  PLANE: "global",
  ROW_FIRST: "global",
  ROW_COUNT: "global",
  configure: "function",
  reduce: "function",
};

/**
 * Averages samples as they are and does not convert limited range into full range. ffmpeg does the same for recorded media,
 * and its samples differ by at most 1.
 */
export class LumaReducer {
  readonly #module: ReduceExports;
  readonly #band: Uint8Array;
  readonly #bandBytes: number;
  readonly #plane: Uint8Array;
  readonly #rowFirst: Int32Array;
  readonly #rowCount: Int32Array;
  #width = 0;
  #height = 0;

  private constructor(module: ReduceExports) {
    const { buffer } = module.memory;
    const bandBytes = module.BAND_BYTES.value as number;
    this.#module = module;
    this.#bandBytes = bandBytes;
    this.#band = new Uint8Array(buffer, module.BAND.value, bandBytes);
    this.#plane = new Uint8Array(buffer, module.PLANE.value, PLANE_BYTES);
    this.#rowFirst = new Int32Array(buffer, module.ROW_FIRST.value, PLANE_HEIGHT);
    this.#rowCount = new Int32Array(buffer, module.ROW_COUNT.value, PLANE_HEIGHT);
  }

  /** Compiles the module and gives it memory of its own, 8 pages of 64 KiB. */
  static async load(): Promise<LumaReducer> {
    return new LumaReducer(await loadKernel("reduce", EXPORTS));
  }

  /**
   * Scales `region` of the plane `luma`, whose rows have `stride` bytes, into the first PLANE_BYTES of `target`. Throws a
   * RangeError for a region outside the plane, or one with an edge above 8192.
   */
  reduce(luma: Uint8Array, stride: number, region: Region, target: Uint8Array): void {
    const { x, y, width, height } = region;
    this.#configure(luma, stride, region);
    // As many output rows at a time as their source rows fit into the band.
    for (let from = 0; from < PLANE_HEIGHT;) {
      const first = this.#rowFirst[from]!;
      const fits = Math.min(height, first + Math.floor(this.#bandBytes / stride));
      let to = from;
      while (to < PLANE_HEIGHT && this.#rowFirst[to]! + this.#rowCount[to]! <= fits) to++;
      if (to === from) throw outside(stride, region);
      const end = this.#rowFirst[to - 1]! + this.#rowCount[to - 1]!;
      // The last row of a plane may end before the stride does.
      const bytes = (end - first - 1) * stride + x + width;
      const start = (y + first) * stride;
      this.#band.set(luma.subarray(start, start + bytes));
      this.#module.reduce(from, to, stride, x);
      from = to;
    }
    target.set(this.#plane);
  }

  #configure(luma: Uint8Array, stride: number, region: Region): void {
    const { x, y, width, height } = region;
    const edgeMax = this.#module.EDGE_MAX.value as number;
    const isInside = x >= 0 && y >= 0 && width >= 1 && height >= 1 && x + width <= stride &&
      (y + height - 1) * stride + x + width <= luma.length;
    if (!isInside || Math.max(stride, height) > edgeMax) throw outside(stride, region);
    if (width === this.#width && height === this.#height) return;
    this.#module.configure(width, height);
    this.#width = width;
    this.#height = height;
  }
}

function outside(stride: number, { x, y, width, height }: Region): RangeError {
  return new RangeError(
    `Cannot reduce a region of ${width}x${height} at ${x},${y} as it must lie inside the plane (rows of ${stride} ` +
      "bytes), with edges of at most 8192",
  );
}
