/** The tables of a measurement: each figure in total, and for each kind of video. */

import {
  addCounts,
  type Counts,
  type Figure,
  FIGURES,
  type Predictions,
  type Rates,
  rates,
  tallyVideo,
  type VideoTally,
} from "./score.ts";
import { kindOf, type LabelledVideo } from "./videos.ts";

/** Sums of one kind, or of all. */
export interface KindTotal {
  readonly counts: Partial<Record<Figure, Counts>>;
  videos: number;
  cleanSeconds: number;
  falseArtifactMarkers: number;
}

/** Sums by kind; the last row has the name `TOTAL`. */
export type Totals = ReadonlyMap<string, KindTotal>;

/** A row of cells; the first table row is the head. */
type Table = readonly (readonly string[])[];

/** How a table is written: aligned text, or Markdown. */
export type TableForm = "text" | "markdown";

const TITLES: Readonly<Record<Figure, string>> = {
  cuts: "hard cuts",
  gradual: "gradual transitions",
  flashes: "flashes",
  freezes: "freezes",
  black: "black",
  loops: "repeats",
  artifacts: "faults, by range",
  artifact_frames: "faults, by frame",
};
const FALSE_MARKERS = "false fault markers in 10 clean minutes";

/** A detector that finds nothing in any video although there is something is not there. */
const ABSENT = "not there";

/** Sums by kind, in alphabetical order, and last of all videos under the name `TOTAL`. */
export function totalsOf(
  tallies: readonly { readonly kind: string; readonly tally: VideoTally }[],
): Map<string, KindTotal> {
  const kinds = [...new Set(tallies.map(({ kind }) => kind))].sort();
  const totals = new Map<string, KindTotal>(
    [...kinds, "TOTAL"].map((
      kind,
    ) => [kind, { counts: {}, videos: 0, cleanSeconds: 0, falseArtifactMarkers: 0 }]),
  );
  for (const { kind, tally } of tallies) {
    for (const total of [totals.get(kind)!, totals.get("TOTAL")!]) {
      for (const figure of FIGURES) {
        const counts = tally.counts[figure];
        if (counts) total.counts[figure] = addCounts(total.counts[figure], counts);
      }
      total.videos++;
      total.cleanSeconds += tally.clean.seconds;
      total.falseArtifactMarkers += tally.clean.artifactMarkers;
    }
  }
  return totals;
}

/** The sums of what was found in the videos, in their order. */
export function totalsOfVideos(
  videos: readonly LabelledVideo[],
  predictions: readonly Predictions[],
): Totals {
  return totalsOf(videos.map(({ truth }, at) => ({
    kind: kindOf(truth),
    tally: tallyVideo(truth, predictions[at]!),
  })));
}

/** The sums of all videos. */
export function sumOf(totals: Totals): KindTotal {
  return totals.get("TOTAL")!;
}

/** What was found in total; null for a detector that is not there. */
export function rateOf(total: KindTotal, figure: Figure): Rates | null {
  const counts = total.counts[figure];
  return counts && (counts.hits + counts.falseAlarms > 0 || counts.misses === 0) ? rates(counts) : null;
}

/**
 * False artifact markers in ten minutes of clean video; null where there is none, or no detector in all
 * videos.
 */
export function falseMarkersInTenMinutes(total: KindTotal, all: KindTotal = total): number | null {
  const isThere = rateOf(all, "artifact_frames") !== null;
  return isThere && total.cleanSeconds > 0 ? 600 * total.falseArtifactMarkers / total.cleanSeconds : null;
}

/**
 * Precision, recall and F1 of each figure in total. Several measurements stand side by side, each with its
 * name, as in-sample and cross-validated.
 */
export function totalTable(named: readonly (readonly [string, Totals])[], form: TableForm = "text"): string {
  const head = named.flatMap(([name]) => {
    const prefix = name === "" ? "" : `${name} `;
    return [`${prefix}P`, "R", "F1", "found/false/missed"];
  });
  const figures = FIGURES.filter((figure) => named.some(([, totals]) => sumOf(totals).counts[figure]));
  const rows = figures.map((figure) => [
    TITLES[figure],
    ...named.flatMap(([, totals]) => {
      const counts = sumOf(totals).counts[figure];
      const rate = rateOf(sumOf(totals), figure);
      if (!counts || !rate) return [ABSENT, "", "", ""];
      const { precision, recall, f1 } = rate;
      return [precision, recall, f1].map((number) => number.toFixed(3)).concat(listed(counts));
    }),
  ]);
  const clean = named.flatMap(([, totals]) => {
    const count = falseMarkersInTenMinutes(sumOf(totals));
    return [count === null ? ABSENT : count.toFixed(2), "", "", ""];
  });
  return written(
    [["figure", ...head], ...rows, [FALSE_MARKERS, ...clean]],
    form,
  );
}

/**
 * F1 of each figure with its counts `found/false/missed`; a figure without anything to find or found is left
 * empty. With a `second` measurement its F1 follows in brackets where it differs.
 */
export function scoreTable(totals: Totals, form: TableForm = "text", second?: Totals): string {
  const used = FIGURES.filter((figure) => sumOf(totals).counts[figure]);
  const rows = [...totals].map(([kind, total]) => [
    kind,
    String(total.videos),
    ...used.map((figure) =>
      rateOf(sumOf(totals), figure)
        ? cell(total.counts[figure], second?.get(kind)?.counts[figure])
        : kind === "TOTAL"
        ? ABSENT
        : ""
    ),
    falseMarkersInTenMinutes(total, sumOf(totals))?.toFixed(1) ?? "",
  ]);
  return written(
    [["kind", "videos", ...used.map((figure) => TITLES[figure]), FALSE_MARKERS], ...rows],
    form,
  );
}

function cell(counts: Counts | undefined, second: Counts | undefined): string {
  if (!counts || counts.hits + counts.falseAlarms + counts.misses === 0) return "";
  const own = rates(counts).f1.toFixed(3);
  const other = second && rates(second).f1.toFixed(3);
  return `${own}${other !== undefined && other !== own ? ` (${other})` : ""} ${listed(counts)}`;
}

function listed({ hits, falseAlarms, misses }: Counts): string {
  return `${hits}/${falseAlarms}/${misses}`;
}

/** Writes rows of cells; the first is the head. */
export function written(table: Table, form: TableForm): string {
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)));
  const lines = table.map((row) => row.map((text, column) => text.padEnd(widths[column]!)));
  if (form === "text") return lines.map((cells) => cells.join("  ").trimEnd()).join("\n");
  const rule = widths.map((width) => "-".repeat(width));
  return [lines[0]!, rule, ...lines.slice(1)].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}
