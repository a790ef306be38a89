/** Gradual transitions as trees find them that were fitted without the sources of what they judge. */

import { oddsByTrees } from "../../src/base/fitted_trees.ts";
import { RangeDetectors } from "../../src/media/detection/range_detectors.ts";
import { readRows } from "../cuts/rows.ts";
import { fitWithout } from "../cuts/validate.ts";
import { rowsOf } from "../cuts/weights_file.ts";
import { type StretchRows, stretchSum } from "../gradual/stretch_rows.ts";
import { TRANSITIONS } from "../gradual/validate.ts";
import type { Maker } from "./cross_validated.ts";
import { rangesIn } from "./detected.ts";
import type { RecordedVideo } from "./recording.ts";

export async function gradualApart(videos: readonly RecordedVideo[], folds: number): Promise<Maker> {
  const rows = await readRows<StretchRows>(rowsOf("gradual"));
  if (rows.kernelSum !== await stretchSum()) {
    throw new Error(
      "Stretches are measured otherwise than for the committed rows: see lab/fit_gradual.ts --measure",
    );
  }
  let fits = 0;
  return {
    findWithout(left) {
      fits++;
      const apart = new Set(
        Array.from({ length: folds }, (_, fold) => fold).filter((fold) => left >> fold & 1),
      );
      const trees = fitWithout(rows, apart, folds, TRANSITIONS);
      const judge = (values: Uint8Array) => oddsByTrees(trees, values);
      const found = rangesIn(
        videos.map(({ recording }) => recording),
        (cuts) => new RangeDetectors(cuts, ["gradual_transition"], { judge }),
      );
      return Promise.resolve([...found]);
    },
    summary: () => `trees were fitted ${fits} times`,
  };
}
