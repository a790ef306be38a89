/** Gradual transitions as trees find them that were fitted without the sources of what they judge. */

import { readRows } from "../cuts/rows.ts";
import { fitWithout } from "../cuts/validate.ts";
import { transitionTreesText } from "../cuts/weights_file.ts";
import { type StretchRows, stretchSum } from "../gradual/stretch_rows.ts";
import { STRETCH_ROWS, TRANSITIONS } from "../gradual/validate.ts";
import type { Maker } from "./cross_validated.ts";
import { DetectionCopy } from "./detection_copy.ts";
import type { RecordedVideo } from "./recording.ts";

export async function gradualApart(videos: readonly RecordedVideo[], folds: number): Promise<Maker> {
  const rows = await readRows<StretchRows>(STRETCH_ROWS);
  if (rows.kernelSum !== await stretchSum()) {
    throw new Error(
      "Stretches are measured otherwise than for the committed rows: see lab/fit_gradual.ts --measure",
    );
  }
  let fits = 0;
  return {
    async findWithout(left) {
      fits++;
      const apart = new Set(
        Array.from({ length: folds }, (_, fold) => fold).filter((fold) => left >> fold & 1),
      );
      const trees = fitWithout(rows, apart, folds, TRANSITIONS);
      const copy = await DetectionCopy.load({ "gradual/weights.ts": transitionTreesText(trees) });
      return [...copy.rangesOf(videos.map(({ recording }) => recording), "gradual_transition")];
    },
    summary: () => `trees were fitted ${fits} times`,
  };
}
