/** Suggests the known word that a misspelt one may stand for. */

/** A hint, `, did you mean "motion_score"?`, or nothing when no word is near. */
export function didYouMean(word: string, known: readonly string[]): string {
  const near = nearest(word, known);
  return near === undefined ? "" : `, did you mean "${near}"?`;
}

/** The shortest beginning of a word that is taken for one: a shorter one fits too many words. */
const BEGINNING_CHARACTERS = 3;

/** The known word with the fewest edits, if these are few; else the first that begins with `word`. */
function nearest(word: string, known: readonly string[]): string | undefined {
  const lower = word.toLowerCase();
  let best: string | undefined;
  let fewest = Infinity;
  for (const candidate of known) {
    const allowed = Math.max(1, Math.floor(candidate.length / 3));
    // Words of very different length need more edits than allowed, so they are not compared.
    if (Math.abs(candidate.length - lower.length) > allowed) continue;
    const distance = edits(lower, candidate);
    if (distance <= allowed && distance < fewest) [best, fewest] = [candidate, distance];
  }
  if (best !== undefined || lower.length < BEGINNING_CHARACTERS) return best;
  return known.find((candidate) => candidate.startsWith(lower));
}

/** The number of letters to insert, remove, replace or swap with their neighbour to turn `from` into `to`. */
function edits(from: string, to: string): number {
  const rows = Array.from({ length: from.length + 1 }, (_, row) => [row]);
  for (let column = 1; column <= to.length; column++) rows[0]!.push(column);
  for (let row = 1; row <= from.length; row++) {
    for (let column = 1; column <= to.length; column++) {
      const replaced = rows[row - 1]![column - 1]! + (from[row - 1] === to[column - 1] ? 0 : 1);
      let least = Math.min(rows[row - 1]![column]! + 1, rows[row]![column - 1]! + 1, replaced);
      const isSwap = row > 1 && column > 1 && from[row - 1] === to[column - 2] &&
        from[row - 2] === to[column - 1];
      if (isSwap) least = Math.min(least, rows[row - 2]![column - 2]! + 1);
      rows[row]!.push(least);
    }
  }
  return rows[from.length]![to.length]!;
}
