/** The table of a measurement: each figure for each kind of video and in total. */

import { addCounts, type Counts, type Figure, FIGURES, rates, type VideoTally } from "./score.ts";

/** Sums of one kind, or of all. */
export interface KindTotal {
  readonly counts: Partial<Record<Figure, Counts>>;
  videos: number;
  cleanSeconds: number;
  falseArtifactMarkers: number;
}

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

/** F1 of each figure with its counts `hits/false/missed`; a figure without anything to find or found is left empty. */
export function scoreTable(totals: ReadonlyMap<string, KindTotal>): string {
  const used = FIGURES.filter((figure) => totals.get("TOTAL")?.counts[figure]);
  const rows = [...totals].map(([kind, { counts, videos, cleanSeconds, falseArtifactMarkers }]) => [
    kind,
    String(videos),
    ...used.map((figure) => cell(counts[figure])),
    cleanSeconds > 0 ? (600 * falseArtifactMarkers / cleanSeconds).toFixed(1) : "",
  ]);
  const table = [["kind", "videos", ...used, "false artifact markers in 10 clean minutes"], ...rows];
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)));
  return table.map((row) => row.map((text, column) => text.padEnd(widths[column]!)).join("  ").trimEnd())
    .join("\n");
}

function cell(counts: Counts | undefined): string {
  if (!counts) return "";
  const { hits, falseAlarms, misses } = counts;
  if (hits + falseAlarms + misses === 0) return "";
  return `${rates(counts).f1.toFixed(3)} ${hits}/${falseAlarms}/${misses}`;
}
