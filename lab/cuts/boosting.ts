/** Gradient-boosted trees on small whole numbers: fits and evaluates the classifier of cuts. */

/** Samples: `width` numbers from 0 to 255 each, row by row. */
export interface Samples {
  readonly width: number;
  readonly values: Uint8Array;
  /** What each sample is: 1 or 0. */
  readonly labels: Uint8Array;
  readonly weights: Float64Array;
}

/**
 * A node that asks whether a number is above `threshold`; `low` and `high` are nodes, or leaves as -1 -
 * index.
 */
export interface Split {
  readonly feature: number;
  readonly threshold: number;
  low: number;
  high: number;
}

export interface Tree {
  readonly splits: readonly Split[];
  readonly leaves: readonly number[];
}

export interface Model {
  readonly bias: number;
  readonly trees: readonly Tree[];
}

export interface FitOptions {
  readonly trees: number;
  readonly leaves: number;
  readonly rate: number;
  /** Least number of samples in a leaf. */
  readonly leastSamples: number;
  /** What is added to the denominators of gains and leaves. */
  readonly shrinkage: number;
  /** Share of the numbers that a tree may ask for, drawn for each tree. */
  readonly features: number;
  readonly random: () => number;
}

interface Leaf {
  readonly rows: Int32Array;
  readonly gradients: Float64Array;
  readonly curvatures: Float64Array;
  readonly counts: Int32Array;
  readonly gradient: number;
  readonly curvature: number;
  best: { gain: number; feature: number; threshold: number };
  /** Where the split above points to this leaf. */
  readonly parent: { split: Split; side: "low" | "high" } | null;
}

const BINS = 256;

/** Logarithmic loss, second order, leaf by leaf; the rows used are those in `rows`. */
export function fit(samples: Samples, rows: Int32Array, options: FitOptions): Model {
  const { labels, weights } = samples;
  let positive = 0, all = 0;
  for (const row of rows) {
    all += weights[row]!;
    positive += weights[row]! * labels[row]!;
  }
  const bias = Math.log(positive / (all - positive));
  const z = new Float64Array(labels.length).fill(bias);
  const gradients = new Float64Array(labels.length), curvatures = new Float64Array(labels.length);
  const trees: Tree[] = [];
  for (let t = 0; t < options.trees; t++) {
    for (const row of rows) {
      const p = 1 / (1 + Math.exp(-z[row]!));
      gradients[row] = weights[row]! * (p - labels[row]!);
      curvatures[row] = weights[row]! * Math.max(1e-6, p * (1 - p));
    }
    const features: number[] = [];
    for (let f = 0; f < samples.width; f++) if (options.random() < options.features) features.push(f);
    trees.push(grow(samples, rows, gradients, curvatures, z, features, options));
  }
  return { bias, trees };
}

function grow(
  samples: Samples,
  rows: Int32Array,
  gradients: Float64Array,
  curvatures: Float64Array,
  z: Float64Array,
  features: readonly number[],
  options: FitOptions,
): Tree {
  const { width, values } = samples;
  const splits: Split[] = [];
  const measured = (rows: Int32Array, parent: Leaf["parent"], without?: readonly [Leaf, Leaf]): Leaf => {
    const size = features.length * BINS;
    const g = new Float64Array(size), h = new Float64Array(size), n = new Int32Array(size);
    let gradient = 0, curvature = 0;
    for (const row of rows) {
      gradient += gradients[row]!;
      curvature += curvatures[row]!;
    }
    if (without) {
      const [whole, part] = without;
      for (let i = 0; i < size; i++) {
        g[i] = whole.gradients[i]! - part.gradients[i]!;
        h[i] = whole.curvatures[i]! - part.curvatures[i]!;
        n[i] = whole.counts[i]! - part.counts[i]!;
      }
    } else {
      for (const row of rows) {
        const at = row * width, a = gradients[row]!, b = curvatures[row]!;
        for (let f = 0; f < features.length; f++) {
          const bin = f * BINS + values[at + features[f]!]!;
          g[bin]! += a;
          h[bin]! += b;
          n[bin]!++;
        }
      }
    }
    const leaf: Leaf = {
      ...{ rows, gradients: g, curvatures: h, counts: n, gradient, curvature, parent },
      best: { gain: 0, feature: -1, threshold: 0 },
    };
    const own = gradient * gradient / (curvature + options.shrinkage);
    for (let f = 0; f < features.length; f++) {
      let gl = 0, hl = 0, nl = 0;
      for (let bin = 0; bin < BINS - 1; bin++) {
        const i = f * BINS + bin;
        if (n[i] === 0) continue;
        gl += g[i]!;
        hl += h[i]!;
        nl += n[i]!;
        if (nl < options.leastSamples) continue;
        if (rows.length - nl < options.leastSamples) break;
        const gr = gradient - gl, hr = curvature - hl;
        const gain = gl * gl / (hl + options.shrinkage) + gr * gr / (hr + options.shrinkage) - own;
        if (gain > leaf.best.gain + 1e-9) {
          // Halfway to the next number that occurs, for samples that lie between.
          let next = bin + 1;
          while (n[f * BINS + next] === 0) next++;
          leaf.best = { gain, feature: features[f]!, threshold: (bin + next - 1) >> 1 };
        }
      }
    }
    return leaf;
  };
  const leaves = [measured(rows, null)];
  while (leaves.length < options.leaves) {
    let chosen = 0;
    for (let i = 1; i < leaves.length; i++) if (leaves[i]!.best.gain > leaves[chosen]!.best.gain) chosen = i;
    const leaf = leaves[chosen]!;
    if (leaf.best.gain <= 0) break;
    const { feature, threshold } = leaf.best;
    const split: Split = { feature, threshold, low: 0, high: 0 };
    splits.push(split);
    if (leaf.parent) leaf.parent.split[leaf.parent.side] = splits.length - 1;
    const low = leaf.rows.filter((row) => values[row * width + feature]! <= threshold);
    const high = leaf.rows.filter((row) => values[row * width + feature]! > threshold);
    let lowLeaf: Leaf, highLeaf: Leaf;
    if (low.length <= high.length) {
      lowLeaf = measured(low, { split, side: "low" });
      highLeaf = measured(high, { split, side: "high" }, [leaf, lowLeaf]);
    } else {
      highLeaf = measured(high, { split, side: "high" });
      lowLeaf = measured(low, { split, side: "low" }, [leaf, highLeaf]);
    }
    leaves.splice(chosen, 1, lowLeaf, highLeaf);
  }
  const values_ = leaves.map((leaf, i) => {
    const value = -options.rate * leaf.gradient / (leaf.curvature + options.shrinkage);
    if (leaf.parent) leaf.parent.split[leaf.parent.side] = -1 - i;
    for (const row of leaf.rows) z[row]! += value;
    return value;
  });
  return { splits, leaves: values_ };
}

/** The logarithm of the odds that the sample's label is 1. */
export function evaluate(model: Model, values: Uint8Array, at: number): number {
  let z = model.bias;
  for (const { splits, leaves } of model.trees) {
    if (splits.length === 0) {
      z += leaves[0]!;
      continue;
    }
    let node = 0;
    while (node >= 0) {
      const split = splits[node]!;
      node = values[at + split.feature]! > split.threshold ? split.high : split.low;
    }
    z += leaves[-1 - node]!;
  }
  return z;
}
