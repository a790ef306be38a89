/** The reference implementation of `assembly/reduce.ts`: the same weights and roundings, one sample at a
 * time.
 */

const ONE = 16384;

/** Reduces a plane of `width` x `height` to as many samples as `output` has. */
export function referenceReduce(
  plane: Uint8Array,
  width: number,
  height: number,
  output: { width: number; height: number } = { width: 320, height: 180 },
): Uint8Array {
  const rows = Array.from({ length: output.height }, (_, row) => taps(height, output.height, row));
  const columns = Array.from({ length: output.width }, (_, column) => taps(width, output.width, column));
  const result = new Uint8Array(output.width * output.height);
  for (const [row, { first: top, weights: down }] of rows.entries()) {
    const line = Array.from({ length: width }, (_, x) => {
      const sum = down.reduce((total, weight, at) => total + weight * plane[(top + at) * width + x]!, 64);
      return Math.floor(sum / 128);
    });
    for (const [column, { first, weights }] of columns.entries()) {
      const sum = weights.reduce((total, weight, at) => total + weight * line[first + at]!, 2 ** 20);
      result[row * output.width + column] = Math.floor(sum / 2 ** 21);
    }
  }
  return result;
}

function taps(source: number, output: number, index: number): { first: number; weights: number[] } {
  return source >= output ? areaTaps(source, output, index) : linearTaps(source, output, index);
}

function areaTaps(source: number, output: number, index: number): { first: number; weights: number[] } {
  const [start, end] = [index * source, (index + 1) * source];
  const first = Math.floor(start / output);
  const weights: number[] = [];
  let before = 0;
  for (let sample = first; sample * output < end; sample++) {
    const covered = Math.min((sample + 1) * output, end) - start;
    const until = Math.floor(ONE * covered / source + 0.5);
    weights.push(until - before);
    before = until;
  }
  return { first, weights };
}

function linearTaps(source: number, output: number, index: number): { first: number; weights: number[] } {
  const position = ((2 * index + 1) * source - output) / (2 * output);
  if (position <= 0) return { first: 0, weights: [ONE] };
  const first = Math.floor(position);
  if (first >= source - 1) return { first: source - 1, weights: [ONE] };
  const next = Math.floor(
    (ONE * (((2 * index + 1) * source - output) % (2 * output)) + output) / (2 * output),
  );
  return { first, weights: [ONE - next, next] };
}
